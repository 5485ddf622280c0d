package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a bulk writer stores what many goroutines give it, each document
// under the ID that it returned, and that a refused document is the caller's
// own affair.
func TestBulkWriter(t *testing.T) {
	db := memory(t, nil)
	batches := 0
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 64, MaxDelay: time.Hour, Progress: func(p jay.BulkProgress) { batches++ }})
	must(t, err)
	var mu sync.Mutex
	bodies := make(map[string]string)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			scratch := make([]byte, 0, 100)
			for i := range 200 {
				scratch = fmt.Appendf(scratch[:0], `{"g":%d,"i":%d}`, g, i)
				id, err := w.Store(ctx, "Orders", scratch)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				bodies[id] = string(scratch)
				mu.Unlock()
				if _, err := w.Store(ctx, "Orders", json.RawMessage(`{"bad":`)); !errors.Is(err, jay.ErrInvalidDocument) {
					t.Errorf("malformed document: %v", err)
				}
			}
		})
	}
	wg.Wait()
	var invoice jay.Metadata
	if id, err := w.Put(ctx, "invoices|", json.RawMessage(`{}`), jay.Returning(&invoice)); err != nil || id != "invoices|" {
		t.Errorf("identity: %q, %v", id, err)
	}
	must(t, w.Flush(ctx))
	if invoice.ID != "invoices/1" {
		t.Errorf("identity after Flush: %q", invoice.ID)
	}
	must(t, w.Close())
	must(t, w.Close())
	if p := w.Progress(); p.Documents != 1601 || p.Batches != int64(batches) || batches < 25 {
		t.Errorf("progress: %+v, %d calls", p, batches)
	}
	if len(bodies) != 1600 {
		t.Fatalf("%d ids for 1600 documents", len(bodies))
	}
	for id, body := range bodies {
		if doc, err := db.Get(ctx, id); err != nil || string(doc.Body()) != body {
			t.Fatalf("%s: got %v, %v, want %s", id, doc, err, body)
		}
	}
	if _, err := w.Store(ctx, "Orders", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Ensure that a batch that cannot be committed ends the writer and says so to
// every later call.
func TestBulkWriter_Failure(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "orders/1", `{"@metadata":{"@collection":"Orders"}}`)
	w, err := db.BulkInsert(nil)
	must(t, err)
	_, err = w.Put(ctx, "orders/1", json.RawMessage(`{}`), jay.InCollection("Users"))
	must(t, err)
	if err := w.Flush(ctx); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("flush: %v", err)
	}
	if _, err := w.Store(ctx, "Orders", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("later call: %v", err)
	}
	if err := w.Close(); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("close: %v", err)
	}
}

// Ensure that what was flushed survives a power loss that keeps nothing else,
// though its batches did not wait for the disk.
func TestBulkWriter_Flush_PowerLoss(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 10})
	must(t, err)
	for i := range 30 {
		_, err := w.Put(ctx, fmt.Sprintf("a/%d", i), json.RawMessage(`{}`))
		must(t, err)
	}
	must(t, w.Flush(ctx)) // the last batch is empty
	after := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
	for i := range 30 {
		if found, err := after.Exists(ctx, fmt.Sprintf("a/%d", i)); !found || err != nil {
			t.Fatalf("a/%d: %v, %v", i, found, err)
		}
	}
	must(t, w.Close())
}

// endsWhenWaitedFor is a context that ends when its end is waited for.
type endsWhenWaitedFor struct {
	context.Context
	end context.CancelFunc
}

func (c endsWhenWaitedFor) Done() <-chan struct{} { c.end(); return c.Context.Done() }

func newEndsWhenWaitedFor() context.Context {
	inner, end := context.WithCancel(context.Background())
	return endsWhenWaitedFor{inner, end}
}

// Ensure that a call which waits for a free batch returns when its context
// ends, with its document not added, and that the writer goes on.
func TestBulkWriter_WaitingHonoursContext(t *testing.T) {
	db := memory(t, nil)
	var held sync.Mutex // holds the committer up
	held.Lock()
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1, Progress: func(jay.BulkProgress) {
		held.Lock()
		defer held.Unlock()
	}})
	if err != nil {
		t.Fatal(err)
	}
	soon := func(name string, call func() error) error {
		ended := make(chan error, 1)
		go func() { ended <- call() }()
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Minute):
			held.Unlock()
			t.Fatalf("%s waits on, although its context has ended", name)
			return nil
		}
	}
	for i := range 3 { // one is being committed, two wait
		put := func() error {
			_, err := w.Put(newEndsWhenWaitedFor(), fmt.Sprintf("things/%d", i), json.RawMessage(`{}`))
			return err
		}
		if err := soon("Put", put); err != nil {
			t.Fatal(err)
		}
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"Put": func(ctx context.Context) error {
			_, err := w.Put(ctx, "things/never", json.RawMessage(`{}`))
			return err
		},
		"Store": func(ctx context.Context) error { _, err := w.Store(ctx, "Things", json.RawMessage(`{}`)); return err },
		"Flush": w.Flush,
	} {
		if err := soon(name, func() error { return call(newEndsWhenWaitedFor()) }); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}

	var group sync.WaitGroup // some that wait longer, and get their turn
	for i := range 8 {
		group.Go(func() {
			if _, err := w.Put(ctx, fmt.Sprintf("things/later%d", i), json.RawMessage(`{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	held.Unlock()
	group.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "@empty"); n != 11 {
		t.Errorf("got %d documents, want 11", n)
	}
}

// Ensure that Close ends a writer whose batches are all on their way, with
// callers waiting for one.
func TestBulkWriter_CloseWhileOthersWait(t *testing.T) {
	db := memory(t, nil)
	var held sync.Mutex
	held.Lock()
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1, Progress: func(jay.BulkProgress) {
		held.Lock()
		defer held.Unlock()
	}})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	stored := 0
	for i := range 16 {
		group.Go(func() {
			_, err := w.Put(ctx, fmt.Sprintf("things/%d", i), json.RawMessage(`{}`))
			if err != nil && !errors.Is(err, jay.ErrClosed) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				stored++
			}
		})
	}
	group.Go(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	held.Unlock()
	group.Wait()
	if n := count(t, db, "@empty"); n != stored {
		t.Errorf("got %d documents, want %d", n, stored)
	}
}

// ended runs fn on a goroutine of its own and returns how fn ended: with the
// text of its error, "panic …" or "goexit".
func ended(fn func() error) string {
	out := make(chan string, 1)
	go func() {
		text := "goexit"
		defer func() {
			if r := recover(); r != nil {
				text = fmt.Sprint("panic ", r)
			}
			out <- text
		}()
		text = fmt.Sprint(fn())
	}()
	return <-out
}

// brokenEnds are the ways in which a callback does not return, by what its
// caller sees of them.
var brokenEnds = map[string]func(){
	"panic callback": func() { panic("callback") },
	"goexit":         runtime.Goexit,
}

// contents returns the documents of the users by ID.
func contents(t *testing.T, db *jay.DB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for doc, err := range db.Documents(ctx, jay.Scan{Exclude: "Raven/HiLo/*"}) {
		must(t, err)
		all[doc.ID()] = string(doc.Body())
	}
	return all
}

// Ensure that a Progress that does not return ends its writer: the first call
// that meets it panics with the value, all later ones say what happened, none
// waits for ever, and what was committed before is stored.
func TestBulkOptions_Progress_DoesNotReturn(t *testing.T) {
	ways := map[string]func(db *jay.DB, w *jay.BulkWriter) string{
		"Flush": func(_ *jay.DB, w *jay.BulkWriter) string { return ended(func() error { return w.Flush(ctx) }) },
		"Close": func(_ *jay.DB, w *jay.BulkWriter) string { return ended(w.Close) },
		"Store": func(_ *jay.DB, w *jay.BulkWriter) string {
			return ended(func() error {
				for {
					if _, err := w.Store(ctx, "Things", json.RawMessage(`{}`)); err != nil {
						return err
					}
				}
			})
		},
	}
	for want, end := range brokenEnds {
		for way, call := range ways {
			t.Run(way+"/"+want, func(t *testing.T) {
				db := memory(t, nil)
				committed := int64(0)
				w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 2, Progress: func(p jay.BulkProgress) {
					committed = p.Documents
					end()
				}})
				must(t, err)
				_, err = w.Store(ctx, "Things", json.RawMessage(`{}`))
				must(t, err)
				got := call(db, w)
				text := fmt.Sprintf("bulk insert, after %d documents: wrong usage: BulkOptions.Progress did not return: ", committed)
				if want == "goexit" {
					text += "it called runtime.Goexit"
					if got != text {
						t.Errorf("got %q, want %q", got, text)
					}
				} else {
					text += "panic: callback"
					if got != want {
						t.Errorf("got %q, want %q", got, want)
					}
				}

				for range 2 {
					for _, later := range []func() error{
						func() error { return w.Flush(ctx) },
						func() error { _, err := w.Store(ctx, "Things", json.RawMessage(`{}`)); return err },
						w.Close,
					} {
						if got := ended(later); got != text && got != "jay: the bulk writer is closed" {
							t.Errorf("later: %q, want %q", got, text)
						}
					}
				}
				if err := w.Close(); !errors.Is(err, jay.ErrUsage) {
					t.Errorf("Close: %v, want ErrUsage", err)
				}
				must(t, db.Flush(ctx)) // what is read is on disk
				if got := int64(len(contents(t, db))); got != committed || committed == 0 || w.Progress().Documents != committed {
					t.Errorf("%d documents are stored, Progress was called with %d", got, committed)
				}
			})
		}
	}
}

// Ensure that many goroutines that use a writer whose Progress panics all come
// back, one of them with the panic.
func TestBulkOptions_Progress_PanicsOnce(t *testing.T) {
	db := memory(t, nil)
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1, Progress: func(jay.BulkProgress) { panic("callback") }})
	must(t, err)
	var panics atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				switch got := ended(func() error { _, err := w.Store(ctx, "Things", json.RawMessage(`{}`)); return err }); got {
				case "<nil>":
				case "panic callback":
					panics.Add(1)
					return
				default:
					return
				}
			}
		})
	}
	wg.Wait()
	if got := ended(w.Close); panics.Load() != 1 || got == "<nil>" {
		t.Errorf("%d calls have panicked, Close: %q", panics.Load(), got)
	}
}

// Ensure that options which make no sense are refused, and that the defaults
// fill what is not given.
func TestBulkInsert_Options(t *testing.T) {
	db := memory(t, nil)
	for _, o := range []jay.BulkOptions{
		{BatchDocuments: -1}, {BatchDocuments: 100_001}, {BatchBytes: -1}, {BatchBytes: 256<<20 + 1}, {MaxDelay: -1},
	} {
		if w, err := db.BulkInsert(&o); !errors.Is(err, jay.ErrOption) || w != nil {
			t.Errorf("%+v: %v, %v", o, w, err)
		}
	}
	for _, o := range []*jay.BulkOptions{nil, {}, {BatchDocuments: 1, BatchBytes: 1, MaxDelay: 1}, {BatchDocuments: 100_000, BatchBytes: 256 << 20}} {
		w := bulk(t, db, o)
		_, err := w.Store(ctx, "Orders", json.RawMessage(`{}`))
		must(t, err)
		must(t, w.Close())
	}
	equal(t, count(t, db, "Orders"), 4)
}

// Ensure that a batch which is not full is committed after MaxDelay, each time.
func TestBulkWriter_MaxDelay(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	committed := make(chan jay.BulkProgress, 10)
	w := bulk(t, db, &jay.BulkOptions{MaxDelay: time.Millisecond, Progress: func(p jay.BulkProgress) { committed <- p }})
	for i := range 5 {
		id, err := w.Store(ctx, "Orders", json.RawMessage(`{}`))
		must(t, err)
		p := <-committed
		if p.Documents != int64(i+1) || p.Batches != int64(i+1) || p.Bytes <= 0 || p.Elapsed <= 0 {
			t.Errorf("round %d: %+v", i, p)
		}
		// A read does not see what is not on disk yet, but sees to it that it comes
		// there, without a Flush.
		for found := false; !found; runtime.Gosched() {
			found, err = db.Exists(ctx, id)
			must(t, err)
		}
	}
	must(t, w.Flush(ctx)) // an empty batch is no progress
	must(t, w.Close())
	equal(t, w.Progress().Batches, 5)
}

// Ensure that documents are committed in the order in which one goroutine
// gives them, over batches of every size.
func TestBulkWriter_Order(t *testing.T) {
	for _, batch := range []int{1, 2, 7, 1000} {
		db := memory(t, nil)
		w := bulk(t, db, &jay.BulkOptions{BatchDocuments: batch})
		body := make([]byte, 0, 50)
		for i := range 200 {
			body = fmt.Appendf(body[:0], `{"n":%d}`, i)
			_, err := w.Put(ctx, "last", body)
			must(t, err)
			_, err = w.Put(ctx, fmt.Sprintf("o/%03d", i), body)
			must(t, err)
			clear(body) // it was copied
		}
		must(t, w.Close())
		equal(t, bodyAt(t, db, "last"), `{"n":199}`)
		last, n := uint64(0), 0
		for doc, err := range db.Documents(ctx, jay.Scan{Prefix: "o/"}) {
			must(t, err)
			if etag := doc.Metadata().Etag; etag <= last {
				t.Fatalf("%s: etag %d after %d", doc.ID(), etag, last)
			} else {
				last = etag
			}
			equal(t, string(doc.Body()), fmt.Sprintf(`{"n":%d}`, n))
			n++
		}
		equal(t, n, 200)
	}
}

// Ensure that a writer whose caller uses one buffer for everything stores, and
// indexes, what it was given.
func TestBulkWriter_BuffersAndIndexes(t *testing.T) {
	db := memory(t, nil)
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Customer"}}))
	w := bulk(t, db, &jay.BulkOptions{BatchDocuments: 50})
	body, custom := make([]byte, 0, 100), make([]byte, 0, 100)
	for i := range 300 {
		body = fmt.Appendf(body[:0], `{"Customer":"c/%d","Text":"%s"}`, i%10, strings.Repeat("x", i))
		custom = fmt.Appendf(custom[:0], `{"n":%d}`, i)
		_, err := w.Put(ctx, fmt.Sprintf("orders/%d", i), body, jay.InCollection("Orders"), jay.WithMetadata(custom))
		must(t, err)
		for i := range body {
			body[i] = '?'
		}
		for i := range custom {
			custom[i] = '?'
		}
	}
	must(t, w.Close())
	for i := range 300 {
		doc, err := db.Get(ctx, fmt.Sprintf("orders/%d", i))
		must(t, err)
		equal(t, string(doc.Body()), fmt.Sprintf(`{"Customer":"c/%d","Text":"%s"}`, i%10, strings.Repeat("x", i)))
		equal(t, string(doc.Metadata().Custom), fmt.Sprintf(`{"n":%d}`, i))
	}
	for i := range 10 {
		n, err := db.Query("Orders").Where(jay.Eq("Customer", fmt.Sprintf("c/%d", i))).NoScan().Count(ctx)
		must(t, err)
		equal(t, n, 30)
	}
}

// Ensure that a unique index ends the writer, with nothing of the batch stored,
// and that the numbers which were drawn and not used are counted as gaps.
func TestBulkWriter_UniqueIndex(t *testing.T) {
	db := memory(t, nil)
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Email"}, Unique: true}))
	w := bulk(t, db, &jay.BulkOptions{BatchDocuments: 4, MaxDelay: time.Hour})
	given := 0
	var err error
	for i := 0; err == nil; i++ {
		email := fmt.Sprint(i)
		if i >= 9 {
			email = "0"
		}
		if _, err = w.Store(ctx, "Users", fmt.Appendf(nil, `{"Email":%q}`, email)); err == nil {
			given++
		}
	}
	if !errors.Is(err, jay.ErrUnique) || !strings.Contains(err.Error(), "after 8 documents") {
		t.Errorf("got %v", err)
	}
	if err := w.Close(); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("close: %v", err)
	}
	equal(t, count(t, db, "Users"), 8)
	equal(t, w.Progress().Documents, 8)
	if _, err := w.Store(ctx, "Users", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	next := store(t, db, "Users")
	var n int
	if _, err := fmt.Sscanf(next, "users/%d-A", &n); err != nil || n <= given {
		t.Errorf("the next id is %s after %d were given", next, given)
	}
	stats, err := db.Stats(ctx)
	must(t, err)
	equal(t, stats.Gaps["users"], int64(n-1-8))
}

// Ensure that each kind of ID is made, and returned where it can be.
func TestBulkWriter_Put_Strategies(t *testing.T) {
	db := memory(t, nil)
	w := bulk(t, db, nil)
	results := make([]jay.Metadata, 4)
	for i, request := range []string{"users|", "users/", "", "users/x"} {
		id, err := w.Put(ctx, request, json.RawMessage(`{}`), jay.InCollection("Users"), jay.Returning(&results[i]))
		must(t, err)
		switch request {
		case "":
			equal(t, isGUID(id), true)
		default:
			equal(t, id, request)
		}
	}
	if _, err := w.Put(ctx, `a\b`, json.RawMessage(`{}`)); !errors.Is(err, jay.ErrInvalidID) {
		t.Errorf("wrong id: %v", err)
	}
	must(t, w.Flush(ctx))
	equal(t, results[0].ID, "users/1")
	equal(t, strings.HasPrefix(results[1].ID, "users/0000"), true)
	equal(t, isGUID(results[2].ID), true)
	equal(t, results[3].ID, "users/x")
	for _, m := range results {
		doc, err := db.Get(ctx, m.ID)
		must(t, err)
		equal(t, doc.ChangeVector(), m.ChangeVector)
	}
}

// Ensure that values are stored under the IDs that their fields and
// conventions ask for, that a version field is checked, and that a struct is
// the caller's again once BulkStore has returned an ID.
func TestCollection_BulkStore(t *testing.T) {
	db := memory(t, nil)
	customers, people := collectionOf[customer](t, db), collectionOf[person](t, db)
	w := bulk(t, db, nil)
	one := new(customer)
	seen := make(map[string]bool)
	for i := range 100 {
		*one = customer{Name: fmt.Sprint(i)}
		must(t, customers.BulkStore(ctx, w, one))
		if seen[one.ID] || one.ID == "" {
			t.Fatalf("id %q", one.ID)
		}
		seen[one.ID] = true
	}
	made := &customer{ID: "customers|"}
	must(t, customers.BulkStore(ctx, w, made))
	named := &person{ID: "people/1"}
	must(t, people.BulkStore(ctx, w, named))
	must(t, w.Flush(ctx))
	equal(t, made.ID, "customers/1")
	equal(t, count(t, db, "Customers"), 101)

	for _, v := range []*customer{nil, {ID: "a\x01"}} {
		if err := customers.BulkStore(ctx, w, v); err == nil {
			t.Errorf("%v was taken", v)
		}
	}
	bad := collectionOf[anything](t, db)
	if err := bad.BulkStore(ctx, w, &anything{Any: loop()}); !errors.Is(err, jay.ErrType) {
		t.Errorf("cyclic value: %v", err)
	}
	must(t, w.Flush(ctx))

	stale, err := people.Get(ctx, "people/1")
	must(t, err)
	put(t, db, "people/1", `{"Name":"theirs"}`, jay.InCollection("People"))
	must(t, people.BulkStore(ctx, w, stale))
	if err := w.Flush(ctx); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("stale version: %v", err)
	}
	equal(t, bodyAt(t, db, "people/1"), `{"Name":"theirs"}`)
}

// Ensure that the ID which a commit has made stays in the field, though the
// commit may be quicker than BulkStore.
func TestCollection_BulkStore_QuickCommit(t *testing.T) {
	db := memory(t, nil)
	made := collectionOf[customer](t, db, jay.WithIDRequest("customers|"))
	w := bulk(t, db, &jay.BulkOptions{BatchDocuments: 1})
	vs := make([]*customer, 300)
	for i := range vs {
		vs[i] = &customer{Name: fmt.Sprint(i)}
		must(t, made.BulkStore(ctx, w, vs[i]))
	}
	must(t, w.Flush(ctx))
	for i, v := range vs {
		equal(t, v.ID, fmt.Sprintf("customers/%d", i+1))
	}
	must(t, w.Close())
	late := new(customer)
	if err := made.BulkStore(ctx, w, late); !errors.Is(err, jay.ErrClosed) || late.ID != "" {
		t.Errorf("after Close: %v, %q", err, late.ID)
	}
}

// Ensure that a cancelled context is an error of its call alone.
func TestBulkWriter_Cancelled(t *testing.T) {
	db := memory(t, nil)
	w := bulk(t, db, nil)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := w.Store(cancelled, "Orders", json.RawMessage(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("store: %v", err)
	}
	if err := w.Flush(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("flush: %v", err)
	}
	_, err := w.Store(ctx, "Orders", json.RawMessage(`{}`))
	must(t, err)
	must(t, w.Close())
	equal(t, count(t, db, "Orders"), 1)
}

// Ensure that Store, Put, Flush, Progress and Close from many goroutines agree:
// what was taken is there, what comes after Close is refused, no call hangs, and
// no goroutine is left.
func TestBulkWriter_ConcurrentClose(t *testing.T) {
	before := runtime.NumGoroutine()
	db, err := jay.OpenMemory(nil)
	must(t, err)
	for round := range 20 {
		w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 3, MaxDelay: time.Microsecond})
		must(t, err)
		var taken sync.Map
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					id, err := w.Store(ctx, "Orders", fmt.Appendf(nil, `{"r":%d,"g":%d}`, round, g))
					if err != nil {
						if !errors.Is(err, jay.ErrClosed) {
							t.Error(err)
						}
						return
					}
					taken.Store(id, true)
					if i == 50 {
						if err := w.Close(); err != nil {
							t.Error(err)
						}
					}
					if i%10 == 0 {
						if err := w.Flush(ctx); err != nil && !errors.Is(err, jay.ErrClosed) {
							t.Error(err)
						}
						w.Progress()
					}
				}
			})
		}
		wg.Wait()
		must(t, w.Close())
		n := int64(0)
		taken.Range(func(id, _ any) bool {
			n++
			found, err := db.Exists(ctx, id.(string))
			must(t, err)
			if !found {
				t.Errorf("%s is lost", id)
			}
			return true
		})
		equal(t, w.Progress().Documents, n)
	}
	must(t, db.Close())
	for deadline := time.Now().Add(jaytest.HangGuard); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
}

// Ensure that closing the database under a writer ends it with ErrClosed, in
// every state that it may be in.
func TestBulkWriter_DatabaseCloses(t *testing.T) {
	t.Parallel()
	for n := range 20 {
		db, err := jay.OpenMemory(nil)
		must(t, err)
		w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 5})
		must(t, err)
		var stored atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					if _, err := w.Store(ctx, "Orders", json.RawMessage(`{}`)); err != nil {
						if !errors.Is(err, jay.ErrClosed) {
							t.Errorf("store: %v", err)
						}
						return
					}
					stored.Add(1)
				}
			})
		}
		for stored.Load() < int64(n) {
			runtime.Gosched()
		}
		must(t, db.Close())
		wg.Wait()
		if err := w.Flush(ctx); !errors.Is(err, jay.ErrClosed) {
			t.Errorf("flush: %v", err)
		}
		if err := w.Close(); !errors.Is(err, jay.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	}
}

// Ensure that a disk which fails in the middle ends the writer with an error
// that says how many documents were committed, that what a Flush acknowledged
// survives, and that no ID comes twice afterwards, on databases of either
// durability.
func TestBulkWriter_DiskFails(t *testing.T) {
	t.Parallel()
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		for after := range 12 {
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{Durability: durability})
			w := bulk(t, db, &jay.BulkOptions{BatchDocuments: 3})
			disk.FailAfter(after)
			var all, flushed []string
			results := make([]jay.Metadata, 0, 1000)
			var err error
			for i := 0; err == nil && i < 1000; i++ {
				var id string
				if i%5 == 4 {
					results = append(results, jay.Metadata{})
					_, err = w.Put(ctx, "orders|", json.RawMessage(`{}`), jay.InCollection("Orders"), jay.Returning(&results[len(results)-1]))
				} else if id, err = w.Store(ctx, "Orders", json.RawMessage(`{}`)); err == nil {
					all = append(all, id)
				}
				if err == nil && i%7 == 6 {
					if err = w.Flush(ctx); err == nil {
						flushed = append(flushed[:0], all...)
						for _, m := range results {
							flushed = append(flushed, m.ID)
						}
					}
				}
			}
			if !errors.Is(err, jay.ErrUnknownOutcome) && !errors.Is(err, jay.ErrFailed) {
				t.Fatalf("after %d syncs: %v", after, err)
			}
			closeErr := w.Close()
			if p := w.Progress(); closeErr != nil && !strings.Contains(closeErr.Error(), fmt.Sprintf("after %d documents", p.Documents)) {
				t.Errorf("%v, but %+v", closeErr, p)
			}
			if closeErr == nil && after > 0 {
				t.Logf("the number of the HiLo range failed: %v", err)
			}
			for _, m := range results {
				all = append(all, m.ID)
			}
			_ = db.Close()

			again := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
			for _, id := range flushed {
				if found, err := again.Exists(ctx, id); !found || err != nil {
					t.Errorf("after %d syncs: %s was flushed and is lost (%v)", after, id, err)
				}
			}
			used := make(map[string]bool)
			for _, id := range all {
				used[id] = true
			}
			next := bulk(t, again, nil)
			for range 50 {
				id, err := next.Store(ctx, "Orders", json.RawMessage(`{}`))
				must(t, err)
				if used[id] {
					t.Errorf("%s came twice", id)
				}
			}
			must(t, next.Close())
			for range 5 {
				if id := put(t, again, "orders|", `{}`, jay.InCollection("Orders")).ID; used[id] {
					t.Errorf("%s came twice", id)
				}
			}
			closeDB(t, again)
		}
	}
}

// Ensure that a relaxed database does not wait for the disk, but that Flush
// does.
func TestBulkWriter_Relaxed(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	defer closeDB(t, db)
	w := bulk(t, db, &jay.BulkOptions{BatchDocuments: 10})
	for i := range 105 {
		_, err := w.Put(ctx, fmt.Sprintf("a/%d", i), json.RawMessage(`{}`))
		must(t, err)
	}
	must(t, w.Flush(ctx))
	after := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
	equal(t, count(t, after, ""), 105)
	closeDB(t, after)
	must(t, w.Close())
}

// Ensure that nothing is committed behind a batch that failed, though it was
// given before the failure: what is stored is what was given first.
func TestBulkWriter_NothingBehindAFailure(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "taken", `{}`, jay.InCollection("Orders"))
	inside, release := make(chan bool, 9), make(chan bool)
	w := bulk(t, db, &jay.BulkOptions{BatchDocuments: 1, Progress: func(jay.BulkProgress) { inside <- true; <-release }})
	_, err := w.Put(ctx, "first", json.RawMessage(`{}`))
	must(t, err)
	<-inside
	_, err = w.Put(ctx, "taken", json.RawMessage(`{}`), jay.InCollection("Others"))
	must(t, err)
	later := make(chan error)
	go func() { // waits for a free batch
		_, err := w.Put(ctx, "later", json.RawMessage(`{}`))
		later <- err
	}()
	close(release)
	if err := errors.Join(<-later, w.Close()); !errors.Is(err, jay.ErrCollection) || !strings.Contains(err.Error(), "after 1 documents") {
		t.Errorf("got %v", err)
	}
	equal(t, bodyAt(t, db, "first"), `{}`)
	equal(t, bodyAt(t, db, "later"), "")
	equal(t, w.Progress().Documents, 1)
}

// Ensure that a strict index refuses a document where its collection is known: in the call that names it, or else with the batch, which
// ends the writer.
func TestBulkWriter_StrictIndex(t *testing.T) {
	for _, named := range []bool{true, false} {
		db := memory(t, nil)
		put(t, db, "notes/1", `{"V":[1,2]}`, jay.InCollection("Notes"))
		must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Kind: "vectors", Fields: []string{"V"}, Options: map[string]string{"dimensions": "2", "strict": "yes"}}))
		w, err := db.BulkInsert(nil)
		must(t, err)
		_, err = w.Put(ctx, "good", json.RawMessage(`{}`))
		must(t, err)
		var options []jay.WriteOption
		if named {
			options = append(options, jay.InCollection("Notes"))
		}
		_, err = w.Put(ctx, "notes/1", json.RawMessage(`{"V":[1,2,3]}`), options...)
		closed := w.Close()
		if refused := err != nil; refused != named {
			t.Errorf("named %t: the call returned %v", named, err)
		}
		if ended := closed != nil; ended == named {
			t.Errorf("named %t: Close returned %v", named, closed)
		}
		found, err := db.Exists(ctx, "good")
		must(t, err)
		equal(t, found, named)
		equal(t, string(mustGet(t, db, "notes/1").Body()), `{"V":[1,2]}`)
	}
}
