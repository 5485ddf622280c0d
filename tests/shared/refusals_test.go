package shared_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/schema"
)

// writers are the ways to write one document, each by a call that does not look at the definitions
// before its transaction.
var writers = map[string]func(db *jay.DB, id, body string) error{
	"put": func(db *jay.DB, id, body string) error {
		_, err := db.Put(ctx, id, []byte(body), jay.InCollection("Notes"))
		return err
	},
	"insert": func(db *jay.DB, id, body string) error {
		_, err := db.Insert(ctx, id, []byte(body), jay.InCollection("Notes"))
		return err
	},
	"batch": func(db *jay.DB, id, body string) error {
		var b jay.Batch
		b.Put(id, []byte(body), jay.InCollection("Notes"))
		_, err := db.Apply(ctx, &b)
		return err
	},
	"bulk": func(db *jay.DB, id, body string) error {
		w, err := db.BulkInsert(nil)
		if err != nil {
			return err
		}
		_, err = w.Put(ctx, id, []byte(body), jay.InCollection("Notes"))
		return errors.Join(err, w.Close())
	},
	"patch": func(db *jay.DB, id, body string) error {
		_, err := db.Patch(ctx, id, jay.OrInsert(json.RawMessage(body)), jay.InCollection("Notes"), jay.Set("/Seen", true))
		return err
	},
	"patched insert": func(db *jay.DB, id, body string) error {
		_, err := db.Patch(ctx, id, jay.OrInsertPatched(json.RawMessage(body)), jay.InCollection("Notes"), jay.Set("/Seen", true))
		return err
	},
}

// noTitle refuses every document, whatever its schema says.
type noTitle struct{}

func (noTitle) Compile([]byte) (schema.Validator, error) { return noTitle{}, nil }

func (noTitle) Validate([]byte, int) ([]schema.Violation, int) {
	return []schema.Violation{{Message: "has no title"}}, 1
}

// Ensure that writes are refused, and not refused, by the indexes and the schemas that another process has
// declared and removed, though a write looks at them only in its transaction, or before it fails.
func TestRefusals_Followed(t *testing.T) {
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			a, b := openTwo(t, jay.Options{Schemas: noTitle{}})
			n := 0
			next := func() string { n++; return "notes/" + name + string(rune('a'+n)) }
			const bad = `{"Embedding":[1,2,3,4]}`
			must(t, write(a, next(), `{}`))
			must(t, b.EnsureIndex(ctx, "Notes", jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"Embedding"}, Options: map[string]string{"dimensions": "3"}}))
			if err := write(a, next(), bad); err == nil {
				t.Error("a document is accepted that an index of another process refuses")
			}
			must(t, b.DropIndex(ctx, "Notes", "Alike"))
			must(t, write(a, next(), bad))

			must(t, b.Definitions().Schemas().Set(ctx, schema.Rule{Collection: "Notes", Mode: schema.Refuse, Schema: []byte(`{}`)}))
			if err := write(a, next(), `{}`); !errors.Is(err, jay.ErrSchema) {
				t.Errorf("a document that a schema of another process refuses: got %v, want %v", err, jay.ErrSchema)
			}
			must(t, b.Definitions().Schemas().Remove(ctx, "Notes"))
			must(t, write(a, next(), `{}`))
		})
	}
}

// Ensure that reads hide what has expired, and show it, as another process has set it.
func TestReads_FollowExpiry(t *testing.T) {
	now := newClock()
	a, b := openTwo(t, jay.Options{Now: now.Now, ExactExpiry: true})
	put(t, a, "users/1", `{}`, jay.InCollection("Users"), jay.ExpiresAt(now.Now().Add(1e9)))
	reads := map[string]func() error{
		"get":  func() error { _, err := a.Get(ctx, "users/1"); return err },
		"read": func() error { return a.Read(ctx, "users/1", func(*jay.RawDocument) error { return nil }) },
		"exists": func() error {
			found, err := a.Exists(ctx, "users/1")
			if err == nil && !found {
				return jay.ErrNotFound
			}
			return err
		},
		"get many": func() error {
			all, err := a.GetMany(ctx, "users/1")
			if err == nil && all[0] == nil {
				return jay.ErrNotFound
			}
			return err
		},
	}
	for _, disabled := range []bool{true, false} { // once it expires, the document is soon deleted
		must(t, b.ConfigureExpiration(ctx, jay.ExpirationConfiguration{Disabled: disabled}))
		now.add(2e9)
		for name, read := range reads {
			if err := read(); disabled != (err == nil) || err != nil && !errors.Is(err, jay.ErrNotFound) {
				t.Errorf("%s: expiry disabled %v: %v", name, disabled, err)
			}
		}
	}
}
