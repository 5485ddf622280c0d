package jay_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// names lists the attachments of a document, as a transaction or the database has it.
func names(t testing.TB, a jay.Attachments) string {
	t.Helper()
	list, err := a.List(ctx)
	must(t, err)
	out := []string{}
	for _, one := range list {
		out = append(out, one.Name)
	}
	return strings.Join(out, " ")
}

// Ensure that a transaction sees its own changes of attachments, in the documents that
// it writes too, and that they are there when it commits, or not at all.
func TestTx_Attachments(t *testing.T) {
	defer jay.SetChunkBytes(10)()
	db := memory(t, nil)
	put(t, db, "a/1", `{"n":1}`)
	put(t, db, "a/2", `{"n":2}`)
	attach(t, db, "a/1", "x", randomBytes(1, 35))
	attach(t, db, "a/1", "y", randomBytes(2, 5))
	for _, commit := range []bool{false, true} {
		err := db.Update(ctx, func(tx *jay.Tx) error {
			one, two := tx.Attachments("a/1"), tx.Attachments("a/2")
			if _, err := tx.Put(ctx, "a/1", []byte(`{"n":3}`)); err != nil { // it has not read the document
				return err
			}
			doc, err := tx.Get(ctx, "a/1")
			must(t, err)
			equal(t, len(doc.Metadata().Attachments), 2)
			must(t, one.Copy(ctx, "x", "a/2", "copy"))
			must(t, one.Move(ctx, "y", "a/2", ""))
			must(t, one.Rename(ctx, "X", "z"))
			_, err = two.Put(ctx, "new", strings.NewReader("a content of three chunks"), jay.ContentType("text/plain"))
			must(t, err)
			equal(t, names(t, one), "z")
			equal(t, names(t, two), "copy new y")
			if _, err := tx.Put(ctx, "a/2", []byte(`{"n":4}`)); err != nil {
				return err
			}
			equal(t, names(t, two), "copy new y")
			got, err := attached(t, two, "copy")
			must(t, err)
			equal(t, string(got), string(randomBytes(1, 35)))
			if _, err := two.Get(ctx, "new"); !errors.Is(err, jay.ErrUsage) {
				t.Errorf("what was put: %v", err)
			}
			if err := one.Delete(ctx, "y"); err != nil { // it is not there any more
				return err
			}
			must(t, tx.Delete(ctx, "a/1"))
			if _, err := one.List(ctx); !errors.Is(err, jay.ErrNotFound) {
				t.Errorf("of a deleted document: %v", err)
			}
			if _, err := tx.Insert(ctx, "a/1", []byte(`{"n":5}`)); err != nil {
				return err
			}
			equal(t, names(t, one), "")
			err = tx.Savepoint(ctx, func() error {
				_, err := one.Put(ctx, "undone", strings.NewReader("a content that is undone"))
				must(t, err)
				return errSkipped
			})
			equal(t, err, errSkipped)
			equal(t, names(t, one), "")
			if !commit {
				return errSkipped
			}
			return nil
		})
		if want := errSkipped; commit {
			must(t, err)
		} else {
			equal(t, err, want)
			equal(t, names(t, db.Attachments("a/1")), "x y")
			equal(t, names(t, db.Attachments("a/2")), "")
		}
		jaytest.CheckContents(t, db)
	}
	equal(t, names(t, db.Attachments("a/1")), "")
	equal(t, names(t, db.Attachments("a/2")), "copy new y")
	got, err := attached(t, db.Attachments("a/2"), "new")
	must(t, err)
	equal(t, string(got), "a content of three chunks")
	equal(t, body(t, db, "a/2"), `{"n":4}`)
}

// Ensure that a transaction that has looked at attachments loses against a change of
// them, with a ConflictError, and that its readers end with it.
func TestTx_Attachments_Conflict(t *testing.T) {
	defer jay.SetChunkBytes(10)()
	db := memory(t, nil)
	put(t, db, "a/1", `{}`)
	put(t, db, "a/2", `{}`)
	attach(t, db, "a/1", "x", randomBytes(1, 35))
	for i, look := range []func(tx *jay.Tx) error{
		func(tx *jay.Tx) error { return second(tx.Attachments("a/1").List(ctx)) },
		func(tx *jay.Tx) error { return tx.Attachments("a/1").Copy(ctx, "x", "a/2", "") },
		func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, "a/1", []byte(`{}`)); err != nil {
				return err
			}
			return second(tx.Attachments("a/1").List(ctx))
		},
	} {
		var r *jay.AttachmentReader
		err := db.Update(ctx, func(tx *jay.Tx) (err error) {
			r, err = tx.Attachments("a/1").Get(ctx, "x")
			must(t, err)
			must(t, look(tx))
			attach(t, db, "a/1", "other", []byte(fmt.Sprint(i)))
			must(t, jay.RemoveContents(db))
			content, err := io.ReadAll(r)
			must(t, err)
			equal(t, string(content), string(randomBytes(1, 35)))
			_, err = tx.Put(ctx, "b", []byte(`{}`))
			return err
		})
		if !errors.Is(err, jay.ErrConflict) {
			t.Errorf("%d: %v, want ErrConflict", i, err)
		}
		_, err = r.Seek(0, io.SeekStart)
		must(t, err)
		if _, err := io.ReadAll(r); !errors.Is(err, jay.ErrTxDone) {
			t.Errorf("a reader after the transaction: %v", err)
		}
		must(t, r.Close())
	}
	err := db.View(ctx, func(tx *jay.Tx) error {
		got, err := attached(t, tx.Attachments("a/1"), "x")
		must(t, err)
		equal(t, len(got), 35)
		return tx.Attachments("a/1").Delete(ctx, "x")
	})
	if !errors.Is(err, jay.ErrUsage) {
		t.Errorf("a delete in a View: %v", err)
	}
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		var m jay.Metadata
		if _, err := tx.Attachments("a/1").Put(ctx, "z", strings.NewReader("z"), jay.IfMatch("A:1-x")); !errors.Is(err, jay.ErrConflict) {
			t.Errorf("another version: %v", err)
		}
		return tx.Attachments("a/1").Delete(ctx, "x", jay.Returning(&m))
	}))
	jaytest.CheckContents(t, db)
}
