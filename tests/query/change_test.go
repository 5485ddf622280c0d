package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
)

// twentyThings stores documents things/00 to things/19 with N from 0.
func twentyThings(t *testing.T, db *jay.DB) {
	t.Helper()
	for n := range 20 {
		put(t, db, fmt.Sprintf("things/%02d", n), fmt.Sprintf(`{"N":%d}`, n), jay.InCollection("Things"))
	}
	put(t, db, "others/1", `{"N":1}`, jay.InCollection("Others"))
}

// thingsOf returns the IDs of the answers of a query, without their prefix.
func thingsOf(t *testing.T, q jay.Query[jay.Document]) string {
	t.Helper()
	docs, err := q.All(ctx)
	must(t, err)
	parts := make([]string, len(docs))
	for i, d := range docs {
		parts[i] = strings.TrimPrefix(d.ID(), "things/")
	}
	return strings.Join(parts, " ")
}

// Ensure that Patch and Delete change what the query finds, in its order and with its
// limits, and nothing else, with an index and without.
func TestQuery_Change(t *testing.T) {
	defer checks.SetChangeBatch(3)()
	for _, indexed := range []bool{false, true} {
		db := memory(t, nil)
		twentyThings(t, db)
		if indexed {
			must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"N"}}))
		}
		things := db.Query("Things")
		var steps []int64
		low := things.Where(jay.Lt("N", 8))
		done, err := low.Progress(func(c jay.Changed) { steps = append(steps, c.Documents) }).Patch(ctx, jay.Increment("N", 100), jay.Set("seen", true))
		must(t, err)
		equal(t, done, jay.Changed{Documents: 8})
		equal(t, fmt.Sprint(steps), "[3 6 8]")
		equal(t, thingsOf(t, low), "")
		equal(t, thingsOf(t, things.Where(jay.Ge("N", 100)).OrderBy("N")), "00 01 02 03 04 05 06 07")
		equal(t, body(t, db, "things/07"), `{"N":107,"seen":true}`)
		equal(t, body(t, db, "others/1"), `{"N":1}`)

		done, err = things.Where(jay.Ge("N", 100)).Patch(ctx, jay.Set("seen", true))
		must(t, err)
		equal(t, done, jay.Changed{Unchanged: 8})

		done, err = things.OrderBy("-N").Skip(1).Limit(4).Delete(ctx)
		must(t, err)
		equal(t, done, jay.Changed{Documents: 4})
		equal(t, thingsOf(t, things.OrderBy("-N").Limit(3)), "07 02 01")

		q, err := db.RQL("from Things where N < $n", map[string]any{"n": 100})
		must(t, err)
		done, err = q.Delete(ctx)
		must(t, err)
		equal(t, done, jay.Changed{Documents: 12})
		done, err = things.Delete(ctx)
		must(t, err)
		equal(t, done, jay.Changed{Documents: 4})
		equal(t, collectionsOf(t, db), "Others 1")
	}
}

// Ensure that a document which another write changes or deletes after the query has
// found it is changed only if it still satisfies the condition.
func TestQuery_Change_Overtaken(t *testing.T) {
	defer checks.SetChangeBatch(2)()
	db := memory(t, nil)
	twentyThings(t, db)
	first := true
	done, err := db.Query("Things").Where(jay.Lt("N", 6)).Progress(func(jay.Changed) {
		if !first {
			return
		}
		first = false
		put(t, db, "things/02", `{"N":50}`)
		must(t, db.Delete(ctx, "things/03"))
		put(t, db, "things/04", `{"N":3,"new":true}`)
		put(t, db, "things/new", `{"N":0}`, jay.InCollection("Things"))
	}).Patch(ctx, jay.Set("seen", 1))
	must(t, err)
	equal(t, done, jay.Changed{Documents: 4, Overtaken: 2})
	equal(t, body(t, db, "things/02"), `{"N":50}`)
	equal(t, body(t, db, "things/04"), `{"N":3,"new":true,"seen":1}`)
	equal(t, body(t, db, "things/new"), `{"N":0}`)
}

// Ensure that an error leaves its batch unwritten and those before it written, and says
// how many documents they have; and so does the end of a context.
func TestQuery_Change_Fails(t *testing.T) {
	defer checks.SetChangeBatch(4)()
	db := memory(t, nil)
	twentyThings(t, db)
	put(t, db, "things/06", `{"N":"text"}`)
	done, err := db.Query("Things").Patch(ctx, jay.Increment("N", 1))
	var wrong *jay.PatchError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "when 4 documents were changed") || !strings.Contains(err.Error(), "things/06") {
		t.Errorf("got %v", err)
	}
	equal(t, done, jay.Changed{Documents: 4})
	equal(t, body(t, db, "things/03"), `{"N":4}`)
	equal(t, body(t, db, "things/04"), `{"N":4}`)

	cancelled, cancel := context.WithCancel(ctx)
	done, err = db.Query("Things").Progress(func(jay.Changed) { cancel() }).Delete(cancelled)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	equal(t, done, jay.Changed{Documents: 4})
	equal(t, collectionsOf(t, db), "Others 1, Things 16")
}

// Ensure that queries and edits that many documents cannot be changed with are refused,
// also if there is no document, and change nothing.
func TestQuery_Change_Refused(t *testing.T) {
	db := memory(t, nil)
	things := db.Query("Things")
	set := jay.Set("a", 1)
	type result struct {
		done jay.Changed
		err  error
	}
	of := func(done jay.Changed, err error) result { return result{done, err} }
	for name, r := range map[string]result{
		"no collection": of(db.Query("").Patch(ctx, set)),
		"select":        of(jay.Select[json.RawMessage](things, "N").Delete(ctx)),
		"groups":        of(jay.Select[json.RawMessage](things.GroupBy("N"), "N").Patch(ctx, set)),
		"include":       of(things.Include("Other").Patch(ctx, set)),
		"no edits":      of(things.Patch(ctx)),
		"upsert":        of(things.Patch(ctx, set, jay.OrInsert(map[string]int{}))),
		"version":       of(things.Patch(ctx, set, jay.IfMatch("A:1"))),
		"collection":    of(things.Patch(ctx, set, jay.InCollection("Others"))),
	} {
		if !errors.Is(r.err, jay.ErrUsage) || r.done != (jay.Changed{}) {
			t.Errorf("%s: got %+v, want ErrUsage", name, r)
		}
	}
	if _, err := things.Patch(ctx, set, jay.Set("a..b", 1)); !errors.Is(err, jay.ErrInvalidPatch) {
		t.Errorf("a wrong path: got %v", err)
	}
	if _, err := things.Where(jay.Eq("a..b", 1)).Delete(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("a wrong condition: got %v", err)
	}
}

// Ensure that in a transaction Patch and Delete see its writes, and change all
// documents or, after an error, none.
func TestQuery_Change_Tx(t *testing.T) {
	db := memory(t, nil)
	twentyThings(t, db)
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "things/own", []byte(`{"N":1}`), jay.InCollection("Things"))
		must(t, err)
		low := tx.Query("Things").Where(jay.Lt("N", 3))
		done, err := low.Patch(ctx, jay.Set("low", true))
		must(t, err)
		equal(t, done, jay.Changed{Documents: 4})
		_, err = tx.Put(ctx, "things/10", []byte(`{"N":"text"}`))
		must(t, err)
		done, err = tx.Query("Things").Patch(ctx, jay.Increment("N", 1))
		if !errors.Is(err, jay.ErrInvalidPatch) {
			t.Errorf("got %v", err)
		}
		equal(t, done, jay.Changed{})
		done, err = tx.Query("Things").Where(jay.Ge("N", 5)).Delete(ctx)
		must(t, err)
		equal(t, done, jay.Changed{Documents: 14})
		return nil
	}))
	equal(t, thingsOf(t, db.Query("Things")), "00 01 02 03 04 10 own")
	equal(t, body(t, db, "things/00"), `{"N":0,"low":true}`)
	equal(t, body(t, db, "things/03"), `{"N":3}`)
	equal(t, body(t, db, "things/own"), `{"N":1,"low":true}`)
	must(t, db.View(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Query("Things").Delete(ctx); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("View: got %v, want ErrUsage", err)
		}
		return nil
	}))
}

// Ensure that Patch loses no concurrent change: every document ends with one increment
// for each Patch and each writer.
func TestQuery_Change_Concurrent(t *testing.T) {
	defer checks.SetChangeBatch(7)()
	db := memory(t, nil)
	twentyThings(t, db)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			_, err := db.Query("Things").Patch(ctx, jay.Increment("k", 1))
			if err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			for n := range 20 {
				if _, err := db.Patch(ctx, fmt.Sprintf("things/%02d", n), jay.Increment("k", 1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	n, err := db.Query("Things").Where(jay.Eq("k", 8)).Count(ctx)
	must(t, err)
	equal(t, n, 20)
}

// Ensure that an error undoes the writes of a savepoint and no others, at any depth,
// and that what it read stays in the read set.
func TestTx_Savepoint(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"n":1}`)
	put(t, db, "b", `{"n":1}`)
	no := errors.New("no")
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		write := func(id, body string) {
			t.Helper()
			_, err := tx.Put(ctx, id, []byte(body))
			must(t, err)
		}
		write("a", `{"n":2}`)
		err := tx.Savepoint(ctx, func() error {
			write("a", `{"n":3}`)
			write("new", `{}`)
			must(t, tx.Delete(ctx, "b"))
			must(t, tx.Savepoint(ctx, func() error { write("inner", `{}`); return nil }))
			return no
		})
		if err != no {
			t.Errorf("got %v, want the function's error", err)
		}
		equal(t, txBody(t, tx, "a"), `{"n":2}`)
		equal(t, txBody(t, tx, "b"), `{"n":1}`)
		equal(t, txBody(t, tx, "new"), "absent")
		equal(t, txBody(t, tx, "inner"), "absent")
		must(t, tx.Savepoint(ctx, func() error {
			write("b", `{"n":4}`)
			_ = tx.Savepoint(ctx, func() error { write("b", `{"n":5}`); return no })
			func() {
				defer func() { _ = recover() }()
				_ = tx.Savepoint(ctx, func() error { write("b", `{"n":6}`); panic("stop") })
			}()
			return nil
		}))
		equal(t, txBody(t, tx, "b"), `{"n":4}`)
		return nil
	}))
	equal(t, body(t, db, "a"), `{"n":2}`)
	equal(t, body(t, db, "b"), `{"n":4}`)
	equal(t, body(t, db, "new"), "absent")

	// What an undone part has read decides whether the transaction commits.
	err := db.Update(ctx, func(tx *jay.Tx) error {
		_ = tx.Savepoint(ctx, func() error { txBody(t, tx, "a"); return no })
		put(t, db, "a", `{"n":9}`)
		_, err := tx.Put(ctx, "c", []byte(`{}`))
		return err
	})
	if !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}

	// IDs that were drawn and undone are not given again.
	var undone, kept jay.Metadata
	must(t, db.Update(ctx, func(tx *jay.Tx) (err error) {
		_ = tx.Savepoint(ctx, func() error { undone, err = tx.Store(ctx, "Users", []byte(`{}`)); return no })
		must(t, err)
		kept, err = tx.Store(ctx, "Users", []byte(`{}`))
		return err
	}))
	if undone.ID == kept.ID {
		t.Errorf("%s was given twice", kept.ID)
	}
	equal(t, body(t, db, undone.ID), "absent")
	must(t, db.View(ctx, func(tx *jay.Tx) error {
		if err := tx.Savepoint(ctx, func() error { return nil }); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("View: got %v", err)
		}
		return nil
	}))
	must(t, checks.Counts(db))
}

// txBody returns a body as a transaction sees it, or "absent".
func txBody(t *testing.T, tx *jay.Tx, id string) string {
	t.Helper()
	doc, err := tx.Get(ctx, id)
	if errors.Is(err, jay.ErrNotFound) {
		return "absent"
	}
	must(t, err)
	return string(doc.Body())
}
