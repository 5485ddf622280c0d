package shared_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

var mail = jay.Subscription{Name: "mail", Query: "from Users"}

// work works on the subscription until it has caught up, and returns the IDs.
func work(t *testing.T, db *jay.DB) (ids []string) {
	t.Helper()
	must(t, db.Subscriptions().Work(ctx, mail.Name, &jay.WorkOptions{UntilCaughtUp: true, InUse: jay.FailInUse}, func(_ context.Context, b *jay.SubscriptionBatch) error {
		for _, item := range b.Items {
			ids = append(ids, item.ID)
		}
		return nil
	}))
	return ids
}

// Ensure that a subscription goes on in one process where another one has left it, that it has one worker among all of them, and that the
// worker ends when another process takes its place, or changes the subscription.
func TestSubscriptions(t *testing.T) {
	a, b := openTwo(t, jay.Options{ClusterPeriod: period})
	must(t, a.Subscriptions().Ensure(ctx, mail))
	in := jay.InCollection("Users")
	for i, db := range []*jay.DB{a, b, b, a} {
		id := fmt.Sprint("users/", i)
		put(t, b, id, `{}`, in)
		want(t, "documents", fmt.Sprint(work(t, db)), fmt.Sprint([]string{id}))
	}

	put(t, a, "users/last", `{}`, in)
	begun, ended := make(chan struct{}), make(chan error, 1)
	begin := func() {
		go func() {
			ended <- a.Subscriptions().Work(ctx, mail.Name, nil, func(ctx context.Context, _ *jay.SubscriptionBatch) error {
				begun <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		<-begun
	}
	begin()
	nothing := func(context.Context, *jay.SubscriptionBatch) error { return nil }
	if err := b.Subscriptions().Work(ctx, mail.Name, &jay.WorkOptions{InUse: jay.FailInUse}, nothing); !errors.Is(err, jay.ErrSubscriptionInUse) {
		t.Errorf("a second worker: %v, want ErrSubscriptionInUse", err)
	}
	must(t, b.Subscriptions().Reset(ctx, mail.Name, jay.SinceNow))
	if err := jaytest.Within(t, ended, "the end of the worker"); !errors.Is(err, jay.ErrSubscriptionEnded) {
		t.Errorf("the worker of a subscription that was reset: %v, want ErrSubscriptionEnded", err)
	}

	put(t, a, "users/last", `{}`, in)
	begin()
	must(t, b.Subscriptions().Work(ctx, mail.Name, &jay.WorkOptions{InUse: jay.ReplaceWorker, UntilCaughtUp: true}, nothing))
	if err := jaytest.Within(t, ended, "the end of the worker"); !errors.Is(err, jay.ErrSubscriptionEnded) {
		t.Errorf("the worker that was replaced: %v, want ErrSubscriptionEnded", err)
	}
	want(t, "documents", len(work(t, a)), 0)

	put(t, a, "users/last", `{}`, in)
	begin()
	waited := make(chan error, 1)
	go func() {
		waited <- b.Subscriptions().Work(ctx, mail.Name, &jay.WorkOptions{UntilCaughtUp: true}, nothing)
	}()
	must(t, a.Subscriptions().Disable(ctx, mail.Name))
	must(t, b.Subscriptions().Enable(ctx, mail.Name))
	if err := jaytest.Within(t, ended, "the end of the worker"); !errors.Is(err, jay.ErrSubscriptionEnded) {
		t.Errorf("the worker of a subscription that was disabled: %v, want ErrSubscriptionEnded", err)
	}
	if err := jaytest.Within(t, waited, "the one that waits"); err != nil && !errors.Is(err, jay.ErrSubscription) && !errors.Is(err, jay.ErrSubscriptionEnded) { // it may have come before it was enabled
		t.Error(err)
	}
}

// Ensure that workers of one process that take turns at a subscription do not take it from one another: the one that ends has given it back to other
// processes before the next one has it.
func TestSubscriptions_Turns(t *testing.T) {
	a, b := openTwo(t, jay.Options{ClusterPeriod: period})
	must(t, a.Subscriptions().Ensure(ctx, mail))
	const documents = 200
	sent := make(map[string]int) // by the worker that has the subscription
	done := make(chan struct{})
	working, stop := context.WithCancel(ctx)
	defer stop()
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for working.Err() == nil {
				leaving, leave := context.WithCancel(working)
				err := a.Subscriptions().Work(leaving, mail.Name, &jay.WorkOptions{BatchDocuments: 3}, func(_ context.Context, batch *jay.SubscriptionBatch) error {
					for _, item := range batch.Items {
						sent[item.ID]++
					}
					if len(sent) == documents {
						close(done)
					}
					leave() // the batch is acknowledged all the same
					return nil
				})
				leave()
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	for i := range documents {
		put(t, b, fmt.Sprint("users/", i), `{}`, jay.InCollection("Users"))
	}
	jaytest.Await(t, "the last document", done)
	stop()
	workers.Wait()
	for id, n := range sent {
		want(t, id, n, 1)
	}
}

// Ensure that the worker of a process that stands still for longer than its lease is replaced, and cannot acknowledge its batch afterwards.
func TestSubscriptions_Late(t *testing.T) {
	driver := &cuttable{Driver: jaytest.SharedDriver(t)}
	o := jay.Options{Engine: driver, ClusterPeriod: period}
	late := jaytest.Open(t, "db", &o)
	o.Engine = driver.Driver
	next := jaytest.Open(t, "db", &o)
	must(t, late.Subscriptions().Ensure(ctx, mail))
	put(t, late, "users/1", `{}`, jay.InCollection("Users"))
	sent, resumed, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- late.Subscriptions().Work(ctx, mail.Name, nil, func(context.Context, *jay.SubscriptionBatch) error {
			close(sent)
			<-resumed
			return nil
		})
	}()
	<-sent
	resume := driver.cut()
	var got []string
	must(t, next.Subscriptions().Work(ctx, mail.Name, &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
		for _, item := range b.Items {
			got = append(got, item.ID)
		}
		return nil
	}))
	want(t, "what the next worker gets", fmt.Sprint(got), "[users/1]")
	info, err := next.Subscriptions().Get(ctx, mail.Name)
	must(t, err)
	resume()
	close(resumed)
	if err := jaytest.Within(t, ended, "the end of the late worker"); !errors.Is(err, jay.ErrSubscriptionEnded) && !errors.Is(err, jay.ErrLeaseLost) {
		t.Errorf("the late worker: %v, want ErrSubscriptionEnded or ErrLeaseLost", err)
	}
	now, err := next.Subscriptions().Get(ctx, mail.Name)
	must(t, err)
	want(t, "acknowledged", now.Acknowledged, info.Acknowledged)
	agree(t, next)
	must(t, errors.Join(next.Close(), late.Close()))
}

// Ensure that one process at a time deletes what expires, and that another one goes on when that stands still.
func TestExpiry_OneWorker(t *testing.T) {
	defer checks.SetSweepInterval(time.Millisecond)()
	clock := newClock()
	driver := &cuttable{Driver: jaytest.SharedDriver(t)}
	o := jay.Options{Now: clock.Now, Engine: driver, ClusterPeriod: period}
	first := jaytest.Open(t, "db", &o)
	expire := func() {
		t.Helper()
		put(t, first, "leases/1", fmt.Sprintf(`{"@metadata":{"@expires":%q}}`, clock.Now().Add(time.Minute).Format(time.RFC3339)))
		clock.add(time.Hour)
	}
	gone := func(db *jay.DB) func() bool {
		return func() bool {
			_, err := db.Get(ctx, "leases/1")
			return errors.Is(err, jay.ErrNotFound)
		}
	}
	expire()
	until(t, "the first process deletes", gone(first))
	o.Engine = driver.Driver
	second := jaytest.Open(t, "db", &o)
	swept := func(db *jay.DB) int64 {
		s, err := db.Stats(ctx)
		must(t, err)
		return s.Expiry.Deleted
	}
	for range 5 {
		expire()
		until(t, "the first process deletes", gone(second))
	}
	want(t, "deleted by the second", swept(second), 0)
	put(t, first, "leases/1", fmt.Sprintf(`{"@metadata":{"@expires":%q}}`, clock.Now().Add(time.Minute).Format(time.RFC3339)))
	resume := driver.cut()
	clock.add(time.Hour)
	until(t, "the second process deletes", gone(second))
	until(t, "the second process counts it", func() bool { return swept(second) == 1 })
	resume()
	agree(t, second)
	must(t, errors.Join(second.Close(), first.Close()))
}

// Ensure that one process at a time settles the tails of indexes, also of what others have written, and that another one goes on when that stands still or
// is closed.
func TestSettling_OneWorker(t *testing.T) {
	defer checks.SetSettleLook(5 * time.Millisecond)()
	defer checks.SetSettlePause(time.Millisecond)()
	var parts atomic.Int64 // that were settled
	defer checks.OnSettle(func(context.Context) { parts.Add(1) })()
	driver := &cuttable{Driver: jaytest.SharedDriver(t)}
	o := jay.Options{Engine: driver, ClusterPeriod: period}
	first := jaytest.Open(t, "db", &o)
	must(t, first.EnsureIndex(ctx, "Notes", jay.Index{Name: "words", Kind: "text", Fields: []string{"Text"}}))
	notes := 0
	write := func(db *jay.DB) {
		t.Helper()
		for range 100 { // more than a tail has before some are settled
			notes++
			put(t, db, fmt.Sprint("notes/", notes), fmt.Sprintf(`{"Text":"alike and word%d"}`, notes), jay.InCollection("Notes"))
		}
	}
	settles := func(db *jay.DB) func() bool {
		return func() bool {
			mine, err := checks.Settles(db)
			must(t, err)
			return mine
		}
	}
	write(first)
	until(t, "the first process settles", settles(first))
	o.Engine = driver.Driver
	second := jaytest.Open(t, "db", &o)
	for range 3 {
		before := parts.Load()
		write(second)
		until(t, "what the second process has written is settled", func() bool { return parts.Load() > before })
		want(t, "the second process settles", settles(second)(), false)
	}
	resume := driver.cut()
	until(t, "the second process settles", settles(second))
	write(second)
	resume()
	must(t, first.Close())
	third := jaytest.Open(t, "db", &o)
	must(t, second.Close())
	write(third)
	until(t, "the third process settles", settles(third))
	agree(t, third)
	must(t, third.Close())
}

// Ensure that a worker that is replaced before it has begun leaves the one that has replaced it at work: it counted itself as the newest one, so that the
// acknowledgement of the other was refused.
func TestSubscriptions_ReplacedBeforeItBegins(t *testing.T) {
	transactions := 0
	var before func()
	driver := &hooked{Driver: jaytest.SharedDriver(t), before: func() {
		if transactions++; transactions == 2 { // the first one has claimed the subscription
			before()
		}
	}}
	a := jaytest.Open(t, "db", &jay.Options{Engine: driver})
	b := jaytest.Open(t, "db", &jay.Options{Engine: driver.Driver})
	must(t, a.Subscriptions().Ensure(ctx, mail))
	put(t, a, "users/1", `{}`, jay.InCollection("Users"))
	working, resume, replaced := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	before = func() {
		go func() {
			replaced <- b.Subscriptions().Work(ctx, mail.Name, &jay.WorkOptions{InUse: jay.ReplaceWorker, UntilCaughtUp: true}, func(context.Context, *jay.SubscriptionBatch) error {
				close(working)
				<-resume
				return nil
			})
		}()
		<-working
	}
	err := a.Subscriptions().Work(byCaller(ctx), mail.Name, &jay.WorkOptions{UntilCaughtUp: true}, func(context.Context, *jay.SubscriptionBatch) error {
		t.Error("the worker that was replaced has got a batch")
		return nil
	})
	if !errors.Is(err, jay.ErrSubscriptionEnded) {
		t.Errorf("the worker that was replaced: %v, want ErrSubscriptionEnded", err)
	}
	close(resume)
	must(t, <-replaced)
	info, err := b.Subscriptions().Get(ctx, mail.Name)
	must(t, err)
	want(t, "acknowledged", info.Acknowledged, 1)
	must(t, errors.Join(a.Close(), b.Close()))
}
