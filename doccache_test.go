package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that Get never returns less than what was acknowledged before it was
// called, though documents are read so often that they are kept in memory: by
// puts, patches, transactions, deletes and bulk writers.
func TestDocumentCache_NothingStale(t *testing.T) {
	t.Parallel()
	const hot = 16
	db := memory(t, &jay.Options{Durability: jay.Relaxed, DocumentCacheBytes: 64 << 10})
	for i := range hot {
		put(t, db, fmt.Sprintf("hot/%d", i), `{"n":0}`)
	}
	var acknowledged [hot]atomic.Int64
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := 0; !stop.Load(); i++ {
				at := i % hot
				least := acknowledged[at].Load()
				doc, err := db.Get(ctx, fmt.Sprintf("hot/%d", at))
				if errors.Is(err, jay.ErrNotFound) {
					continue // between a delete and the put that follows
				}
				var v struct{ N int64 }
				if err != nil || json.Unmarshal(doc.Body(), &v) != nil || v.N < least {
					t.Errorf("hot/%d: got %v, %v after %d was acknowledged", at, doc, err, least)
					return
				}
			}
		})
	}
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	for at := range hot {
		writers.Go(func() {
			id := fmt.Sprintf("hot/%d", at)
			for n := int64(1); n <= int64(rounds); n++ {
				if err := writeSomehow(db, id, n); err != nil {
					t.Error(err)
				}
				acknowledged[at].Store(n)
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
}

// writeSomehow sets a counter to n, each time in another way.
func writeSomehow(db *jay.DB, id string, n int64) error {
	body := fmt.Appendf(nil, `{"n":%d}`, n)
	var err error
	switch n % 5 {
	case 0:
		_, err = db.Put(ctx, id, body)
	case 1:
		_, err = db.Patch(ctx, id, jay.Set("n", n))
	case 2:
		err = db.Update(ctx, func(tx *jay.Tx) error {
			_, err := tx.Put(ctx, id, body)
			return err
		})
	case 3:
		var b jay.Batch
		b.Delete(id)
		b.Put(id, body)
		_, err = db.Apply(ctx, &b)
	case 4:
		if err = db.Delete(ctx, id); err == nil {
			_, err = db.Insert(ctx, id, body)
		}
	}
	return err
}

// Ensure that writes, which take what is kept for what is there, lose no update
// and leave no index entry: counters are read and written back on the condition
// that no other goroutine did, by many goroutines and in many ways.
func TestDocumentCache_NoUpdateLost(t *testing.T) {
	t.Parallel()
	const hot, goroutines = 3, 8
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	must(t, db.EnsureIndex(ctx, "Hot", jay.Index{Fields: []string{"n"}}))
	for i := range hot {
		put(t, db, fmt.Sprintf("hot/%d", i), `{"@metadata":{"@collection":"Hot"},"n":0}`)
	}
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	var written [hot]atomic.Int64
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range rounds {
				at := (g + i) % hot
				id := fmt.Sprintf("hot/%d", at)
				_, err := db.Get(ctx, id) // twice, so that it is kept
				if err != nil {
					t.Error(err)
					return
				}
				doc, err := db.Get(ctx, id)
				var v struct{ N int64 }
				if err != nil || json.Unmarshal(doc.Body(), &v) != nil {
					t.Errorf("got %v, %v", doc, err)
					return
				}
				body := func(n int64) []byte {
					return fmt.Appendf(nil, `{"@metadata":{"@collection":"Hot"},"n":%d}`, n)
				}
				added := int64(1)
				var b jay.Batch
				switch i % 3 {
				case 0:
					b.Put(id, body(v.N+1), jay.IfMatch(doc.ChangeVector()))
				case 1:
					b.Replace(id, body(v.N+1), jay.IfMatch(doc.ChangeVector()))
					b.Put(id, body(v.N+2)) // over the one of this batch
					added = 2
				case 2:
					b.Put(id, body(v.N+1), jay.IfMatch(doc.ChangeVector()))
					b.Delete(id)
					b.Insert(id, body(v.N+1))
				}
				_, err = db.Apply(ctx, &b)
				var conflict *jay.ConflictError
				switch {
				case err == nil:
					written[at].Add(added)
				case !errors.As(err, &conflict):
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range hot {
		if want := fmt.Sprintf(`{"n":%d}`, written[i].Load()); body(t, db, fmt.Sprintf("hot/%d", i)) != want {
			t.Errorf("hot/%d is %s, want %s", i, body(t, db, fmt.Sprintf("hot/%d", i)), want)
		}
	}
	must(t, jay.CheckIndexes(db))
}

// Ensure that what is kept stays within its bound whatever is read, and that
// documents come and go without harm.
func TestDocumentCache_Bounded(t *testing.T) {
	db := memory(t, &jay.Options{DocumentCacheBytes: 512 << 10})
	filler := fmt.Sprintf("%0500d", 1)
	var b jay.Batch
	for i := range 2000 {
		b.Put(fmt.Sprintf("d/%d", i), fmt.Appendf(nil, `{"i":%d,"filler":%q}`, i, filler))
	}
	_, err := db.Apply(ctx, &b)
	must(t, err)
	for round := range 3 {
		for i := range 2000 {
			for range 1 + i%3 { // some are read at once again, and kept
				doc, err := db.Get(ctx, fmt.Sprintf("D/%d", i))
				must(t, err)
				if want := fmt.Sprintf(`{"i":%d,`, i); string(doc.Body()[:len(want)]) != want {
					t.Fatalf("round %d: got %s, want %s…", round, doc.Body()[:20], want)
				}
			}
		}
	}
	if used := jay.CachedBytes(db); used == 0 || used > 512<<10 {
		t.Errorf("%d bytes are kept, at most %d", used, 512<<10)
	}
}
