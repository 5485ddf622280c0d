// Package shared_test has several databases on one store, as several processes would have it: one
// test for each thing that a database could remember, and a storm of all of them.
package shared_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

var (
	ctx  = context.Background()
	must = jaytest.Must
)

// clock is a clock that several databases follow.
type clock struct {
	mu  sync.Mutex
	now time.Time // Guarded by mu.
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// openTwo opens two databases on a new store. At the end of the test they are compared and closed.
func openTwo(t *testing.T, o jay.Options) (a, b *jay.DB) {
	t.Helper()
	o.Engine = jaytest.SharedDriver(t)
	a, b = jaytest.Open(t, "db", &o), jaytest.Open(t, "db", &o)
	t.Cleanup(func() {
		agree(t, a, b)
		must(t, errors.Join(a.Close(), b.Close()))
	})
	return a, b
}

// agree checks each database, and that they see the same.
func agree(t *testing.T, all ...*jay.DB) {
	t.Helper()
	for _, db := range all {
		checks.WaitIndexTasks(db)
	}
	for _, db := range all {
		jaytest.Verify(t, db)
		must(t, errors.Join(checks.Counts(db), checks.Indexes(db), checks.Times(db), checks.Revisions(db), checks.Contents(db)))
		got, want := dumpBoth(t, db, all[0])
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("the databases differ:\n%s\n%s", got[i], want[i])
				break
			}
		}
		if len(got) != len(want) {
			t.Errorf("one has %d documents, another %d", len(got), len(want))
		}
	}
}

// dumpBoth returns the lines of the dumps of two databases of one moment of their store. What has expired is deleted in the background meanwhile.
func dumpBoth(t *testing.T, one, other *jay.DB) (a, b []string) {
	t.Helper()
	before := jaytest.Dump(t, other)
	for range 100 {
		dump := jaytest.Dump(t, one)
		after := jaytest.Dump(t, other)
		if after == before {
			return strings.Split(dump, "\n"), strings.Split(after, "\n")
		}
		before = after
	}
	t.Fatal("the store does not come to rest")
	return nil, nil
}

func put(t *testing.T, db *jay.DB, id, body string, opts ...jay.WriteOption) jay.Metadata {
	t.Helper()
	m, err := db.Put(ctx, id, json.RawMessage(body), opts...)
	if err != nil {
		t.Fatalf("put %q: %v", id, err)
	}
	return m
}

func get(t *testing.T, db *jay.DB, id string) string {
	t.Helper()
	doc, err := db.Get(ctx, id)
	if err != nil {
		t.Fatalf("get %q: %v", id, err)
	}
	return string(doc.Body())
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Ensure that a write replaces the version that the other database has written, and not one
// that its own remembers: the record of that change goes, the sizes are right, and a version of before is refused.
func TestDocuments(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	in := jay.InCollection("Users")
	first := put(t, a, "users/1", `{"n":1}`, in)
	want(t, "b reads", get(t, b, "users/1"), `{"n":1}`)
	second := put(t, b, "users/1", `{"n":2,"longer":"than before"}`, in)
	want(t, "a reads", get(t, a, "users/1"), `{"n":2,"longer":"than before"}`)
	if _, err := a.Put(ctx, "users/1", json.RawMessage(`{"n":3}`), in, jay.IfMatch(first.ChangeVector)); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("a put on the version before: %v, want ErrConflict", err)
	}
	put(t, a, "users/1", `{"n":3}`, in, jay.IfMatch(second.ChangeVector))
	must(t, b.Delete(ctx, "users/1"))
	if _, err := a.Get(ctx, "users/1"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("a deleted document: %v, want ErrNotFound", err)
	}
	if _, err := a.Replace(ctx, "users/1", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("a replacement: %v, want ErrNotFound", err)
	}
	put(t, a, "users/1", `{"n":4}`, jay.InCollection("Others"))
	put(t, b, "users/1", `{"n":5}`)
}

// Ensure that no etag comes twice, that they rise in the order of the writes, and that IDs made of
// them, of identities and of HiLo ranges differ, under both durabilities.
func TestNumbers(t *testing.T) {
	for name, o := range map[string]jay.Options{"synced": {}, "relaxed": {Durability: jay.Relaxed}} {
		t.Run(name, func(t *testing.T) {
			a, b := openTwo(t, o)
			ids, vectors := make(map[string]bool), make(map[string]bool)
			in := jay.InCollection("Orders")
			for i := range 40 {
				db := []*jay.DB{a, b}[i/3%2]
				for _, request := range []string{"orders/", "orders|", ""} {
					m := put(t, db, request, `{}`, in)
					if ids[m.ID] || vectors[m.ChangeVector] {
						t.Errorf("%s of version %s came twice", m.ID, m.ChangeVector)
					}
					ids[m.ID], vectors[m.ChangeVector] = true, true
				}
			}
			last := uint64(0)
			n := 0
			for c, err := range a.Changes(ctx, "", jay.UntilCaughtUp()) {
				must(t, err)
				if c.Etag <= last {
					t.Errorf("etag %d comes after %d", c.Etag, last)
				}
				last = c.Etag
				n++
			}
			if n < len(ids) {
				t.Errorf("%d changes of %d documents", n, len(ids))
			}
			counters, err := b.Counters(ctx)
			must(t, err)
			want(t, "the last etag", counters.Etag, last)
		})
	}
}

// Ensure that etags and identities that one database raises are raised for the other.
func TestRaised(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	put(t, b, "n|", `{}`)
	must(t, a.RaiseCounters(ctx, jay.Counters{Etag: 5000, Identities: map[string]int64{"n|": 100}}))
	counters, err := b.Counters(ctx)
	must(t, err)
	want(t, "the last etag", counters.Etag, 5000)
	want(t, "the next identity", put(t, b, "n|", `{}`).ID, "n/101")
	counters, err = b.Counters(ctx)
	must(t, err)
	want(t, "the last etag", counters.Etag, 5001)
}

// Ensure that an identity goes on where the other database has left it, also after one of them was closed.
func TestNumbers_Closed(t *testing.T) {
	o := jay.Options{Engine: jaytest.SharedDriver(t), Durability: jay.Relaxed}
	a, b := jaytest.Open(t, "db", &o), jaytest.Open(t, "db", &o)
	seen := make(map[string]bool)
	draw := func(db *jay.DB) {
		t.Helper()
		for range 3 {
			for _, request := range []string{"n|", "n/"} {
				m := put(t, db, request, `{}`)
				if seen[m.ID] || seen[m.ChangeVector] {
					t.Errorf("%s, %s came twice", m.ID, m.ChangeVector)
				}
				seen[m.ID], seen[m.ChangeVector] = true, true
			}
		}
	}
	draw(a)
	draw(b)
	must(t, a.Close())
	draw(b)
	a = jaytest.Open(t, "db", &o)
	draw(a)
	draw(b)
	draw(a)
	agree(t, a, b)
	must(t, errors.Join(a.Close(), b.Close()))
}

// Ensure that each number of an identity is on disk when it is handed out, also under Relaxed: there are no reservations, as to the other
// databases the numbers up to one would count as used.
func TestNumbers_Durable(t *testing.T) {
	driver := &waiting{Driver: jaytest.SharedDriver(t)}
	o := jay.Options{Engine: driver, Durability: jay.Relaxed}
	a, b := jaytest.Open(t, "db", &o), jaytest.Open(t, "db", &o)
	for i := range 6 {
		driver.waits.Store(false)
		m := put(t, []*jay.DB{a, b}[i/2%2], "n|", `{}`)
		want(t, "identity", m.ID, fmt.Sprint("n/", i+1))
		if !driver.waits.Load() {
			t.Errorf("%s does not wait for the disk", m.ID)
		}
		driver.waits.Store(false)
		put(t, a, "other", `{}`)
		if driver.waits.Load() {
			t.Error("a write without a number waits for the disk")
		}
	}
	agree(t, a, b)
	must(t, errors.Join(a.Close(), b.Close()))
}

// waiting is a driver that notes that a commit was to wait for the disk.
type waiting struct {
	storage.Driver
	waits atomic.Bool
}

// Open implements storage.Driver.
func (w *waiting) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	e, err := w.Driver.Open(name, o)
	if err != nil {
		return nil, err
	}
	return &waitingEngine{e, w}, nil
}

type waitingEngine struct {
	storage.Engine
	driver *waiting
}

// Update implements storage.Engine.
func (e *waitingEngine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	return e.Engine.Update(ctx, sync, func(tx storage.Tx) error { return fn(waitingTx{tx, e.driver}) })
}

type waitingTx struct {
	storage.Tx
	driver *waiting
}

// RequireSync implements storage.Tx.
func (tx waitingTx) RequireSync() {
	tx.driver.waits.Store(true)
	tx.Tx.RequireSync()
}

// Ensure that writes maintain an index that the other database has made, that its queries use it, and that
// neither does so once it is dropped.
func TestIndexes(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	in := jay.InCollection("Users")
	put(t, b, "users/1", `{"name":"Ada","mail":"a"}`, in)
	put(t, b, "users/2", `{"name":"Bob","mail":"b"}`, in)
	must(t, a.EnsureIndex(ctx, "Users", jay.Index{Name: "name", Fields: []string{"name"}}))
	must(t, a.EnsureIndex(ctx, "Users", jay.Index{Name: "mail", Fields: []string{"mail"}, Unique: true}))
	put(t, b, "users/3", `{"name":"Ada","mail":"c"}`, in)
	var unique *jay.UniqueError
	if _, err := b.Put(ctx, "users/4", json.RawMessage(`{"mail":"a"}`), in); !errors.As(err, &unique) || unique.Other != "users/1" {
		t.Errorf("a value that is taken: %v, want a UniqueError", err)
	}
	named := func(db *jay.DB) (n int64, err error) {
		return db.Query("Users").Where(jay.Eq("name", "Ada")).UseIndex("name").Count(ctx)
	}
	for _, db := range []*jay.DB{a, b} {
		n, err := named(db)
		must(t, err)
		want(t, "documents found", n, 2)
		all, err := db.Indexes(ctx, "Users")
		must(t, err)
		want(t, "indexes", len(all), 2)
		// It is there already, and ready.
		must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "name", Fields: []string{"name"}}))
	}
	must(t, b.DropIndex(ctx, "Users", "name"))
	put(t, a, "users/5", `{"name":"Ada","mail":"e"}`, in)
	if _, err := named(a); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("a query by an index that is gone: %v, want ErrNoIndex", err)
	}
	if err := a.EnsureIndex(ctx, "Users", jay.Index{Name: "mail", Fields: []string{"name"}}); !errors.Is(err, jay.ErrIndexExists) {
		t.Errorf("another index of the name: %v, want ErrIndexExists", err)
	}
	must(t, a.EnsureIndex(ctx, "Users", jay.Index{Name: "mail", Fields: []string{"name", "mail"}}, jay.ReplaceIndex()))
	put(t, b, "users/6", `{"name":"Ada","mail":"a"}`, in)
}

// Ensure that a transaction whose index was made since it began commits with its entries.
func TestIndexes_MadeMeanwhile(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	in := jay.InCollection("Users")
	put(t, a, "users/1", `{"n":1}`, in)
	once := sync.OnceFunc(func() {
		must(t, b.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"n"}}))
	})
	must(t, a.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Query("Users").Where(jay.Eq("n", 1)).Count(ctx); err != nil {
			return err
		}
		if _, err := tx.Put(ctx, "users/2", json.RawMessage(`{"n":2}`), in); err != nil {
			return err
		}
		once()
		return nil
	}, jay.Retry()))
	n, err := b.Query("Users").Where(jay.Eq("n", 2)).UseIndex("n").Count(ctx)
	must(t, err)
	want(t, "documents found", n, 1)
}

// Ensure that a build ends, and leaves no entry, if the other database drops its index meanwhile; and
// that two that build the same index both do so.
func TestIndexes_BuiltByBoth(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	in := jay.InCollection("Users")
	for i := range 5 {
		put(t, a, fmt.Sprint("users/", i), fmt.Sprintf(`{"n":%d}`, i), in)
	}
	n := jay.Index{Name: "n", Fields: []string{"n"}}
	held := func(meanwhile func()) error {
		building, goOn := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(goOn) })
		var first atomic.Bool
		restore := checks.OnBuildChunk(func(_ context.Context, state jay.IndexState) {
			if state == jay.IndexBuilding && first.CompareAndSwap(false, true) {
				close(building)
				<-goOn
			}
		})
		defer restore()
		defer release()
		done := make(chan error, 1)
		go func() { done <- a.EnsureIndex(ctx, "Users", n) }()
		<-building
		meanwhile()
		release()
		return <-done
	}
	if err := held(func() { must(t, b.DropIndex(ctx, "Users", "n")) }); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("an index that was dropped: %v, want ErrIndex", err)
	}
	keys, err := checks.IndexKeys(a)
	must(t, err)
	want(t, "keys of indexes", keys, 0)
	must(t, held(func() { must(t, b.EnsureIndex(ctx, "Users", n)) }))
	for _, db := range []*jay.DB{a, b} {
		all, err := db.Indexes(ctx, "Users")
		must(t, err)
		if len(all) != 1 || all[0].State != jay.IndexReady {
			t.Errorf("%+v", all)
		}
	}
}

// Ensure that of both databases that declare an index at once, each gets it, beside one of its own.
func TestIndexes_DeclaredByBoth(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	for i := range 20 {
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for j, db := range []*jay.DB{a, b} {
			wg.Go(func() {
				own := fmt.Sprintf("own%d_%d", j, i)
				errs[j] = db.EnsureIndexes(ctx, "Users", []jay.Index{
					{Name: fmt.Sprint("n", i), Fields: []string{fmt.Sprint("n", i)}}, {Name: own, Fields: []string{own}}})
			})
		}
		wg.Wait()
		must(t, errors.Join(errs...))
		all, err := a.Indexes(ctx, "Users")
		must(t, err)
		want(t, "indexes", len(all), 3*(i+1))
	}
}

// Ensure that revisions are kept by rules that the other database has set.
func TestRevisions(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	in := jay.InCollection("Users")
	put(t, b, "users/1", `{"n":1}`, in)
	must(t, a.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{Keep: 5}}))
	put(t, b, "users/1", `{"n":2}`, in)
	put(t, b, "users/1", `{"n":3}`, in)
	n := 0
	for _, err := range a.Revisions().List(ctx, "users/1", jay.RevisionPage{}) {
		must(t, err)
		n++
	}
	want(t, "revisions", n, 3) // the version before, too
	if c := b.Revisions().Configuration(); c.Default == nil || c.Default.Keep != 5 {
		t.Errorf("b has the rules %+v", c)
	}
}

// Ensure that collections are counted with what both have written.
func TestCounts(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	for i := range 6 {
		put(t, []*jay.DB{a, b}[i%2], fmt.Sprint("users/", i), `{}`, jay.InCollection("Users"))
	}
	must(t, b.Delete(ctx, "users/0"))
	for _, db := range []*jay.DB{a, b} {
		all, err := db.Collections(ctx)
		must(t, err)
		if !slices.Equal(all, []jay.CollectionCount{{Name: "Users", Documents: 5}}) {
			t.Errorf("%+v", all)
		}
	}
}

// Ensure that a database hides, and deletes, documents whose instant the other has set; and
// that neither does once the other has switched expiration off.
func TestExpiry(t *testing.T) {
	defer checks.NoSweeper()()
	clock := newClock()
	a, b := openTwo(t, jay.Options{Now: clock.Now, ExactExpiry: true})
	in := jay.InCollection("Leases")
	expiring := func(db *jay.DB, id string) {
		t.Helper()
		put(t, db, id, `{}`, in, jay.WithMetadata(fmt.Appendf(nil, `{"@expires":%q}`, clock.Now().Add(time.Minute).Format(time.RFC3339))))
	}
	visible := func(db *jay.DB) int64 {
		t.Helper()
		n, err := db.Query("Leases").Count(ctx)
		must(t, err)
		return n
	}
	sweep := func(db *jay.DB) int64 {
		t.Helper()
		s, err := db.Sweep(ctx)
		must(t, err)
		return s.Deleted
	}
	want(t, "deleted", sweep(a), 0) // it has looked up to now
	expiring(b, "leases/1")
	want(t, "visible before", visible(a), 1)
	clock.add(time.Hour)
	expiring(a, "leases/2")
	want(t, "deleted by a", sweep(a), 1)
	clock.add(-30 * time.Minute) // b's entry is before what a has swept
	expiring(b, "leases/3")
	clock.add(2 * time.Minute)
	want(t, "visible after", visible(a), 1)
	want(t, "deleted by a, of b", sweep(a), 1)

	must(t, a.ConfigureExpiration(ctx, jay.ExpirationConfiguration{Disabled: true}))
	want(t, "switched off for b", b.ExpirationConfiguration().Disabled, true)
	clock.add(2 * time.Hour)
	want(t, "deleted by b", sweep(b), 0)
	want(t, "visible in b", visible(b), 1)
	must(t, b.ConfigureExpiration(ctx, jay.ExpirationConfiguration{}))
	want(t, "visible in a again", visible(a), 0)
	want(t, "deleted by a again", sweep(a), 1)
}

// Ensure that the worker of one database deletes what the other was to delete.
func TestExpiry_Worker(t *testing.T) {
	defer checks.SetSweepInterval(time.Millisecond)()
	clock := newClock()
	o := jay.Options{Now: clock.Now, Engine: jaytest.SharedDriver(t)}
	a := jaytest.Open(t, "db", &o)
	restore := checks.NoSweeper()
	b := jaytest.Open(t, "db", &o)
	restore()
	put(t, b, "leases/1", fmt.Sprintf(`{"@metadata":{"@expires":%q}}`, clock.Now().Add(time.Minute).Format(time.RFC3339)))
	deleted, opened := make(chan error, 1), make(chan struct{})
	go func() {
		for c, err := range b.Changes(ctx, jay.SinceNow, jay.Opened(func() { close(opened) })) {
			if err != nil || c.Deleted {
				deleted <- err
				return
			}
		}
	}()
	<-opened
	clock.add(time.Hour)
	must(t, jaytest.Within(t, deleted, "the deletion"))
	agree(t, a, b)
	must(t, errors.Join(a.Close(), b.Close()))
}

// Ensure that a sweep says that the store is away, or that others commit first, and does what is due as
// soon as it can: no document is put off for it. It was for a minute, and Sweep returned nil.
func TestExpiry_StoreAway(t *testing.T) {
	defer checks.NoSweeper()()
	for outcome, named := range map[storagetest.Outcome]error{storagetest.Unavailable: jay.ErrUnavailable, storagetest.Conflicting: jay.ErrConflict} {
		clock, store := newClock(), &storagetest.Commits{Driver: jaytest.SharedDriver(t)}
		db := jaytest.Open(t, "db", &jay.Options{Now: clock.Now, Engine: store})
		put(t, db, "leases/1", fmt.Sprintf(`{"@metadata":{"@expires":%q}}`, clock.Now().Add(time.Minute).Format(time.RFC3339)))
		clock.add(time.Hour)
		store.Fail(outcome, 1000)
		if s, err := db.Sweep(ctx); !errors.Is(err, named) || s.Deleted != 0 {
			t.Errorf("away: got %+v, %v", s, err)
		}
		store.Fail(storagetest.Committed, 0)
		if s, err := db.Sweep(ctx); err != nil || s.Deleted != 1 {
			t.Errorf("back: got %+v, %v", s, err)
		}
		must(t, db.Close())
	}
}

// Ensure that a feed of one database has the changes of both, in the order of their commits.
func TestChanges(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	const n = 40
	got := make(chan []string, 1)
	opened := make(chan struct{})
	go func() {
		var all []string
		for c, err := range a.Changes(ctx, jay.SinceNow, jay.Opened(func() { close(opened) })) {
			if err != nil {
				t.Error(err)
				break
			}
			if all = append(all, c.ID); len(all) == n {
				break
			}
		}
		got <- all
	}()
	<-opened
	var written []string
	for i := range n {
		id := fmt.Sprint("docs/", i)
		put(t, []*jay.DB{a, b}[i/2%2], id, `{}`)
		written = append(written, id)
	}
	if all := <-got; !slices.Equal(all, written) {
		t.Errorf("the feed has\n%v, written were\n%v", all, written)
	}
}

// Ensure that a transaction does not commit on what the other database has changed.
func TestTransactions(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	in := jay.InCollection("Users")
	put(t, a, "x", `{"on":true}`, in)
	put(t, a, "y", `{"on":true}`, in)
	err := a.Update(ctx, func(tx *jay.Tx) error {
		n, err := tx.Query("Users").Where(jay.Eq("on", true)).Count(ctx)
		if err != nil {
			return err
		}
		put(t, b, "y", `{"on":false}`, in)
		_, err = tx.Put(ctx, "x", json.RawMessage(fmt.Sprintf(`{"on":false,"seen":%d}`, n)), in)
		return err
	})
	if !errors.Is(err, jay.ErrConflict) {
		t.Errorf("a transaction of an older moment: %v, want ErrConflict", err)
	}
	want(t, "x", get(t, b, "x"), `{"on":true}`)

	// Deletions are found, although the document is gone.
	err = a.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Query("Users").Where(jay.Eq("on", true)).Count(ctx)
		must(t, b.Delete(ctx, "x"))
		if err == nil {
			_, err = tx.Put(ctx, "z", json.RawMessage(`{}`), in)
		}
		return err
	})
	if !errors.Is(err, jay.ErrConflict) {
		t.Errorf("a transaction on a document that is deleted: %v, want ErrConflict", err)
	}
}

// Ensure that the chunks of an attachment stay while the other database reads it, and that an upload of
// one is not taken for one that was left behind.
func TestAttachments(t *testing.T) {
	defer checks.SetChunkBytes(100)()
	o := jay.Options{Engine: jaytest.SharedDriver(t)}
	a := jaytest.Open(t, "db", &o)
	put(t, a, "users/1", `{}`)
	content := jaytest.RandomBytes(1, 1000)
	jaytest.Attach(t, a, "users/1", "photo", content)

	// b is opened in the middle of an upload.
	var b *jay.DB
	other := jaytest.RandomBytes(2, 1000)
	in := &jaytest.HookReader{R: bytes.NewReader(other), After: 500, Do: func() { b = jaytest.Open(t, "db", &o) }}
	if _, err := a.Attachments("users/1").Put(ctx, "other", in); err != nil {
		t.Fatal(err)
	}
	r, err := a.Attachments("users/1").Get(ctx, "photo")
	must(t, err)
	must(t, b.Attachments("users/1").Delete(ctx, "photo"))
	checks.WaitContents(b)
	var read bytes.Buffer
	_, err = read.ReadFrom(r)
	must(t, errors.Join(err, r.Close()))
	want(t, "what was read while it was deleted", bytes.Equal(read.Bytes(), content), true)
	got, err := jaytest.Attached(t, b.Attachments("users/1"), "other")
	must(t, err)
	want(t, "the other", bytes.Equal(got, other), true)
	agree(t, a, b)
	must(t, errors.Join(a.Close(), b.Close()))
}

// Ensure that a result that one database has kept for a request is found by the other.
func TestRequests(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	next := func(db *jay.DB) int64 {
		t.Helper()
		n, err := db.NextIdentity(ctx, "n|", jay.RequestID("once"))
		must(t, err)
		return n
	}
	want(t, "the repetition", next(b), next(a))
}

// Ensure that of processes that open a new store at once, all have one database.
func TestOpen_Together(t *testing.T) {
	const openers = 4
	met := &meeting{Driver: jaytest.SharedDriver(t)}
	met.all.Add(openers)
	o := jay.Options{Engine: met}
	all := make([]*jay.DB, openers)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i] = jaytest.Open(t, "db", &o) })
	}
	wg.Wait()
	vectors := make(map[string]bool)
	for i, db := range all {
		m := put(t, db, fmt.Sprint("docs/", i), `{}`)
		vectors[m.ChangeVector[len(m.ChangeVector)-22:]] = true
	}
	want(t, "databases", len(vectors), 1)
	agree(t, all...)
	for _, db := range all {
		must(t, db.Close())
	}
}

// Ensure that the settings of a new store are those of the process that was quickest, and that the others are refused
// if they want other ones.
func TestOpen_TogetherWithOtherSettings(t *testing.T) {
	met := &meeting{Driver: jaytest.SharedDriver(t)}
	met.all.Add(2)
	var all [2]*jay.DB
	var refused [2]error
	var wg sync.WaitGroup
	for i, separator := range []string{"/", "-"} {
		wg.Go(func() { all[i], refused[i] = jay.Open("db", &jay.Options{Engine: met, Separator: separator}) })
	}
	wg.Wait()
	opened := 0
	for i, db := range all {
		if db != nil {
			opened++
			must(t, db.Close())
		} else if !errors.Is(refused[i], jay.ErrFixed) {
			t.Errorf("got %v, want ErrFixed", refused[i])
		}
	}
	want(t, "opened", opened, 1)
}

// meeting is a driver whose engines begin their first commit when all of them have come to it: each has found an
// empty store by then.
type meeting struct {
	storage.Driver
	all sync.WaitGroup
}

// Open implements storage.Driver.
func (m *meeting) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	e, err := m.Driver.Open(name, o)
	if err != nil {
		return nil, err
	}
	return &meetingEngine{Engine: e, come: sync.OnceFunc(func() {
		m.all.Done()
		m.all.Wait()
	})}, nil
}

type meetingEngine struct {
	storage.Engine
	come func()
}

// Update implements storage.Engine.
func (e *meetingEngine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	e.come()
	return e.Engine.Update(ctx, sync, fn)
}

// Ensure that what others would not know of is refused, by name.
func TestRefused(t *testing.T) {
	driver := jaytest.SharedDriver(t)
	o := jay.Options{Engine: driver}
	a := jaytest.Open(t, "db", &o)
	defer a.Close()
	on := func(set func(*jay.Options)) func() error {
		return func() error {
			own := o
			set(&own)
			db, err := jay.Open("db", &own)
			if err == nil {
				err = db.Close()
			}
			return err
		}
	}
	put(t, a, "users/1", `{}`, jay.InCollection("Users"))
	for name, call := range map[string]func() error{
		"Cluster":                on(func(o *jay.Options) { o.Cluster = clustertest.NewMemory().Connect() }),
		"AcceptLoss":             on(func(o *jay.Options) { o.AcceptLoss = func(*jay.DamageError) {} }),
		"DocumentCacheBytes":     on(func(o *jay.Options) { o.DocumentCacheBytes = 1 }),
		"CopyTag":                on(func(o *jay.Options) { o.CopyTag = "B" }),
		"PrefixCollections":      on(func(o *jay.Options) { o.PrefixCollections = jay.PrefixCollectionsOn }),
		"RenameCollection":       func() error { _, err := a.RenameCollection(ctx, "Users", "People"); return err },
		"RaiseCounters of a tag": func() error { return a.RaiseCounters(ctx, jay.Counters{HiLo: map[string]int64{"users": 5}}) },
	} {
		if err := call(); !errors.Is(err, jay.ErrShared) || !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s: %v, want ErrShared", name, err)
		}
	}
	want(t, "the document", get(t, a, "users/1"), `{}`)
}

// Ensure that a backup of a shared store is restored into one, under another tag, and that two can have it
// open then.
func TestRestore(t *testing.T) {
	driver := jaytest.SharedDriver(t)
	o := jay.Options{Engine: driver}
	a := jaytest.Open(t, "db", &o)
	put(t, a, "users/", `{}`)
	must(t, a.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"n"}}))
	_, stream := jaytest.BackUp(t, a)
	must(t, a.Close())
	_, err := jay.Restore(ctx, "copy", jay.RestoreOptions{CopyTag: "B", Options: &o}, bytes.NewReader(stream))
	must(t, err)
	b, c := jaytest.Open(t, "copy", &o), jaytest.Open(t, "copy", &o)
	seen := make(map[string]bool)
	for i := range 10 {
		m := put(t, []*jay.DB{b, c}[i%2], "users/", `{}`)
		want(t, m.ID+" came twice", seen[m.ID], false)
		seen[m.ID] = true
	}
	agree(t, b, c)
	must(t, errors.Join(b.Close(), c.Close()))
}
