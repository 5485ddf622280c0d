package txn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// both runs two transactions that have both read before the first of them
// commits, and returns their errors.
func both(t *testing.T, db *jay.DB, first, second func(tx *jay.Tx) error) (firstErr, secondErr error) {
	t.Helper()
	firstErr = db.Update(ctx, func(tx *jay.Tx) error {
		if err := first(tx); err != nil {
			return err
		}
		secondErr = db.Update(ctx, second)
		return nil
	})
	return firstErr, secondErr
}

// onlyOneWins checks that the second committed and the first lost.
func onlyOneWins(t *testing.T, first, second error) {
	t.Helper()
	var conflict *jay.ConflictError
	if second != nil || !errors.As(first, &conflict) {
		t.Errorf("got %v and %v, want a conflict and nil", first, second)
	}
}

// Ensure that an update of a document that was read is not lost.
func TestTx_LostUpdate(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "n", `{"N":1}`)
	add := func(tx *jay.Tx) error { return increment(tx, "n") }
	one, two := both(t, db, add, add)
	onlyOneWins(t, one, two)
	equal(t, body(t, db, "n"), `{"N":2}`)
}

// increment adds one to a counter.
func increment(tx *jay.Tx, id string) error {
	var n struct{ N int }
	doc, err := tx.Get(ctx, id)
	if err != nil {
		return err
	}
	if err := doc.Decode(&n); err != nil {
		return err
	}
	runtime.Gosched() // to be overtaken
	_, err = tx.Put(ctx, id, fmt.Appendf(nil, `{"N":%d}`, n.N+1))
	return err
}

// Ensure that of two doctors on call one stays: each may go only if the other
// stays, and they go at once.
func TestTx_WriteSkew(t *testing.T) {
	for name, count := range map[string]func(tx *jay.Tx) (int, error){
		"read one by one": func(tx *jay.Tx) (n int, err error) {
			docs, err := tx.GetMany(ctx, "oncall/ann", "oncall/bob")
			for _, doc := range docs {
				if doc != nil {
					n++
				}
			}
			return n, err
		},
		"found by a walk": func(tx *jay.Tx) (n int, err error) {
			for _, err := range tx.Documents(ctx, jay.Scan{Prefix: "oncall/"}) {
				if err != nil {
					return 0, err
				}
				n++
			}
			return n, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := memory(t, nil)
			put(t, db, "oncall/ann", `{}`)
			put(t, db, "oncall/bob", `{}`)
			leave := func(who string) func(tx *jay.Tx) error {
				return func(tx *jay.Tx) error {
					if n, err := count(tx); err != nil || n < 2 {
						return err
					}
					return tx.Delete(ctx, who)
				}
			}
			one, two := both(t, db, leave("oncall/ann"), leave("oncall/bob"))
			onlyOneWins(t, one, two)
			equal(t, body(t, db, "oncall/ann"), `{}`)
		})
	}
}

// Ensure that a room is booked once: each booking walks over those of its
// hour, finds none, and inserts one of its own, under whatever ID.
func TestTx_PhantomSkew(t *testing.T) {
	for name, insert := range map[string]func(tx *jay.Tx) error{
		"HiLo":        func(tx *jay.Tx) error { _, err := tx.Store(ctx, "Bookings", json.RawMessage(`{}`)); return err },
		"identity":    putIn("bookings|"),
		"server-side": putIn("bookings/"),
		"GUID":        putIn(""),
		"semantic":    putIn("bookings/mine"),
	} {
		t.Run(name, func(t *testing.T) {
			db := memory(t, nil)
			book := func(tx *jay.Tx) error {
				for _, err := range tx.Documents(ctx, jay.Scan{Collection: "Bookings"}) {
					return fmt.Errorf("the room is taken (%w)", err)
				}
				return insert(tx)
			}
			one, two := both(t, db, book, book)
			onlyOneWins(t, one, two)
		})
	}
}

func putIn(id string) func(*jay.Tx) error {
	return func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, id, json.RawMessage(`{}`), jay.InCollection("Bookings"))
		return err
	}
}

// Ensure that two values with versions, read at once, are not both written.
func TestTx_LostUpdate_Typed(t *testing.T) {
	db := memory(t, nil)
	accounts := collectionOf[Account](t, db)
	a := &Account{ID: "accounts/1"}
	if _, err := accounts.Insert(ctx, a); err != nil {
		t.Fatal(err)
	}
	before := a.Version
	add := func(tx *jay.Tx) error {
		a, err := accounts.In(tx).Get(ctx, "accounts/1")
		if err != nil {
			return err
		}
		a.Balance++
		_, err = accounts.In(tx).Put(ctx, a)
		return err
	}
	one, two := both(t, db, add, add)
	onlyOneWins(t, one, two)

	// A value from before the transaction is stale in it.
	err := db.Update(ctx, func(tx *jay.Tx) error { _, err := accounts.In(tx).Put(ctx, a); return err }, jay.Retry(3))
	if !errors.Is(err, jay.ErrConflict) || a.Version != before {
		t.Errorf("a stale value: %v", err)
	}
}

// Ensure that nothing is seen of a transaction before it commits, and nothing
// of one that does not.
func TestTx_DirtyRead(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"n":1}`)
	before := dump(t, db)
	err := db.Update(ctx, func(tx *jay.Tx) error {
		for _, id := range []string{"a", "b", "c|", "d/"} {
			if _, err := tx.Put(ctx, id, json.RawMessage(`{"n":2}`)); err != nil {
				return err
			}
		}
		equal(t, dump(t, db), before)
		return db.View(ctx, func(other *jay.Tx) error {
			if found, err := other.Exists(ctx, "b"); found || err != nil {
				t.Errorf("another transaction sees it: %v, %v", found, err)
			}
			return errGivenUp
		})
	})
	equal(t, err, errGivenUp)
	equal(t, dump(t, db), before)
}

// Ensure that everything in a transaction is of one moment.
func TestTx_OneMoment(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"n":1}`)
	look := func(tx *jay.Tx) error {
		for range 2 {
			doc, err := tx.Get(ctx, "a")
			if err != nil {
				return err
			}
			equal(t, string(doc.Body()), `{"n":1}`)
			n := 0
			for range tx.Documents(ctx, jay.Scan{}) {
				n++
			}
			equal(t, n, 1)
			docs, err := tx.GetMany(ctx, "a", "b")
			if err != nil || docs[1] != nil {
				t.Errorf("b: %v, %v", docs[1], err)
			}
			if err := db.Delete(ctx, "a"); err != nil {
				return err
			}
			put(t, db, "b", `{}`)
		}
		put(t, db, "a", `{"n":1}`)
		return db.Delete(ctx, "b")
	}
	if err := db.View(ctx, look); err != nil {
		t.Error(err)
	}
	if err := db.Update(ctx, look); err != nil { // it wrote nothing: its moment will do
		t.Error(err)
	}
}

// Ensure that 16 goroutines that count with Retry lose nothing.
func TestTx_Counter(t *testing.T) {
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		db := memory(t, &jay.Options{Durability: durability})
		put(t, db, "n", `{"N":0}`)
		runs := atomic.Int64{}
		concurrently(t, func(int, *rand.Rand) {
			for range 50 {
				err := db.Update(ctx, func(tx *jay.Tx) error { runs.Add(1); return increment(tx, "n") }, jay.Retry(1<<30))
				if err != nil {
					t.Error(err)
				}
			}
		})
		equal(t, body(t, db, "n"), fmt.Sprintf(`{"N":%d}`, jaytest.Goroutines*50))
		t.Logf("%d runs for %d transactions", runs.Load(), jaytest.Goroutines*50)
	}
}

// Ensure that readers see the sum of all accounts stay the same while money is
// moved between them.
func TestTx_Money(t *testing.T) {
	t.Parallel()
	const accounts, each = 10, 100
	db := memory(t, nil)
	for i := range accounts {
		put(t, db, fmt.Sprintf("accounts/%d", i), fmt.Sprintf(`{"Balance":%d}`, each), jay.InCollection("Accounts"))
	}
	bank := collectionOf[Account](t, db)
	var done atomic.Bool
	var readers sync.WaitGroup
	views := 0
	readers.Go(func() {
		for ; !done.Load() || views == 0; views++ {
			err := db.View(ctx, func(tx *jay.Tx) error {
				sum, again := 0, 0
				for a, err := range bank.In(tx).All(ctx) {
					if err != nil {
						return err
					}
					sum += a.Balance
				}
				for i := range accounts {
					a, err := bank.In(tx).Get(ctx, fmt.Sprintf("accounts/%d", i))
					if err != nil {
						return err
					}
					again += a.Balance
				}
				if sum != accounts*each || again != sum {
					t.Errorf("the sum is %d, then %d", sum, again)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	concurrently(t, func(_ int, random *rand.Rand) {
		for range 30 {
			err := db.Update(ctx, func(tx *jay.Tx) error {
				in := bank.In(tx)
				from, to := random.IntN(accounts), random.IntN(accounts-1)
				if to >= from {
					to++
				}
				pair, err := in.GetMany(ctx, fmt.Sprintf("accounts/%d", from), fmt.Sprintf("accounts/%d", to))
				if err != nil {
					return err
				}
				amount := random.IntN(pair[0].Balance + 1)
				pair[0].Balance -= amount
				pair[1].Balance += amount
				_, err = in.PutMany(ctx, pair)
				return err
			}, jay.Retry(1<<30))
			if err != nil {
				t.Error(err)
			}
		}
	})
	done.Store(true)
	readers.Wait()
	t.Logf("%d views", views)
}

// hooked is a context that calls fn when it is asked for its error the nth
// time: a commit asks several times on its way.
type hooked struct {
	context.Context
	left atomic.Int64
	fn   func()
}

func (h *hooked) Err() error {
	if h.left.Add(-1) == 0 {
		h.fn()
	}
	return h.Context.Err()
}

// Ensure that a change is found at whatever step of the commit it comes, up to
// the last moment.
func TestTx_LastMoment(t *testing.T) {
	for name, read := range map[string]func(*jay.Tx) error{
		"get": getIn("a/1"), "missing": existsIn("a/2"), "walk": walkIn(jay.Scan{Prefix: "a/"}), "page": walkIn(jay.Scan{Prefix: "a/", Limit: 1}),
	} {
		asked := 0
		for nth := int64(1); ; nth++ {
			db := memory(t, nil)
			put(t, db, "a/1", `{}`)
			fired, began := false, false
			h := &hooked{Context: ctx, fn: func() {
				fired = true
				put(t, db, "a/1", `{"n":2}`)
				put(t, db, "a/2", `{}`)
			}}
			h.left.Store(nth)
			err := db.Update(h, func(tx *jay.Tx) error {
				began = !fired
				if err := read(tx); err != nil {
					return err
				}
				_, err := tx.Put(ctx, "b", json.RawMessage(`{}`))
				return err
			})
			if !fired {
				break
			}
			if lost := errors.Is(err, jay.ErrConflict); lost != began || err != nil && !lost {
				t.Errorf("%s, at the question %d: %v", name, nth, err)
			}
			asked++
		}
		if asked < 3 {
			t.Errorf("%s: the context is asked %d times only: the test does not test the last moment", name, asked)
		}
	}
}
