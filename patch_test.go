package jay_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that a patch changes what it names and nothing else, reports what
// became of it, and writes nothing where nothing changes.
func TestPatch(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
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
		{"add to set", []jay.PatchOption{jay.AddToSet("tags", "a", "b", "b"), jay.AddToSet("set", 1, json.Number("1.0"))}, `{"n":1,"big":9007199254740993,"price":1.10,"tags":["a","b"],"deep":{"x":null},"set":[1]}`, jay.PatchPatched, nil},
		{"add what is there", []jay.PatchOption{jay.AddToSet("tags", "a")}, "", jay.PatchNotModified, nil},
		{"pop", []jay.PatchOption{jay.Append("tags", "b", "c"), jay.PopFirst("tags"), jay.PopLast("tags"), jay.PopLast("deep.x")}, `{"n":1,"big":9007199254740993,"price":1.10,"tags":["b"],"deep":{"x":null}}`, jay.PatchPatched, nil},
		{"remove where", []jay.PatchOption{jay.Set("lines", json.RawMessage(`[{"q":0},{"q":2},{},7,{"q":[5,0]}]`)), jay.RemoveWhere("lines", jay.Lt("q", 1)), jay.RemoveWhere("lines", jay.Eq("@value", 7))}, `{"n":1,"big":9007199254740993,"price":1.10,"tags":["a"],"deep":{"x":null},"lines":[{"q":2},{}]}`, jay.PatchPatched, nil},
		{"remove where an instant", []jay.PatchOption{jay.Set("deep.x", json.RawMessage(`[{"at":"2026-01-01T01:00:00+01:00"},{"at":"2026-01-02T00:00:00Z"}]`)), jay.RemoveWhere("deep.x", jay.Le("at", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))}, `{"n":1,"big":9007199254740993,"price":1.10,"tags":["a"],"deep":{"x":[{"at":"2026-01-02T00:00:00Z"}]}}`, jay.PatchPatched, nil},
		{"remove where from null", []jay.PatchOption{jay.RemoveWhere("deep.x", jay.Exists("a"))}, "", jay.PatchNotModified, nil},
		{"remove where by a wrong path", []jay.PatchOption{jay.RemoveWhere("tags", jay.Eq("a..b", 1))}, "", "", jay.ErrInvalidPatch},
		{"remove where by metadata", []jay.PatchOption{jay.RemoveWhere("tags", jay.Eq("id()", "a"))}, "", "", jay.ErrInvalidPatch},
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
				var returned jay.PatchResult
				result, err := patchIn(where, db, "docs/one", append(test.opts, jay.ReturningPatch(&returned)))
				if !errors.Is(err, test.err) {
					t.Fatalf("got %v, want %v", err, test.err)
				}
				if where != "batch" && result.Status != test.status {
					t.Errorf("status %q, want %q", result.Status, test.status)
				}
				if returned.Status != test.status {
					t.Errorf("returned status %q, want %q", returned.Status, test.status)
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
				if test.err == nil && (string(returned.Body) != want || returned.Metadata.ChangeVector != m.ChangeVector) {
					t.Errorf("returned %s of %+v", returned.Body, returned.Metadata)
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

// Ensure that a patch of a missing document says so, or inserts the document of
// OrInsert, and that a request for an ID is no document.
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

// Ensure that edits are made of the document that OrInsertPatched inserts, in every
// way to patch, with its collection, its metadata and its index entries, and that their
// mistakes are errors only if it is inserted.
func TestPatch_OrInsertPatched(t *testing.T) {
	body := json.RawMessage(`{"log":null,"@metadata":{"@collection":"Counters","k":1}}`)
	for _, where := range []string{"database", "batch", "transaction"} {
		t.Run(where, func(t *testing.T) {
			db := memory(t, nil)
			must(t, db.EnsureIndex(ctx, "Counters", jay.Index{Fields: []string{"n"}}))
			for i, want := range []string{`{"log":["x"],"n":1}`, `{"log":["x","x"],"n":2}`} {
				var r jay.PatchResult
				_, err := patchIn(where, db, "counters/a", []jay.PatchOption{jay.Increment("n", 1), jay.Append("log", "x"), jay.OrInsertPatched(body), jay.ReturningPatch(&r)})
				must(t, err)
				equal(t, r.Status, []jay.PatchStatus{jay.PatchCreated, jay.PatchPatched}[i])
				doc, err := db.Get(ctx, "counters/a")
				must(t, err)
				equal(t, string(doc.Body()), want)
				equal(t, string(r.Body), want)
				equal(t, r.Metadata.ChangeVector, doc.ChangeVector())
				equal(t, doc.Collection(), "Counters")
				equal(t, string(doc.Metadata().Custom), `{"k":1}`)
				n, err := db.Query("Counters").Where(jay.Eq("n", i+1)).NoScan().Count(ctx)
				if err != nil || n != 1 {
					t.Errorf("the index has %d, %v", n, err)
				}
			}

			mistake := []jay.PatchOption{jay.Increment("n", 1), jay.OrInsertPatched(json.RawMessage(`{"n":"text"}`))}
			if _, err := patchIn(where, db, "counters/a", mistake); err != nil {
				t.Errorf("of a document that is there: %v", err)
			}
			var wrong *jay.PatchError
			if _, err := patchIn(where, db, "counters/b", mistake); !errors.As(err, &wrong) || wrong.Edit != 0 || wrong.Path != "n" {
				t.Errorf("of one that is inserted: %v", err)
			}
			if _, err := patchIn(where, db, "counters/b", []jay.PatchOption{jay.Set("n", 1), jay.OrInsertPatched(7)}); !errors.Is(err, jay.ErrInvalidDocument) {
				t.Errorf("a body that is no document: %v", err)
			}
			if found, err := db.Exists(ctx, "counters/b"); found || err != nil {
				t.Errorf("counters/b: %v, %v", found, err)
			}
		})
	}
}

// Ensure that a batch reports what became of each of its patches, that of a missing
// document included, and also when it is applied in a transaction, twice.
func TestBatch_ReturningPatch(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"n":1}`)
	var changed, same, missing, created, after jay.PatchResult
	var b jay.Batch
	b.Patch("a", jay.Increment("n", 1), jay.ReturningPatch(&changed))
	b.Patch("a", jay.Unset("none"), jay.ReturningPatch(&same))
	b.Patch("none", jay.Increment("n", 1), jay.ReturningPatch(&missing))
	b.Patch("new", jay.Increment("n", 1), jay.OrInsertPatched(struct{}{}), jay.ReturningPatch(&created))
	b.Patch("new", jay.Increment("n", 1), jay.ReturningPatch(&after), jay.ReturningPatch(nil))
	check := func(want ...string) {
		t.Helper()
		for i, r := range []jay.PatchResult{changed, same, missing, created, after} {
			equal(t, string(r.Status)+" "+string(r.Body), want[i])
		}
		equal(t, missing.Metadata.ID, "none")
	}
	_, err := db.Apply(ctx, &b)
	must(t, err)
	check(`Patched {"n":2}`, `NotModified {"n":2}`, `DocumentDoesNotExist `, `Created {"n":1}`, `Patched {"n":2}`)
	must(t, db.Delete(ctx, "new"))
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Apply(ctx, &b); err != nil {
			return err
		}
		_, err := tx.Apply(ctx, &b)
		return err
	}))
	check(`Patched {"n":4}`, `NotModified {"n":4}`, `DocumentDoesNotExist `, `Patched {"n":3}`, `Patched {"n":4}`)
}

// Ensure that the work of conditions on elements counts as that of a patch does.
func TestPatch_RemoveWhere_Work(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := memory(t, &jay.Options{MaxDocumentBytes: 1 << 20})
	body := `{"a":[0` + strings.Repeat(",1", 400_000) + `]}`
	put(t, db, "large", body)
	var conditions []jay.Condition
	for i := range 100 {
		conditions = append(conditions, jay.Eq("@value", -i-1))
	}
	if _, err := db.Patch(ctx, "large", jay.RemoveWhere("a", jay.Or(conditions...))); !errors.Is(err, jay.ErrPatchWork) {
		t.Errorf("100 conditions on 400,001 elements: %v", err)
	}
	r, err := db.Patch(ctx, "large", jay.RemoveWhere("a", jay.Eq("@value", 1)))
	if err != nil || string(r.Body) != `{"a":[0]}` {
		t.Errorf("got %.80s, %v", r.Body, err)
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
