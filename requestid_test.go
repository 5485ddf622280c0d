package jay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a call with the ID of an earlier one returns what that returned, and changes
// nothing.
func TestRequestID(t *testing.T) {
	db := memory(t, nil)
	next := func(id string) int64 {
		t.Helper()
		n, err := db.NextIdentity(ctx, "users", jay.RequestID(id))
		must(t, err)
		return n
	}
	equal(t, next("a"), 1)
	equal(t, next("a"), 1)
	equal(t, next("b"), 2)
	equal(t, next("a"), 1)
	for range 2 {
		n, err := db.SeedIdentity(ctx, "users|", 100, false, jay.RequestID("seed"))
		must(t, err)
		equal(t, n, 100)
	}
	equal(t, next("c"), 101)

	var b jay.Batch
	b.Put("orders|", []byte(`{}`))
	b.Store("Users", []byte(`{}`))
	b.Put("fixed", []byte(`{"@metadata":{"@collection":"Things"}}`))
	b.PutCompareExchange("k", 1, 0)
	b.Delete("fixed")
	first, err := db.Apply(ctx, &b, jay.RequestID("batch"))
	must(t, err)
	etag := lastEtag(t, db)
	again, err := db.Apply(ctx, &b, jay.RequestID("batch"))
	must(t, err)
	equal(t, lastEtag(t, db), etag)
	for i := range first {
		a, b := first[i], again[i]
		if a.ID != b.ID || a.Etag != b.Etag || a.ChangeVector != b.ChangeVector || a.Collection != b.Collection || !a.LastModified.Equal(b.LastModified) {
			t.Errorf("write %d: got %+v, and again %+v", i, a, b)
		}
	}
	if _, err := db.Apply(ctx, &b); err == nil { // the value is there
		t.Error("without an ID the batch is not applied")
	}

	// A call that fails leaves no result.
	b.Reset()
	b.Put("x", []byte(`{}`), jay.IfMatch("A:1-none"))
	if _, err := db.Apply(ctx, &b, jay.RequestID("fails")); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v", err)
	}
	b.Reset()
	b.Put("x", []byte(`{}`))
	must(t, second(db.Apply(ctx, &b, jay.RequestID("fails"))))

	for name, err := range map[string]error{
		"another identity": second(db.NextIdentity(ctx, "orders", jay.RequestID("a"))),
		"another verb":     second(db.SeedIdentity(ctx, "users", 1, false, jay.RequestID("a"))),
		"another value":    second(db.SeedIdentity(ctx, "users", 7, false, jay.RequestID("seed"))),
		"another batch":    second(db.Apply(ctx, &b, jay.RequestID("batch"))),
		"no id":            second(db.NextIdentity(ctx, "users", jay.RequestID(""))),
		"a long id":        second(db.NextIdentity(ctx, "users", jay.RequestID(strings.Repeat("x", 257)))),
		"a control":        second(db.NextIdentity(ctx, "users", jay.RequestID("a\x00b"))),
	} {
		if !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	equal(t, next("d"), 102)
}

// Ensure that of calls with one ID at the same time one is carried out.
func TestRequestID_Concurrent(t *testing.T) {
	db := memory(t, nil)
	var mu sync.Mutex
	seen := make(map[int64]bool)
	jaytest.Concurrently(t, func(g int, _ *rand.Rand) {
		for i := range 10 {
			n, err := db.NextIdentity(ctx, "users", jay.RequestID(fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			seen[n] = true
			mu.Unlock()
			var b jay.Batch
			b.Insert(fmt.Sprint("docs/", i), []byte(`{}`))
			if _, err := db.Apply(ctx, &b, jay.RequestID(fmt.Sprint("insert ", i))); err != nil {
				t.Error(err)
			}
		}
	})
	equal(t, len(seen), 10)
}

// Ensure that the newest results are kept, and the oldest removed.
func TestRequestID_Bounded(t *testing.T) {
	knobs.KeptRequests = 3
	defer func() { knobs.KeptRequests = 0 }()
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	for i := range 10 {
		n, err := db.NextIdentity(ctx, "users", jay.RequestID(fmt.Sprint(i)))
		must(t, err)
		equal(t, n, int64(i+1))
	}
	closeDB(t, db)
	db = onDisk(t, disk, jay.Options{})
	equal(t, jay.RequestKeys(t, db), 3*2+1)
	for i := 7; i < 10; i++ {
		n, err := db.NextIdentity(ctx, "users", jay.RequestID(fmt.Sprint(i)))
		must(t, err)
		equal(t, n, int64(i+1))
	}
	n, err := db.NextIdentity(ctx, "users", jay.RequestID("0"))
	must(t, err)
	equal(t, n, 11) // it was forgotten
	closeDB(t, db)
}
