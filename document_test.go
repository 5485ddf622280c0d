package jay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that a Get of a missing document says which, even if the caller reuses the memory
// of the ID, and is ErrNotFound.
func TestDB_Get_Missing(t *testing.T) {
	db := memory(t, nil)
	users, err := jay.CollectionOf[struct {
		ID   string
		Name string
	}](db, jay.Named("Users"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the cache of documents is asked in different ways
		_, err := db.Get(ctx, "Users/Ann")
		_, typedErr := users.Get(ctx, "Users/Ann")
		for _, err := range []error{err, typedErr} {
			if !errors.Is(err, jay.ErrNotFound) || err.Error() != `get "Users/Ann": jay: document not found` {
				t.Errorf("got %v", err)
			}
		}
	}
}

// Ensure that documents share no memory: not with one another, nor with what the
// database reads them from, nor with the room behind their bodies. A caller that
// breaks the rule and changes a body harms no other caller.
func TestDocument_OwnMemory(t *testing.T) {
	db := memory(t, &jay.Options{DocumentCacheBytes: -1})
	var ids []string
	for size := 10; size < 5000; size += 97 {
		id := fmt.Sprintf("users/%04d", size)
		if size%2 == 0 {
			id = fmt.Sprintf("Users/%04d-A", size)
		}
		ids = append(ids, id)
		put(t, db, id, bodyFor(id, size), jay.InCollection("Users"))
	}

	spoil := func(doc *jay.Document) {
		_ = append(doc.Body(), strings.Repeat("!", 200)...)
		clear(doc.Body())
	}
	intact := func(how, id string, doc *jay.Document) {
		t.Helper()
		var v struct{ ID string }
		if doc.ID() != id || doc.Collection() != "Users" || json.Unmarshal(doc.Body(), &v) != nil || v.ID != id {
			t.Errorf("%s: %s: got %q in %q, %.60q", how, id, doc.ID(), doc.Collection(), doc.Body())
		}
	}
	for _, collection := range []string{"", "Users"} {
		var walked []*jay.Document
		for doc, err := range db.Documents(ctx, jay.Scan{Collection: collection, Prefix: "users/"}) {
			if err != nil {
				t.Fatal(err)
			}
			walked = append(walked, doc)
		}
		if len(walked) != len(ids) {
			t.Fatalf("got %d documents, want %d", len(walked), len(ids))
		}
		for i := 0; i < len(walked); i += 2 {
			spoil(walked[i])
		}
		for i, id := range ids {
			if i%2 == 1 {
				intact("walk", id, walked[i])
			} else if walked[i].ID() != id || walked[i].Collection() != "Users" || walked[i].ChangeVector() == "" {
				t.Errorf("the head of %s went with its body: %+v", id, walked[i].Metadata())
			}
		}
	}
	for _, id := range ids {
		doc, err := db.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		intact("get", id, doc)
		spoil(doc)
		again, err := db.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		intact("get after a caller changed another copy", id, again)
	}
}

// bodyFor returns a body that names its ID, of about size bytes.
func bodyFor(id string, size int) string {
	return fmt.Sprintf(`{"ID":%q,"Note":"%s"}`, id, bytes.Repeat([]byte{'x'}, size))
}

// Ensure that a document that is kept in memory is read without an allocation.
func TestDB_Get_Cached(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "Users/Ann", `{"Name":"Ann"}`)
	get := func() {
		if _, err := db.Get(ctx, "Users/Ann"); err != nil {
			t.Fatal(err)
		}
	}
	get()
	get()
	if n := jaytest.Allocs(100, 0, get); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}
