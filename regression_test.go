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
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// Each test here is named after a failure that was found in review.

// Raised counters were undone when a range beneath them was given back.
func TestRegression_ReturnBelowRaisedMark(t *testing.T) {
	db := memory(t, nil)
	r := nextRange(t, db, jay.RangeRequest{Tag: "users"})
	if err := db.RaiseCounters(ctx, jay.Counters{HiLo: map[string]int64{"users": 20}}); err != nil {
		t.Fatal(err)
	}
	equal(t, returnRange(t, db, "users", 0, r.High), false)
	equal(t, returnRange(t, db, "users", 20, r.High), true)
	equal(t, span(nextRange(t, db, jay.RangeRequest{Tag: "users"})), "users/21..52-A")
}

// A raised etag was lost when a relaxed write counted on beside it.
func TestRegression_RaisedEtagLost(t *testing.T) {
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{Durability: durability})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 200 {
				put(t, db, fmt.Sprint(i), `{}`)
			}
		})
		if err := db.RaiseCounters(ctx, jay.Counters{Etag: 1_000_000}); err != nil {
			t.Fatal(err)
		}
		counters, err := db.Counters(ctx)
		if err != nil || counters.Etag < 1_000_000 {
			t.Errorf("counters after the raise: %d, %v", counters.Etag, err)
		}
		crashed := disk.Crash(0, rand.New(rand.NewPCG(1, 2)))
		wg.Wait()
		closeDB(t, db)
		again := onDisk(t, crashed, jay.Options{})
		if m := put(t, again, "after", `{}`); m.Etag <= 1_000_000 {
			t.Errorf("etag after the crash: %d", m.Etag)
		}
		closeDB(t, again)
	}
}

// Identities jumped when several goroutines first used one under relaxed
// durability.
func TestRegression_RelaxedIdentityHoles(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	defer closeDB(t, db)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 3 {
				put(t, db, "users|", `{}`)
			}
		})
	}
	wg.Wait()
	identities, err := db.Identities(ctx)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, identities["users|"], 24)
}

// A version that was read while its commit waited for the disk named another
// body after a crash.
func TestRegression_ChangeVectorRepeats(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "doc", `{"n":1}`)
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk.OnSync(func() { once.Do(func() { close(held); <-release }) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		put(t, db, "doc", `{"n":2}`)
	}()
	<-held
	// A transaction sees the commit before it is on disk. It does not leave with
	// that, but for a context that has ended.
	var doc *jay.Document
	for begin := time.Now(); (doc == nil || string(doc.Body()) == `{"n":1}`) && time.Since(begin) < time.Minute; {
		impatient, cancel := context.WithCancel(ctx)
		_ = db.Update(impatient, func(tx *jay.Tx) (err error) {
			doc, err = tx.Get(impatient, "doc")
			cancel()
			return err
		})
	}
	crashed := disk.Crash(0, rand.New(rand.NewPCG(1, 2)))
	close(release)
	<-done
	closeDB(t, db)
	equal(t, string(doc.Body()), `{"n":2}`)

	again := onDisk(t, crashed, jay.Options{})
	defer closeDB(t, again)
	equal(t, body(t, again, "doc"), `{"n":1}`)
	if m := put(t, again, "doc", `{"n":3}`); m.ChangeVector == doc.ChangeVector() {
		t.Errorf("version %s is two bodies", m.ChangeVector)
	}
}

// A delete that found nothing was acknowledged before the delete that it
// relied on was on disk.
func TestRegression_DeleteOfNothingDurable(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "doc", `{}`)
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk.OnSync(func() { once.Do(func() { close(held); <-release }) })
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- db.Delete(ctx, "doc") }()
	<-held
	go func() { second <- db.Delete(ctx, "doc") }()
	for range 20_000 { // time enough for an answer that must not come
		runtime.Gosched()
	}
	select {
	case err := <-second:
		t.Fatalf("the second delete was acknowledged while the first waited for the disk (%v)", err)
	default:
	}
	close(release)
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
	closeDB(t, db)
}

// Close said nothing about relaxed writes that it could not make durable.
func TestRegression_CloseSwallowsLoss(t *testing.T) {
	disk := storagetest.NewDisk()
	opts := &jay.Options{Durability: jay.Relaxed}
	opts.FS = disk
	db, err := jay.Open("db", opts)
	if err != nil {
		t.Fatal(err)
	}
	store(t, db, "Users")
	for i := range 10 {
		put(t, db, fmt.Sprint(i), `{}`)
	}
	disk.FailAfter(0)
	if err := db.Close(); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Errorf("got %v, want ErrUnknownOutcome", err)
	}
}

// A walk over a collection whose name holds a NUL panicked, and a prefix with
// one found other documents.
func TestRegression_NamesWithNUL(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "bob", `{}`, jay.InCollection("Users"))
	for _, err := range db.Documents(ctx, jay.Scan{Collection: "users\x00bob"}) {
		if !errors.Is(err, jay.ErrInvalidDocument) {
			t.Errorf("got %v, want an error", err)
		}
	}
	for doc := range db.Documents(ctx, jay.Scan{Prefix: "bob\x00"}) {
		t.Errorf("found %s", doc.ID())
	}
	for _, opts := range [][]jay.CollectionOption{{jay.Named("a\x00b")}, {jay.WithPrefix("a\x00")}, {jay.WithPrefix("a|")}, {jay.WithPrefix("a/")}} {
		if _, err := jay.CollectionOf[User](db, opts...); err == nil {
			t.Error("a name that can never be stored is accepted")
		}
	}
}

// A source of randomness that repeats itself made a put loop for ever.
func TestRegression_RepeatingRandomness(t *testing.T) {
	db := memory(t, &jay.Options{Rand: strings.NewReader(strings.Repeat("0123456789abcdef", 100))})
	put(t, db, "", `{}`)
	before := dump(t, db)
	if _, err := db.Put(ctx, "", []byte(`{}`)); !errors.Is(err, jay.ErrUsage) || !strings.Contains(err.Error(), "Rand") {
		t.Errorf("got %v, want an error that names Options.Rand", err)
	}
	var b jay.Batch
	b.Put("", []byte(`{}`))
	b.Put("", []byte(`{}`))
	if _, err := db.Apply(ctx, &b); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("got %v, want ErrUsage", err)
	}
	equal(t, dump(t, db), before)
}

// The member of another field was dropped with the ID of a named embedded
// struct.
func TestRegression_WrongMemberDropped(t *testing.T) {
	type named struct {
		Base   `json:"base"`
		Legacy string `json:"ID"`
	}
	db := memory(t, nil)
	if _, err := jay.CollectionOf[named](db); !errors.Is(err, jay.ErrType) {
		t.Errorf("got %v, want ErrType", err)
	}
}

// A small MemTableBytes panicked in Open.
func TestRegression_TinyMemTable(t *testing.T) {
	for _, size := range []int64{1, 100, 1000, 65535} {
		if _, err := jay.OpenMemory(&jay.Options{MemTableBytes: size}); !errors.Is(err, jay.ErrOption) {
			t.Errorf("%d: got %v, want ErrOption", size, err)
		}
	}
	memory(t, &jay.Options{MemTableBytes: 64 << 10})
}

// A typed delete removed documents of other collections.
func TestRegression_TypedDelete(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	put(t, db, "users/1", `{}`, jay.InCollection("Others"))
	if err := users.Delete(ctx, "users/1"); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("got %v, want ErrCollection", err)
	}
	equal(t, body(t, db, "users/1"), `{}`)
}

// Numbers that were drawn and not used were nowhere to be seen (A14).
func TestRegression_GapsAreCounted(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/2-A", `{}`)
	put(t, db, "there", `{}`)
	var b jay.Batch
	b.Store("Users", []byte(`{}`))
	b.Insert("there", []byte(`{}`))
	if _, err := db.Apply(ctx, &b); !errors.Is(err, jay.ErrExists) {
		t.Fatal(err)
	}
	equal(t, store(t, db, "Users"), "users/3-A") // 1 was lost with the batch, 2 is taken
	stats, err := db.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, stats.Gaps["users"], 2)
}

// A HiLo document that is no count any more made Close fail.
func TestRegression_RuinedHiLoDocument(t *testing.T) {
	for _, text := range []string{`{"Max":1e30}`, `{"ServerHi":3}`} {
		db := memory(t, nil) // its Close is checked
		store(t, db, "Users")
		r := nextRange(t, db, jay.RangeRequest{Tag: "orders"})
		put(t, db, "Raven/HiLo/users", text, jay.InCollection("@hilo"))
		put(t, db, "Raven/HiLo/orders", text, jay.InCollection("@hilo"))
		equal(t, returnRange(t, db, "orders", 1, r.High), false)
	}
}

// A typed document with two keys of one text was stored: pointers to times
// make such keys.
func TestRegression_PointersToOneTime(t *testing.T) {
	type calendar struct {
		ID      string
		Entries map[*time.Time]string
	}
	db := memory(t, nil)
	calendars := collectionOf[calendar](t, db)
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	second := first
	_, err := calendars.Put(ctx, &calendar{"calendars/1", map[*time.Time]string{&first: "a", &second: "b"}})
	if !errors.Is(err, jay.ErrInvalidDocument) {
		t.Errorf("got %v, want ErrInvalidDocument", err)
	}
}

// Numbers that were drawn for a batch that then failed to draw others were not
// counted.
func TestRegression_GapsOfFailedDraws(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "Raven/HiLo/orders", `{"Max":9223372036854775807}`, jay.InCollection("@hilo"))
	var b jay.Batch
	b.Store("Users", []byte(`{}`))
	b.Store("Orders", []byte(`{}`))
	for range 2 {
		if _, err := db.Apply(ctx, &b); !errors.Is(err, jay.ErrExhausted) {
			t.Fatalf("got %v, want ErrExhausted", err)
		}
	}
	stats, err := db.Stats(ctx)
	must(t, err)
	equal(t, stats.Gaps["users"], 2)
	equal(t, stats.Gaps["orders"], 0)
}

// Numbers of a batch were not counted when one of its GUIDs was taken and could
// not be replaced.
func TestRegression_GapsOfFailedRedraws(t *testing.T) {
	db := memory(t, &jay.Options{Rand: zeros{}})
	put(t, db, "", `{}`)
	var b jay.Batch
	b.Store("Users", []byte(`{}`))
	b.Put("", []byte(`{}`))
	if _, err := db.Apply(ctx, &b); !errors.Is(err, jay.ErrUsage) {
		t.Fatalf("got %v, want ErrUsage", err)
	}
	stats, err := db.Stats(ctx)
	must(t, err)
	equal(t, stats.Gaps["users"], 1)
}

// zeros is a source of randomness that is none.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// The error of one patch changed when another used the same edit at another
// place; in a large batch, several goroutines wrote it.
func TestRegression_EditOfTwoPatches(t *testing.T) {
	db := memory(t, nil)
	bad := jay.Increment("n", "text")
	_, err := db.Patch(ctx, "a", bad)
	var first *jay.PatchError
	if !errors.As(err, &first) {
		t.Fatalf("got %v, want a PatchError", err)
	}
	var b jay.Batch
	for i := range 500 {
		b.Patch(fmt.Sprint(i), jay.Set("n", 1), bad)
	}
	_, err = db.Apply(ctx, &b)
	var second *jay.PatchError
	if !errors.As(err, &second) {
		t.Fatalf("got %v, want a PatchError", err)
	}
	equal(t, first.Edit, 0)
	equal(t, second.Edit, 1)
}

// A patch that was applied again inserted into the collection of the document
// that it had found before.
func TestRegression_PatchInsertsElsewhere(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{}`, jay.InCollection("Others"))
	var b jay.Batch
	b.Patch("a", jay.Set("n", 1), jay.OrInsert(json.RawMessage(`{}`)), jay.InCollection("Users"))
	for _, want := range []string{"Others", "Users"} {
		metas, err := db.Apply(ctx, &b)
		must(t, err)
		equal(t, metas[0].Collection, want)
		must(t, db.Delete(ctx, "a"))
	}
}

// Ensure that a collection does not work in a transaction of another database, or of
// none, whatever is asked of it.
func TestCollection_In_OtherDatabase(t *testing.T) {
	users := collectionOf[User](t, memory(t, nil))
	other := memory(t, nil)
	put(t, other, "users/1", `{}`, jay.InCollection("Users"))
	before := dump(t, other)
	calls := func(c *jay.Collection[User]) map[string]error {
		errs := map[string]error{"Delete": c.Delete(ctx, "users/1"), "EnsureIndexes": c.EnsureIndexes(ctx)}
		_, errs["Insert"] = c.Insert(ctx, &User{ID: "users/2"})
		_, errs["Put"] = c.Put(ctx, &User{ID: "users/1"})
		_, errs["Replace"] = c.Replace(ctx, &User{ID: "users/1"})
		_, errs["Get"] = c.Get(ctx, "users/1")
		_, errs["GetMany"] = c.GetMany(ctx, "users/1")
		_, errs["Exists"] = c.Exists(ctx, "users/1")
		_, errs["Patch"] = c.Patch(ctx, "users/1", jay.Set("a", 1))
		_, errs["Query"] = c.Query().All(ctx)
		_, errs["Count"] = c.Query().Count(ctx)
		for _, err := range c.All(ctx) {
			errs["All"] = err
		}
		return errs
	}
	must(t, other.Update(ctx, func(tx *jay.Tx) error {
		for name, err := range calls(users.In(tx)) {
			if !errors.Is(err, jay.ErrUsage) {
				t.Errorf("%s: got %v, want ErrUsage", name, err)
			}
		}
		return nil
	}))
	for name, err := range calls(users.In(nil)) {
		if !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s in no transaction: got %v, want ErrUsage", name, err)
		}
	}
	equal(t, dump(t, other), before)
}

// Ensure that what cannot be part of a transaction is refused in one, and that a
// bulk writer takes values of its own database only.
func TestCollection_In_NoTransaction(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	w, err := db.BulkInsert(nil)
	must(t, err)
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		for name, err := range map[string]error{"EnsureIndexes": users.In(tx).EnsureIndexes(ctx), "BulkStore": users.In(tx).BulkStore(ctx, w, &User{})} {
			if !errors.Is(err, jay.ErrUsage) {
				t.Errorf("%s: got %v, want ErrUsage", name, err)
			}
		}
		return nil
	}))
	if err := collectionOf[User](t, memory(t, nil)).BulkStore(ctx, w, &User{}); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("the writer of another database: got %v, want ErrUsage", err)
	}
	must(t, w.Close())
}

// Ensure that a Session that OpenSession has not made, and a bulk insert into a
// closed database, are errors.
func TestZeroSession_ClosedBulkInsert(t *testing.T) {
	s := new(jay.Session)
	_, whatErr := s.WhatChanged()
	_, hasErr := s.HasChanges()
	_, loadErr := jay.Load[User](ctx, s, "users/1")
	for i, err := range []error{s.SaveChanges(ctx), s.Store(ctx, &User{}), s.Delete(&User{}), s.DeleteID("users/1"), s.Reattach(nil), whatErr, hasErr, loadErr} {
		if !errors.Is(err, jay.ErrUsage) {
			t.Errorf("call %d: got %v, want ErrUsage", i, err)
		}
	}
	if s.Holds("users/1") {
		t.Error("it holds something")
	}
	db, err := jay.OpenMemory(nil)
	must(t, err)
	must(t, db.Close())
	if _, err := db.BulkInsert(nil); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("BulkInsert: got %v, want ErrClosed", err)
	}
}

// Ensure that errors do not echo a long input in full.
func TestErrors_Bounded(t *testing.T) {
	db := memory(t, nil)
	long := strings.Repeat("x", 100_000)
	errs := map[string]error{}
	_, errs["Get"] = db.Get(ctx, long)
	_, errs["GetMany"] = db.GetMany(ctx, "a", long+"\xff")
	_, errs["Put"] = db.Put(ctx, long, []byte(`{}`))
	_, errs["collection"] = db.Put(ctx, "a", []byte(`{}`), jay.InCollection(long+"\n"))
	_, errs["IfMatch"] = db.Put(ctx, "a", []byte(`{}`), jay.IfMatch(long))
	_, errs["identity"] = db.Put(ctx, "a|", []byte(`{}`), jay.IfMatch(long))
	_, errs["Store"] = db.Store(ctx, "A", []byte(`{}`), jay.InCollection(long))
	_, errs["NextRange"] = db.NextRange(ctx, jay.RangeRequest{Tag: long})
	_, errs["SeedIdentity"] = db.SeedIdentity(ctx, long, -1, false)
	_, errs["NoScan"] = db.Query("A").Where(jay.Eq("a", long)).NoScan().All(ctx)
	_, errs["OrderBy"] = db.Query("A").OrderBy("sum(" + long + ")").All(ctx)
	_, errs["Select"] = jay.Select[json.RawMessage](db.Query("A"), long+" as").All(ctx)
	_, errs["RQL"] = db.RQL("from A where "+long, nil)
	_, errs["Load"] = jay.Load[User](ctx, db.OpenSession(), long)
	errs["RaiseCounters"] = db.RaiseCounters(ctx, jay.Counters{Identities: map[string]int64{long: 1}})
	errs["Read"] = db.Read(ctx, long, nil)
	errs["DropIndex"] = db.DropIndex(ctx, "A", long)
	errs["EnsureIndex"] = db.EnsureIndex(ctx, "A", jay.Index{Fields: []string{long + ".."}})
	errs["Update"] = db.Update(ctx, func(tx *jay.Tx) error { _, err := tx.Get(ctx, long); return err })
	_, errs["CollectionOf"] = jay.CollectionOf[User](db, jay.Named(long+"\n"))
	for name, err := range errs {
		if name == "GetMany" && err == nil {
			continue // missing documents are nil
		}
		if err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes, want up to 1000", name, len(fmt.Sprint(err)))
		}
	}
}

// Ensure that conflicts over walks, and pages that cannot go on, name documents and
// collections as they are written.
func TestErrors_OwnSpelling(t *testing.T) {
	db := memory(t, nil)
	for _, walk := range []func(*jay.Tx) error{
		func(tx *jay.Tx) error {
			for _, err := range tx.Documents(ctx, jay.Scan{Collection: "Stamps"}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		func(tx *jay.Tx) error { _, err := tx.Query("Stamps").All(ctx); return err },
	} {
		err := db.Update(ctx, func(tx *jay.Tx) error {
			must(t, walk(tx))
			put(t, db, "Stamps/6-A", `{}`, jay.InCollection("Stamps"))
			_, err := tx.Put(ctx, "other", []byte(`{}`))
			return err
		})
		var c *jay.ConflictError
		if !errors.As(err, &c) || c.ID != "Stamps/6-A" || c.Walk != "collection Stamps" {
			t.Errorf("got %v", err)
		}
	}
	long := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 2000))
	put(t, db, "Things/1-A", long, jay.InCollection("Things"))
	put(t, db, "Things/2-A", long, jay.InCollection("Things"))
	if _, err := db.Query("Things").OrderBy("text").Limit(1).Page(ctx); err == nil || !strings.Contains(err.Error(), `the page ends at "Things/1-A"`) {
		t.Errorf("got %v", err)
	}
}

// Ensure that the doctor does not take a counter that was raised for a document that
// was edited.
func TestInspectIDs_RaisedIsNotEdited(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	_, err := users.Insert(ctx, &User{})
	must(t, err)
	must(t, db.RaiseCounters(ctx, jay.Counters{HiLo: map[string]int64{"users": 1_000_000, "new": 7}}))
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Max":1000000}`)
	report, err := db.InspectIDs(ctx, nil)
	must(t, err)
	for _, w := range report.Warnings {
		if w.Kind == jay.WarnHiLoEdited {
			t.Errorf("warning %v", w)
		}
	}
	u := &User{}
	_, err = users.Insert(ctx, u)
	must(t, err)
	equal(t, u.ID, "users/1000001-A")
}

// Ensure that includes arrive in rows, and that a query which has no place for them
// is refused when it runs.
func TestQuery_Include_Arrives(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
	put(t, db, "users/1", `{"Name":"x","customer":"customers/1"}`, jay.InCollection("Users"))
	users, err := jay.CollectionOf[User](db, jay.AnyField()) // the type has no customer
	must(t, err)
	for name, rows := range map[string]jay.Query[jay.Row]{
		"documents": db.Query("Users").Include("customer").Rows(),
		"typed":     users.Query().Rows().Include("customer"),
		"selected":  jay.Select[json.RawMessage](users.Query(), "Name").Include("customer").Rows(),
	} {
		all, err := rows.All(ctx)
		must(t, err)
		if len(all) != 1 || len(all[0].Included) != 1 || all[0].Included[0].ID() != "customers/1" {
			t.Errorf("%s: got %+v", name, all)
		}
		page, err := rows.Page(ctx)
		must(t, err)
		equal(t, len(page.Items[0].Included), 1)
	}
	selected := jay.Select[User](users.Query().Include("customer"), "Name")
	_, all := users.Query().Include("customer").All(ctx)
	_, first := db.Query("Users").Include("customer").First(ctx)
	_, page := selected.Page(ctx)
	for i, err := range []error{all, first, page} {
		if !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), "Rows") {
			t.Errorf("call %d: got %v, want an ErrQuery that names Rows", i, err)
		}
	}
	n, err := selected.Count(ctx) // includes make no difference
	must(t, err)
	equal(t, n, 1)
	found, err := selected.Exists(ctx)
	must(t, err)
	equal(t, found, true)
}

// Ensure that the text of a query of the builder is read as the same query, with
// groups and their orders.
func TestQuery_String_IsRQL(t *testing.T) {
	db := memory(t, nil)
	for i := range 30 {
		put(t, db, fmt.Sprint("t/", i), fmt.Sprintf(`{"a":%d,"b":%d,"c d":"x%d"}`, i%5, i%3, i%2), jay.InCollection("T s"))
	}
	fields := []string{"a", "b", "'c d'"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	flip := func() bool { return random.IntN(2) == 0 }
	for range 200 {
		q := db.Query("T s")
		if flip() {
			q = q.Where(jay.Or(jay.Gt("a", random.IntN(6)), jay.Eq("'c d'", []string{"x0", "X1", "it's"}[random.IntN(3)])))
		}
		columns := []string{"id()", "a as first", "'c d'"}
		orders := []string{"a", "-b", "'c d'", "-id()"}
		if flip() {
			by := fields[:1+random.IntN(3)]
			q = q.GroupBy(by...)
			columns = append([]string{"count()", "sum(a)", "max(b) as most", "min('c d')"}, by...)
			orders = []string{"count()", "-sum(a)", "most", "-max(b)", "min('c d')"}
			orders = append(orders, by...)
			if len(by) == 1 {
				columns, orders = append(columns, "key() as k"), append(orders, "key()", "-k")
			}
		}
		random.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
		q = q.OrderBy(orders[:random.IntN(3)]...)
		if flip() {
			q = q.Skip(random.IntN(4)).Limit(random.IntN(10))
		}
		built := jay.Select[json.RawMessage](q, columns...)
		read, err := db.RQL(built.String(), nil)
		if err != nil {
			t.Fatalf("%s is refused: %v", built, err)
		}
		if read.String() != built.String() {
			t.Fatalf("%s is read as %s", built, read)
		}
		want, err := built.All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read.All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d answers, and %d of its text", built, len(want), len(got))
		}
		for i := range got {
			if string(got[i].JSON) != string(*want[i]) {
				t.Fatalf("%s: answer %d is %s, and %s of its text", built, i, *want[i], got[i].JSON)
			}
		}
	}
}

// Ensure that an order by a function is refused where there are no groups.
func TestQuery_OrderBy_FunctionOfNoGroup(t *testing.T) {
	db := memory(t, nil)
	for _, order := range []string{"sum(N)", "-count()", "key()"} {
		if _, err := db.Query("T").OrderBy(order).All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v, want ErrQuery", order, err)
		}
	}
	if _, err := db.Query("T").OrderBy("'sum(N)'").All(ctx); err != nil {
		t.Errorf("a field of such a name: %v", err)
	}
}
