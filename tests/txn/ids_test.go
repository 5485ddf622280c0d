package txn_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a function that runs again draws no second number for a value
// that has one already, and that values learn the rest when Update returns.
func TestTx_Retry_KeepsNumbers(t *testing.T) {
	for _, request := range []string{"", "users|", "users/", " "} {
		t.Run(fmt.Sprintf("%q", request), func(t *testing.T) {
			db := memory(t, nil)
			users := collectionOf[User](t, db)
			u := &User{ID: request, Name: "Ann"}
			var inside []string
			runs := 0
			err := db.Update(ctx, func(tx *jay.Tx) error {
				if err := loseOnce(t, db, tx, &runs); err != nil {
					return err
				}
				if _, err := users.In(tx).Insert(ctx, u); err != nil {
					return err
				}
				inside = append(inside, u.ID)
				return nil
			}, jay.Retry(1))
			if err != nil {
				t.Fatal(err)
			}
			if len(inside) != 2 || inside[0] != inside[1] {
				t.Fatalf("the runs gave it %v, want one ID twice", inside)
			}
			if strings.HasPrefix(request, "users") {
				equal(t, inside[0], request) // assigned by the commit
			} else {
				equal(t, u.ID, inside[0])
			}
			equal(t, body(t, db, u.ID), `{"Name":"Ann"}`)
			equal(t, gapsOf(t, db, "users"), 0)
		})
	}
}

// Ensure that a function that runs again, and then reads what it has just stored under an ID of the run before,
// runs once more with a new ID: it may hold the ID from that run.
func TestTx_Retry_ReadsItsOwn(t *testing.T) {
	db := memory(t, nil)
	runs := 0
	var given []string
	err := db.Update(ctx, func(tx *jay.Tx) error {
		if err := loseOnce(t, db, tx, &runs); err != nil {
			return err
		}
		meta, err := tx.Store(ctx, "Users", json.RawMessage(`{}`))
		if err != nil {
			return err
		}
		given = append(given, meta.ID)
		_, err = tx.Get(ctx, meta.ID)
		return err
	}, jay.Retry(3))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, fmt.Sprint(given), "[users/1-A users/1-A users/2-A]")
	equal(t, body(t, db, "users/2-A"), `{}`)
	if found, err := db.Exists(ctx, "users/1-A"); found || err != nil {
		t.Errorf("users/1-A is there: %v, %v", found, err)
	}
}

// Ensure that a number that was shown stays in the value when the transaction
// comes to nothing, is a gap, and can be used by another transaction.
func TestTx_Failed_NumbersAreGaps(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	u := &User{Name: "Ann"}
	insert := func(tx *jay.Tx) error { _, err := users.In(tx).Insert(ctx, u); return err }
	err := db.Update(ctx, func(tx *jay.Tx) error { return errors.Join(insert(tx), errGivenUp) })
	if !errors.Is(err, errGivenUp) || u.ID != "users/1-A" {
		t.Errorf("got %v, id %s", err, u.ID)
	}
	equal(t, gapsOf(t, db, "users"), 1)

	runs := 0
	err = db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Store(ctx, "Users", json.RawMessage(`{}`)); err != nil {
			return err
		}
		return loseOnce(t, db, tx, &runs)
	})
	if !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	equal(t, gapsOf(t, db, "users"), 2)

	if err := db.Update(ctx, insert); err != nil {
		t.Error(err)
	}
	equal(t, body(t, db, "users/1-A"), `{"Name":"Ann"}`)
}

// Ensure that an ID that was shown and is then taken by another writer is the
// "exists" error, whatever way it went; it must not be drawn anew (A12).
func TestTx_Store_TakenAfterShown(t *testing.T) {
	db := memory(t, nil)
	runs := 0
	err := db.Update(ctx, func(tx *jay.Tx) error {
		runs++
		m, err := tx.Store(ctx, "Users", json.RawMessage(`{}`))
		if err != nil {
			return err
		}
		put(t, db, m.ID, `{"by":"hand"}`)
		return nil
	}, jay.Retry(3))
	if !errors.Is(err, jay.ErrExists) || runs != 1 {
		t.Errorf("got %v after %d runs, want ErrExists", err, runs)
	}
	equal(t, body(t, db, "users/1-A"), `{"by":"hand"}`)
	m, err := db.Store(ctx, "Users", json.RawMessage(`{}`))
	if err != nil || m.ID != "users/2-A" {
		t.Errorf("got %s, %v", m.ID, err)
	}
}

// Ensure that identities of a transaction that comes to nothing, or runs
// again, leave no hole, and that those of one have the order of their writes.
func TestTx_Identities_NoHole(t *testing.T) {
	db := memory(t, nil)
	runs := 0
	var first, second jay.Metadata
	fn := func(tx *jay.Tx) error {
		if err := loseOnce(t, db, tx, &runs); err != nil {
			return err
		}
		for _, m := range []*jay.Metadata{&first, &second} {
			if _, err := tx.Put(ctx, "users|", json.RawMessage(`{}`), jay.Returning(m)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := db.Update(ctx, fn); !errors.Is(err, jay.ErrConflict) || first.ID != "" {
		t.Errorf("got %v, %+v", err, first)
	}
	if err := db.Update(ctx, func(tx *jay.Tx) error { return errors.Join(fn(tx), errGivenUp) }); !errors.Is(err, errGivenUp) || first.ID != "" {
		t.Errorf("got %v, %+v", err, first)
	}
	if err := db.Update(ctx, fn); err != nil {
		t.Error(err)
	}
	equal(t, first.ID+" "+second.ID, "users/1 users/2")
	equal(t, put(t, db, "users|", `{}`).ID, "users/3")
}

// Ensure that 16 goroutines whose transactions lose and run again, in new
// values and in kept ones, get no ID twice, and that every HiLo number is a
// document or a gap.
func TestTx_Retry_NoIDTwice(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	put(t, db, "n", `{"N":0}`)
	var mu sync.Mutex
	ids := make(map[string]string)
	stored := int64(0)
	note := func(id, by string, hilo bool) {
		mu.Lock()
		defer mu.Unlock()
		if before, twice := ids[id]; twice {
			t.Errorf("%s was given to %s and to %s", id, before, by)
		}
		ids[id] = by
		if hilo {
			stored++
		}
	}
	concurrently(t, func(g int, random *rand.Rand) {
		for i := range 40 {
			by := fmt.Sprintf("%d.%d", g, i)
			kept := &User{Name: by}
			var made *User
			var raw, identity, server jay.Metadata
			skipRaw := false
			err := db.Update(ctx, func(tx *jay.Tx) error {
				made, raw = &User{Name: by}, jay.Metadata{}
				order := []func() error{
					func() error { _, err := users.In(tx).Put(ctx, kept); return err },
					func() error { _, err := users.In(tx).Insert(ctx, made); return err },
					func() error { return increment(tx, "n") },
				}
				if skipRaw = random.IntN(2) == 0; !skipRaw {
					order = append(order, func() (err error) {
						raw, err = tx.Store(ctx, "Users", json.RawMessage(`{}`))
						return err
					})
				}
				random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
				for _, step := range order {
					if err := step(); err != nil {
						return err
					}
				}
				if _, err := tx.Put(ctx, "bills|", json.RawMessage(`{}`), jay.Returning(&identity)); err != nil {
					return err
				}
				if _, err := tx.Put(ctx, "lines/", json.RawMessage(`{}`), jay.Returning(&server)); err != nil {
					return err
				}
				if random.IntN(10) == 0 {
					return errGivenUp
				}
				return nil
			}, jay.Retry(random.IntN(100)))
			switch {
			case err == nil:
				note(kept.ID, by, true)
				note(made.ID, by, true)
				note(identity.ID, by, false)
				note(server.ID, by, false)
				if !skipRaw {
					note(raw.ID, by, true)
				}
			case err != errGivenUp && !errors.Is(err, jay.ErrConflict):
				t.Error(err)
			}
		}
	})
	for id := range ids {
		if found, err := db.Exists(ctx, id); !found || err != nil {
			t.Errorf("%s is not there (%v)", id, err)
		}
	}
	drawn := afterPrefix(strings.TrimSuffix(store(t, db, "Users"), "-A"), "users/") - 1
	gaps := gapsOf(t, db, "users")
	equal(t, drawn, stored+gaps)
	t.Logf("%d numbers: %d stored, %d gaps", drawn, stored, gaps)
}
