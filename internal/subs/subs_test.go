package subs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
)

// These tests look at keys, and at records of deletions, which the public API does not show.

// Ensure that the bytes of a subscription are those of docs/format.md, which holds this
// dump.
func TestSubscription_Layout_Golden(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	subs := db.Subscriptions()
	jaytest.Must(t, subs.Ensure(ctx, jay.Subscription{Name: "mail", Query: "from Users where a = 1", Deletions: true, MaxFailures: 3}))
	for _, id := range []string{"Users/Ann", "users/bob"} {
		_, err := db.Put(ctx, id, []byte(`{"a":1}`), jay.InCollection("Users"))
		jaytest.Must(t, err)
	}
	jaytest.Must(t, subs.Work(ctx, "mail", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
		return b.Fail("users/ann", errors.New("no such address"))
	}))

	floor := []byte("mfloor/")
	jaytest.InFormat(t, "```\n"+jaytest.Keys(t, db, floor, format.PrefixEnd(floor))+jaytest.KeysBetween(t, db, 's', 's')+"```\n")
}

// Ensure that a subscription that is forgotten does not keep the records of all
// deletions for ever, that this is seen, and that a reset lets it go on.
func TestSubscription_Forgotten(t *testing.T) {
	defer func(old uint64) { knobs.FloorEtags = old }(knobs.FloorEtags)
	knobs.FloorEtags = 500
	ctx := context.Background()
	db := jaytest.OpenForgetting(t, t.TempDir())
	subs := db.Subscriptions()
	jaytest.Must(t, subs.Ensure(ctx, jay.Subscription{Name: "all", Query: "from @all_docs", Deletions: true}))
	jaytest.PutAndDelete(t, db, 200)
	jaytest.Must(t, db.Compact(ctx))
	if n := jaytest.Deletions(t, db); n != 200 {
		t.Errorf("%d records of deletions are left, and a subscription needs 200", n)
	}
	jaytest.PutAndDelete(t, db, 1000)
	jaytest.Must(t, db.Compact(ctx))
	if n := jaytest.Deletions(t, db); n > 500 {
		t.Errorf("%d records of deletions are left for a subscription that is 2000 etags behind", n)
	}
	info, err := subs.Get(ctx, "all")
	jaytest.Must(t, err)
	if !info.Missed || info.Behind != 2400 {
		t.Errorf("%+v", info)
	}
	if err := subs.Work(ctx, "all", nil, nil); !errors.Is(err, jay.ErrSubscription) {
		t.Errorf("work on a subscription that has missed deletions: %v", err)
	}
	jaytest.Must(t, subs.Disable(ctx, "all"))
	jaytest.Must(t, db.Compact(ctx))
	if n := jaytest.Deletions(t, db); n != 0 {
		t.Errorf("%d records of deletions are left for a subscription that is disabled", n)
	}
	if err := subs.Enable(ctx, "all"); !errors.Is(err, jay.ErrSubscription) {
		t.Errorf("enable a subscription that has missed deletions: %v", err)
	}
	jaytest.Must(t, subs.Reset(ctx, "all", ""))
	jaytest.Must(t, subs.Enable(ctx, "all"))
	jaytest.Put(t, db, "last", `{}`)
	got := 0
	jaytest.Must(t, subs.Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
		got += len(b.Items)
		return nil
	}))
	if got != 1 {
		t.Errorf("sent %d documents, want 1", got)
	}
}

// Ensure that a worker that runs while records of deletions are removed which it needs ends
// with an error, and acknowledges nothing.
func TestSubscription_Forgotten_Running(t *testing.T) {
	defer func(floor, hold uint64) { knobs.FloorEtags, knobs.HeldEtags = floor, hold }(knobs.FloorEtags, knobs.HeldEtags)
	knobs.FloorEtags, knobs.HeldEtags = 500, 500
	ctx := context.Background()
	for _, batch := range []int{1, 1000} { // with more to read behind the batch, and without
		db := jaytest.OpenForgetting(t, t.TempDir())
		subs := db.Subscriptions()
		jaytest.Must(t, subs.Ensure(ctx, jay.Subscription{Name: "all", Query: "from @all_docs", Deletions: true}))
		for i := range 10 {
			jaytest.Put(t, db, fmt.Sprint("first/", i), `{}`)
		}
		calls := 0
		err := subs.Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true, BatchDocuments: batch}, func(ctx context.Context, b *jay.SubscriptionBatch) error {
			if calls++; calls > 1 {
				t.Errorf("batch %d comes behind deletions that were missed", calls)
			}
			jaytest.PutAndDelete(t, db, 1000)
			return db.Compact(ctx)
		})
		var gone *jay.ChangesGoneError
		if !errors.Is(err, jay.ErrSubscription) && !errors.As(err, &gone) {
			t.Errorf("batches of %d: %v", batch, err)
		}
		info, err := subs.Get(ctx, "all")
		jaytest.Must(t, err)
		if !info.Missed || calls != 1 {
			t.Errorf("batches of %d: %d calls, %+v", batch, calls, info)
		}
	}
}

// Ensure that failures are bounded: beyond the bound nothing is acknowledged.
func TestSubscription_ManyFailures(t *testing.T) {
	ctx := context.Background()
	db := jaytest.OpenForgetting(t, t.TempDir())
	subs := db.Subscriptions()
	jaytest.Must(t, subs.Ensure(ctx, jay.Subscription{Name: "all", Query: "from @all_docs", MaxFailures: 1}))
	var b jay.Batch
	for i := range 1001 {
		b.Put(fmt.Sprint("docs/", i), []byte(`{}`))
	}
	_, err := db.Apply(ctx, &b)
	jaytest.Must(t, err)
	fail := func(_ context.Context, b *jay.SubscriptionBatch) error {
		for _, item := range b.Items {
			if err := b.Fail(item.ID, errors.New("wrong")); err != nil {
				return err
			}
		}
		return nil
	}
	if err := subs.Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true}, fail); !errors.Is(err, jay.ErrSubscription) {
		t.Errorf("more than 1,000 failures: %v", err)
	}
	info, err := subs.Get(ctx, "all")
	jaytest.Must(t, err)
	if info.Dead != 1000 || info.Position != 1000 {
		t.Errorf("%+v", info)
	}
}
