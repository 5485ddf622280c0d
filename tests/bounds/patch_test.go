package bounds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that rivals that patch one large document leave room for writers of
// others, and that each of them has its turn.
func TestPatch_LargeRivals(t *testing.T) {
	if jaytest.Race {
		t.Skip("it is about turns; for the detector there is TestPatch_LargeRivals_Exact")
	}
	db := memory(t, nil)
	put(t, db, "large/1", fmt.Sprintf(`{"n":0,"a":"%s"}`, strings.Repeat("x", 31<<20)))
	var moves []string
	for range 50 {
		moves = append(moves, `{"op":"move","from":"/a","path":"/b"},{"op":"move","from":"/b","path":"/a"}`)
	}
	patch := jay.JSONPatch(json.RawMessage("[" + strings.Join(moves, ",") + "]"))

	const rivals = 3
	rounds := 2
	if testing.Short() {
		rounds = 1
	}
	var left atomic.Int64
	left.Store(rivals)
	var wg sync.WaitGroup
	for range rivals {
		wg.Go(func() {
			defer left.Add(-1)
			for range rounds {
				if _, err := db.Patch(ctx, "large/1", jay.Increment("n", 1), patch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	puts := 0
	for ; left.Load() > 0; puts++ {
		put(t, db, fmt.Sprint("small/", puts%100), `{"n":1}`)
	}
	wg.Wait()
	t.Logf("%d writes of other documents beside %d patches", puts, rivals*rounds)
	if puts < 20*rivals*rounds {
		t.Errorf("%d writes of other documents beside %d patches", puts, rivals*rounds)
	}
	doc, err := db.Get(ctx, "large/1")
	must(t, err)
	if got, want := string(doc.Body()[:7]), fmt.Sprintf(`{"n":%d,`, rivals*rounds); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Ensure that many patches of a document, which is too large to be patched in a
// transaction, and writes of it lose nothing of each other.
func TestPatch_LargeRivals_Exact(t *testing.T) {
	db := memory(t, nil)
	pad := strings.Repeat("x", 400_000)
	put(t, db, "large/1", fmt.Sprintf(`{"n":0,"l":[],"pad":"%s"}`, pad))
	const rivals, rounds = 8, 10
	var wg sync.WaitGroup
	for i := range rivals {
		wg.Go(func() {
			for j := range rounds {
				var err error
				switch (i + j) % 3 {
				case 0:
					_, err = db.Patch(ctx, "large/1", jay.Increment("n", 1), jay.Append("l", i*rounds+j))
				case 1:
					var b jay.Batch
					b.Patch("large/1", jay.Increment("n", 1))
					b.Put(fmt.Sprint("other/", i), json.RawMessage(`{}`))
					b.Patch("large/1", jay.Append("l", i*rounds+j))
					_, err = db.Apply(ctx, &b)
				case 2:
					err = db.Update(ctx, func(tx *jay.Tx) error {
						_, err := tx.Patch(ctx, "large/1", jay.Increment("n", 1), jay.Append("l", i*rounds+j))
						return err
					}, jay.Retry(1_000_000))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	doc, err := db.Get(ctx, "large/1")
	must(t, err)
	var got struct {
		N int
		L []int
	}
	must(t, json.Unmarshal(doc.Body(), &got))
	seen := make(map[int]bool)
	for _, n := range got.L {
		seen[n] = true
	}
	if got.N != rivals*rounds || len(got.L) != got.N || len(seen) != got.N {
		t.Errorf("n is %d, %d values, %d different; want %d", got.N, len(got.L), len(seen), rivals*rounds)
	}
}

// Ensure that a patch that takes too much work is refused in every form, that
// its error names the limit, and that nothing is changed.
func TestPatch_TooMuchWork(t *testing.T) {
	sample.OneGoroutine(t)
	body := `{"n":1,"a":[1` + strings.Repeat(",1", 4_000_000) + `]}`
	var opts []jay.PatchOption
	for range 10 {
		opts = append(opts, jay.Increment("a[]", 1))
	}
	today := sample.Of(t, 3)
	for i, where := range []string{"database", "batch", "transaction"} {
		if !today.Has(i) {
			continue
		}
		t.Run(where, func(t *testing.T) {
			db := memory(t, nil)
			was := put(t, db, "large/1", body)
			_, err := patchIn(where, db, "large/1", opts)
			var e *jay.PatchError
			if !errors.Is(err, jay.ErrPatchWork) || !errors.Is(err, jay.ErrInvalidPatch) || !errors.As(err, &e) || !strings.Contains(err.Error(), "may take 536870912 units") {
				t.Errorf("got %v", err)
			}
			doc, err := db.Get(ctx, "large/1")
			must(t, err)
			if doc.ChangeVector() != was.ChangeVector {
				t.Error("the document was written")
			}
		})
	}
}

// tiring is a context that ends when it is looked at often enough.
type tiring struct {
	context.Context
	looks atomic.Int64
}

func (c *tiring) Err() error {
	if c.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Ensure that a long patch ends with its context, in every form.
func TestPatch_Cancelled(t *testing.T) {
	sample.OneGoroutine(t)
	body := `{"n":1,"a":[1` + strings.Repeat(",1", 2_000_000) + `]}`
	db := memory(t, nil)
	was := put(t, db, "large/1", body)
	for _, looks := range []int64{10, 30} { // of some 60, most of them in the patch
		for where, patch := range map[string]func(ctx context.Context) error{
			"database": func(ctx context.Context) error {
				_, err := db.Patch(ctx, "large/1", jay.Increment("a[]", 1))
				return err
			},
			"batch": func(ctx context.Context) error {
				var b jay.Batch
				b.Patch("large/1", jay.Increment("a[]", 1))
				_, err := db.Apply(ctx, &b)
				return err
			},
			"transaction": func(limited context.Context) error {
				return db.Update(ctx, func(tx *jay.Tx) error {
					_, err := tx.Patch(limited, "large/1", jay.Increment("a[]", 1))
					return err
				})
			},
			"batch in a transaction": func(limited context.Context) error {
				return db.Update(ctx, func(tx *jay.Tx) error {
					var b jay.Batch
					b.Patch("large/1", jay.Increment("a[]", 1))
					_, err := tx.Apply(limited, &b)
					return err
				})
			},
		} {
			c := &tiring{Context: ctx}
			c.looks.Store(looks)
			if err := patch(c); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, %d looks: got %v", where, looks, err)
			}
		}
	}
	doc, err := db.Get(ctx, "large/1")
	must(t, err)
	if doc.ChangeVector() != was.ChangeVector {
		t.Error("the document was written")
	}
}
