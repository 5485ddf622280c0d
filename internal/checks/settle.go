package checks

import (
	"context"
	"time"

	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parts"
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
