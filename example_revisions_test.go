package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay"
)

// revisioned is a database that keeps all revisions, and a clock that goes on by an hour
// with each write.
func revisioned() *jay.DB {
	clock := newClock()
	db, err := jay.OpenMemory(&jay.Options{Now: func() time.Time {
		now := clock.Now()
		clock.Advance(time.Hour)
		return now
	}})
	check(err)
	check(db.Revisions().Configure(context.Background(), jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
	return db
}

// The older versions of a document are kept, and so is its deletion.
func ExampleRevisions() {
	ctx := context.Background()
	db := revisioned()
	defer db.Close()
	for _, body := range []string{`{"nuts":1}`, `{"nuts":2}`, `{"nuts":3}`} {
		_, err := db.Put(ctx, "squirrels/hazel", json.RawMessage(body))
		check(err)
	}
	check(db.Delete(ctx, "squirrels/hazel"))
	for rev, err := range db.Revisions().List(ctx, "squirrels/hazel", jay.RevisionPage{}) {
		check(err)
		fmt.Printf("%s %s %s\n", rev.LastModified().Format("15:04"), rev.Body(), rev.Metadata().Flags)
	}
	// Output:
	// 16:00 {} HasRevisions, DeleteRevision
	// 15:00 {"nuts":3} HasRevisions, Revision
	// 14:00 {"nuts":2} HasRevisions, Revision
	// 13:00 {"nuts":1} HasRevisions, Revision
}

func ExampleRevisions_Revert() {
	ctx := context.Background()
	db := revisioned()
	defer db.Close()
	first, err := db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"nuts":33}`))
	check(err)
	check(db.Delete(ctx, "squirrels/hazel"))

	_, err = db.Revisions().Revert(ctx, "squirrels/hazel", first.ChangeVector)
	check(err)
	doc, err := db.Get(ctx, "squirrels/hazel")
	check(err)
	fmt.Printf("%s\n", doc.Body())
	// Output: {"nuts":33}
}

func ExampleRevisions_AsOf() {
	ctx := context.Background()
	db := revisioned()
	defer db.Close()
	_, err := db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"nuts":1}`)) // at 13:00
	check(err)
	_, err = db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"nuts":2}`)) // at 14:00
	check(err)

	rev, err := db.Revisions().AsOf(ctx, "squirrels/hazel", time.Date(2026, 11, 21, 13, 30, 0, 0, time.UTC))
	check(err)
	fmt.Printf("%s\n", rev.Body())
	_, err = db.Revisions().AsOf(ctx, "squirrels/hazel", time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC))
	fmt.Println(errors.Is(err, jay.ErrNotFound))
	// Output:
	// {"nuts":1}
	// true
}

func ExampleRevision() {
	ctx := context.Background()
	db := revisioned()
	defer db.Close()
	first, err := db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"name":"Hazel","nuts":1}`))
	check(err)
	_, err = db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"name":"Hazel","nuts":2}`))
	check(err)

	rev, err := db.Revisions().Get(ctx, "squirrels/hazel", first.ChangeVector)
	check(err)
	var hazel Squirrel
	check(rev.Decode(&hazel))
	fmt.Println(hazel.Name, hazel.Nuts, rev.Current(), rev.Deletion())
	changes, err := db.Revisions().Diff(ctx, "squirrels/hazel", first.ChangeVector, "")
	check(err)
	for _, c := range changes {
		fmt.Printf("%s %s: %s → %s\n", c.Path, c.Kind, c.Old, c.New)
	}
	// Output:
	// Hazel 1 false false
	// nuts changed: 1 → 2
}

// Of orders ten versions are kept, of logs none, and of everything else all versions of
// the last 30 days.
func ExampleRevisionsConfiguration() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	err := db.Revisions().Configure(ctx, jay.RevisionsConfiguration{
		Default: &jay.RevisionRule{KeepFor: 30 * 24 * time.Hour},
		Collections: map[string]jay.RevisionRule{
			"Orders": {Keep: 10},
			"Logs":   {Disabled: true},
		},
	})
	check(err)
	fmt.Println(db.Revisions().Configuration().Collections["Orders"].Keep)
	// Output: 10
}

func ExampleRevisionRule() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{Keep: 2}}))
	for n := range 5 {
		_, err := db.Put(ctx, "counter", fmt.Appendf(nil, `{"n":%d}`, n))
		check(err)
	}
	for rev, err := range db.Revisions().List(ctx, "counter", jay.RevisionPage{}) {
		check(err)
		fmt.Printf("%s ", rev.Body())
	}
	// Output: {"n":4} {"n":3}
}

// A page begins behind the last revision of the page before.
func ExampleRevisionPage() {
	ctx := context.Background()
	db := revisioned()
	defer db.Close()
	for n := range 5 {
		_, err := db.Put(ctx, "counter", fmt.Appendf(nil, `{"n":%d}`, n))
		check(err)
	}
	page := jay.RevisionPage{Limit: 2}
	for n := range 3 {
		for rev, err := range db.Revisions().List(ctx, "counter", page) {
			check(err)
			fmt.Printf("page %d: %s\n", n+1, rev.Body())
			page.Before = rev.ChangeVector()
		}
	}
	// Output:
	// page 1: {"n":4}
	// page 1: {"n":3}
	// page 2: {"n":2}
	// page 2: {"n":1}
	// page 3: {"n":0}
}

func ExampleRevisionPurge() {
	ctx := context.Background()
	db := revisioned()
	defer db.Close()
	for n := range 5 {
		_, err := db.Put(ctx, "counter", fmt.Appendf(nil, `{"n":%d}`, n))
		check(err)
	}
	done, err := db.Revisions().Purge(ctx, jay.RevisionPurge{Before: time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)})
	check(err)
	fmt.Println(done.Revisions)
	// Output: 2
}

func ExampleRevisionsPurged() {
	done := jay.RevisionsPurged{Looked: 3, Documents: 1, Revisions: 7, Bytes: 512}
	text, err := json.Marshal(done)
	check(err)
	fmt.Println(string(text))
	// Output: {"looked":3,"documents":1,"revisions":7,"bytes":512}
}

func ExampleRevisionCount() {
	ctx := context.Background()
	db := revisioned()
	defer db.Close()
	for n := range 3 {
		_, err := db.Put(ctx, "counter", fmt.Appendf(nil, `{"n":%d}`, n))
		check(err)
	}
	counts, err := db.Revisions().Counts(ctx)
	check(err)
	for _, c := range counts {
		fmt.Println(c.Collection, c.Revisions) // the newest version is the document
	}
	// Output: @empty 2
}

// A session keeps a revision of what it changes, whatever the configuration says.
func ExampleSession_ForceRevision() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	s := db.OpenSession()
	hazel := &Squirrel{ID: "squirrels/hazel", Name: "Hazel", Nuts: 1}
	check(s.Store(ctx, hazel))
	check(s.SaveChanges(ctx))

	hazel.Nuts = 2
	check(s.ForceRevision(hazel))
	check(s.SaveChanges(ctx))
	past, err := jay.LoadRevisions[Squirrel](ctx, s, "squirrels/hazel", jay.RevisionPage{})
	check(err)
	for _, h := range past {
		fmt.Println(h.Nuts)
	}
	// Output:
	// 2
	// 1
}

// A document is deleted some time after it was written, and a patch puts that off.
func ExampleWithTTL() {
	ctx := context.Background()
	clock := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) // of a test
	db, err := jay.OpenMemory(&jay.Options{Now: func() time.Time { return clock }, ExactExpiry: true})
	check(err)
	defer db.Close()

	_, err = db.Put(ctx, "logins/7", json.RawMessage(`{"User":"ann"}`), jay.WithTTL(30*time.Minute))
	check(err)
	_, err = db.Patch(ctx, "logins/7", jay.Increment("Requests", 1), jay.WithTTL(time.Hour))
	check(err)
	doc, err := db.Get(ctx, "logins/7")
	check(err)
	fmt.Println(string(doc.Metadata().Custom))

	// A patch without the option leaves it as it is, and one with the zero time removes it.
	_, err = db.Patch(ctx, "logins/7", jay.ExpiresAt(time.Time{}))
	check(err)
	doc, err = db.Get(ctx, "logins/7")
	check(err)
	fmt.Println(string(doc.Body()), len(doc.Metadata().Custom))
	// Output:
	// {"@expires":"2026-11-21T13:00:00.0000000Z"}
	// {"User":"ann","Requests":1} 0
}

// A test moves its clock, and has what is due then done at once.
func ExampleSwept() {
	ctx := context.Background()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	db, err := jay.OpenMemory(&jay.Options{Now: clock})
	check(err)
	defer db.Close()

	_, err = db.Put(ctx, "reminders/1", json.RawMessage(`{"Call":"Bob"}`), jay.RefreshAt(now.Add(time.Hour)))
	check(err)
	var swept jay.Swept
	swept, err = db.Sweep(ctx)
	check(err)
	fmt.Println(swept.Deleted, swept.Refreshed)

	_, err = db.Put(ctx, "reminders/2", json.RawMessage(`{}`), jay.ExpiresAt(now.Add(time.Hour)))
	check(err)
	_, err = db.Get(ctx, "reminders/2")
	fmt.Println(errors.Is(err, jay.ErrNotFound))
	// Output:
	// 0 0
	// false
}

// Stats say how many documents expire, and whether any are overdue.
func ExampleExpiryStats() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "logins/7", json.RawMessage(`{}`), jay.WithTTL(time.Hour))
	check(err)
	stats, err := db.Stats(ctx)
	check(err)
	var due jay.ExpiryStats = stats.Expiry
	fmt.Println(due.Expiring, due.Due)
	// Output: 1 0
}

// A database that is to keep documents whatever their @expires says.
func ExampleExpirationConfiguration() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{ExpirationDisabled: true})
	check(err)
	defer db.Close()
	_, err = db.Put(ctx, "logins/7", json.RawMessage(`{}`), jay.ExpiresAt(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)))
	check(err)
	swept, err := db.Sweep(ctx)
	check(err)
	fmt.Println(db.ExpirationConfiguration().Disabled, swept.Deleted)

	check(db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{}))
	_, err = db.Sweep(ctx) // the database has begun to delete what has expired
	check(err)
	_, err = db.Get(ctx, "logins/7")
	fmt.Println(errors.Is(err, jay.ErrNotFound))
	// Output:
	// true 0
	// true
}

// Refresh is switched apart from expiration.
func ExampleRefreshConfiguration() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.ConfigureRefresh(ctx, jay.RefreshConfiguration{Disabled: true}))
	fmt.Println(db.RefreshConfiguration().Disabled, db.ExpirationConfiguration().Disabled)
	// Output: true false
}
