package checks

import (
	"context"
	"errors"
	"time"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/storage"
)

// NoSettler keeps databases that are opened from then on from settling indexes in the background, and
// returns what undoes that.
func NoSettler() (restore func()) {
	was := knobs.NoSettler
	knobs.NoSettler = true
	return func() { knobs.NoSettler = was }
}

// OnSettle has fn called before each commit that settles a part of an index, with the context that
// Close ends, and returns what undoes that. Nothing may be settled when it is called, and when it is undone.
func OnSettle(fn func(ctx context.Context)) (restore func()) {
	indexer.OnSettle = fn
	return func() { indexer.OnSettle = nil }
}

// SetSettlePause makes the worker wait so long after the engine was away, and returns what undoes that. No database
// may be open.
func SetSettlePause(d time.Duration) (restore func()) {
	was := indexer.SettlePause
	indexer.SettlePause = d
	return func() { indexer.SettlePause = was }
}

// SettleSome settles a part of an index, and reports whether there was one. The database must have been opened under NoSettler.
func SettleSome(db any) (found bool, err error) {
	return parts.Of(db).Indexer.Settle(context.Background())
}

// Settle settles all indexes. The database must have been opened under NoSettler.
func Settle(db any) error {
	for {
		if found, err := SettleSome(db); !found || err != nil {
			return err
		}
	}
}

// Settles reports whether this process settles, of those that have a store open.
func Settles(db any) (bool, error) { return parts.Of(db).Env.Works.Does("settling") }

// SetSettleLook sets how often a process looks whether others have written what is to be settled, and returns what undoes that. No database may
// be open.
func SetSettleLook(d time.Duration) (restore func()) {
	was := indexer.SettleLook
	indexer.SettleLook = d
	return func() { indexer.SettleLook = was }
}

// WaitSettled returns when nothing is settled in the background any more.
func WaitSettled(db any) { parts.Of(db).Indexer.WaitSettled() }

// SetTrails sets how many deleted keys the engine compacts in the trail of an index, and how long it rests afterwards, and returns what undoes
// that. No database may be open.
func SetTrails(keys int, pause time.Duration) (restore func()) {
	wasKeys, wasPause := indexer.TrailKeys, indexer.TrailPause
	indexer.TrailKeys, indexer.TrailPause = keys, pause
	return func() { indexer.TrailKeys, indexer.TrailPause = wasKeys, wasPause }
}

// Trail returns the range of keys of which settling the only index that settles deletes some, as queries read it. Nothing may be settled meanwhile.
func Trail(db any) (lo, hi []byte) {
	for _, ix := range parts.Of(db).Indexes.Load().All {
		if p, is := ix.Settler.(catalog.Presser); is {
			lo, hi = p.Pressure().Trail.Lo, p.Pressure().Trail.Hi
		}
	}
	return lo, hi
}

// Passed returns how many deleted keys a reader of a range passes, and false if the engine does not know.
func Passed(db any, lo, hi []byte) (n int, known bool, err error) {
	s := parts.Of(db).Env.Engine.Snapshot()
	defer func() { err = errors.Join(err, s.Close()) }()
	it, err := s.Iterate(lo, hi)
	if err != nil {
		return 0, false, err
	}
	for ok := it.First(); ok; {
		ok = it.Next()
	}
	passer, known := it.(storage.Passer)
	if known {
		n = passer.Passed()
	}
	return n, known, errors.Join(it.Error(), it.Close())
}

// Validates reports whether this process validates documents against schemas, of those that have a store open.
func Validates(db any) (bool, error) { return parts.Of(db).Env.Works.Does("validating") }

// SetSchemaLook sets how often a process looks whether others have set a rule that nobody validates, and returns what undoes that. No database
// may be open.
func SetSchemaLook(d time.Duration) (restore func()) {
	was := schemas.Look
	schemas.Look = d
	return func() { schemas.Look = was }
}
