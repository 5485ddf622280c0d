package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// exchanged puts a value, and returns its index.
func exchanged(t testing.TB, x jay.CompareExchange, key string, value any, index uint64) uint64 {
	t.Helper()
	got, err := x.Put(ctx, key, value, index)
	must(t, err)
	return got
}

// valueOf returns the value of a key as text and its index; "none" if there is none.
func valueOf(t testing.TB, x jay.CompareExchange, key string) (string, uint64) {
	t.Helper()
	v, err := x.Get(ctx, key)
	if errors.Is(err, jay.ErrNotFound) {
		return "none", 0
	}
	must(t, err)
	return string(v.Value), v.Index
}

// keysOf joins the keys of values.
func keysOf(values []*jay.CompareExchangeValue) string {
	var keys []string
	for _, v := range values {
		keys = append(keys, v.Key)
	}
	return strings.Join(keys, " ")
}

// Ensure that a value is changed only under the index that it has, that an index always
// grows, and that a refusal has what is there.
func TestCompareExchange(t *testing.T) {
	db := memory(t, nil)
	x := db.CompareExchange()
	first := exchanged(t, x, "Locks/A", map[string]int{"n": 1}, 0)
	if first == 0 {
		t.Error("the index of a value is 0")
	}
	got, index := valueOf(t, x, "locks/a")
	equal(t, got, `{"n":1}`)
	equal(t, index, first)

	_, err := x.Put(ctx, "LOCKS/a", 2, 0)
	var conflict *jay.CompareExchangeError
	if !errors.As(err, &conflict) || !errors.Is(err, jay.ErrConflict) || !errors.Is(err, jay.ErrExists) || errors.Is(err, jay.ErrNotFound) {
		t.Fatalf("put over a value: got %v", err)
	}
	equal(t, conflict.Key, "LOCKS/a")
	equal(t, conflict.Expected, 0)
	equal(t, conflict.Actual, first)
	equal(t, string(conflict.Value), `{"n":1}`)

	put(t, db, "users/ann", `{}`) // etags and indexes share their numbers
	second := exchanged(t, x, "LOCKS/a", json.RawMessage(` [ 1 , 2 ] `), first)
	if second <= first {
		t.Errorf("the index went from %d to %d", first, second)
	}
	if _, err := x.Put(ctx, "locks/a", 3, first); !errors.Is(err, jay.ErrConflict) || errors.Is(err, jay.ErrExists) {
		t.Errorf("put with an old index: got %v", err)
	}
	v, err := x.Get(ctx, "locks/a")
	must(t, err)
	equal(t, string(v.Value), `[1,2]`)
	equal(t, v.Key, "LOCKS/a") // as it was written last
	var numbers []int
	must(t, v.Decode(&numbers))
	equal(t, len(numbers), 2)
	if err := v.Decode(new(string)); err == nil {
		t.Error("an array decodes into a string")
	}

	if err := x.Delete(ctx, "locks/a", first); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("delete with an old index: got %v", err)
	}
	must(t, x.Delete(ctx, "locks/a", second))
	if _, err := x.Get(ctx, "locks/a"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("get after the deletion: got %v", err)
	}
	if err := x.Delete(ctx, "locks/a", second); !errors.Is(err, jay.ErrConflict) || !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("delete twice: got %v", err)
	}
	if _, err := x.Put(ctx, "locks/a", 4, second); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("put with an index over nothing: got %v", err)
	}
	if third := exchanged(t, x, "locks/a", 4, 0); third <= second {
		t.Errorf("after a deletion the index is %d, and was %d", third, second)
	}
	if n, err := db.Counters(ctx); err != nil || n.Etag < second {
		t.Errorf("counters: %+v, %v", n, err)
	}
	for range 2 { // no document, no change
		count := 0
		for _, err := range db.Documents(ctx, jay.Scan{}) {
			must(t, err)
			count++
		}
		equal(t, count, 1)
	}
}

// Ensure that keys follow the rules of IDs, within their own limit.
func TestCompareExchange_Keys(t *testing.T) {
	db := memory(t, nil)
	x := db.CompareExchange()
	for _, test := range []struct{ name, key string }{
		{"empty", ""},
		{"long", strings.Repeat("k", 513)},
		{"long when folded", strings.Repeat("Ⱥ", 256)}, // 2 bytes each, and 3 in lower case
		{"control character", "a\x00b"},
		{"backslash", `a\b`},
		{"no UTF-8", "a\xff"},
		{"long guard", jay.GuardKey(strings.Repeat("k", 2026))},
	} {
		var invalid *jay.IDError
		if _, err := x.Put(ctx, test.key, 1, 0); !errors.As(err, &invalid) {
			t.Errorf("%s: put: got %v", test.name, err)
		}
		if _, err := x.Get(ctx, test.key); !errors.As(err, &invalid) {
			t.Errorf("%s: get: got %v", test.name, err)
		}
		if err := x.Delete(ctx, test.key, 1); !errors.As(err, &invalid) {
			t.Errorf("%s: delete: got %v", test.name, err)
		}
	}
	for _, key := range []string{"a", "users|", "users/", " ", "ключ", strings.Repeat("k", 512), jay.GuardKey(strings.Repeat("k", 2025))} {
		index := exchanged(t, x, key, key, 0)
		got, now := valueOf(t, x, key)
		equal(t, got, string(mustMarshal(t, key)))
		equal(t, now, index)
	}

	sensitive := memory(t, &jay.Options{CaseSensitive: true}).CompareExchange()
	exchanged(t, sensitive, "A", 1, 0)
	exchanged(t, sensitive, "a", 2, 0)
}

func mustMarshal(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return text
}

// Ensure that a value is any JSON that could stand in a document, and nothing else.
func TestCompareExchange_Values(t *testing.T) {
	x := memory(t, &jay.Options{MaxDepth: 3}).CompareExchange()
	for i, test := range []struct{ value, want string }{
		{`null`, `null`},
		{` true `, `true`},
		{`9007199254740993.10`, `9007199254740993.10`},
		{`"<é>"`, `"<é>"`},
		{`[[[]]]`, `[[[]]]`},
		{`{ "@metadata" : { "a" : 1 } }`, `{"@metadata":{"a":1}}`},
		{`"` + strings.Repeat("x", 1<<20-2) + `"`, `"` + strings.Repeat("x", 1<<20-2) + `"`},
	} {
		exchanged(t, x, fmt.Sprint(i), json.RawMessage(test.value), 0)
		if got, _ := valueOf(t, x, fmt.Sprint(i)); got != test.want {
			t.Errorf("%.40s: got %.40s", test.value, got)
		}
	}
	for _, value := range []string{
		"", " ", "{", "1 2", `1,"b":2`, `1}`, "\xef\xbb\xbf1", `"` + "\xff" + `"`, `"\ud800"`, `{"a":1,"a":2}`, `[[[[]]]]`, `01`, `1e9999999999999999999`,
		`"` + strings.Repeat("x", 1<<20-1) + `"`,
	} {
		var invalid *jay.DocumentError
		if _, err := x.Put(ctx, "bad", json.RawMessage(value), 0); !errors.As(err, &invalid) {
			t.Errorf("%.40q: got %v", value, err)
		}
	}
	if _, err := x.Put(ctx, "bad", json.RawMessage(nil), 0); !errors.Is(err, jay.ErrInvalidDocument) {
		t.Errorf("no value: got %v", err)
	}
	if _, err := x.Put(ctx, "bad", func() {}, 0); !errors.Is(err, jay.ErrType) {
		t.Errorf("a function: got %v", err)
	}
	if _, err := x.Put(ctx, "bad", 1, math.MaxUint64); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("an index beyond all: got %v", err)
	}
	if err := x.Delete(ctx, "bad", 0); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("delete index 0: got %v", err)
	}

	custom := jay.CompareExchangeMetadata(json.RawMessage(`{ "by" : "Ann" }`))
	index, err := x.Put(ctx, "meta", 1, 0, custom)
	must(t, err)
	v, err := x.Get(ctx, "meta")
	must(t, err)
	equal(t, string(v.Metadata), `{"by":"Ann"}`)
	var conflict *jay.CompareExchangeError
	if _, err = x.Put(ctx, "meta", 1, 0); !errors.As(err, &conflict) || string(conflict.Metadata) != `{"by":"Ann"}` {
		t.Errorf("got %v", err)
	}
	exchanged(t, x, "meta", 2, index)
	v, err = x.Get(ctx, "meta")
	must(t, err)
	equal(t, len(v.Metadata), 0)
	for _, bad := range []string{`[]`, `1`, ``, `{"a":`, `{"@expires":"2026-01-01T00:00:00Z"}`, `{"@\u0065xpires":1}`} {
		if _, err := x.Put(ctx, "bad", 1, 0, jay.CompareExchangeMetadata(json.RawMessage(bad))); !errors.Is(err, jay.ErrInvalidDocument) && !errors.Is(err, jay.ErrUsage) {
			t.Errorf("metadata %s: got %v", bad, err)
		}
	}
	if got, _ := valueOf(t, x, "bad"); got != "none" {
		t.Errorf("a refused write has stored %s", got)
	}
}

// Ensure that lists come in the order of keys, a page at a time.
func TestCompareExchange_List(t *testing.T) {
	db := memory(t, nil)
	x := db.CompareExchange()
	for _, key := range []string{"a", "A/2", "a/1", "a/10", "b", "a0"} {
		exchanged(t, x, key, key, 0)
	}
	put(t, db, "users/1", `{}`)
	for _, test := range []struct {
		prefix, after string
		limit         int
		want          string
	}{
		{"", "", 0, "a a/1 a/10 A/2 a0 b"},
		{"A/", "", 0, "a/1 a/10 A/2"},
		{"a/", "a/1", 1, "a/10"},
		{"a/", "a/2", 5, ""},
		{"a/", "", 2, "a/1 a/10"},
		{"a/", "0", 2, "a/1 a/10"},
		{"a/", "b", 2, ""},
		{"", "a/10", 2, "A/2 a0"},
		{"", "nothing", 2, ""},
		{"c", "", 2, ""},
		{"", "b", 2, ""},
		{"\xff", "", 2, ""},
	} {
		values, err := x.List(ctx, test.prefix, test.after, test.limit)
		must(t, err)
		if got := keysOf(values); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
	if _, err := x.List(ctx, "", "", -1); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("a negative limit: got %v", err)
	}
	found, err := x.GetMany(ctx, "b", "none", "A")
	must(t, err)
	equal(t, len(found), 3)
	if found[0].Key != "b" || found[1] != nil || found[2].Key != "a" {
		t.Errorf("got %v", found)
	}
}

// Ensure that a page is bounded, and that pages leave nothing out.
func TestCompareExchange_List_Page(t *testing.T) {
	db := memory(t, nil)
	var b jay.Batch
	for i := range 1030 {
		b.PutCompareExchange(fmt.Sprintf("k/%04d", i), i, 0)
	}
	must(t, second(db.Apply(ctx, &b)))
	x := db.CompareExchange()
	for _, limit := range []int{0, 5000} {
		first, err := x.List(ctx, "k/", "", limit)
		must(t, err)
		equal(t, len(first), 1024)
		rest, err := x.List(ctx, "k/", first[1023].Key, limit)
		must(t, err)
		equal(t, len(rest), 6)
		equal(t, string(rest[5].Value), "1029")
	}
}

// Ensure that a document and a value are changed together or not at all, and that a
// transaction that has read a value loses against a change of it.
func TestCompareExchange_Tx(t *testing.T) {
	db := memory(t, nil)
	x := db.CompareExchange()
	register := func(id, name string) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.CompareExchange().Put(ctx, "names/"+name, id, 0); err != nil {
				return err
			}
			_, err := tx.Insert(ctx, id, []byte(`{}`))
			return err
		})
	}
	must(t, register("users/1", "ann"))
	if err := register("users/2", "Ann"); !errors.Is(err, jay.ErrExists) {
		t.Errorf("a name twice: got %v", err)
	}
	if err := register("users/1", "bob"); !errors.Is(err, jay.ErrExists) {
		t.Errorf("an id twice: got %v", err)
	}
	if got, _ := valueOf(t, x, "names/bob"); got != "none" {
		t.Errorf("a transaction that failed has stored %s", got)
	}
	if found, err := db.Exists(ctx, "users/2"); found || err != nil {
		t.Errorf("a transaction that failed has stored users/2, %v", err)
	}

	// A read that is overtaken.
	_, before := valueOf(t, x, "names/ann")
	runs := 0
	add := func(opts ...jay.TxOption) error {
		runs = 0
		return db.Update(ctx, func(tx *jay.Tx) error {
			v, err := tx.CompareExchange().Get(ctx, "names/ann")
			if err != nil {
				return err
			}
			if runs++; runs == 1 {
				exchanged(t, x, "names/ann", "other", v.Index)
			}
			_, err = tx.CompareExchange().Put(ctx, "names/ann", "mine", v.Index)
			return err
		}, opts...)
	}
	var conflict *jay.CompareExchangeError
	if err := add(); !errors.As(err, &conflict) || conflict.Actual <= before {
		t.Errorf("an overtaken transaction: got %v", err)
	}
	must(t, add(jay.Retry(1)))
	equal(t, runs, 2)
	got, _ := valueOf(t, x, "names/ann")
	equal(t, got, `"mine"`)

	// A read of nothing, and of a document beside it.
	err := db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.CompareExchange().Get(ctx, "names/cyd"); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		exchanged(t, x, "names/cyd", 1, 0)
		_, err := tx.Put(ctx, "users/3", []byte(`{}`))
		return err
	})
	if !errors.Is(err, jay.ErrConflict) {
		t.Errorf("what was missing came: got %v", err)
	}

	// An index that is wrong already.
	err = db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.CompareExchange().Put(ctx, "names/cyd", 2, before)
		return err
	}, jay.Retry(3))
	if !errors.As(err, &conflict) || conflict.Expected != before {
		t.Errorf("a wrong index: got %v", err)
	}
	must(t, db.View(ctx, func(tx *jay.Tx) error {
		if _, err := tx.CompareExchange().Put(ctx, "a", 2, 0); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("a write in a view: got %v", err)
		}
		_, index := valueOf(t, tx.CompareExchange(), "names/cyd")
		exchanged(t, x, "names/cyd", 7, index)
		if got, _ := valueOf(t, tx.CompareExchange(), "names/cyd"); got != "1" {
			t.Errorf("a view sees %s, which came later", got)
		}
		return nil
	}))
}

// Ensure that a transaction sees its own changes, with the indexes from before it, and
// that savepoints and failed batches undo them.
func TestCompareExchange_Tx_OwnChanges(t *testing.T) {
	db := memory(t, nil)
	x := db.CompareExchange()
	b := exchanged(t, x, "k/b", 1, 0)
	d := exchanged(t, x, "k/d", 1, 0)
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		in := tx.CompareExchange()
		index, err := in.Put(ctx, "k/c", 1, 0)
		must(t, err)
		equal(t, index, 0)
		exchanged(t, in, "k/c", 2, 0) // the index is that from before the transaction
		exchanged(t, in, "K/b", 2, b)
		must(t, in.Delete(ctx, "k/d", d))
		exchanged(t, in, "k/d", 1, 0) // it has deleted it
		values, err := in.List(ctx, "k/", "", 0)
		must(t, err)
		equal(t, keysOf(values), "K/b k/c k/d")
		must(t, in.Delete(ctx, "k/d", d))
		values, err = in.List(ctx, "k/", "", 0)
		must(t, err)
		equal(t, keysOf(values), "K/b k/c")
		values, err = in.List(ctx, "k/", "k/b", 1)
		must(t, err)
		equal(t, keysOf(values), "k/c")

		failed := errors.New("failed")
		err = tx.Savepoint(ctx, func() error {
			exchanged(t, in, "k/c", 3, 0)
			exchanged(t, in, "k/e", 3, 0)
			return failed
		})
		equal(t, err, failed)
		got, _ := valueOf(t, in, "k/c")
		equal(t, got, "2")
		got, _ = valueOf(t, in, "k/e")
		equal(t, got, "none")

		var batch jay.Batch
		batch.PutCompareExchange("k/f", 1, 0)
		batch.PutCompareExchange("k/c", 1, 99)
		if _, err := tx.Apply(ctx, &batch); !errors.Is(err, jay.ErrConflict) || !strings.Contains(err.Error(), "write 2 of 2") {
			t.Errorf("got %v", err)
		}
		got, _ = valueOf(t, in, "k/f")
		equal(t, got, "none")
		return nil
	}))
	values, err := x.List(ctx, "k/", "", 0)
	must(t, err)
	equal(t, keysOf(values), "K/b k/c")
	if got, index := valueOf(t, x, "k/c"); got != "2" || index <= d {
		t.Errorf("got %s with index %d", got, index)
	}
}

// Ensure that a list that a transaction has read is still the same when it commits.
func TestCompareExchange_Tx_Phantoms(t *testing.T) {
	for _, test := range []struct {
		name   string
		limit  int
		change func(x jay.CompareExchange) error
		lost   bool
	}{
		{"nothing", 0, func(jay.CompareExchange) error { return nil }, false},
		{"a new key", 0, func(x jay.CompareExchange) error { return second(x.Put(ctx, "k/bb", 1, 0)) }, true},
		{"a new key behind all", 0, func(x jay.CompareExchange) error { return second(x.Put(ctx, "k/z", 1, 0)) }, true},
		{"a new key of another prefix", 0, func(x jay.CompareExchange) error { return second(x.Put(ctx, "l", 1, 0)) }, false},
		{"a new key behind the page", 2, func(x jay.CompareExchange) error { return second(x.Put(ctx, "k/z", 1, 0)) }, false},
		{"a change behind the page", 2, func(x jay.CompareExchange) error { return change(x, "k/c") }, false},
		{"a change", 2, func(x jay.CompareExchange) error { return change(x, "k/b") }, true},
		{"a deletion", 2, func(x jay.CompareExchange) error { return drop(x, "k/a") }, true},
	} {
		db := memory(t, nil)
		x := db.CompareExchange()
		for _, key := range []string{"k/a", "k/b", "k/c"} {
			exchanged(t, x, key, 1, 0)
		}
		err := db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.CompareExchange().List(ctx, "k/", "", test.limit); err != nil {
				return err
			}
			must(t, test.change(x))
			_, err := tx.Put(ctx, "users/1", []byte(`{}`))
			return err
		})
		if test.lost != errors.Is(err, jay.ErrConflict) || !test.lost && err != nil {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
}

func change(x jay.CompareExchange, key string) error {
	v, err := x.Get(ctx, key)
	if err == nil {
		_, err = x.Put(ctx, key, "changed", v.Index)
	}
	return err
}

func drop(x jay.CompareExchange, key string) error {
	v, err := x.Get(ctx, key)
	if err == nil {
		err = x.Delete(ctx, key, v.Index)
	}
	return err
}

// Ensure that a batch changes documents and values in one commit, and that its results
// have the indexes.
func TestCompareExchange_Batch(t *testing.T) {
	db := memory(t, nil)
	x := db.CompareExchange()
	old := exchanged(t, x, "old", 1, 0)
	var b jay.Batch
	b.Put("users/1", []byte(`{}`))
	b.PutCompareExchange("new", "users/1", 0, jay.CompareExchangeMetadata(json.RawMessage(`{"a":1}`)))
	b.DeleteCompareExchange("old", old)
	results, err := db.Apply(ctx, &b)
	must(t, err)
	_, index := valueOf(t, x, "new")
	equal(t, results[1].ID, "new")
	equal(t, results[1].Etag, index)
	equal(t, results[2].ID, "old")
	equal(t, results[2].Etag, 0)

	b.Reset()
	b.Put("users/2", []byte(`{}`))
	b.PutCompareExchange("new", 1, old)
	if _, err := db.Apply(ctx, &b); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v", err)
	}
	if found, err := db.Exists(ctx, "users/2"); found || err != nil {
		t.Errorf("half of a batch was written, %v", err)
	}

	// As many as are prepared and read ahead by several goroutines.
	b.Reset()
	for i := range 300 {
		b.Put(fmt.Sprintf("many/%d", i), []byte(`{}`))
		b.PutCompareExchange(fmt.Sprintf("many/%d", i), i, 0)
	}
	results, err = db.Apply(ctx, &b)
	must(t, err)
	seen := make(map[uint64]bool)
	for _, m := range results {
		if m.Etag == 0 || seen[m.Etag] {
			t.Fatalf("%s has etag %d, as another one", m.ID, m.Etag)
		}
		seen[m.Etag] = true
	}
}

// Ensure that guards are compared and replaced with their documents.
func TestCompareExchange_Guards(t *testing.T) {
	db := memory(t, nil)
	guard := func(id string) (string, uint64) { return valueOf(t, db.CompareExchange(), jay.GuardKey(id)) }
	var g jay.AtomicGuard
	m, err := db.Put(ctx, "Users/1", []byte(`{"n":1}`), jay.Guarded(&g))
	must(t, err)
	value, index := guard("users/1")
	equal(t, value, `{"Id":"Users/1"}`)
	equal(t, index, g.Index)
	equal(t, index, m.Etag)

	stale := g
	_, err = db.Put(ctx, "users/1", []byte(`{"n":2}`), jay.Guarded(&g))
	must(t, err)
	if g.Index <= stale.Index {
		t.Errorf("the guard's index went from %d to %d", stale.Index, g.Index)
	}
	var conflict *jay.CompareExchangeError
	_, err = db.Put(ctx, "users/1", []byte(`{"n":3}`), jay.Guarded(&stale))
	if !errors.As(err, &conflict) || conflict.Key != "rvn-atomic/users/1" || conflict.Actual != g.Index {
		t.Errorf("an old guard: got %v", err)
	}
	if _, err := db.Put(ctx, "users/1", []byte(`{}`), jay.Guarded(new(jay.AtomicGuard))); !errors.Is(err, jay.ErrExists) {
		t.Errorf("a document that must be new: got %v", err)
	}
	must(t, second(db.Put(ctx, "users/1", []byte(`{"n":4}`)))) // others leave the guard
	if _, now := guard("users/1"); now != g.Index {
		t.Errorf("a write without a guard has changed it from %d to %d", g.Index, now)
	}
	if err := db.Delete(ctx, "users/1", jay.Guarded(&stale)); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("a deletion with an old guard: got %v", err)
	}
	whatever := jay.AtomicGuard{Index: 77, Any: true}
	must(t, second(db.Put(ctx, "users/1", []byte(`{"n":5}`), jay.Guarded(&whatever))))
	if _, now := guard("users/1"); now != whatever.Index || whatever.Any {
		t.Errorf("got %+v and index %d", whatever, now)
	}
	must(t, db.Delete(ctx, "users/1", jay.Guarded(&whatever)))
	equal(t, whatever.Index, 0)
	value, _ = guard("users/1")
	equal(t, value, "none")
	must(t, db.Delete(ctx, "users/1", jay.Guarded(&jay.AtomicGuard{Any: true}))) // neither is there

	for name, err := range map[string]error{
		"identity":    second(db.Put(ctx, "users|", []byte(`{}`), jay.Guarded(&g))),
		"server-side": second(db.Put(ctx, "users/", []byte(`{}`), jay.Guarded(&g))),
		"index":       second(db.Put(ctx, "users/9", []byte(`{}`), jay.Guarded(&jay.AtomicGuard{Index: 1 << 63}))),
	} {
		if !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	g = jay.AtomicGuard{}
	m, err = db.Store(ctx, "Users", []byte(`{}`), jay.Guarded(&g)) // HiLo
	must(t, err)
	if _, now := guard(m.ID); now != g.Index || now == 0 {
		t.Errorf("the guard of %s has index %d, not %d", m.ID, now, g.Index)
	}

	// In a transaction.
	before := g.Index
	err = db.Update(ctx, func(tx *jay.Tx) error {
		wrong := jay.AtomicGuard{Index: before + 100}
		if _, err := tx.Put(ctx, m.ID, []byte(`{}`), jay.Guarded(&wrong)); !errors.Is(err, jay.ErrConflict) {
			t.Errorf("got %v", err)
		}
		if _, err := tx.Put(ctx, m.ID, []byte(`{"n":1}`), jay.Guarded(&g)); err != nil {
			return err
		}
		equal(t, g.Index, before)
		_, err := tx.Put(ctx, m.ID, []byte(`{"n":2}`), jay.Guarded(&g))
		return err
	})
	must(t, err)
	if _, now := guard(m.ID); now != g.Index || now == before {
		t.Errorf("the guard of %s has index %d, not %d", m.ID, now, g.Index)
	}
}

// Ensure that of callers who change one key at a time exactly one succeeds each time.
func TestCompareExchange_Concurrent(t *testing.T) {
	db := memory(t, nil)
	x := db.CompareExchange()
	const each = 30
	won := make(chan string, 100)
	jaytest.Concurrently(t, func(g int, _ *rand.Rand) {
		if _, err := x.Put(ctx, "leader", g, 0); err == nil {
			won <- fmt.Sprint(g)
		} else if !errors.Is(err, jay.ErrExists) {
			t.Error(err)
		}
		for done := 0; done < each; {
			n, index := 0, uint64(0)
			v, err := x.Get(ctx, "count")
			if err == nil {
				index, err = v.Index, v.Decode(&n)
			}
			if err != nil && !errors.Is(err, jay.ErrNotFound) {
				t.Error(err)
				return
			}
			switch _, err := x.Put(ctx, "count", n+1, index); {
			case err == nil:
				done++
			case !errors.Is(err, jay.ErrConflict):
				t.Error(err)
				return
			}
		}
	})
	close(won)
	leader, _ := valueOf(t, x, "leader")
	equal(t, len(won), 1)
	equal(t, <-won, leader)
	v, err := x.Get(ctx, "count")
	must(t, err)
	var n int
	must(t, v.Decode(&n))
	equal(t, n, jaytest.Goroutines*each)
}

// Ensure that indexes grow over reopening, and that a copy keeps its values.
func TestCompareExchange_Reopen(t *testing.T) {
	disk := storagetest.NewDisk()
	last := uint64(0)
	for run := range 3 {
		options := jay.Options{}
		if run == 2 {
			options.CopyTag = "C"
		}
		db := onDisk(t, disk, options)
		x := db.CompareExchange()
		if v, err := x.Get(ctx, "k"); run > 0 && (err != nil || v.Index != last) {
			t.Errorf("run %d: got %+v, %v, want index %d", run, v, err, last)
		}
		index := exchanged(t, x, "k", run, last)
		if index <= last {
			t.Errorf("run %d: the index went from %d to %d", run, last, index)
		}
		must(t, x.Delete(ctx, "k", index))
		last = exchanged(t, x, "k", run, 0)
		closeDB(t, db)
	}
}

// Ensure that ended databases and contexts refuse.
func TestCompareExchange_Closed(t *testing.T) {
	db := memory(t, nil)
	x := db.CompareExchange()
	must(t, db.Close())
	for name, err := range map[string]error{
		"get": second(x.Get(ctx, "a")), "list": second(x.List(ctx, "", "", 0)), "put": second(x.Put(ctx, "a", 1, 0)), "delete": x.Delete(ctx, "a", 1),
	} {
		if !errors.Is(err, jay.ErrClosed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
