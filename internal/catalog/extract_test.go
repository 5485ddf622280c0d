package catalog_test

// This file puts documents into the store that are beyond the bounds of
// indexes, and looks at the memory that extraction takes.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/internal/write"
)

// bombFields are eight array fields, in as many orders as indexes are asked for.
func bombFields(n int) []string {
	fields := make([]string, 8)
	for i := range fields {
		fields[i] = fmt.Sprintf("f%d[]", (i+n)%8)
	}
	if n >= 8 {
		fields[n%8] = "-" + fields[n%8]
	}
	return fields
}

// bombDocument has eight arrays of three texts of this length.
func bombDocument(length int) []byte {
	var b strings.Builder
	for i := range 8 {
		text := strings.Repeat("x", length)
		fmt.Fprintf(&b, `,"f%d":["%sa","%sb","%sc"]`, i, text, text, text)
	}
	return []byte("{" + b.String()[1:] + "}")
}

// allocated returns how many bytes fn allocates, and 0 in a build that allocates more.
func allocated(fn func()) uint64 {
	if jaytest.Allocates {
		fn()
		return 0
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// refusal is the error of a document that is beyond a bound of indexes, which it
// must name.
func refusal(t *testing.T, err error, want ...string) {
	t.Helper()
	var refused *jay.DocumentError
	if !errors.As(err, &refused) || refused.Limit == 0 || refused.Actual <= refused.Limit {
		t.Errorf("got %v, want a *DocumentError with limit and value", err)
		return
	}
	for _, text := range append(want, fmt.Sprint(refused.Limit), fmt.Sprint(refused.Actual)) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v does not name %s", err, text)
		}
	}
}

// Ensure that a small document whose arrays multiply under many indexes is
// refused before its entries are made, and that one within the bounds is stored
// with all its entries, replaced and deleted.
func TestIndexBounds_Multiplied(t *testing.T) {
	sample.OneGoroutine(t)
	const bound = 200 << 20
	ctx := context.Background()
	db := openBounded(t)
	for i := range 16 {
		ensureBounded(t, db, jay.Index{Name: fmt.Sprint("i", i), Fields: bombFields(i)})
	}
	var err error
	if n := allocated(func() { _, err = db.Put(ctx, "things/1", bombDocument(580), jay.InCollection("Things")) }); n > bound/10 {
		t.Errorf("a refusal allocates %d bytes", n)
	}
	refusal(t, err, "bytes of entries", `index "i`)
	_, err = db.Put(ctx, "things/1", bombDocument(2), jay.InCollection("Things"))
	refusal(t, err, "bytes of entries")

	small := []byte(strings.ReplaceAll(string(bombDocument(1)), `,"xc"`, "")) // 256 entries in each index
	if n := allocated(func() { _, err = db.Put(ctx, "things/1", small, jay.InCollection("Things")) }); n > bound || err != nil {
		t.Errorf("%d bytes allocated, %v", n, err)
	}
	checkBounded(t, db)
	if _, err := db.Patch(ctx, "things/1", jay.Append("f0", "y")); err != nil {
		t.Error(err)
	}
	_, err = db.Patch(ctx, "things/1", jay.Append("f0", strings.Repeat("y", 400)), jay.Append("f1", strings.Repeat("y", 400)), jay.Append("f2", strings.Repeat("z", 400)), jay.Append("f3", 1, 2, 3))
	refusal(t, err, "bytes of entries")
	checkBounded(t, db)
	if err := db.Delete(ctx, "things/1"); err != nil {
		t.Error(err)
	}
	checkBounded(t, db)
}

// Ensure that a document with a huge array under an index, or under the
// condition of one, is refused with the number of its values, and that their
// number is all that is made of them.
func TestIndexBounds_HugeArray(t *testing.T) {
	sample.OneGoroutine(t)
	const values = 2 << 20
	body := []byte(`{"a":[` + strings.Repeat("1,", values-1) + `1]}`)
	for _, ix := range []jay.Index{
		{Name: "x", Fields: []string{"a[]"}},
		{Name: "x", Fields: []string{"a"}},
		{Name: "x", Fields: []string{"a", "b"}},
		{Name: "x", Fields: []string{"b"}, Where: "a = 2"},
		{Name: "x", Fields: []string{"b"}, Where: "a[] = 2"},
	} {
		t.Run(fmt.Sprint(ix.Fields, ix.Where), func(t *testing.T) {
			db := openBounded(t)
			if _, err := db.Put(context.Background(), "things/other", body, jay.InCollection("Things")); err != nil {
				t.Fatal(err)
			}
			if err := db.Delete(context.Background(), "things/other"); err != nil {
				t.Fatal(err)
			}
			ensureBounded(t, db, ix)
			var err error
			n := allocated(func() { _, err = db.Put(context.Background(), "things/1", body, jay.InCollection("Things")) })
			if n > 150<<20/2 {
				t.Errorf("a refusal allocates %d bytes", n)
			}
			refusal(t, err, `"x"`, fmt.Sprint(values))
		})
	}
}

// Ensure that a document that was stored when there was no bound can be
// replaced, patched and deleted, and leaves no entry; and that a replacement
// beyond the bound is refused.
func TestIndexBounds_StoredBefore(t *testing.T) {
	sample.OneGoroutine(t)
	defer func(bytes, chunk int) { catalog.MaxEntryBytes, catalog.StoredChunk = bytes, chunk }(catalog.MaxEntryBytes, catalog.StoredChunk)
	ctx := context.Background()
	small := []byte(`{"f0":["a","x"],"f1":1}`)
	for name, write := range map[string]func(db *jay.DB) error{
		"put": func(db *jay.DB) error {
			_, err := db.Put(ctx, "things/1", small, jay.InCollection("Things"))
			return err
		},
		"delete": func(db *jay.DB) error { return db.Delete(ctx, "things/1") },
		"patch": func(db *jay.DB) error {
			_, err := db.Patch(ctx, "things/1", jay.Unset("f1"), jay.Unset("f2"), jay.Unset("f4"), jay.Unset("f5"))
			return err
		},
		"update": func(db *jay.DB) error {
			return db.Update(ctx, func(tx *jay.Tx) error { return tx.Delete(ctx, "things/1") })
		},
	} {
		for _, chunk := range []int{1, 5000, 1 << 30} {
			t.Run(fmt.Sprint(name, chunk), func(t *testing.T) {
				db := openBounded(t)
				for i := range 2 {
					ensureBounded(t, db, jay.Index{Name: fmt.Sprint("i", i), Fields: bombFields(i)})
				}
				ensureBounded(t, db, jay.Index{Name: "one", Fields: []string{"f1", "f2"}, Where: "f1 != 'no'"})
				catalog.MaxEntryBytes = 1 << 30
				if _, err := db.Put(ctx, "things/1", bombDocument(4), jay.InCollection("Things")); err != nil {
					t.Fatal(err)
				}
				catalog.MaxEntryBytes, catalog.StoredChunk = 100_000, chunk
				checkBounded(t, db)
				_, err := db.Put(ctx, "things/1", bombDocument(5), jay.InCollection("Things"))
				refusal(t, err, "bytes of entries")
				if err := write(db); err != nil {
					t.Fatal(err)
				}
				checkBounded(t, db)
				if err := db.Delete(ctx, "things/1"); err != nil {
					t.Fatal(err)
				}
				if n, err := checks.IndexKeys(db); err != nil || n > 3 { // flags of each index
					t.Errorf("%d keys are left, %v", n, err)
				}
			})
		}
	}
}

// Ensure that an index that would bring a stored document beyond the bound is
// refused with the document's ID and is gone, and that the document is written
// as before.
func TestIndexBounds_Build(t *testing.T) {
	defer func(bytes int) { catalog.MaxEntryBytes = bytes }(catalog.MaxEntryBytes)
	catalog.MaxEntryBytes = 1 << 20
	ctx := context.Background()
	db := openBounded(t)
	ensureBounded(t, db, jay.Index{Name: "i0", Fields: bombFields(0)})
	if _, err := db.Put(ctx, "things/1", bombDocument(1), jay.InCollection("Things")); err != nil {
		t.Fatal(err)
	}
	err := db.EnsureIndex(ctx, "Things", jay.Index{Name: "i1", Fields: bombFields(1)})
	refusal(t, err, `"things/1"`, "bytes of entries")
	if infos, err := db.Indexes(ctx, ""); err != nil || len(infos) != 1 {
		t.Errorf("indexes: %+v, %v", infos, err)
	}
	ensureBounded(t, db, jay.Index{Name: "i2", Fields: []string{"f0", "f1"}})
	if _, err := db.Put(ctx, "things/1", bombDocument(1), jay.InCollection("Things")); err != nil {
		t.Error(err)
	}
	checkBounded(t, db)
}

func openBounded(t *testing.T) *jay.DB {
	t.Helper()
	db, err := jay.OpenMemory(&jay.Options{Durability: jay.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func ensureBounded(t *testing.T, db *jay.DB, ix jay.Index) {
	t.Helper()
	if err := db.EnsureIndex(context.Background(), "Things", ix); err != nil {
		t.Fatal(err)
	}
}

func checkBounded(t *testing.T, db *jay.DB) {
	t.Helper()
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
}

// Ensure that writes whose entries were extracted for other indexes than there
// are when their turn comes are extracted again outside of the transaction, of
// whichever kind they are, and have the entries of all indexes.
func TestIndexBounds_IndexesChange(t *testing.T) {
	defer func(n int) { write.MaxEnteredBytes = n }(write.MaxEnteredBytes)
	write.MaxEnteredBytes = 0
	ctx := context.Background()
	in := jay.InCollection("Things")
	writes := map[string]func(db *jay.DB, i int) error{
		"put": func(db *jay.DB, i int) error {
			_, err := db.Put(ctx, "things/1", fmt.Appendf(nil, `{"a":%d}`, i), in)
			return err
		},
		"server": func(db *jay.DB, i int) error {
			_, err := db.Put(ctx, "things/", fmt.Appendf(nil, `{"a":%d}`, i), in)
			return err
		},
		"patch": func(db *jay.DB, i int) error { _, err := db.Patch(ctx, "things/1", jay.Set("a", -i)); return err },
		"insert": func(db *jay.DB, i int) error {
			_, err := db.Patch(ctx, fmt.Sprint("things/new", i%300), jay.Set("a", -i), jay.OrInsert(map[string]int{"a": i}), in)
			return err
		},
		"batch": func(db *jay.DB, i int) error {
			var b jay.Batch
			for j := range 200 {
				b.Put(fmt.Sprint("things/", j), fmt.Appendf(nil, `{"a":%d}`, i), in)
			}
			b.Patch("things/1", jay.Set("a", "x"))
			b.Patch("things/1", jay.Increment("b", 1))
			_, err := db.Apply(ctx, &b)
			return err
		},
		"update": func(db *jay.DB, i int) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := tx.Put(ctx, "things/2", fmt.Appendf(nil, `{"a":%d}`, i), in); err != nil {
					return err
				}
				return tx.Delete(ctx, "things/3")
			}, jay.Retry(100))
		},
	}
	db := openBounded(t)
	if err := writes["batch"](db, 0); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for name, write := range writes {
		writers.Go(func() {
			for i := 1; i <= 60; i++ {
				if err := write(db, i); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); writers.Wait() }()
	for i := 0; ; i++ {
		ix := jay.Index{Name: "a", Fields: []string{[]string{"a", "-a"}[i%2]}}
		ensureBounded(t, db, ix)
		select {
		case <-done:
			checkBounded(t, db)
			return
		default:
		}
		if err := db.DropIndex(ctx, "Things", "a"); err != nil {
			t.Fatal(err)
		}
	}
}
