package jay_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a transaction sees its own writes, and no other reader does before the
// commit, and all do afterwards.
func TestUpdate(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/ann", `{"n":1}`)
	var stored, invoice jay.Metadata
	err := db.Update(ctx, func(tx *jay.Tx) error {
		doc, err := tx.Get(ctx, "users/ann")
		if err != nil {
			return err
		}
		if _, err := tx.Put(ctx, doc.ID(), json.RawMessage(`{"n":2}`)); err != nil {
			return err
		}
		if doc, err = tx.Get(ctx, "users/ann"); err != nil || string(doc.Body()) != `{"n":2}` {
			t.Errorf("inside: %v, %v", doc, err)
		}
		if stored, err = tx.Store(ctx, "Orders", json.RawMessage(`{}`)); err != nil {
			return err
		}
		if _, err := tx.Get(ctx, stored.ID); err != nil {
			t.Errorf("stored document inside: %v", err)
		}
		m, err := tx.Put(ctx, "invoices|", json.RawMessage(`{}`), jay.Returning(&invoice))
		if err != nil || m.ID != "invoices|" {
			t.Errorf("identity inside: %v, %v", m, err)
		}
		if doc, err := db.Get(ctx, "users/ann"); err != nil || string(doc.Body()) != `{"n":1}` {
			t.Errorf("outside: %v, %v", doc, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if invoice.ID != "invoices/1" || stored.ID != "orders/1-A" {
		t.Errorf("got %q and %q", invoice.ID, stored.ID)
	}
	for _, id := range []string{"users/ann", "orders/1-A", "invoices/1"} {
		if _, err := db.Get(ctx, id); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
}

// Ensure that the commit refuses a transaction whose reads no longer hold.
func TestUpdate_Conflict(t *testing.T) {
	tests := []struct {
		name  string
		read  func(tx *jay.Tx) error
		write func(db *jay.DB) error
		lost  bool
	}{
		{"a document it got was changed", getIn("users/ann"), putOut("users/ann"), true},
		{"a document it found missing was made", existsIn("users/bob"), putOut("users/bob"), true},
		{"a document it got was deleted", getIn("users/ann"), func(db *jay.DB) error { return db.Delete(ctx, "users/ann") }, true},
		{"another document was changed", getIn("users/ann"), putOut("users/bob"), false},
		{"a range it walked over got a document", walkIn(jay.Scan{Prefix: "users/"}), putOut("users/bob"), true},
		{"a range it walked over lost one", walkIn(jay.Scan{Prefix: "users/"}), func(db *jay.DB) error { return db.Delete(ctx, "users/ann") }, true},
		{"another range got a document", walkIn(jay.Scan{Prefix: "users/"}), putOut("orders/1"), false},
		{"a document behind the end of its page was made", walkIn(jay.Scan{Prefix: "users/", Limit: 1}), putOut("users/bob"), false},
		{"a document within its page was made", walkIn(jay.Scan{Prefix: "users/", Limit: 1}), putOut("users/aaa"), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, nil)
			put(t, db, "users/ann", `{}`)
			runs := 0
			run := func(tx *jay.Tx) error {
				if err := test.read(tx); err != nil {
					return err
				}
				if runs++; runs == 1 {
					if err := test.write(db); err != nil {
						return err
					}
				}
				_, err := tx.Put(ctx, "result", json.RawMessage(`{}`))
				return err
			}
			err := db.Update(ctx, run)
			if errors.Is(err, jay.ErrConflict) != test.lost || (err != nil) != test.lost {
				t.Fatalf("got %v", err)
			}
			if found, _ := db.Exists(ctx, "result"); found == test.lost {
				t.Errorf("result stored: %v", found)
			}
			if deleted := strings.HasSuffix(test.name, "lost one"); deleted && !strings.Contains(err.Error(), `"users/ann": it was deleted after`) {
				t.Errorf("got %v", err)
			}
			if err := db.Update(ctx, run, jay.Retry(1)); err != nil && !errors.Is(err, jay.ErrNotFound) {
				t.Errorf("second try: %v", err)
			}
		})
	}
}

func getIn(id string) func(*jay.Tx) error {
	return func(tx *jay.Tx) error { _, err := tx.Get(ctx, id); return err }
}

func existsIn(id string) func(*jay.Tx) error {
	return func(tx *jay.Tx) error { _, err := tx.Exists(ctx, id); return err }
}

func walkIn(s jay.Scan) func(*jay.Tx) error {
	return func(tx *jay.Tx) error {
		for _, err := range tx.Documents(ctx, s) {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func putOut(id string) func(*jay.DB) error {
	return func(db *jay.DB) error { _, err := db.Put(ctx, id, json.RawMessage(`{"new":true}`)); return err }
}

// Ensure that a transaction may swap values of a unique index, if it takes one away before it gives it to another document.
func TestUpdate_UniqueInOrder(t *testing.T) {
	db := memory(t, nil)
	must(t, db.EnsureIndex(ctx, "Seats", jay.Index{Fields: []string{"Who"}, Unique: true, Where: "Who != null"}))
	put(t, db, "seats/1", `{"Who":"ann"}`, jay.InCollection("Seats"))
	put(t, db, "seats/2", `{"Who":null}`, jay.InCollection("Seats"))
	free := func(tx *jay.Tx) error { _, err := tx.Put(ctx, "seats/1", json.RawMessage(`{"Who":null}`)); return err }
	take := func(tx *jay.Tx) error { _, err := tx.Put(ctx, "seats/2", json.RawMessage(`{"Who":"ann"}`)); return err }
	if err := db.Update(ctx, func(tx *jay.Tx) error { return errors.Join(take(tx), free(tx)) }); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("taken, then freed: %v", err)
	}
	must(t, db.Update(ctx, func(tx *jay.Tx) error { return errors.Join(free(tx), take(tx)) }))
}
