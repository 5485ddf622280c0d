package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that an ID that a writer has taken by hand, a little ahead of the HiLo
// numbers, is skipped by them, though the engine knows by then that there was
// nothing; and that one that was deleted before its turn is used.
func TestStore_TakenAhead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := memory(t, nil)
	random := rand.New(rand.NewPCG(1, 2))
	const byHand = `{"by":"hand"}`
	bodies := make(map[string]string) // by ID
	number := 0
	for i := range 3000 {
		if id := fmt.Sprintf("orders/%d-A", number+2+random.IntN(60)); i%7 == 3 && bodies[id] == "" {
			put(t, db, id, byHand, jay.InCollection("orders"))
			bodies[id] = byHand
			if i%4 == 0 {
				if err := db.Delete(ctx, id); err != nil {
					t.Fatal(err)
				}
				delete(bodies, id)
			}
		}
		text := fmt.Sprintf(`{"n":%d}`, i)
		m, err := db.Store(ctx, "orders", json.RawMessage(text))
		if err != nil {
			t.Fatal(err)
		}
		if bodies[m.ID] != "" {
			t.Fatalf("Store %d returned %s, which is there", i, m.ID)
		}
		bodies[m.ID] = text
		if _, err := fmt.Sscanf(m.ID, "orders/%d-A", &number); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range bodies {
		equal(t, body(t, db, id), want)
	}
}

// Ensure the same of many goroutines at once, some of which insert by hand: no
// two inserts of an ID succeed.
func TestStore_TakenAhead_Concurrent(t *testing.T) {
	ctx := context.Background()
	db := memory(t, nil)
	const goroutines, rounds = 8, 300
	var mu sync.Mutex
	owners := make(map[string]string) // by folded ID, the body
	own := func(id, body string) {
		mu.Lock()
		defer mu.Unlock()
		if owner := owners[id]; owner != "" {
			t.Errorf("%s was given to %s and to %s", id, owner, body)
		}
		owners[id] = body
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				text := fmt.Sprintf(`{"g":%d,"i":%d}`, g, i)
				if g%4 != 0 {
					m, err := db.Store(ctx, "orders", json.RawMessage(text))
					if err != nil {
						t.Error(err)
						return
					}
					own(m.ID, text)
					continue
				}
				id := fmt.Sprintf("orders/%d-A", i*6+g)
				_, err := db.Insert(ctx, id, json.RawMessage(text), jay.InCollection("orders"))
				if err == nil {
					own(id, text)
				} else if !errors.Is(err, jay.ErrExists) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for id, want := range owners {
		equal(t, body(t, db, id), want)
	}
}
