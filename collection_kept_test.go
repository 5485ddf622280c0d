package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// unnamedWrites are the ways to write a document without naming its collection.
var unnamedWrites = map[string]func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error{
	"Put": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		_, err := db.Put(ctx, id, body, opts...)
		return err
	},
	"Replace": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		_, err := db.Replace(ctx, id, body, opts...)
		return err
	},
	"Apply": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		var b jay.Batch
		b.Put(id, []byte(`{"n":0}`), opts...)
		b.Patch(id, jay.Increment("n", 5))
		b.Replace(id, body, opts...)
		_, err := db.Apply(ctx, &b)
		return err
	},
	"a large Apply": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		var b jay.Batch
		for i := range 200 {
			b.Put(fmt.Sprint("other/", i), []byte(`{"n":1}`))
		}
		b.Put(id, body, opts...)
		_, err := db.Apply(ctx, &b)
		return err
	},
	"Update": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, id, []byte(`{"n":0}`), opts...); err != nil {
				return err
			}
			m, err := tx.Put(ctx, id, body, opts...)
			if err == nil && m.Collection != "Users" {
				err = fmt.Errorf("the transaction has %s in %s", m.ID, m.Collection)
			}
			found, other := 0, err
			for _, err := range tx.Query("Users").Where(jay.Ge("n", 2)).Iter(ctx) {
				other = err
				found++
			}
			if other == nil && found != 1 {
				other = fmt.Errorf("the transaction finds %d documents", found)
			}
			return other
		})
	},
	"BulkInsert": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		w, err := db.BulkInsert(nil)
		if err != nil {
			return err
		}
		_, err = w.Put(ctx, id, body, opts...)
		return errors.Join(err, w.Close())
	},
	"OrInsert": func(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
		patch := []jay.PatchOption{jay.OrInsert(body), jay.MergePatch(body)}
		for _, o := range opts {
			patch = append(patch, o)
		}
		_, err := db.Patch(ctx, id, patch...)
		return err
	},
}

// Ensure that a write that names no collection keeps the one that its document is
// in, with its index entries, whatever the size of its body.
func TestPut_KeepsCollection(t *testing.T) {
	t.Parallel()
	for name, write := range unnamedWrites {
		for _, size := range []int{0, 20 << 10, 2 << 20} {
			t.Run(fmt.Sprint(name, " of ", size), func(t *testing.T) {
				db := memory(t, nil)
				must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"n"}}))
				put(t, db, "Users/Ann", `{"n":1}`, jay.InCollection("Users"))
				body := fmt.Sprintf(`{"n":2,"pad":%q}`, strings.Repeat("x", size))
				must(t, write(db, "users/ann", json.RawMessage(body)))

				doc, err := db.Get(ctx, "users/ann")
				must(t, err)
				equal(t, doc.Collection(), "Users")
				equal(t, len(doc.Body()), len(body))
				for n, want := range []int{0, 0, 1} {
					got, err := db.Query("Users").Where(jay.Eq("n", n)).NoScan().Count(ctx)
					must(t, err)
					equal(t, got, int64(want))
				}
				report, err := db.InspectIDs(ctx, nil)
				must(t, err)
				equal(t, len(report.Warnings), 0)
			})
		}
	}
}

// Ensure that a unique index of the collection that is kept refuses a write that
// does not name it.
func TestPut_KeepsCollection_Unique(t *testing.T) {
	for name, write := range unnamedWrites {
		if name == "Apply" {
			continue // its first write is refused
		}
		t.Run(name, func(t *testing.T) {
			db := memory(t, nil)
			must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"mail"}, Unique: true}))
			put(t, db, "users/ann", `{"n":2,"mail":"a"}`, jay.InCollection("Users"))
			put(t, db, "users/bob", `{"n":1,"mail":"b"}`, jay.InCollection("Users"))
			if err := write(db, "users/bob", []byte(`{"n":0,"mail":"a"}`)); !errors.Is(err, jay.ErrUnique) && name != "Update" {
				t.Errorf("got %v, want ErrUnique", err)
			}
			equal(t, body(t, db, "users/bob"), `{"n":1,"mail":"b"}`)
		})
	}
}

// Ensure that @empty is a name, in the document's @metadata and in InCollection: a
// document of a collection does not go there.
func TestPut_EmptyIsNamed(t *testing.T) {
	for name, write := range unnamedWrites {
		if name == "OrInsert" {
			continue // a patch leaves its document where it is, whatever is named
		}
		t.Run(name, func(t *testing.T) {
			db := memory(t, &jay.Options{PrefixCollections: jay.PrefixCollectionsOn})
			put(t, db, "users/ann", `{"n":1}`, jay.InCollection("Users"))
			before := dump(t, db)
			for _, err := range []error{
				write(db, "users/ann", []byte(`{"n":2}`), jay.InCollection("@empty")),
				write(db, "users/ann", []byte(`{"n":2}`), jay.WithMetadata([]byte(`{"@collection":"@empty"}`))),
			} {
				var c *jay.CollectionError
				if name == "Update" && err != nil {
					continue // the transaction says that it has the document in @empty
				}
				if !errors.As(err, &c) || c.Given != "@empty" {
					t.Errorf("got %v, want a *CollectionError", err)
				}
			}
			equal(t, dump(t, db), before)
			equal(t, put(t, db, "users/cyd", `{}`, jay.InCollection("@empty")).Collection, "@empty")
			equal(t, put(t, db, "users/dan", `{"@metadata":{"@collection":"@empty"}}`).Collection, "@empty")
			equal(t, put(t, db, "users/eve", `{}`).Collection, "Users")
		})
	}
}

// Ensure that a batch can be applied again after its documents have been deleted:
// what was kept once is not named.
func TestApply_KeepsCollectionAnew(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/ann", `{}`, jay.InCollection("Users"))
	var b jay.Batch
	b.Put("users/ann", []byte(`{}`))
	b.Put("users/bob", []byte(`{}`), jay.InCollection("@empty"))
	for _, want := range []string{"Users", "@empty"} {
		got, err := db.Apply(ctx, &b)
		must(t, err)
		equal(t, got[0].Collection, want)
		equal(t, got[1].Collection, "@empty")
		must(t, db.Delete(ctx, "users/ann"))
	}
}

// Ensure that a transaction whose write keeps a collection is lost if the document
// is in another one when it commits, and that it is not lost by any other change.
func TestTx_KeepsCollection_Lost(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{}`, jay.InCollection("Users"))
	runs := 0
	update := func(meanwhile func()) error {
		runs = 0
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, "a", []byte(`{"n":1}`)); err != nil {
				return err
			}
			if runs++; runs == 1 {
				meanwhile()
			}
			return nil
		}, jay.Retry(1))
	}
	must(t, update(func() { put(t, db, "a", `{"n":7}`, jay.InCollection("Users")) }))
	equal(t, runs, 1)
	must(t, update(func() {
		must(t, db.Delete(ctx, "a"))
		put(t, db, "a", `{}`, jay.InCollection("People"))
	}))
	equal(t, runs, 2)
	doc, err := db.Get(ctx, "a")
	must(t, err)
	equal(t, doc.Collection(), "People")
}

// Ensure that prefixes suggest the collections of new documents if the database has
// that stored, and only where none is named.
func TestOptions_PrefixCollections(t *testing.T) {
	db := memory(t, &jay.Options{PrefixCollections: jay.PrefixCollectionsOn})
	for _, test := range []struct{ request, want string }{
		{"users/ann", "Users"}, {"users|", "Users"}, {"users/", "Users"}, {"Users/Bob", "Users"}, {"USERS/eve", "Users"},
		{"users/ann/orders/1", "Users"}, {"users", "@empty"}, {"", "@empty"}, {"ünits/1", "Ünits"},
		{"2026/x", "@empty"}, {"/x", "@empty"}, {"@x/1", "@empty"}, {"Raven/Config", "@empty"}, {"raven|", "@empty"},
		{"ORDERLINES/1", "OrderLines"}, {"a|/1", "A|"}, {"x|b|", "X|b"},
	} {
		if test.want == "OrderLines" {
			put(t, db, "OrderLines/7", `{}`, jay.InCollection("OrderLines"))
		}
		m, err := db.Put(ctx, test.request, []byte(`{}`))
		must(t, err)
		if m.Collection != test.want {
			t.Errorf("%q is in %s, want %s", test.request, m.Collection, test.want)
		}
		if got := put(t, db, m.ID, `{"n":1}`); got.Collection != test.want {
			t.Errorf("%q, written again, is in %s, want %s", test.request, got.Collection, test.want)
		}
	}
	dashed := memory(t, &jay.Options{PrefixCollections: jay.PrefixCollectionsOn, Separator: "-"})
	equal(t, put(t, dashed, "users-1", `{}`).Collection, "Users")
	equal(t, put(t, dashed, "users/1", `{}`).Collection, "@empty")
	equal(t, put(t, memory(t, nil), "users/1", `{}`).Collection, "@empty")
}

// Ensure that PrefixCollections is kept in the database, can be changed by an Open,
// and is in Stats.
func TestOptions_PrefixCollections_Stored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, step := range []struct {
		option jay.PrefixCollections
		want   bool
	}{
		{jay.PrefixCollectionsStored, false}, {jay.PrefixCollectionsOn, true}, {jay.PrefixCollectionsIgnored, false}, {jay.PrefixCollectionsStored, true},
		{jay.PrefixCollectionsOff, false}, {jay.PrefixCollectionsStored, false},
	} {
		db, err := jay.Open(dir, &jay.Options{PrefixCollections: step.option})
		must(t, err)
		stats, err := db.Stats(ctx)
		must(t, err)
		equal(t, stats.PrefixCollections, step.want)
		equal(t, put(t, db, fmt.Sprint("users/", i), `{}`).Collection == "Users", step.want)
		must(t, db.Close())
	}
	if _, err := jay.OpenMemory(&jay.Options{PrefixCollections: 4}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("got %v, want ErrOption", err)
	}
}

func ExamplePrefixCollections() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{PrefixCollections: jay.PrefixCollectionsOn})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	m, err := db.Put(ctx, "invoices|", json.RawMessage(`{"Total":12.5}`))
	fmt.Println(m.ID, m.Collection, err)
	n, err := db.Query("Invoices").Count(ctx)
	fmt.Println(n, err)
	// Output:
	// invoices/1 Invoices <nil>
	// 1 <nil>
}
