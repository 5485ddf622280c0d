package shared_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
)

// Sizes of the storm. Few documents and values, so that all meet at them.
const (
	stormGoroutines = 3 // of each database
	stormRounds     = 60
	stormDocuments  = 12
	stormTallies    = 3
	stormMails      = 6
)

// storm is what the goroutines of both databases have done.
type storm struct {
	t *testing.T

	mu      sync.Mutex
	ids     map[string]bool // that were made. Guarded by mu.
	vectors map[string]bool // of all versions. Guarded by mu.
	numbers map[int64]bool  // of an identity, without a document. Guarded by mu.

	tallies   [stormTallies]atomic.Int64
	exchanged atomic.Int64
}

// note notes a version, and whether its ID was made for it: neither may come twice.
func (s *storm) note(m jay.Metadata, made bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vectors[m.ChangeVector] || made && s.ids[m.ID] {
		s.t.Errorf("%s, version %s, came twice", m.ID, m.ChangeVector)
	}
	s.vectors[m.ChangeVector] = true
	if made {
		s.ids[m.ID] = true
	}
}

// gust is one goroutine: what it does, with which database.
type gust struct {
	*storm
	*rand.Rand
	db *jay.DB
}

// stormVerbs are what a goroutine does. Each returns an error that must not be.
var stormVerbs = []func(g *gust) error{
	(*gust).put, (*gust).put, (*gust).delete, (*gust).makeIDs, (*gust).number, (*gust).tally, (*gust).patch,
	(*gust).user, (*gust).user, (*gust).exchange, (*gust).batch, (*gust).index,
}

func (g *gust) id() string { return fmt.Sprint("docs/", g.IntN(stormDocuments)) }

func (g *gust) body() json.RawMessage {
	return fmt.Appendf(nil, `{"n":%d,"list":[%d,%d]}`, g.IntN(10), g.IntN(5), g.IntN(5))
}

var inDocs = jay.InCollection("Docs")

func (g *gust) put() error {
	m, err := g.db.Put(ctx, g.id(), g.body(), inDocs)
	if err == nil {
		g.note(m, false)
	}
	return err
}

func (g *gust) delete() error {
	err := g.db.Delete(ctx, g.id())
	if errors.Is(err, jay.ErrNotFound) {
		err = nil
	}
	return err
}

// makeIDs stores documents under IDs of each kind.
func (g *gust) makeIDs() error {
	for _, request := range []string{"made/", "made|"} {
		m, err := g.db.Put(ctx, request, g.body(), inDocs)
		if err != nil {
			return err
		}
		g.note(m, true)
	}
	m, err := g.db.Store(ctx, "Ranges", g.body())
	if err == nil {
		g.note(m, true)
	}
	return err
}

func (g *gust) number() error {
	n, err := g.db.NextIdentity(ctx, "numbers|")
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && g.numbers[n] {
		g.t.Errorf("number %d came twice", n)
	}
	g.numbers[n] = true
	return err
}

// tally adds one to a document in a transaction, and makes a document of it.
func (g *gust) tally() error {
	i := g.IntN(stormTallies)
	id := fmt.Sprint("tallies/", i)
	err := g.db.Update(ctx, func(tx *jay.Tx) error {
		n := int64(0)
		doc, err := tx.Get(ctx, id)
		if err == nil {
			var tally struct{ N int64 }
			if err := doc.Decode(&tally); err != nil {
				return err
			}
			n = tally.N
		} else if !errors.Is(err, jay.ErrNotFound) {
			return err
		}
		if _, err := tx.Put(ctx, id, fmt.Appendf(nil, `{"N":%d}`, n+1)); err != nil {
			return err
		}
		_, err = tx.Put(ctx, fmt.Sprint("docs/", g.IntN(stormDocuments)), g.body(), inDocs)
		return err
	}, jay.Retry())
	if err == nil {
		g.tallies[i].Add(1)
	}
	return err
}

func (g *gust) patch() error {
	i := g.IntN(stormTallies)
	_, err := g.db.Patch(ctx, fmt.Sprint("tallies/", i), jay.Increment("N", 1), jay.OrInsert(json.RawMessage(`{"N":1}`)))
	if err == nil {
		g.tallies[i].Add(1)
	}
	return err
}

// user takes one of few mail addresses, of which each may be taken once.
func (g *gust) user() error {
	id := fmt.Sprint("users/", g.IntN(2*stormMails))
	_, err := g.db.Put(ctx, id, fmt.Appendf(nil, `{"mail":"m%d"}`, g.IntN(stormMails)), jay.InCollection("Users"))
	if errors.Is(err, jay.ErrUnique) {
		return nil
	}
	if err == nil && g.IntN(2) == 0 {
		err = g.db.Delete(ctx, id)
	}
	return err
}

func (g *gust) exchange() error {
	c := g.db.CompareExchange()
	v, err := c.Get(ctx, "count")
	if err != nil && !errors.Is(err, jay.ErrNotFound) {
		return err
	}
	n, index := int64(0), uint64(0)
	if err == nil {
		index = v.Index
		if err := v.Decode(&n); err != nil {
			return err
		}
	}
	_, err = c.Put(ctx, "count", n+1, index)
	if errors.Is(err, jay.ErrConflict) {
		return nil
	}
	if err == nil {
		g.exchanged.Add(1)
	}
	return err
}

func (g *gust) batch() error {
	var b jay.Batch
	for range 3 {
		b.Put(g.id(), g.body(), inDocs)
	}
	b.Put("made/", g.body(), inDocs)
	all, err := g.db.Apply(ctx, &b)
	if err == nil {
		g.note(all[3], true)
	}
	return err
}

// index makes an index, or drops it: others maintain it meanwhile.
func (g *gust) index() error {
	name := fmt.Sprint("i", g.IntN(2))
	if g.IntN(3) == 0 {
		err := g.db.DropIndex(ctx, "Docs", name)
		if errors.Is(err, jay.ErrIndex) {
			err = nil // it is not there
		}
		return err
	}
	err := g.db.EnsureIndex(ctx, "Docs", jay.Index{Name: name, Fields: []string{[]string{"n", "list"}[g.IntN(2)]}}, jay.ReplaceIndex())
	if errors.Is(err, jay.ErrIndex) || errors.Is(err, jay.ErrIndexExists) {
		err = nil // another goroutine has dropped it, or declared it otherwise, meanwhile
	}
	return err
}

// Ensure that of two databases in a storm of documents, indexes and numbers no write is lost, no number comes
// twice, each unique value is taken once, and both see the same at the end.
func TestStorm(t *testing.T) {
	for name, o := range map[string]jay.Options{"synced": {}, "relaxed": {Durability: jay.Relaxed}} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			a, b := openTwo(t, o)
			must(t, a.EnsureIndex(ctx, "Users", jay.Index{Name: "mail", Fields: []string{"mail"}, Unique: true}))
			must(t, b.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Users": {Keep: 3}}}))
			s := &storm{t: t, ids: make(map[string]bool), vectors: make(map[string]bool), numbers: make(map[int64]bool)}
			var wg sync.WaitGroup
			for i, db := range []*jay.DB{a, b} {
				for j := range stormGoroutines {
					g := &gust{storm: s, Rand: rand.New(rand.NewPCG(seed, uint64(i*stormGoroutines+j))), db: db}
					wg.Go(g.blow)
				}
			}
			wg.Wait()
			s.check(a, b)
		})
	}
}

// blow does one thing after another.
func (g *gust) blow() {
	for range stormRounds {
		i := g.IntN(len(stormVerbs))
		if err := stormVerbs[i](g); err != nil {
			g.t.Errorf("verb %d: %v", i, err)
			return
		}
	}
}

// check compares what was done with what each database has. Its caller compares the databases.
func (s *storm) check(all ...*jay.DB) {
	t := s.t
	for _, db := range all {
		for i := range s.tallies {
			var tally struct{ N int64 }
			doc, err := db.Get(ctx, fmt.Sprint("tallies/", i))
			must(t, err)
			must(t, doc.Decode(&tally))
			want(t, doc.ID(), tally.N, s.tallies[i].Load())
		}
		v, err := db.CompareExchange().Get(ctx, "count")
		must(t, err)
		n := int64(0)
		must(t, v.Decode(&n))
		want(t, "the compare-exchange value", n, s.exchanged.Load())

		mails := make(map[string]string)
		last := uint64(0)
		for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
			must(t, err)
			if other := mails[string(doc.Body())]; other != "" {
				t.Errorf("%s and %s both have %s", other, doc.ID(), doc.Body())
			}
			mails[string(doc.Body())] = doc.ID()
		}
		for c, err := range db.Changes(ctx, "", jay.UntilCaughtUp()) {
			must(t, err)
			if c.Etag <= last {
				t.Errorf("a change of etag %d comes after that of %d", c.Etag, last)
			}
			last = c.Etag
		}
		for id := range s.ids {
			if _, err := db.Get(ctx, id); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
}
