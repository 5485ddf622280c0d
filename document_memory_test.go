package jay_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/jaydb/jay"
)

// scribble changes the number 1 in a body to 7, in the body's own memory.
func scribble(t testing.TB, body []byte) {
	t.Helper()
	i := bytes.IndexByte(body, '1')
	if i < 0 {
		t.Fatalf("no 1 in %s", body)
	}
	body[i] = '7'
}

// cached returns a document that the cache holds, too.
func cached(t testing.TB, db *jay.DB, id string) *jay.Document {
	t.Helper()
	var last *jay.Document
	for range 5 {
		doc, err := db.Get(ctx, id)
		must(t, err)
		if doc == last {
			return doc
		}
		last = doc
	}
	t.Fatalf("%s is not cached", id)
	return nil
}

// Ensure that a reader who writes into the body of a cached document, though it
// must not, changes no index entry, whatever is written next.
func TestDocument_Scribbled_Indexes(t *testing.T) {
	for name, write := range map[string]func(db *jay.DB) error{
		"put": func(db *jay.DB) error {
			_, err := db.Put(ctx, "things/1", []byte(`{"a":2}`), jay.InCollection("Things"))
			return err
		},
		"replace": func(db *jay.DB) error {
			_, err := db.Replace(ctx, "things/1", []byte(`{"a":7}`), jay.InCollection("Things"))
			return err
		},
		"delete": func(db *jay.DB) error { return db.Delete(ctx, "things/1") },
		"patch": func(db *jay.DB) error {
			_, err := db.Patch(ctx, "things/1", jay.Set("a", 3))
			return err
		},
		"transaction": func(db *jay.DB) error {
			return db.Update(ctx, func(tx *jay.Tx) error { return tx.Delete(ctx, "things/1") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := memory(t, nil)
			must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"a"}}))
			must(t, db.EnsureIndex(ctx, "Things", jay.Index{Name: "u", Fields: []string{"a"}, Unique: true}))
			put(t, db, "things/1", `{"a":1}`, jay.InCollection("Things"))
			scribble(t, cached(t, db, "things/1").Body())
			must(t, write(db))
			if err := jay.CheckIndexes(db); err != nil {
				t.Error(err)
			}
		})
	}
}

// Ensure that a patch does not store what a reader has written into a body,
// though it must not.
func TestDocument_Scribbled_Patch(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "things/1", `{"a":1}`, jay.InCollection("Things"))
	scribble(t, cached(t, db, "things/1").Body())
	_, err := db.Patch(ctx, "things/1", jay.Set("b", 2))
	must(t, err)
	equal(t, stored(t, db, "things/1"), `{"a":1,"b":2}`)
}

// Ensure that a session that writes a refreshed document again, for its
// metadata, does not store what a reader has written into the body.
func TestSession_Refresh_Scribbled(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"Name":"x","foreign":1}`, jay.InCollection("Customers"))
	s := db.OpenSession()
	ann, err := jay.Load[customer](ctx, s, "customers/1")
	must(t, err)
	doc := cached(t, db, "customers/1")
	must(t, s.Refresh(ctx, ann))
	scribble(t, doc.Body())
	must(t, s.SetMetadata(ann, []byte(`{"k":1}`)))
	must(t, s.SaveChanges(ctx))
	equal(t, stored(t, db, "customers/1"), `{"Name":"x","foreign":1}`)
}

// stored returns the body of a document as it lies on disk.
func stored(t testing.TB, db *jay.DB, id string) string {
	t.Helper()
	var body string
	must(t, db.Read(ctx, id, func(doc *jay.RawDocument) error {
		body = string(doc.Body())
		return nil
	}))
	return body
}

// Ensure that a transaction commits what it was given, though its function has
// written into documents that the transaction gave back.
func TestTx_Scribbled(t *testing.T) {
	for name, read := range map[string]func(ctx context.Context, tx *jay.Tx) ([]byte, error){
		"Get": func(ctx context.Context, tx *jay.Tx) ([]byte, error) {
			doc, err := tx.Get(ctx, "things/1")
			return doc.Body(), err
		},
		"GetMany": func(ctx context.Context, tx *jay.Tx) ([]byte, error) {
			docs, err := tx.GetMany(ctx, "things/1")
			return docs[0].Body(), err
		},
		"Documents": func(ctx context.Context, tx *jay.Tx) (body []byte, err error) {
			for doc, err := range tx.Documents(ctx, jay.Scan{}) {
				return doc.Body(), err
			}
			return nil, nil
		},
		"Query": func(ctx context.Context, tx *jay.Tx) ([]byte, error) {
			docs, err := tx.Query("Things").All(ctx)
			return docs[0].Body(), err
		},
		"Patch": func(ctx context.Context, tx *jay.Tx) ([]byte, error) {
			result, err := tx.Patch(ctx, "things/1", jay.Set("a", 1), jay.Unset("b"))
			return result.Body, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := memory(t, nil)
			must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"a"}}))
			must(t, db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := tx.Put(ctx, "things/1", []byte(`{"a":1,"b":2}`), jay.InCollection("Things")); err != nil {
					return err
				}
				body, err := read(ctx, tx)
				must(t, err)
				scribble(t, body)
				return nil
			}))
			if got := stored(t, db, "things/1"); got[:6] != `{"a":1` {
				t.Errorf("stored: %s", got)
			}
			if err := jay.CheckIndexes(db); err != nil {
				t.Error(err)
			}
		})
	}
}
