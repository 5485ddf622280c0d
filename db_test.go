package jay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

var (
	ctx = context.Background()

	newClock     = jaytest.NewClock
	memory       = jaytest.Memory
	open         = jaytest.Open
	onDisk       = jaytest.OnDisk
	closeDB      = jaytest.Close
	put          = jaytest.Put
	store        = jaytest.Store
	body         = jaytest.Body
	must         = jaytest.Must
	patchIn      = jaytest.PatchIn
	within       = jaytest.Within
	concurrently = jaytest.Concurrently
	attach       = jaytest.Attach
	attached     = jaytest.Attached
	randomBytes  = jaytest.RandomBytes
	dump         = jaytest.Dump
	documentsOf  = jaytest.Documents
	changed      = jaytest.Changes
	backUp       = jaytest.BackUp
	bulk         = jaytest.BulkInsert
	rows         = jaytest.Rows
	shop         = jaytest.Shop

	collectionsOf = jaytest.CollectionsText
)

// TestMain collects garbage seldom. Four parallel tests for each processor run at once:
// many wait for what must not happen.
func TestMain(m *testing.M) {
	jaytest.CollectSeldom()
	jaytest.Parallel(4 * runtime.GOMAXPROCS(0))
	m.Run()
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	jaytest.Equal(t, got, want)
}

func collectionOf[T any](t testing.TB, db *jay.DB, opts ...jay.CollectionOption) *jay.Collection[T] {
	t.Helper()
	return jaytest.CollectionOf[T](t, db, opts...)
}

// Ensure that a database is there again after a reopen, and that what is
// fixed at creation stays.
func TestOpen_Reopen(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "acorns.jay")
	db := open(t, dir, &jay.Options{Separator: "-", NodeTag: "NUT"})
	equal(t, db.Dir(), dir)
	equal(t, put(t, db, "users-", `{}`).ID, "users-0000000000000000001-NUT")
	closeDB(t, db)

	db = open(t, dir, nil)
	equal(t, put(t, db, "users-", `{}`).ID, "users-0000000000000000002-NUT")
	equal(t, put(t, db, "users/", `{"kept":"literally"}`).ID, "users/")
	equal(t, store(t, db, "Users"), "users-1-NUT")
	closeDB(t, db)

	for _, opts := range []jay.Options{{Separator: "/"}, {NodeTag: "A"}, {CaseSensitive: true}} {
		if db, err := jay.Open(dir, &opts); !errors.Is(err, jay.ErrFixed) {
			t.Errorf("open with %+v: %v, want ErrFixed", opts, err)
			if err == nil {
				closeDB(t, db)
			}
		}
	}
	closeDB(t, open(t, dir, &jay.Options{Separator: "-", NodeTag: "NUT"}))
}

// Ensure that impossible options are refused by name, and create nothing.
func TestOpen_WrongOptions(t *testing.T) {
	for name, opts := range map[string]jay.Options{
		"separator pipe":  {Separator: "|"},
		"separator long":  {Separator: "//"},
		"node tag":        {NodeTag: "a"},
		"node tag RAFT":   {NodeTag: "RAFT"},
		"id bytes":        {MaxIDBytes: 2026},
		"few id bytes":    {MaxIDBytes: 10},
		"document bytes":  {MaxDocumentBytes: 1 << 40},
		"negative bytes":  {MaxDocumentBytes: -1},
		"depth":           {MaxDepth: 10_001},
		"durability":      {Durability: 7},
		"negative cache":  {CacheBytes: -1},
		"huge mem tables": {MemTableBytes: 1 << 40},
	} {
		if db, err := jay.OpenMemory(&opts); !errors.Is(err, jay.ErrOption) {
			t.Errorf("%s: got %v, want ErrOption", name, err)
			if err == nil {
				closeDB(t, db)
			}
		}
	}
}

// Ensure that a second Open of a directory fails at once and names it.
func TestOpen_Locked(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, nil)
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second open: %v, want ErrLocked with the directory", err)
	}
	closeDB(t, db)
	closeDB(t, open(t, dir, &jay.Options{MustExist: true}))
}

// Ensure that other people's directories and missing ones are left alone.
func TestOpen_NotDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrNotDatabase) {
		t.Errorf("got %v, want ErrNotDatabase", err)
	}
	missing := filepath.Join(dir, "missing")
	if _, err := jay.Open(missing, &jay.Options{MustExist: true}); !errors.Is(err, jay.ErrNoDatabase) {
		t.Errorf("got %v, want ErrNoDatabase", err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("MustExist created the directory: %v", err)
	}
}

// Ensure that Close ends everything once: later calls get ErrClosed, a loop
// that is still running too, and a second Close does nothing.
func TestDB_Close(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	users, err := jay.CollectionOf[User](db)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		store(t, db, "Users")
	}
	var inLoop error
	seen := 0
	for _, err := range db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			inLoop = err
			break
		}
		if seen++; seen == 1 {
			closeDB(t, db)
		}
	}
	if seen != 1 || !errors.Is(inLoop, jay.ErrClosed) {
		t.Errorf("a loop over a closed database saw %d documents and %v, want 1 and ErrClosed", seen, inLoop)
	}
	closeDB(t, db)

	calls := map[string]func() error{
		"Put":          func() error { _, err := db.Put(ctx, "a", []byte(`{}`)); return err },
		"Store":        func() error { _, err := db.Store(ctx, "Users", []byte(`{}`)); return err },
		"Get":          func() error { _, err := db.Get(ctx, "a"); return err },
		"GetMany":      func() error { _, err := db.GetMany(ctx, "a"); return err },
		"Exists":       func() error { _, err := db.Exists(ctx, "a"); return err },
		"Delete":       func() error { return db.Delete(ctx, "a") },
		"NextRange":    func() error { _, err := db.NextRange(ctx, jay.RangeRequest{Tag: "users"}); return err },
		"ReturnRange":  func() error { _, err := db.ReturnRange(ctx, "users", 1, 32); return err },
		"Counters":     func() error { _, err := db.Counters(ctx); return err },
		"Raise":        func() error { return db.RaiseCounters(ctx, jay.Counters{}) },
		"Stats":        func() error { _, err := db.Stats(ctx); return err },
		"Insert typed": func() error { _, err := users.Insert(ctx, &User{}); return err },
		"Documents": func() error {
			for _, err := range db.Documents(ctx, jay.Scan{}) {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, jay.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}

// Ensure that a context that is done stops a call before it does anything.
func TestDB_Cancelled(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{}`)
	before := dump(t, db)
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, putErr := db.Put(done, "users|", []byte(`{}`))
	_, storeErr := db.Store(done, "Users", []byte(`{}`))
	_, getErr := db.Get(done, "a")
	var loopErr error
	for _, err := range db.Documents(done, jay.Scan{}) {
		loopErr = err
	}
	for _, err := range []error{putErr, storeErr, getErr, loopErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
	}
	equal(t, dump(t, db), before)
}

// Ensure that many goroutines can write, read and walk at once, and that
// nothing is lost or made twice.
func TestDB_Concurrent(t *testing.T) {
	db := memory(t, nil)
	const goroutines, rounds = 16, 30
	var mu sync.Mutex
	seen := make(map[string]bool)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			requests := []string{"users|", "users/", ""}
			for i := range rounds {
				var m jay.Metadata
				var err error
				if i%4 == 3 {
					m, err = db.Store(ctx, "Users", []byte(`{}`))
				} else {
					m, err = db.Put(ctx, requests[i%4], []byte(`{}`), jay.InCollection("Users"))
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[m.ID] {
					t.Errorf("%s was made twice", m.ID)
				}
				seen[m.ID] = true
				mu.Unlock()
				if _, err := db.Get(ctx, m.ID); err != nil {
					t.Errorf("%s cannot be read: %v", m.ID, err)
				}
				if g == 0 && i%10 == 0 {
					for _, err := range db.Documents(ctx, jay.Scan{Collection: "Users", Limit: 20}) {
						if err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; !seen[doc.ID()] {
			t.Errorf("%s was never acknowledged", doc.ID())
		}
	}
	equal(t, n, goroutines*rounds)
	counters, err := db.Counters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inserts := int64(0)
	for id := range seen {
		if rest, found := strings.CutPrefix(id, "users/"); found && !strings.Contains(rest, "-") {
			inserts++
		}
	}
	equal(t, counters.Identities["users|"], inserts)
}

// trap is a callback that breaks when it is set.
type trap struct {
	end    atomic.Pointer[func()]
	passed atomic.Int64 // calls to come that return
}

// set makes all calls break but the next so many.
func (b *trap) set(end func(), pass int) {
	b.passed.Store(int64(pass))
	b.end.Store(&end)
}

func (b *trap) clear() { b.end.Store(nil) }

func (b *trap) spring() {
	if end := b.end.Load(); end != nil && b.passed.Add(-1) < 0 {
		(*end)()
	}
}

func (b *trap) now() time.Time {
	b.spring()
	return time.Now()
}

// brokenContext is a context whose Err is a trap.
type brokenContext struct {
	context.Context
	trap *trap
}

func (c brokenContext) Err() error {
	c.trap.spring()
	return c.Context.Err()
}

// loud is a type whose JSON is made by a trap.
type loud struct {
	ID   string
	Text loudText
}

type loudText struct {
	text string
	trap *trap
}

func (l loudText) MarshalJSON() ([]byte, error) {
	if l.trap != nil {
		l.trap.spring()
	}
	return json.Marshal(l.text)
}

// loudDecode is sprung by UnmarshalJSON, which has no room for a trap of its
// own.
var loudDecode atomic.Pointer[trap]

func (l *loudText) UnmarshalJSON(text []byte) error {
	loudDecode.Load().spring()
	return json.Unmarshal(text, &l.text)
}

// Ensure that a callback that panics, or ends its goroutine, does so for the
// caller whose call it was; that nothing of that call is stored; and that the
// database goes on, gives the next numbers, and can be closed.
func TestCallback_DoesNotReturn(t *testing.T) {
	t.Parallel()
	type call struct {
		name string
		call func(db *jay.DB, b *trap) error
	}
	calls := []call{
		{"Prefix in a large batch", func(db *jay.DB, b *trap) error {
			var batch jay.Batch
			for i := range 1000 {
				batch.Store(fmt.Sprint("Col", i), json.RawMessage(`{}`))
			}
			_, err := db.Apply(ctx, &batch)
			return err
		}},
		{"Now in a fetch", func(db *jay.DB, b *trap) error {
			_, err := db.NewHiLoClient().Next(ctx, "gadgets")
			return err
		}},
		{"Now in a write", func(db *jay.DB, b *trap) error {
			_, err := db.Put(ctx, "a/1", json.RawMessage(`{}`))
			return err
		}},
		{"Now in ReturnRange", func(db *jay.DB, b *trap) error {
			_, err := db.ReturnRange(ctx, "things", 1, 32)
			return err
		}},
		{"Now in a bulk insert", func(db *jay.DB, b *trap) error {
			w, err := db.BulkInsert(nil)
			if err != nil {
				return err
			}
			defer w.Close()
			_, err = w.Store(ctx, "Things", json.RawMessage(`{}`))
			return err
		}},
		{"Rand", func(db *jay.DB, b *trap) error {
			_, err := db.Put(ctx, "", json.RawMessage(`{}`))
			return err
		}},
		{"Conventions.ID", func(db *jay.DB, b *trap) error {
			c, err := jay.CollectionOf[named](db)
			if err != nil {
				return err
			}
			_, err = c.Put(ctx, &named{})
			return err
		}},
		{"CollectionName", func(db *jay.DB, b *trap) error { _, err := jay.CollectionOf[named](db); return err }},
		{"MarshalJSON of many", func(db *jay.DB, b *trap) error {
			c, err := jay.CollectionOf[loud](db, jay.Named("Loud"), jay.WithPrefix("loud"), jay.WithIDField("ID"))
			if err != nil {
				return err
			}
			var vs []*loud
			for i := range 200 {
				vs = append(vs, &loud{ID: fmt.Sprint("loud/", i), Text: loudText{trap: b}})
			}
			_, err = c.PutMany(ctx, vs)
			return err
		}},
		{"MarshalJSON in a session", func(db *jay.DB, b *trap) error {
			c, err := jay.CollectionOf[loud](db, jay.Named("Loud"), jay.WithPrefix("loud"), jay.WithIDField("ID"))
			if err != nil {
				return err
			}
			s := db.OpenSession(jay.WithCollections(c))
			if err := s.Store(ctx, &loud{ID: "loud/1", Text: loudText{trap: b}}); err != nil {
				return err
			}
			return s.SaveChanges(ctx)
		}},
		{"UnmarshalJSON", func(db *jay.DB, b *trap) error {
			c, err := jay.CollectionOf[loud](db, jay.Named("Loud"), jay.WithPrefix("loud"), jay.WithIDField("ID"))
			if err != nil {
				return err
			}
			for _, err := range c.All(ctx) {
				return err
			}
			return nil
		}},
		{"a context of a large batch", func(db *jay.DB, b *trap) error {
			var batch jay.Batch
			for i := range 1000 {
				batch.Put(fmt.Sprint("things/", i), json.RawMessage(`{"new":1}`), jay.InCollection("Things"))
			}
			_, err := db.Apply(brokenContext{ctx, b}, &batch)
			return err
		}},
		{"a context of a query", func(db *jay.DB, b *trap) error {
			_, err := db.Query("Things").Where(jay.Eq("n", 1)).All(brokenContext{ctx, b})
			return err
		}},
		{"the function of Update", func(db *jay.DB, b *trap) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				_, err := tx.Store(ctx, "Things", json.RawMessage(`{}`))
				b.spring()
				return err
			})
		}},
		{"the function of View", func(db *jay.DB, b *trap) error {
			return db.View(ctx, func(tx *jay.Tx) error { b.spring(); return nil })
		}},
		{"the function of Read", func(db *jay.DB, b *trap) error {
			return db.Read(ctx, "things/1", func(*jay.RawDocument) error { b.spring(); return nil })
		}},
		{"a loop over documents", func(db *jay.DB, b *trap) error {
			for range db.Documents(ctx, jay.Scan{}) {
				b.spring()
			}
			return nil
		}},
		{"the progress of an index", func(db *jay.DB, b *trap) error {
			return db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"n"}}, jay.IndexProgress(func(int64) { b.spring() }))
		}},
	}
	for want, end := range brokenEnds {
		for _, call := range calls {
			t.Run(call.name+"/"+want, func(t *testing.T) {
				met := 0
				for pass, next := 0, 1; testBrokenCall(t, call.call, end, pass, want); pass, next = next, pass+next {
					met++
				}
				if met == 0 {
					t.Error("no callback was called")
				}
			})
		}
	}
}

// testBrokenCall makes a call during which all callbacks but the first few
// break, and reports whether one of them was met.
func testBrokenCall(t *testing.T, call func(db *jay.DB, b *trap) error, end func(), pass int, want string) (met bool) {
	t.Helper()
	var b trap
	db, err := jay.OpenMemory(&jay.Options{
		Now:  b.now,
		Rand: trapReader{&b},
		Conventions: jay.Conventions{
			CollectionName: func(reflect.Type) string { b.spring(); return "Named" },
			Prefix:         func(name string) string { b.spring(); return strings.ToLower(name) },
			ID:             func(context.Context, string, any) (string, error) { b.spring(); return "named/x", nil },
		},
	})
	must(t, err)
	var batch jay.Batch
	for i := range 100 {
		batch.Put(fmt.Sprint("things/", i), json.RawMessage(`{"n":1}`), jay.InCollection("Things"))
	}
	batch.Put("loud/0", json.RawMessage(`{"Text":"x"}`), jay.InCollection("Loud"))
	_, err = db.Apply(ctx, &batch)
	must(t, err)
	_, err = db.NextRange(ctx, jay.RangeRequest{Tag: "things"})
	must(t, err)

	before := contents(t, db)
	b.set(end, pass)
	loudDecode.Store(&b)
	got := ended(func() error { return call(db, &b) })
	b.clear()
	if met = got == want; !met && got != "<nil>" {
		t.Errorf("after %d calls: got %q, want %q", pass, got, want)
	}
	if after := contents(t, db); met && !reflect.DeepEqual(after, before) {
		t.Errorf("after %d calls: %d documents, before %d", pass, len(after), len(before))
	}
	if _, err := db.Store(ctx, "Things", json.RawMessage(`{}`)); err != nil {
		t.Errorf("the next document: %v", err)
	}
	must(t, db.Close())
	return met
}

// named is a type whose ID the conventions make.
type named struct{ ID string }

// trapReader is a source of randomness that is a trap.
type trapReader struct{ trap *trap }

func (r trapReader) Read(p []byte) (int, error) {
	r.trap.spring()
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

// Ensure that none of the user's code runs inside of a transaction of the
// engine, where it would hold up every writer, in any mode of HiLo.
func TestCallback_OutsideOfEngine(t *testing.T) {
	for _, mode := range []jay.HiLoMode{jay.HiLo4, jay.HiLo2, jay.HiLo2010} {
		var inside atomic.Pointer[string]
		calls := new(trap)
		calls.set(func() {
			if stack := string(debug.Stack()); strings.Contains(stack, "jay/storage/lsm.(*Engine)") {
				inside.Store(&stack)
			}
		}, 0)
		dir := t.TempDir()
		db, err := jay.Open(dir, &jay.Options{
			Now: calls.now, Rand: trapReader{calls}, HiLoMode: mode, HiLoCapacity: 4,
			Conventions: jay.Conventions{Prefix: func(name string) string { calls.spring(); return strings.ToLower(name) }},
		})
		must(t, err)
		for range 20 {
			_, err = db.Store(ctx, "Things", json.RawMessage(`{}`))
			must(t, err)
		}
		for _, id := range []string{"", "invoices|", "logs/", "a/1"} {
			_, err = db.Put(ctx, id, json.RawMessage(`{}`))
			must(t, err)
		}
		_, err = db.Patch(ctx, "a/1", jay.Set("n", loudText{trap: calls}), jay.OrInsert(map[string]any{}))
		must(t, err)
		must(t, db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.Patch(ctx, "a/1", jay.Increment("m", 1)); err != nil {
				return err
			}
			_, err := tx.Store(ctx, "Others", json.RawMessage(`{}`))
			return err
		}))
		w, err := db.BulkInsert(&jay.BulkOptions{Progress: func(jay.BulkProgress) { calls.spring() }})
		must(t, err)
		_, err = w.Store(ctx, "Things", json.RawMessage(`{}`))
		must(t, err)
		must(t, w.Close())
		r, err := db.NextRange(ctx, jay.RangeRequest{Tag: "gadgets"})
		must(t, err)
		_, err = db.ReturnRange(ctx, "gadgets", r.Low, r.High)
		must(t, err)
		must(t, db.Close())
		if stack := inside.Load(); stack != nil {
			t.Errorf("mode %d: the user's code runs inside of the engine:\n%s", mode, *stack)
		}
	}
}

// Ensure that a batch of a transaction is staged as a whole or not at all, also
// when the clock panics in the middle and the function goes on.
func TestCallback_HalfStagedBatch(t *testing.T) {
	calls := 0
	db := memory(t, &jay.Options{Now: func() time.Time {
		if calls++; calls == 0 {
			panic("callback")
		}
		return time.Now()
	}})
	for _, id := range []string{"a/1", "a/2"} {
		_, err := db.Put(ctx, id, json.RawMessage(`{"n":1}`))
		must(t, err)
	}
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		var b jay.Batch
		b.Put("a/3", json.RawMessage(`{}`))
		b.Patch("a/1", jay.Set("n", 2))
		b.Patch("a/2", jay.Set("n", 2))
		func() {
			defer func() {
				if r := recover(); r != "callback" {
					t.Errorf("recovered %v", r)
				}
			}()
			calls = -3 // of the batch, of the first patch, of the second
			_, err := tx.Apply(ctx, &b)
			t.Errorf("Apply has returned %v", err)
		}()
		_, err := tx.Put(ctx, "a/4", json.RawMessage(`{}`))
		return err
	}))
	if got, want := fmt.Sprint(contents(t, db)), `map[a/1:{"n":1} a/2:{"n":1} a/4:{}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Ensure that an Open, and a Close, whose clock or randomness does not return
// leave the directory free, with all that was written.
func TestCallback_OpenAndClose(t *testing.T) {
	for want, end := range brokenEnds {
		dir := t.TempDir()
		var b trap
		options := &jay.Options{Now: b.now, Rand: trapReader{&b}}
		b.set(end, 0)
		if got := ended(func() error { _, err := jay.Open(dir, options); return err }); got != want {
			t.Errorf("Open: %q, want %q", got, want)
		}
		b.clear()
		db, err := jay.Open(dir, options)
		must(t, err)
		_, err = db.Store(ctx, "Things", json.RawMessage(`{"n":1}`))
		must(t, err)

		b.set(end, 0)
		if got := ended(db.Close); got != want {
			t.Errorf("Close: %q, want %q", got, want)
		}
		if got := ended(db.Close); got != "<nil>" {
			t.Errorf("second Close: %q", got)
		}
		b.clear()
		db, err = jay.Open(dir, options)
		must(t, err)
		if got, want := fmt.Sprint(contents(t, db)), `map[things/1-A:{"n":1}]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		must(t, db.Close())
	}
}

// brokenHandler is a log handler that never returns.
type brokenHandler struct {
	end    func()
	called *atomic.Int32
}

func (h brokenHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h brokenHandler) Handle(context.Context, slog.Record) error {
	h.called.Add(1)
	h.end()
	return nil
}

func (h brokenHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h brokenHandler) WithGroup(string) slog.Handler      { return h }

// Ensure that a log handler that panics, or ends its goroutine, stops neither
// the engine nor its callers.
func TestLogger_DoesNotReturn(t *testing.T) {
	t.Parallel()
	for want, end := range brokenEnds {
		dir := t.TempDir()
		var called atomic.Int32
		options := &jay.Options{MemTableBytes: 64 << 10, Logger: slog.New(brokenHandler{end, &called})}
		body := json.RawMessage(`{"text":"` + string(bytes.Repeat([]byte("x"), 1000)) + `"}`)
		db, err := jay.Open(dir, options)
		must(t, err)
		for range 300 { // several tables' worth: flushes have much to say at debug level
			_, err := db.Store(ctx, "Things", body)
			must(t, err)
		}
		must(t, db.Close())
		db, err = jay.Open(dir, options)
		must(t, err)
		if got := len(contents(t, db)); got != 300 {
			t.Errorf("%s: %d documents, want 300", want, got)
		}
		must(t, db.Close())
		if called.Load() == 0 {
			t.Errorf("%s: nothing was logged", want)
		}
	}
}

// Ensure that Flush makes every write durable that was acknowledged before it,
// under Relaxed durability, of single writes, batches and a bulk writer's
// committed batches, and none of the later ones by itself.
func TestFlush_MakesDurableWhatWasAcknowledged(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	defer closeDB(t, db)
	put(t, db, "first", `{}`) // reserves numbers, which is synced
	put(t, db, "before", `{"n":1}`)
	var b jay.Batch
	b.Put("batch/1", []byte(`{}`))
	b.Put("batch/2", []byte(`{}`))
	_, err := db.Apply(ctx, &b)
	must(t, err)
	must(t, db.Delete(ctx, "first"))
	committed := make(chan struct{}, 1)
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1, Progress: func(jay.BulkProgress) { committed <- struct{}{} }})
	must(t, err)
	_, err = w.Put(ctx, "bulk", []byte(`{}`))
	must(t, err)
	<-committed

	lost := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
	if got := body(t, lost, "before"); got != "absent" {
		t.Fatalf("without a Flush a crash leaves %s: the test does not test Flush", got)
	}
	closeDB(t, lost)

	must(t, db.Flush(ctx))
	put(t, db, "after", `{}`)
	left := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
	defer closeDB(t, left)
	for id, want := range map[string]string{
		"before": `{"n":1}`, "batch/1": `{}`, "batch/2": `{}`, "bulk": `{}`, "first": "absent",
	} {
		if got := body(t, left, id); got != want {
			t.Errorf("after Flush and a crash %s is %s, want %s", id, got, want)
		}
	}
	must(t, w.Close())
}

// Ensure that Flush honours its context while the disk is held up, that a
// later Flush then does the work, and that it costs nothing where nothing is
// fresh.
func TestFlush_Context(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	put(t, db, "doc", `{}`)
	held := disk.Hold(storagetest.Logs, storagetest.Syncs)
	defer held.Release()
	put(t, db, "doc", `{"n":2}`)
	ended, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- db.Flush(ended) }()
	<-held.Met()
	cancel()
	if err := within(t, done, "Flush"); !errors.Is(err, context.Canceled) {
		t.Errorf("a Flush whose context ends: %v, want context.Canceled", err)
	}
	held.Release()
	must(t, db.Flush(ctx))
	left := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
	if got := body(t, left, "doc"); got != `{"n":2}` {
		t.Errorf("after Flush and a crash: %s", got)
	}
	closeDB(t, left)
	syncs := disk.Syncs()
	for range 10 {
		must(t, db.Flush(ctx))
	}
	if got := disk.Syncs(); got != syncs {
		t.Errorf("10 Flushes of nothing took %d syncs", got-syncs)
	}
	closeDB(t, db)
	if err := db.Flush(ctx); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// Ensure that a Flush whose sync fails says that the outcome is unknown.
func TestFlush_DiskFails(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	put(t, db, "doc", `{}`)
	put(t, db, "doc", `{"n":2}`)
	disk.Fail()
	if err := db.Flush(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Errorf("got %v, want ErrUnknownOutcome", err)
	}
	_ = db.Close() // it cannot close cleanly; it must return
}
