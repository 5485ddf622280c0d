package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/patch"
)

// Ensure that patches by every way in do to the stored documents what package
// patch does to their bytes, with the metadata, collection and index entries
// kept, and that one that is refused changes nothing; between other writes of
// the same documents in the same batch or transaction.
func TestPatch_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db, err := jaytest.OpenMemory(&jay.Options{MaxDocumentBytes: 400, MaxDepth: 8, CaseSensitive: rapid.Bool().Draw(t, "case-sensitive")})
		ok(err)
		defer func() { jaytest.Verify(t, db); ok(db.Close()) }()
		ok(db.EnsureIndex(ctx, "Docs", jay.Index{Fields: []string{"n"}}))
		docs, err := jay.CollectionOf[struct3](db, jay.Named("Docs"))
		ok(err)
		model := make(map[string]string) // bodies, by ID
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				before := everythingOf(db)
				group := rapid.SliceOfN(rapid.Custom(drawEdit), 1, 4).Draw(t, "group")
				next := make(map[string]string, len(model))
				for id, body := range model {
					next[id] = body
				}
				var want error
				for i := range group {
					if want = group[i].predict(next); want != nil {
						break
					}
				}
				way := rapid.SampledFrom([]string{"single", "batch", "transaction", "collection", "collection in a transaction"}).Draw(t, "way")
				if way == "single" || way == "collection" { // each by itself
					next = model
					for i := range group {
						err := group[i].do(db, docs, way == "collection")
						now := make(map[string]string, len(next))
						for id, body := range next {
							now[id] = body
						}
						if want := group[i].predict(now); !errors.Is(err, want) || (err != nil) != (want != nil) {
							t.Fatalf("%+v: %v, want %v", group[i], err, want)
						} else if want == nil {
							next = now
						}
					}
					model = next
					return
				}
				if way == "batch" {
					var b jay.Batch
					for i := range group {
						group[i].add(&b)
					}
					_, err = db.Apply(ctx, &b)
				} else {
					err = db.Update(ctx, func(tx *jay.Tx) error {
						for i := range group {
							if err := group[i].do(tx, docs.In(tx), way != "transaction"); err != nil {
								return err
							}
						}
						return nil
					})
				}
				if !errors.Is(err, want) || (err != nil) != (want != nil) {
					t.Fatalf("%s of %+v: %v, want %v", way, group, err, want)
				}
				if err == nil {
					model = next
				} else if now := everythingOf(db); now != before {
					t.Fatalf("refused, but\n%s became\n%s", before, now)
				}
			},
			"": func(t *rapid.T) {
				n := 0
				for id, body := range model {
					doc, err := db.Get(ctx, id)
					ok(err)
					if string(doc.Body()) != body || string(doc.Metadata().Custom) != `{"k":1}` || doc.Collection() != "Docs" {
						t.Fatalf("%s: got %s, want %s", id, doc.Body(), body)
					}
					var fields struct{ N any }
					ok(json.Unmarshal([]byte(body), &fields))
					if reaches7(fields.N) {
						n++
					}
				}
				count, err := db.Query("Docs").Where(jay.Eq("n", 7)).NoScan().Count(ctx)
				ok(err)
				if int(count) != n {
					t.Fatalf("the index has %d documents with 7, want %d", count, n)
				}
			},
		})
	})
}

// reaches7 reports whether an index on a value has an entry for 7.
func reaches7(v any) bool {
	if list, is := v.([]any); is {
		return slices.ContainsFunc(list, reaches7)
	}
	return v == 7.0
}

func everythingOf(db *jay.DB) string {
	var all strings.Builder
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		ok(err)
		fmt.Fprintf(&all, "%s %s %s %s\n", doc.ID(), doc.ChangeVector(), doc.Body(), doc.Metadata().Custom)
	}
	return all.String()
}

// randomEdit is a put, a delete or a patch of one document.
type randomEdit struct {
	ID     string
	Verb   string
	Body   string
	Edits  []patch.Edit
	opts   []jay.PatchOption
	insert bool // the body, if the document is missing
	patch  bool // and the edits of it
}

func drawEdit(t *rapid.T) randomEdit {
	e := randomEdit{ID: rapid.SampledFrom([]string{"docs/1", "docs/2", "away"}).Draw(t, "id")}
	e.Body = rapid.SampledFrom([]string{`{"n":7,"a":[1,2]}`, `{"a":{"b":1}}`, `{"n":"text","deep":{"x":{"y":[]}}}`}).Draw(t, "body")
	e.Verb = rapid.SampledFrom([]string{"patch", "patch", "patch", "patch", "put", "delete"}).Draw(t, "verb")
	if e.Verb != "patch" {
		return e
	}
	for range rapid.IntRange(1, 3).Draw(t, "edits") {
		path := rapid.SampledFrom([]string{"n", "a", "a[0]", "a[]", "a.b", "deep.x.y", "new.one", "n..", "@metadata.k"}).Draw(t, "path")
		value := rapid.SampledFrom([]any{7, 1.5, "text", nil, []int{1}, strings.Repeat("x", 150), raw(`[[[[[[[1]]]]]]]`), raw(`{"b":{"c":7}}`)}).Draw(t, "value")
		var edit patch.Edit
		var option jay.PatchOption
		switch rapid.IntRange(0, 9).Draw(t, "edit") {
		case 0:
			edit, option = patch.Set(path, value), jay.Set(path, value)
		case 1:
			edit, option = patch.Unset(path), jay.Unset(path)
		case 2:
			edit, option = patch.Increment(path, 7), jay.Increment(path, 7)
		case 3:
			edit, option = patch.Append(path, value, 2), jay.Append(path, value, 2)
		case 4:
			edit, option = patch.Remove(path, value), jay.Remove(path, value)
		case 5:
			edit, option = patch.Rename(path, "b"), jay.Rename(path, "b")
		case 6:
			edit, option = patch.AddToSet(path, value, 2), jay.AddToSet(path, value, 2)
		case 7:
			edit, option = patch.PopFirst(path), jay.PopFirst(path)
		case 8:
			edit, option = patch.RemoveWhere(path, isOne{}), jay.RemoveWhere(path, jay.Eq("@value", 1))
		default:
			text := json.RawMessage(`{"n":7,"a":null,"deep":{"x":null}}`)
			edit, option = patch.Merge(text), jay.MergePatch(text)
		}
		e.Edits, e.opts = append(e.Edits, edit), append(e.opts, option)
	}
	if e.insert = rapid.IntRange(0, 2).Draw(t, "or insert") == 0; e.insert {
		insert := jay.OrInsert
		if e.patch = rapid.Bool().Draw(t, "patched"); e.patch {
			insert = jay.OrInsertPatched
		}
		e.opts = append(e.opts, insert(json.RawMessage(e.Body)), jay.InCollection("Docs"), jay.WithMetadata([]byte(`{"k":1}`)))
	}
	return e
}

// isOne is the condition that an element is the number 1, or an array that has it.
type isOne struct{}

func (isOne) Err() error { return nil }

func (isOne) Begin(spend func(n int) error) func(element []byte) (bool, error) {
	return func(element []byte) (bool, error) {
		var v any
		if err := json.Unmarshal(element, &v); err != nil {
			return false, err
		}
		list, _ := v.([]any)
		return v == 1.0 || slices.Contains(list, any(1.0)), spend(len(element))
	}
}

// predict applies the edit to the model.
func (e *randomEdit) predict(model map[string]string) error {
	body, found := model[e.ID]
	switch {
	case e.Verb == "put" || e.Verb == "patch" && !found && e.insert:
		for _, edit := range e.Edits {
			if edit.Err() != nil {
				return jay.ErrInvalidPatch
			}
		}
		out := []byte(e.Body)
		if e.patch {
			var err error
			if out, _, err = patch.Apply(out, e.Edits, patch.Limits{MaxBytes: 400, MaxDepth: 8}); err != nil {
				return jay.ErrInvalidPatch
			}
		}
		model[e.ID] = string(out)
	case e.Verb == "delete":
		delete(model, e.ID)
	default:
		for _, edit := range e.Edits {
			if edit.Err() != nil {
				return jay.ErrInvalidPatch
			}
		}
		if !found {
			return nil
		}
		out, _, err := patch.Apply([]byte(body), e.Edits, patch.Limits{MaxBytes: 400, MaxDepth: 8})
		if err != nil {
			return jay.ErrInvalidPatch
		}
		model[e.ID] = string(out)
	}
	return nil
}

// verbs are what a database and a transaction have in common.
type verbs interface {
	Put(ctx context.Context, id string, body json.RawMessage, opts ...jay.WriteOption) (jay.Metadata, error)
	Delete(ctx context.Context, id string, opts ...jay.WriteOption) error
	Patch(ctx context.Context, id string, opts ...jay.PatchOption) (jay.PatchResult, error)
	Get(ctx context.Context, id string) (*jay.Document, error)
}

// do runs the edit and checks its result against what a read finds.
func (e *randomEdit) do(db verbs, docs *jay.Collection[struct3], typed bool) (err error) {
	switch e.Verb {
	case "put":
		_, err = db.Put(ctx, e.ID, json.RawMessage(e.Body), jay.InCollection("Docs"), jay.WithMetadata([]byte(`{"k":1}`)))
		return err
	case "delete":
		return db.Delete(ctx, e.ID)
	}
	before, err := db.Get(ctx, e.ID)
	if err != nil && !errors.Is(err, jay.ErrNotFound) {
		return err
	}
	var result jay.PatchResult
	var meta jay.Metadata
	var returned jay.PatchResult
	opts := append(e.opts[:len(e.opts):len(e.opts)], jay.Returning(&meta), jay.ReturningPatch(&returned))
	if typed {
		result, err = docs.Patch(ctx, e.ID, opts...)
	} else {
		result, err = db.Patch(ctx, e.ID, opts...)
	}
	if err != nil {
		return err
	}
	after, err := db.Get(ctx, e.ID)
	if err != nil && !errors.Is(err, jay.ErrNotFound) {
		return err
	}
	want := jay.PatchPatched
	switch {
	case before == nil && after == nil:
		want = jay.PatchNotFound
	case before == nil:
		want = jay.PatchCreated
	case string(before.Body()) == string(after.Body()):
		want = jay.PatchNotModified
	}
	if result.Status != want || result.Metadata.ID != e.ID || after != nil && string(result.Body) != string(after.Body()) {
		return fmt.Errorf("result %+v, want %s of %v", result, want, after)
	}
	if _, inDB := db.(*jay.DB); inDB && (returned.Status != result.Status || string(returned.Body) != string(result.Body)) {
		return fmt.Errorf("ReturningPatch returned %+v", returned)
	}
	if _, inDB := db.(*jay.DB); inDB && meta.ID != e.ID {
		return fmt.Errorf("Returning got %+v", meta)
	}
	return nil
}

func (e *randomEdit) add(b *jay.Batch) {
	switch e.Verb {
	case "put":
		b.Put(e.ID, json.RawMessage(e.Body), jay.InCollection("Docs"), jay.WithMetadata([]byte(`{"k":1}`)))
	case "delete":
		b.Delete(e.ID)
	default:
		b.Patch(e.ID, e.opts...)
	}
}

// Ensure that increments and appends by every way in, from 16 goroutines, on
// one document, lose nothing.
func TestPatch_Concurrent_EveryWay(t *testing.T) {
	const goroutines, rounds = 16, 40
	db := memory(t, nil)
	put(t, db, "struct3s/1", `{"n":0,"log":[]}`, jay.InCollection("Struct3s"))
	docs := jaytest.CollectionOf[struct3](t, db)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				edits := []jay.PatchOption{jay.Increment("n", 1), jay.Append("log", fmt.Sprintf("%d.%d", g, i))}
				var err error
				switch g % 4 {
				case 0:
					_, err = db.Patch(ctx, "struct3s/1", edits...)
				case 1:
					var b jay.Batch
					b.Patch("STRUCT3S/1", edits[0])
					b.Patch("struct3s/1", edits[1])
					_, err = db.Apply(ctx, &b)
				case 2:
					err = db.Update(ctx, func(tx *jay.Tx) error {
						_, err := tx.Patch(ctx, "struct3s/1", edits...)
						return err
					}, jay.Retry(1_000_000))
				case 3:
					_, err = docs.Patch(ctx, "struct3s/1", edits...)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	doc, err := db.Get(ctx, "struct3s/1")
	must(t, err)
	n, _, err := jay.Value[int](doc, "n")
	must(t, err)
	log, _, err := jay.Value[[]string](doc, "log")
	must(t, err)
	seen := make(map[string]bool)
	for _, entry := range log {
		seen[entry] = true
	}
	jaytest.Equal(t, n, goroutines*rounds)
	jaytest.Equal(t, len(log), goroutines*rounds)
	jaytest.Equal(t, len(seen), goroutines*rounds)
}

// Ensure that goroutines which share one transaction lose no patch of each
// other's.
func TestTx_Patch_Concurrent(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "counter", `{"n":0}`)
	err := db.Update(ctx, func(tx *jay.Tx) error {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					if _, err := tx.Patch(ctx, "counter", jay.Increment("n", 1)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return nil
	})
	must(t, err)
	jaytest.Equal(t, body(t, db, "counter"), `{"n":400}`)
}

// Ensure that each thing that can be wrong with a patch is its own error, by
// every way in, and changes nothing.
func TestPatch_Refused(t *testing.T) {
	sample.OneGoroutine(t)
	long := strings.Repeat("x", 400)
	tests := []struct {
		name string
		id   string
		opts []jay.PatchOption
		want error
	}{
		{"result too large", "users/1", []jay.PatchOption{jay.Set("x", long)}, jay.ErrInvalidPatch},
		{"appended too large", "users/1", []jay.PatchOption{jay.Append("x", long)}, jay.ErrInvalidPatch},
		{"result too deep", "users/1", []jay.PatchOption{jay.Set("a.b.c.d.e.f.g.h.i.j", 1)}, jay.ErrInvalidPatch},
		{"value too deep", "users/1", []jay.PatchOption{jay.Set("a", raw(`[[[[[[[[[[1]]]]]]]]]]`))}, jay.ErrInvalidPatch},
		{"unique index", "users/1", []jay.PatchOption{jay.Set("Email", "b")}, jay.ErrUnique},
		{"must not exist", "users/1", []jay.PatchOption{jay.Set("x", 1), jay.IfMatch("")}, jay.ErrExists},
		{"must not exist, with insert", "users/1", []jay.PatchOption{jay.Set("x", 1), jay.IfMatch(""), jay.OrInsert(raw(`{}`))}, jay.ErrExists},
		{"must not exist, unchanged", "users/1", []jay.PatchOption{jay.Set("Email", "a"), jay.IfMatch("")}, jay.ErrExists},
		{"missing in a version", "none", []jay.PatchOption{jay.Set("x", 1), jay.IfMatch("A:1-x")}, jay.ErrNotFound},
		{"missing in a version, with insert", "none", []jay.PatchOption{jay.Set("x", 1), jay.IfMatch("A:1-x"), jay.OrInsert(raw(`{}`))}, jay.ErrConflict},
		{"insert of no object", "none", []jay.PatchOption{jay.Set("x", 1), jay.OrInsert(7)}, jay.ErrInvalidDocument},
		{"insert of nil", "none", []jay.PatchOption{jay.Set("x", 1), jay.OrInsert(nil)}, jay.ErrInvalidDocument},
		{"insert of what is no JSON", "none", []jay.PatchOption{jay.Set("x", 1), jay.OrInsert(json.RawMessage(`{`))}, jay.ErrInvalidDocument},
		{"insert of a cyclic value", "none", []jay.PatchOption{jay.Set("x", 1), jay.OrInsert(loop())}, jay.ErrType},
		{"insert of one that breaks an index", "none", []jay.PatchOption{jay.Set("x", 1), jay.OrInsert(raw(`{"Email":"b"}`)), jay.InCollection("Users")}, jay.ErrUnique},
		{"insert into a wrong collection", "none", []jay.PatchOption{jay.Set("x", 1), jay.OrInsert(raw(`{}`)), jay.InCollection("a\x00")}, jay.ErrInvalidDocument},
		{"empty id", "", []jay.PatchOption{jay.Set("x", 1)}, jay.ErrInvalidID},
		{"blank id", "  ", []jay.PatchOption{jay.Set("x", 1)}, jay.ErrInvalidID},
		{"server-side request", "users/", []jay.PatchOption{jay.Set("x", 1)}, jay.ErrInvalidID},
		{"identity request", "users|", []jay.PatchOption{jay.Set("x", 1)}, jay.ErrInvalidID},
		{"identity request, with insert", "users|", []jay.PatchOption{jay.Set("x", 1), jay.OrInsert(raw(`{}`))}, jay.ErrInvalidID},
		{"too long an id", strings.Repeat("x", 3000), []jay.PatchOption{jay.Set("x", 1)}, jay.ErrInvalidID},
	}
	for _, test := range tests {
		for _, where := range []string{"database", "batch", "transaction"} {
			t.Run(test.name+" in a "+where, func(t *testing.T) {
				db := memory(t, &jay.Options{MaxDocumentBytes: 300, MaxDepth: 8})
				must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Email"}, Unique: true}))
				put(t, db, "users/1", `{"Email":"a"}`, jay.InCollection("Users"))
				put(t, db, "elsewhere", `{"Email":"b"}`, jay.InCollection("Users"))
				before := everythingOf(db)
				if _, err := patchIn(where, db, test.id, test.opts); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				jaytest.Equal(t, everythingOf(db), before)
				n, err := db.Query("Users").Where(jay.In("Email", "a", "b")).NoScan().Count(ctx)
				must(t, err)
				jaytest.Equal(t, n, 2)
			})
		}
	}
}

// Ensure what a patch through a collection adds: its documents only, under its
// name, without the fields for the ID and the version.
func TestCollection_Patch(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "people/other", `{}`, jay.InCollection("Others"))
	for _, inTx := range []bool{false, true} {
		id := fmt.Sprintf("people/%v", inTx)
		run := func(fn func(*jay.Collection[person]) error) error {
			people := jaytest.CollectionOf[person](t, db)
			if !inTx {
				return fn(people)
			}
			return db.Update(ctx, func(tx *jay.Tx) error { return fn(people.In(tx)) })
		}
		for _, wrong := range []struct {
			id   string
			opts []jay.PatchOption
			want error
		}{
			{"people/other", []jay.PatchOption{jay.Set("Name", "x")}, jay.ErrCollection},
			{"people/other", []jay.PatchOption{jay.Set("Name", "x"), jay.OrInsert(&person{})}, jay.ErrCollection},
			{id, []jay.PatchOption{jay.Set("Name", "x"), jay.OrInsert(&person{}), jay.InCollection("Others")}, jay.ErrUsage},
		} {
			err := run(func(people *jay.Collection[person]) error {
				_, err := people.Patch(ctx, wrong.id, wrong.opts...)
				return err
			})
			if !errors.Is(err, wrong.want) {
				t.Errorf("%s: %v, want %v", wrong.id, err, wrong.want)
			}
		}
		must(t, run(func(people *jay.Collection[person]) error {
			r, err := people.Patch(ctx, id, jay.Set("Name", "x"), jay.OrInsert(&person{ID: "another", Version: "v", Name: "Ann"}))
			jaytest.Equal(t, r.Status, jay.PatchCreated)
			return err
		}))
		jaytest.Equal(t, body(t, db, id), `{"Name":"Ann"}`)
		doc, err := db.Get(ctx, id)
		must(t, err)
		jaytest.Equal(t, doc.Collection(), "people")
		// The version of a value that was read makes a patch conditional.
		must(t, run(func(people *jay.Collection[person]) error {
			_, err := people.Patch(ctx, id, jay.Set("Name", "Bea"), jay.IfMatch(doc.ChangeVector()))
			return err
		}))
		if err := run(func(people *jay.Collection[person]) error {
			_, err := people.Patch(ctx, id, jay.Set("Name", "Cyd"), jay.IfMatch(doc.ChangeVector()))
			return err
		}); !errors.Is(err, jay.ErrConflict) {
			t.Errorf("stale: %v", err)
		}
		jaytest.Equal(t, body(t, db, id), `{"Name":"Bea"}`)
	}
	jaytest.Equal(t, body(t, db, "people/other"), `{}`)
}

// Ensure that a patch keeps nothing of the caller's memory, and gives none of
// it back, and that a View refuses every patch.
func TestPatch_Memory(t *testing.T) {
	db := memory(t, nil)
	body, value := json.RawMessage(`{"n":1}`), json.RawMessage(`{"m":1}`)
	r, err := db.Patch(ctx, "a", jay.Set("x", 1), jay.OrInsert(body))
	must(t, err)
	clear(body)
	jaytest.Equal(t, string(r.Body), `{"n":1}`)
	var b jay.Batch
	b.Patch("a", jay.Set("v", value))
	_, err = db.Apply(ctx, &b)
	must(t, err)
	clear(value)
	jaytest.Equal(t, jaytest.Body(t, db, "a"), `{"n":1,"v":{"m":1}}`)
	err = db.View(ctx, func(tx *jay.Tx) error {
		for _, edit := range []jay.PatchOption{jay.Set("n", 1), jay.Set("n", 2)} {
			for _, id := range []string{"a", "none"} {
				if _, err := tx.Patch(ctx, id, edit); !errors.Is(err, jay.ErrUsage) {
					t.Errorf("patch of %s in a view: %v", id, err)
				}
			}
		}
		return nil
	})
	must(t, err)
}
