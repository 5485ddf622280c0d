package txn_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a batch with patches does in a transaction what it does by
// itself: each sees what those before it have left, and the results say the
// same, but for the versions, which only the commit makes.
func TestTx_Apply_Patches(t *testing.T) {
	var dbs []*jay.DB
	var results [][]jay.Metadata
	var returned []jay.Metadata
	for _, inTx := range []bool{false, true} {
		db := memory(t, nil)
		put(t, db, "a", `{"n":1}`)
		put(t, db, "same", `{"n":1}`)
		returned = make([]jay.Metadata, 2)
		var b jay.Batch
		b.Patch("a", jay.Increment("n", 1))
		b.Put("b", json.RawMessage(`{"n":10}`))
		b.Patch("b", jay.Increment("n", 5))
		b.Patch("b", jay.Increment("n", 5), jay.Returning(&returned[0]))
		b.Patch("none", jay.Set("n", 1), jay.Returning(&returned[1]))
		b.Patch("new", jay.Set("n", 1), jay.OrInsert(json.RawMessage(`{"fresh":true}`)))
		b.Patch("new", jay.Set("n", 2))
		b.Patch("same", jay.Set("n", 1))
		b.Delete("a")
		b.Patch("a", jay.Set("n", 1))
		var metas []jay.Metadata
		apply := func(apply func() ([]jay.Metadata, error)) {
			t.Helper()
			var err error
			if metas, err = apply(); err != nil {
				t.Fatal(err)
			}
		}
		if inTx {
			must(t, db.Update(ctx, func(tx *jay.Tx) error {
				apply(func() ([]jay.Metadata, error) { return tx.Apply(ctx, &b) })
				doc, err := tx.Get(ctx, "b")
				must(t, err)
				equal(t, string(doc.Body()), `{"n":20}`)
				return nil
			}))
		} else {
			apply(func() ([]jay.Metadata, error) { return db.Apply(ctx, &b) })
		}
		equal(t, returned[0].ID, "b")
		equal(t, returned[1].ID, "none")
		dbs, results = append(dbs, db), append(results, metas)
	}
	for i := range results[0] {
		equal(t, results[1][i].ID, results[0][i].ID)
		equal(t, results[1][i].Collection, results[0][i].Collection)
	}
	for _, id := range []string{"a", "b", "new", "same", "none"} {
		equal(t, body(t, dbs[1], id), body(t, dbs[0], id))
	}
}

// Ensure that a batch whose patch cannot be made leaves nothing in the
// transaction, reports no result, and that the rest of it commits.
func TestTx_Apply_PatchRefused(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"n":1,"text":"x"}`)
	var returned jay.Metadata
	err := db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Patch(ctx, "a", jay.Increment("n", 1))
		must(t, err)
		var b jay.Batch
		b.Put("b", json.RawMessage(`{}`))
		b.Patch("none", jay.Set("n", 1), jay.Returning(&returned))
		b.Patch("a", jay.Increment("n", 1))
		b.Patch("a", jay.Increment("text", 1))
		if _, err := tx.Apply(ctx, &b); !errors.Is(err, jay.ErrInvalidPatch) {
			t.Errorf("got %v, want ErrInvalidPatch", err)
		}
		doc, err := tx.Get(ctx, "a")
		must(t, err)
		equal(t, string(doc.Body()), `{"n":2,"text":"x"}`)
		return nil
	})
	must(t, err)
	equal(t, returned.ID, "")
	equal(t, body(t, db, "a"), `{"n":2,"text":"x"}`)
	equal(t, body(t, db, "b"), "absent")
}

// Ensure that a patch of a batch counts as a read: the commit is refused if
// another writer has changed the document meanwhile.
func TestTx_Apply_PatchConflict(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"n":1}`)
	err := db.Update(ctx, func(tx *jay.Tx) error {
		var b jay.Batch
		b.Patch("a", jay.Increment("n", 1))
		if _, err := tx.Apply(ctx, &b); err != nil {
			return err
		}
		put(t, db, "a", `{"n":10}`)
		return nil
	})
	if !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	equal(t, body(t, db, "a"), `{"n":10}`)
}
