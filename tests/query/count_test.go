package query_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
)

// thing returns the ID and the body of one of some thousands of documents.
func thing(random *rand.Rand) (id string, body []byte) {
	return fmt.Sprint("things/", random.IntN(6000)), fmt.Appendf(nil, `{"N":%d}`, random.IntN(100))
}

// countsAgree compares counts of many entries of an index with the documents that a transaction finds.
func countsAgree(tx *jay.Tx, random *rand.Rand) error {
	for _, op := range []string{">=", "<="} {
		q, err := tx.RQL(fmt.Sprintf("from Things where N %s %d", op, random.IntN(100)), nil)
		if err != nil {
			return err
		}
		first, err := q.Count(ctx)
		if err != nil {
			return err
		}
		again, err := q.Count(ctx)
		if err != nil {
			return err
		}
		found := int64(0)
		for _, err := range q.Iter(ctx) {
			if err != nil {
				return err
			}
			found++
		}
		if first != found || again != found {
			return fmt.Errorf("%v: counted %d, then %d; there are %d", q, first, again, found)
		}
	}
	return nil
}

// Ensure that counts of many entries, parts of which are remembered, agree with the documents that the
// same transaction finds, beside writers, and after writes of its own.
func TestCount_BesideWriters(t *testing.T) {
	t.Parallel()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		db := memory(t, &jay.Options{Durability: durability})
		must(t, db.EnsureIndex(ctx, "Things", jay.Index{Name: "N", Fields: []string{"N"}}))
		seeds := rand.New(rand.NewPCG(1, 2))
		var batch jay.Batch
		for i := range 5000 {
			_, body := thing(seeds)
			batch.Put(fmt.Sprint("things/", i), body, jay.InCollection("Things"))
		}
		_, err := db.Apply(ctx, &batch)
		must(t, err)

		var stop atomic.Bool
		var writers, readers sync.WaitGroup
		for w := range 2 {
			writers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(w), 3))
				for !stop.Load() {
					id, body := thing(random)
					var err error
					if random.IntN(4) == 0 {
						err = db.Delete(ctx, id)
					} else {
						_, err = db.Put(ctx, id, body, jay.InCollection("Things"))
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for r := range 2 {
			readers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(r), 4))
				for range rounds {
					if err := db.View(ctx, func(tx *jay.Tx) error { return countsAgree(tx, random) }); err != nil {
						t.Error(err)
						return
					}
					undone := errors.New("undone")
					err := db.Update(ctx, func(tx *jay.Tx) error {
						for range 20 {
							id, body := thing(random)
							if _, err := tx.Put(ctx, id, body, jay.InCollection("Things")); err != nil {
								return err
							}
						}
						if err := countsAgree(tx, random); err != nil {
							return err
						}
						return undone
					})
					if err != undone {
						t.Error(err)
						return
					}
				}
			})
		}
		readers.Wait()
		stop.Store(true)
		writers.Wait()
	}
}
