package index_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/querytest"
	"github.com/jaydb/jay/internal/sample"
)

// refused reports whether a random write was refused for a good reason.
func refused(err error) bool {
	for _, good := range []error{jay.ErrCollection, jay.ErrUnique, jay.ErrNotFound, jay.ErrExists, jay.ErrConflict, jay.ErrInvalidPatch} {
		if errors.Is(err, good) {
			return true
		}
	}
	return false
}

// changeAtRandom writes in one of all ways.
func changeAtRandom(t testing.TB, g *querytest.Generator, db *jay.DB, n int) {
	body := func() json.RawMessage { return json.RawMessage(g.Body(g.IntN(300))) }
	id := func() string { return g.ID(g.IntN(n)) }
	in := jay.InCollection(g.Collection())
	var err error
	kinds := 12
	if g.NoStore {
		kinds = 10
	}
	switch g.IntN(kinds) {
	case 10:
		_, err = db.Store(ctx, "Orders", body())
	case 0, 1:
		_, err = db.Put(ctx, id(), body(), in)
	case 2:
		_, err = db.Insert(ctx, id(), body(), in)
	case 3:
		_, err = db.Replace(ctx, id(), body(), in)
	case 4, 5:
		err = db.Delete(ctx, id())
	case 6:
		_, err = db.Patch(ctx, id(), jay.Set("a", g.IntN(5)), jay.Unset("c"), jay.Append("l", g.IntN(5)))
	case 7:
		_, err = db.Patch(ctx, id(), jay.Rename("b", "c"), jay.OrInsert(body()))
	case 8:
		var b jay.Batch
		for range 1 + g.IntN(20) {
			if g.Chance(25) {
				b.Delete(id())
			} else {
				b.Put(id(), body(), in)
			}
		}
		_, err = db.Apply(ctx, &b)
	case 9:
		err = db.Update(ctx, func(tx *jay.Tx) error {
			for range 1 + g.IntN(5) {
				if err := tx.Delete(ctx, id()); err != nil {
					return err
				}
				if _, err := tx.Put(ctx, id(), body(), in); err != nil {
					return err
				}
			}
			return nil
		})
	case 11:
		var w *jay.BulkWriter
		w, err = db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1 + g.IntN(10)})
		must(t, err)
		for range g.IntN(20) {
			if g.Chance(50) {
				_, err = w.Store(ctx, "Orders", body())
			} else {
				_, err = w.Put(ctx, id(), body(), in)
			}
			if err != nil {
				break
			}
		}
		err = errors.Join(err, w.Close())
	}
	if err != nil && !refused(err) {
		t.Errorf("write: %v", err)
	}
}

// Ensure that the entries of indexes are those that all documents give, after
// writes of every kind, and that indexes that were dropped leave nothing.
func TestIndex_Contents_AfterWrites(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	first := querytest.Seed(t)
	for round := range querytest.Rounds(t, 8) {
		seed := first + uint64(round)
		g := querytest.New(seed)
		db := memory(t, &jay.Options{CaseSensitive: g.Chance(20)})
		var indexes []jay.Index
		for phase := range 5 {
			for range 60 {
				changeAtRandom(t, g, db, 60)
			}
			if err := checks.Indexes(db); err != nil || t.Failed() {
				t.Fatalf("JAY_QUERY_SEED=%d, phase %d, indexes %+v: %v", seed, phase, indexes, err)
			}
			indexes = querytest.ChangeIndexes(t, g, db, indexes)
			if err := checks.Indexes(db); err != nil {
				t.Fatalf("JAY_QUERY_SEED=%d, phase %d, new indexes %+v: %v", seed, phase, indexes, err)
			}
		}
	}
}

// Ensure that an index that is built while others write has all entries when it
// is ready, and that a drop under writes leaves none: at any moment.
func TestIndex_Contents_DuringBuilds(t *testing.T) {
	defer checks.SetBuildChunks(60, 200)()
	contentsDuringBuilds(t, 1)
}

// contentsDuringBuilds builds so many indexes at once.
func contentsDuringBuilds(t *testing.T, together int) {
	seed := querytest.Seed(t)
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	g := querytest.New(seed)
	for range 200 {
		changeAtRandom(t, g, db, 400)
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	var writes atomic.Int64
	for n := range 3 {
		writers.Go(func() {
			g := querytest.New(seed + uint64(n) + 1)
			g.NoStore = true // the documents stay as many
			for !t.Failed() {
				select {
				case <-stop:
					return
				default:
				}
				if n > 0 {
					changeAtRandom(t, g, db, 400)
				} else {
					writeMany(t, g, db, 300)
				}
				writes.Add(1)
			}
		})
	}
	builds := 12 * querytest.Rounds(t, 1) / together
	today := sample.Of(t, 4)
	for i := range builds {
		if !today.Has(i) {
			continue
		}
		ix := jay.Index{Name: fmt.Sprint("n", i), Fields: []string{[...]string{"a", "-b", "c", "l", "ls.p"}[i%5]}}
		if i%3 == 0 {
			ix.Fields = append(ix.Fields, "d.x")
		}
		if i%4 == 0 {
			ix.Where = "a = 1"
		}
		indexes := []jay.Index{ix}
		for j := 1; j < together; j++ {
			indexes = append(indexes, jay.Index{Name: fmt.Sprint(ix.Name, "with", j), Fields: []string{[...]string{"ls.p", "-a", "d.x", "b"}[(i+j)%4]}})
		}
		if err := db.EnsureIndexes(ctx, "Orders", indexes); err != nil {
			t.Errorf("build: %v", err)
		}
		if err := checks.Indexes(db); err != nil {
			t.Errorf("JAY_QUERY_SEED=%d, build %d, after %d writes: %v", seed, i, writes.Load(), err)
		}
		for _, ix := range indexes {
			if err := db.DropIndex(ctx, "Orders", ix.Name); err != nil {
				t.Errorf("drop: %v", err)
			}
		}
		if err := checks.Indexes(db); err != nil {
			t.Errorf("JAY_QUERY_SEED=%d, drop %d: %v", seed, i, err)
		}
		if t.Failed() {
			break
		}
	}
	close(stop)
	writers.Wait()
	t.Logf("%d writes during %d builds", writes.Load(), builds)
}

// writeMany writes a batch that takes its time.
func writeMany(t testing.TB, g *querytest.Generator, db *jay.DB, n int) {
	var b jay.Batch
	for i := range n {
		b.Put(fmt.Sprint("orders/many", i), json.RawMessage(g.Body(1000+i)), jay.InCollection("Orders"))
	}
	if _, err := db.Apply(ctx, &b); err != nil && !refused(err) {
		t.Errorf("batch: %v", err)
	}
}
