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
