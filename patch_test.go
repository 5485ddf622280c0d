package jay_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a patch changes what it names and nothing else, tells what
// became of it, and writes nothing where nothing changes.
func TestPatch(t *testing.T) {
	const before = `{"n":1,"big":9007199254740993,"price":1.10,"tags":["a"],"deep":{"x":null}}`
	tests := []struct {
		name   string
		opts   []jay.PatchOption
		want   string // the body afterwards; "" for the one before
		status jay.PatchStatus
		err    error
	}{
		{"set", []jay.PatchOption{jay.Set("deep.y", "z")}, `{"n":1,"big":9007199254740993,"price":1.10,"tags":["a"],"deep":{"x":null,"y":"z"}}`, jay.PatchPatched, nil},
		{"increment and append", []jay.PatchOption{jay.Increment("n", 41), jay.Append("tags", "b", 2)}, `{"n":42,"big":9007199254740993,"price":1.10,"tags":["a","b",2],"deep":{"x":null}}`, jay.PatchPatched, nil},
		{"rename and unset", []jay.PatchOption{jay.Rename("n", "m"), jay.Unset("deep"), jay.Remove("tags", "a")}, `{"m":1,"big":9007199254740993,"price":1.10,"tags":[]}`, jay.PatchPatched, nil},
		{"merge", []jay.PatchOption{jay.MergePatch(json.RawMessage(`{"n":null,"deep":{"x":5}}`))}, `{"big":9007199254740993,"price":1.10,"tags":["a"],"deep":{"x":5}}`, jay.PatchPatched, nil},
		{"operations", []jay.PatchOption{jay.JSONPatch(json.RawMessage(`[{"op":"test","path":"/n","value":1},{"op":"remove","path":"/tags/0"}]`))}, `{"n":1,"big":9007199254740993,"price":1.10,"tags":[],"deep":{"x":null}}`, jay.PatchPatched, nil},
		{"null is missing", []jay.PatchOption{jay.Append("deep.x", "first"), jay.Set("none", nil), jay.Increment("none", 2)}, `{"n":1,"big":9007199254740993,"price":1.10,"tags":["a"],"deep":{"x":["first"]},"none":2}`, jay.PatchPatched, nil},
		{"below null", []jay.PatchOption{jay.Set("deep.x.y", 1)}, `{"n":1,"big":9007199254740993,"price":1.10,"tags":["a"],"deep":{"x":{"y":1}}}`, jay.PatchPatched, nil},
		{"remove from null", []jay.PatchOption{jay.Remove("deep.x", "a")}, "", jay.PatchNotModified, nil},
		{"nothing changes", []jay.PatchOption{jay.Set("n", 1), jay.Unset("none")}, "", jay.PatchNotModified, nil},
		{"wrong path", []jay.PatchOption{jay.Set("n..x", 1)}, "", "", jay.ErrInvalidPatch},
		{"wrong type", []jay.PatchOption{jay.Set("n", 2), jay.Increment("tags", 1)}, "", "", jay.ErrInvalidPatch},
		{"overflow", []jay.PatchOption{jay.Set("n", int64(1)<<62), jay.Increment("n", int64(1)<<62)}, "", "", jay.ErrInvalidPatch},
		{"failed test", []jay.PatchOption{jay.JSONPatch(json.RawMessage(`[{"op":"test","path":"/n","value":2}]`))}, "", "", jay.ErrPatchTest},
		{"metadata", []jay.PatchOption{jay.Set("@metadata.x", 1)}, "", "", jay.ErrInvalidPatch},
		{"no edits", nil, "", "", jay.ErrUsage},
		{"another version", []jay.PatchOption{jay.Set("n", 2), jay.IfMatch("A:99-x")}, "", "", jay.ErrConflict},
		{"cyclic value", []jay.PatchOption{jay.Set("n", loop())}, "", "", jay.ErrInvalidPatch},
	}
	for _, test := range tests {
		for _, where := range []string{"database", "batch", "transaction"} {
			t.Run(test.name+" in a "+where, func(t *testing.T) {
				db := memory(t, nil)
				was := put(t, db, "Docs/One", before, jay.InCollection("Docs"), jay.WithMetadata([]byte(`{"k":1}`)))
				must(t, db.EnsureIndex(ctx, "Docs", jay.Index{Fields: []string{"n"}}))
				result, err := patchIn(where, db, "docs/one", test.opts)
				if !errors.Is(err, test.err) {
					t.Fatalf("got %v, want %v", err, test.err)
				}
				if where != "batch" && result.Status != test.status {
					t.Errorf("status %q, want %q", result.Status, test.status)
				}
				doc, err := db.Get(ctx, "docs/one")
				must(t, err)
				want := test.want
				if want == "" {
					want = before
				}
				m := doc.Metadata()
				if string(doc.Body()) != want || doc.ID() != "Docs/One" || m.Collection != "Docs" || string(m.Custom) != `{"k":1}` {
					t.Errorf("got %s of %+v", doc.Body(), m)
				}
				if changed := m.ChangeVector != was.ChangeVector; changed != (test.want != "") {
					t.Errorf("written: %v", changed)
				}
				n, err := db.Query("Docs").Where(jay.Eq("n", 42)).NoScan().Count(ctx)
				if want := int64(0); err != nil || (n != want) != (test.name == "increment and append") {
					t.Errorf("index has %d, %v", n, err)
				}
			})
		}
	}
}

func loop() any {
	c := new(struct{ Next any })
	c.Next = c
	return c
}

// Ensure that a patch of a missing document says so, or inserts what it was
// told to, and that a request for an ID is no document.
func TestPatch_Missing(t *testing.T) {
	for _, where := range []string{"database", "transaction"} {
		db := memory(t, nil)
		r, err := patchIn(where, db, "counters/a", []jay.PatchOption{jay.Increment("n", 1)})
		if err != nil || r.Status != jay.PatchNotFound {
			t.Errorf("%s: got %+v, %v", where, r, err)
		}
		upsert := []jay.PatchOption{jay.Increment("n", 1), jay.OrInsert(map[string]int{"n": 1}), jay.InCollection("Counters")}
		for i, want := range []jay.PatchStatus{jay.PatchCreated, jay.PatchPatched} {
			if r, err = patchIn(where, db, "counters/a", upsert); err != nil || r.Status != want {
				t.Errorf("%s: upsert %d: got %+v, %v", where, i, r, err)
			}
		}
		if doc, err := db.Get(ctx, "counters/a"); err != nil || string(doc.Body()) != `{"n":2}` || doc.Collection() != "Counters" {
			t.Errorf("%s: got %v, %v", where, doc, err)
		}
		for _, id := range []string{"", "users/", "users|"} {
			if _, err := patchIn(where, db, id, upsert); !errors.Is(err, jay.ErrInvalidID) {
				t.Errorf("%s: patch of %q: %v", where, id, err)
			}
		}
	}
}

// Ensure that concurrent increments lose nothing.
func TestPatch_Concurrent(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "counter", `{"n":0}`)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				if _, err := db.Patch(ctx, "counter", jay.Increment("n", 1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if doc, err := db.Get(ctx, "counter"); err != nil || string(doc.Body()) != `{"n":800}` {
		t.Errorf("got %v, %v", doc, err)
	}
}

// Ensure that a patch of a collection makes no member that would be read as the
// ID of its values.
func TestPatch_IDMember(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	u := &User{Name: "Ann"}
	_, err := users.Insert(ctx, u)
	must(t, err)
	if _, err := users.Patch(ctx, u.ID, jay.Set("ID", 1)); !errors.Is(err, jay.ErrInvalidPatch) {
		t.Errorf("got %v", err)
	}
	if _, err := users.Get(ctx, u.ID); err != nil {
		t.Error(err)
	}
}
