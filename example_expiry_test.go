package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay"
)

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
