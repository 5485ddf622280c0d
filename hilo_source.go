package jay

import (
	"context"
	"slices"
	"sync"
	"weak"

	"github.com/jaydb/jay/ids"
)

// HiLoClient draws IDs of the generation that Options.HiLoMode names. The database
// has a client of its own; others are independent of it, as if each ran on another
// machine. See DB.NewHiLoClient.
//
// Its methods return ErrClientClosed after its Close, ErrClosed after that of
// the database.
type HiLoClient = ids.Client

// hiloOptions are what the database was opened with.
type hiloOptions struct {
	Generation generation
	Capacity   int64  // of HiLo2010 and HiLo2; 0 for none given
	Growth     Growth // of HiLo2
}

// generation is a generation of HiLo.
type generation uint8

const (
	generation4 generation = iota
	generation2
	generation2010
)

// NewHiLoClient returns an independent client, which never holds a number that
// another client holds. Its Next and NextN take a tag, such as "users". Close it
// before the database, or the rest of its ranges stays unused.
//
// RaiseCounters raises the client, too, and InspectIDs reports the numbers that it
// holds.
func (db *DB) NewHiLoClient() *HiLoClient {
	c := db.clientOf(db.env)
	db.clients.add(c)
	return c
}

// clients are the clients of this process that are still in use, without the
// database's own.
type clients struct {
	mu   sync.Mutex
	list []weak.Pointer[ids.Client] // Guarded by mu.
}

func (c *clients) add(client *ids.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == cap(c.list) {
		c.list = slices.DeleteFunc(c.list, func(p weak.Pointer[ids.Client]) bool { return p.Value() == nil })
	}
	c.list = append(c.list, weak.Make(client))
}

// eachClient calls fn with the HiLo clients of this process.
func (db *DB) eachClient(fn func(*ids.Client)) {
	fn(db.client)
	db.clients.mu.Lock()
	list := slices.Clone(db.clients.list)
	db.clients.mu.Unlock()
	for _, p := range list {
		if c := p.Value(); c != nil {
			fn(c)
		}
	}
}

// newClient returns the client that the database's own writes use.
func (db *DB) newClient() *ids.Client { return db.clientOf(ungated{}) }

func (db *DB) clientOf(g gate) *ids.Client {
	switch db.hilo.Generation {
	case generation2:
		return ids.NewClient(&hilo2Source{gate: g, db: db, paces: make(map[string]*ids.Pace)}, false)
	case generation2010:
		return ids.NewClient(hilo2010Source{gate: g, db: db}, false)
	}
	return ids.NewClient(hiloSource{gate: g, db: db}, true)
}

// gate is how the calls of a source enter the database.
type gate interface {
	Enter() error
	Exit()
}

// ungated does not enter: the database's own client is called by writes that are
// inside already, and by Close.
type ungated struct{}

func (ungated) Enter() error { return nil }

func (ungated) Exit() {}

// hiloSource grants the ranges of HiLo4.
type hiloSource struct {
	gate
	db *DB
}

func (s hiloSource) NextRange(ctx context.Context, req RangeRequest) (Range, error) {
	if err := s.Enter(); err != nil {
		return Range{}, err
	}
	defer s.Exit()
	return s.db.nextRange(ctx, req)
}

func (s hiloSource) ReturnRange(ctx context.Context, tag string, last, end int64) (bool, error) {
	if err := s.Enter(); err != nil {
		return false, err
	}
	defer s.Exit()
	return s.db.returnRange(ctx, tag, last, end)
}
