package write_test

// This file damages nothing, but looks into the table of heads, which the public API does
// not show.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/parts"
)

// checkWhole fails the test unless Verify finds everything in order: one change for each
// document, and numbers and index entries that agree with them.
func checkWhole(t *testing.T, db *jay.DB) {
	t.Helper()
	report, err := db.Verify(context.Background(), &jay.VerifyOptions{SkipFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	if report.Found != 0 {
		t.Fatalf("%d damages: %+v", report.Found, report.Damages)
	}
}

// Ensure that updates which know the heads of their documents leave nothing behind,
// whatever came in between: refused batches, deletions, attachments, instants,
// revisions, indexes, or another database.
func TestHeads_Steps(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var dbs [2]*jay.DB
	for i := range dbs {
		db, err := jay.OpenMemory(&jay.Options{Durability: jay.Relaxed})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		dbs[i] = db
	}
	put := func(db *jay.DB, id, collection, body string, opts ...jay.WriteOption) {
		t.Helper()
		if _, err := db.Put(ctx, id, []byte(body), append(opts, jay.InCollection(collection))...); err != nil {
			t.Fatal(err)
		}
	}
	known := func(db *jay.DB, id string, want bool) {
		t.Helper()
		if _, found := parts.Of(db).Writer.Heads.Find(id); found != want {
			t.Errorf("the head of %s is known: %v, want %v", id, found, want)
		}
	}
	twice := func(db *jay.DB, id string) {
		t.Helper()
		put(db, id, "Users", `{"n":1}`)
		put(db, id, "Users", `{"n":"longer"}`)
		known(db, id, true)
	}
	db := dbs[0]

	for i, other := range []string{"Users", "Orders", "Items"} { // numbers of collections differ between databases
		put(dbs[1], fmt.Sprint("o/", i), other, `{}`)
		put(dbs[1], fmt.Sprint("o/", i), other, `{"a":1}`)
		twice(db, fmt.Sprint("u/", i))
		put(dbs[1], fmt.Sprint("o/", i), other, `{"a":12}`)
		if _, err := dbs[1].Put(ctx, fmt.Sprint("o/", i), []byte(`{}`), jay.InCollection("Wrong")); !errors.As(err, new(*jay.CollectionError)) {
			t.Errorf("another collection: %v", err)
		}
	}

	twice(db, "a")
	refused := new(jay.Batch)
	refused.Put("a", []byte(`{"refused":true}`), jay.InCollection("Users"))
	refused.Delete("u/0")
	refused.Insert("u/1", []byte(`{}`), jay.InCollection("Users"))
	if _, err := db.Apply(ctx, refused); !errors.Is(err, jay.ErrExists) {
		t.Fatalf("got %v, want %v", err, jay.ErrExists)
	}
	known(db, "a", false)
	twice(db, "a")
	checkWhole(t, db)

	both := new(jay.Batch)
	both.Put("a", []byte(`{"first":1}`), jay.InCollection("Users"))
	both.Put("a", []byte(`{"second":22}`), jay.InCollection("Users"))
	both.Put("u/2", []byte(`{"then":"deleted"}`), jay.InCollection("Users"))
	both.Delete("u/2")
	if _, err := db.Apply(ctx, both); err != nil {
		t.Fatal(err)
	}
	known(db, "a", true)
	known(db, "u/2", false)
	checkWhole(t, db)
	put(db, "a", "Users", `{}`)
	if err := db.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	known(db, "a", false)
	if _, err := db.Replace(ctx, "a", []byte(`{}`)); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("replaced what was deleted: %v", err)
	}
	checkWhole(t, db)

	twice(db, "b")
	if _, err := db.Attachments("b").Put(ctx, "photo", strings.NewReader("picture")); err != nil {
		t.Fatal(err)
	}
	known(db, "b", false)
	put(db, "b", "Users", `{"keeps":"its attachment"}`)
	known(db, "b", false)
	twice(db, "c")
	put(db, "c", "Users", `{}`, jay.WithTTL(time.Hour))
	known(db, "c", false)
	put(db, "c", "Users", `{"for":"ever"}`)
	checkWhole(t, db)

	twice(db, "d")
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Name: "N", Fields: []string{"n"}}); err != nil {
		t.Fatal(err)
	}
	put(db, "d", "Users", `{"n":5}`)
	checkWhole(t, db)
	if err := db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{Keep: 3}}); err != nil {
		t.Fatal(err)
	}
	put(db, "d", "Users", `{"n":6}`)
	known(db, "d", false)
	revisions := 0
	for _, err := range db.Revisions().List(ctx, "d", jay.RevisionPage{}) {
		if err != nil {
			t.Fatal(err)
		}
		revisions++
	}
	if revisions != 2 {
		t.Errorf("%d revisions, want the one before the rule and the newest", revisions)
	}
	checkWhole(t, db)
	checkWhole(t, dbs[1])
}

// Ensure the same of many writers at once, of the same documents.
func TestHeads_ManyWriters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{Durability: jay.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 7))
			for round := range 150 {
				b := new(jay.Batch)
				for range 1 + random.IntN(3)*random.IntN(90) {
					id := fmt.Sprint("users/", random.IntN(300))
					switch random.IntN(12) {
					case 0:
						b.Delete(id)
					case 1:
						b.Patch(id, jay.Increment("n", 1))
					default:
						b.Put(id, fmt.Appendf(nil, `{"w":%d,"text":%q}`, round, strings.Repeat("x", random.IntN(20))), jay.InCollection("Users"))
					}
				}
				if random.IntN(5) == 0 {
					b.Insert("users/0", []byte(`{}`), jay.InCollection("Users")) // mostly refused
				}
				if _, err := db.Apply(ctx, b); err != nil && !errors.Is(err, jay.ErrExists) && !errors.Is(err, jay.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	checkChanges(t, db)
	checkWhole(t, db)
}
