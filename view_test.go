package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that Read gives the document as it is, that it stays as it was under
// the function, and that nothing can be reached through it afterwards.
func TestDB_Read(t *testing.T) {
	db := memory(t, nil)
	m := put(t, db, "Users/1", `{"n":1,"deep":{"x":[1,{"y":"z"}]}}`, jay.InCollection("Users"))
	var kept *jay.RawDocument
	err := db.Read(ctx, "users/1", func(doc *jay.RawDocument) error {
		kept = doc
		equal(t, doc.ID(), "Users/1")
		equal(t, doc.Collection(), "Users")
		equal(t, doc.ChangeVector(), m.ChangeVector)
		for range 3 { // the database can be used, and written to
			put(t, db, "users/1", `{"n":2}`, jay.InCollection("Users"))
			must(t, db.Delete(ctx, "users/1"))
		}
		equal(t, string(doc.Body()), `{"n":1,"deep":{"x":[1,{"y":"z"}]}}`)
		y, found, err := jay.Value[string](doc, "deep.x[1].y")
		equal(t, y, "z")
		equal(t, found, true)
		must(t, err)
		var v struct{ N int }
		must(t, doc.Decode(&v))
		equal(t, v.N, 1)
		return nil
	})
	must(t, err)
	equal(t, kept.ID()+string(kept.Body())+kept.ChangeVector(), "")
	if _, found, err := kept.Path("n"); found || err != nil {
		t.Errorf("after the end: %v, %v", found, err)
	}

	boom := errors.New("boom")
	put(t, db, "a", `{}`)
	if err := db.Read(ctx, "a", func(*jay.RawDocument) error { return boom }); err != boom {
		t.Errorf("got %v", err)
	}
	never := func(*jay.RawDocument) error { t.Error("called"); return nil }
	for _, id := range []string{"none", "", "users/", "users|"} {
		if err := db.Read(ctx, id, never); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.Read(cancelled, "a", never); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	func() { // a panic gives everything back: the test would hang at Close
		defer func() { _ = recover() }()
		_ = db.Read(ctx, "a", func(*jay.RawDocument) error { panic("boom") })
	}()
}

// Ensure that Close waits for the functions of Read, that they can use the
// database until they end, and that a Read begun meanwhile, even by one of
// them, is refused and hangs nothing.
func TestDB_Read_Close(t *testing.T) {
	t.Parallel()
	db, err := jay.OpenMemory(nil)
	must(t, err)
	put(t, db, "a", `{"n":1}`)
	inside, closed := make(chan bool), make(chan error)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			err := db.Read(ctx, "a", func(doc *jay.RawDocument) error {
				inside <- true
				var nested error
				for nested == nil { // until Close has begun
					nested = db.Read(ctx, "a", func(*jay.RawDocument) error { return nil })
				}
				if !errors.Is(nested, jay.ErrClosed) {
					t.Errorf("nested: %v", nested)
				}
				select {
				case <-closed:
					t.Error("Close did not wait")
				default:
				}
				if _, err := db.Get(ctx, "a"); err != nil {
					t.Errorf("get: %v", err)
				}
				if _, err := db.Put(ctx, "b", json.RawMessage(`{}`)); err != nil {
					t.Errorf("put: %v", err)
				}
				equal(t, string(doc.Body()), `{"n":1}`)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 4 {
		<-inside
	}
	go func() { closed <- db.Close() }()
	wg.Wait()
	must(t, <-closed)
	must(t, db.Close())
	if err := db.Read(ctx, "a", nil); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Ensure that readers and writers under way with Read see whole documents.
func TestDB_Read_Concurrent(t *testing.T) {
	db := memory(t, &jay.Options{MemTableBytes: 1 << 20})
	for i := range 8 {
		put(t, db, fmt.Sprint("d", i), `{"a":0,"b":0}`)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 300 {
				put(t, db, fmt.Sprint("d", (g+i)%8), fmt.Sprintf(`{"a":%d,"b":%d}`, i, i))
			}
		})
		wg.Go(func() {
			for i := range 300 {
				err := db.Read(ctx, fmt.Sprint("d", i%8), func(doc *jay.RawDocument) error {
					a, _, err := jay.Value[int](doc, "a")
					if err != nil {
						return err
					}
					if b, _, err := jay.Value[int](doc, "b"); err != nil || a != b {
						return fmt.Errorf("half a document: %s, %v", doc.Body(), err)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Ensure that a path gives what is there, as it is written, and that a value
// keeps every digit.
func TestDocument_Path(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{"n":12345678901234567890,"price":1.10,"null":null,"Lines":[{"P":"x","Q":[1,2]},{"Q":[3]},7],"a.b":{"":true},"text":"\u0041"}`)
	doc, err := db.Get(ctx, "a")
	must(t, err)
	for path, want := range map[string]string{
		"n": `12345678901234567890`, "price": `1.10`, "null": `null`, "Lines[0].P": `"x"`, "Lines[1]": `{"Q":[3]}`,
		"Lines[].P": `["x"]`, "Lines[].Q[]": `[1,2,3]`, "Lines[].Q": `[[1,2],[3]]`, "'a.b'.''": `true`, "text": `"\u0041"`,
		"none": "", "Lines[9]": "", "Lines[].None": "", "n.deeper": "", "Lines.P": "",
	} {
		raw, found, err := doc.Path(path)
		if string(raw) != want || found != (want != "") || err != nil {
			t.Errorf("%s: got %s, %v, %v, want %s", path, raw, found, err, want)
		}
	}
	for _, path := range []string{"", "a..b", "[0]", "Lines[x]"} {
		if _, _, err := doc.Path(path); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%q: %v", path, err)
		}
		if _, _, err := jay.Value[int](doc, path); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%q: %v", path, err)
		}
	}
	n, found, err := jay.Value[any](doc, "n")
	if n != json.Number("12345678901234567890") || !found || err != nil {
		t.Errorf("got %v, %v, %v", n, found, err)
	}
	if _, found, err := jay.Value[int](doc, "text"); !found || err == nil {
		t.Errorf("text as a number: %v, %v", found, err)
	}
	if p, found, err := jay.Value[*int](doc, "null"); p != nil || !found || err != nil {
		t.Errorf("null: %v, %v, %v", p, found, err)
	}
	lines, _, err := jay.Value[[]string](doc, "Lines[].P")
	if len(lines) != 1 || err != nil {
		t.Errorf("got %v, %v", lines, err)
	}
}
