package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// subscribed makes a subscription that sends again at once what has failed.
func subscribed(t testing.TB, db *jay.DB, sub jay.Subscription) {
	t.Helper()
	if sub.RetryDelay == 0 {
		sub.RetryDelay = 1
	}
	must(t, db.Subscriptions().Ensure(ctx, sub))
}

// sent works on a subscription until it has caught up, and returns what it was sent: the
// IDs of a batch, and a bar between batches.
func sent(t testing.TB, db *jay.DB, name string, o jay.WorkOptions) string {
	t.Helper()
	var all []string
	o.UntilCaughtUp = true
	must(t, db.Subscriptions().Work(ctx, name, &o, func(_ context.Context, b *jay.SubscriptionBatch) error {
		all = append(all, itemsText(b))
		return nil
	}))
	return strings.Join(all, " | ")
}

func itemsText(b *jay.SubscriptionBatch) string {
	var ids []string
	for _, item := range b.Items {
		id := item.ID
		if item.Deleted {
			id = "-" + id
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}

// Ensure that a subscription sends what its query finds, once each, from where it is
// to begin, and goes on in the next process where it was.
func TestSubscription_SendsOnce(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, nil)
	for i := range 6 {
		put(t, db, fmt.Sprint("orders/", i), fmt.Sprintf(`{"Total":%d,"Customer":"c%d"}`, i*10, i), jay.InCollection("Orders"))
	}
	put(t, db, "users/1", `{"Total":100}`, jay.InCollection("Users"))
	subscribed(t, db, jay.Subscription{Name: "large", Query: "from Orders where Total >= $least", Params: map[string]any{"least": 20}})
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from @all_docs"})
	subscribed(t, db, jay.Subscription{Name: "new", Query: "from Orders", Since: jay.SinceNow})
	subscribed(t, db, jay.Subscription{Name: "names", Query: "from Orders where id() = 'ORDERS/3' select Customer, Total as T"})

	equal(t, sent(t, db, "large", jay.WorkOptions{BatchDocuments: 3}), "orders/2 orders/3 orders/4 | orders/5")
	equal(t, sent(t, db, "large", jay.WorkOptions{}), "")
	equal(t, sent(t, db, "all", jay.WorkOptions{BatchBytes: 1}), "orders/0 | orders/1 | orders/2 | orders/3 | orders/4 | orders/5 | users/1")
	equal(t, sent(t, db, "new", jay.WorkOptions{}), "")
	must(t, db.Subscriptions().Work(ctx, "names", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
		equal(t, len(b.Items), 1)
		item := b.Items[0]
		equal(t, string(item.Body), `{"Customer":"c3","T":30}`)
		equal(t, string(item.Document.Body()), `{"Total":30,"Customer":"c3"}`)
		equal(t, item.ChangeVector, item.Document.ChangeVector())
		equal(t, item.Collection, "Orders")
		return nil
	}))
	closeDB(t, db)

	db = open(t, dir, nil)
	defer closeDB(t, db)
	put(t, db, "orders/2", `{"Total":21}`, jay.InCollection("Orders"))
	put(t, db, "orders/3", `{"Total":1}`, jay.InCollection("Orders"))
	must(t, db.Delete(ctx, "orders/4"))
	equal(t, sent(t, db, "large", jay.WorkOptions{}), "orders/2")
	equal(t, sent(t, db, "new", jay.WorkOptions{}), "orders/2 orders/3")
	info, err := db.Subscriptions().Get(ctx, "large")
	must(t, err)
	equal(t, info.Query, "from Orders where Total >= 20")
	equal(t, info.Acknowledged, 5)
	equal(t, info.Behind, 0)
	equal(t, info.Working, false)
}

// Ensure that a waiting worker is sent what comes, and that the acknowledgement of one
// batch is durable before the next.
func TestSubscription_Live(t *testing.T) {
	db := memory(t, nil)
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from Docs where n > 0"})
	working, stop := context.WithCancel(ctx)
	got := make(chan string)
	done := make(chan error, 1)
	go func() {
		done <- db.Subscriptions().Work(working, "all", nil, func(_ context.Context, b *jay.SubscriptionBatch) error {
			got <- itemsText(b)
			return nil
		})
	}()
	for i := range 5 {
		put(t, db, "docs/none", `{"n":0}`, jay.InCollection("Docs"))
		put(t, db, "docs/1", fmt.Sprintf(`{"n":%d}`, i+1), jay.InCollection("Docs"))
		equal(t, <-got, "docs/1")
	}
	stop()
	if err := within(t, done, "the worker"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	info, err := db.Subscriptions().Get(ctx, "all")
	must(t, err)
	equal(t, info.Acknowledged, 5)
}

// Ensure that a batch comes again if its worker fails, and to the next worker only.
func TestSubscription_NotAcknowledged(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "docs/1", `{}`)
	put(t, db, "docs/2", `{}`)
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from @all_docs"})
	wrong := errors.New("wrong")
	subs := db.Subscriptions()
	for range 2 {
		err := subs.Work(ctx, "all", nil, func(context.Context, *jay.SubscriptionBatch) error { return wrong })
		if !errors.Is(err, wrong) {
			t.Error(err)
		}
	}
	func() {
		defer func() { equal(t, recover(), any("in the function")) }()
		_ = subs.Work(ctx, "all", nil, func(context.Context, *jay.SubscriptionBatch) error { panic("in the function") })
	}()
	equal(t, sent(t, db, "all", jay.WorkOptions{}), "docs/1 docs/2")
	equal(t, sent(t, db, "all", jay.WorkOptions{}), "")
}

// Ensure that a document that fails comes again, alone, as often as the subscription
// allows; that a new version of it begins anew; and that the dead are listed, and sent
// again when that is asked for.
func TestSubscription_Failures(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "docs/good", `{}`)
	put(t, db, "Docs/bad", `{}`)
	put(t, db, "docs/last", `{}`)
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from @all_docs", MaxFailures: 3})
	subs := db.Subscriptions()
	work := func(fails bool) string {
		var all []string
		must(t, subs.Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
			all = append(all, itemsText(b))
			for _, item := range b.Items {
				if fails && item.ID == "Docs/bad" {
					equal(t, item.Failures, len(all)-1)
					must(t, b.Fail("docs/BAD", fmt.Errorf("failure %d%s", len(all), strings.Repeat("!", 2000))))
				}
			}
			if err := b.Fail("docs/other", nil); !errors.Is(err, jay.ErrUsage) {
				t.Error(err)
			}
			return nil
		}))
		return strings.Join(all, " | ")
	}
	equal(t, work(true), "docs/good Docs/bad docs/last | Docs/bad | Docs/bad")
	failed, err := subs.Failures(ctx, "all")
	must(t, err)
	equal(t, len(failed), 1)
	equal(t, failed[0].ID, "Docs/bad")
	equal(t, failed[0].Dead, true)
	equal(t, failed[0].Failures, 3)
	equal(t, len(failed[0].Error) < 1100 && strings.HasPrefix(failed[0].Error, "failure 3!"), true)
	info, err := subs.Get(ctx, "all")
	must(t, err)
	equal(t, info.Dead, 1)
	equal(t, info.Acknowledged, 2)
	equal(t, work(true), "")

	put(t, db, "Docs/bad", `{"new":true}`)
	equal(t, work(true), "Docs/bad | Docs/bad | Docs/bad")
	n, err := subs.Retry(ctx, "all", "docs/other")
	must(t, err)
	equal(t, n, 0)
	n, err = subs.Retry(ctx, "all")
	must(t, err)
	equal(t, n, 1)
	equal(t, work(false), "Docs/bad")
	failed, err = subs.Failures(ctx, "all")
	must(t, err)
	equal(t, len(failed), 0)

	// What failed and is deleted, or does not satisfy the condition any more, is settled.
	put(t, db, "docs/good", `{"again":true}`)
	leaving, leave := context.WithCancel(ctx)
	err = subs.Work(leaving, "all", nil, func(_ context.Context, b *jay.SubscriptionBatch) error {
		leave()
		return b.Fail("docs/good", errors.New("once"))
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, db.Delete(ctx, "docs/good"))
	equal(t, work(false), "")
	failed, err = subs.Failures(ctx, "all")
	must(t, err)
	equal(t, len(failed), 0)
}

// Ensure that a deletion that failed is sent again as one, until it is done, is dead, or the
// document is there again.
func TestSubscription_Failures_Deletions(t *testing.T) {
	db := memory(t, nil)
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from Users", Deletions: true, MaxFailures: 3})
	subs := db.Subscriptions()
	work := func(failures int) string {
		t.Helper()
		var all []string
		must(t, subs.Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
			all = append(all, itemsText(b))
			for _, item := range b.Items {
				if item.Deleted {
					equal(t, item.Collection, "Users")
					equal(t, item.ChangeVector[:4], "A:2-")
				}
				if failures--; failures >= 0 {
					must(t, b.Fail(item.ID, errors.New("not yet")))
				}
			}
			return nil
		}))
		return strings.Join(all, " | ")
	}
	put(t, db, "Users/Ann", `{}`, jay.InCollection("Users"))
	equal(t, work(0), "Users/Ann")
	must(t, db.Delete(ctx, "users/ann"))
	equal(t, work(2), "-Users/Ann | -Users/Ann | -Users/Ann")
	equal(t, work(0), "")
	must(t, subs.Reset(ctx, "all", ""))
	equal(t, work(3), "-Users/Ann | -Users/Ann | -Users/Ann")
	failed, err := subs.Failures(ctx, "all")
	must(t, err)
	equal(t, len(failed), 1)
	equal(t, failed[0].Deleted && failed[0].Dead && failed[0].Failures == 3, true)
	_, err = subs.Retry(ctx, "all")
	must(t, err)
	put(t, db, "users/ann", `{}`, jay.InCollection("Users"))
	equal(t, work(0), "users/ann")
	failed, err = subs.Failures(ctx, "all")
	must(t, err)
	equal(t, len(failed), 0)
}

// Ensure that Stats counts subscriptions, and names the greatest lag of those that are
// not disabled.
func TestSubscription_Stats(t *testing.T) {
	db := memory(t, nil)
	check := func(want jay.SubscriptionStats) {
		t.Helper()
		s, err := db.Stats(ctx)
		must(t, err)
		equal(t, s.Subscriptions, want)
	}
	check(jay.SubscriptionStats{})
	for _, name := range []string{"a", "b", "off"} {
		subscribed(t, db, jay.Subscription{Name: name, Query: "from @all_docs"})
	}
	must(t, db.Subscriptions().Disable(ctx, "off"))
	for i := range 3 {
		put(t, db, fmt.Sprint("docs/", i), `{}`)
	}
	work := func(name string) {
		t.Helper()
		must(t, db.Subscriptions().Work(ctx, name, &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
			if len(b.Items) == 3 { // not only what has failed
				check(jay.SubscriptionStats{Subscriptions: 3, Disabled: 1, Working: 1, Behind: 3})
			}
			return b.Fail("docs/1", errors.New("not now"))
		}))
	}
	work("a")
	check(jay.SubscriptionStats{Subscriptions: 3, Disabled: 1, Behind: 3})
	work("b")
	check(jay.SubscriptionStats{Subscriptions: 3, Disabled: 1})
}

// Ensure that WorkOptions.BatchBytes bounds the documents that are sent again, too.
func TestSubscription_Failures_Bytes(t *testing.T) {
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from @all_docs", RetryDelay: time.Minute})
	put(t, db, "docs/1", `{}`)
	put(t, db, "docs/2", `{}`)
	work := func(fails bool) (batches []string) {
		must(t, db.Subscriptions().Work(ctx, "all", &jay.WorkOptions{BatchBytes: 1, UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
			batches = append(batches, itemsText(b))
			for _, item := range b.Items {
				if fails {
					must(t, b.Fail(item.ID, errors.New("not yet")))
				}
			}
			return nil
		}))
		return batches
	}
	equal(t, strings.Join(work(true), " | "), "docs/1 | docs/2")
	clock.Advance(time.Minute)
	put(t, db, "docs/3", `{}`)
	equal(t, strings.Join(work(false), " | "), "docs/1 | docs/2 | docs/3")
}

// Ensure that a document that has failed waits for its time, which doubles, on the
// database's clock.
func TestSubscription_RetryDelay(t *testing.T) {
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	put(t, db, "docs/1", `{}`)
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from @all_docs", RetryDelay: time.Minute})
	tries := 0
	work := func() int {
		tries = 0
		must(t, db.Subscriptions().Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
			tries++
			return b.Fail("docs/1", errors.New("again"))
		}))
		return tries
	}
	equal(t, work(), 1)
	for _, delay := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		clock.Advance(delay - 1)
		equal(t, work(), 0)
		clock.Advance(1)
		equal(t, work(), 1)
	}
}

// Ensure that there is one worker at a time: others wait, fail, or take over, and one
// that was replaced cannot acknowledge.
func TestSubscription_OneWorker(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "docs/1", `{}`)
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from @all_docs"})
	subs := db.Subscriptions()
	started, finish := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- subs.Work(ctx, "all", nil, func(ctx context.Context, _ *jay.SubscriptionBatch) error {
			close(started)
			<-finish
			if ctx.Err() == nil {
				t.Error("the context of a worker that was replaced goes on")
			}
			return nil
		})
	}()
	jaytest.Await(t, "the first worker", started)
	info, err := subs.Get(ctx, "all")
	must(t, err)
	equal(t, info.Working, true)

	never := func(context.Context, *jay.SubscriptionBatch) error { t.Error("called"); return nil }
	if err := subs.Work(ctx, "all", &jay.WorkOptions{InUse: jay.FailInUse}, never); !errors.Is(err, jay.ErrSubscriptionInUse) {
		t.Error(err)
	}
	waiting, stop := context.WithCancel(ctx)
	waits := make(chan error, 1)
	go func() { waits <- subs.Work(waiting, "all", nil, never) }()
	stop()
	if err := within(t, waits, "the one that waits"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	equal(t, sent(t, db, "all", jay.WorkOptions{InUse: jay.ReplaceWorker}), "docs/1")
	close(finish)
	if err := within(t, first, "the first worker"); !errors.Is(err, jay.ErrSubscriptionEnded) {
		t.Error(err)
	}
	info, err = subs.Get(ctx, "all")
	must(t, err)
	equal(t, info.Acknowledged, 1)
	equal(t, info.Working, false)

	// One that waits comes when the other ends.
	put(t, db, "docs/2", `{}`)
	started, finish = make(chan struct{}), make(chan struct{})
	ending, end := context.WithCancel(ctx)
	go func() {
		first <- subs.Work(ending, "all", nil, func(context.Context, *jay.SubscriptionBatch) error {
			close(started)
			return nil
		})
	}()
	jaytest.Await(t, "the first worker", started)
	second := make(chan string, 1)
	go func() { second <- sent(t, db, "all", jay.WorkOptions{}) }()
	end()
	if err := within(t, first, "the first worker"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	equal(t, <-second, "")
}

// Ensure that a worker ends when its subscription is disabled, reset or dropped, or the
// database is closed, and that what it was about to acknowledge comes again.
func TestSubscription_Ended(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(db *jay.DB) error
		want error
		then string
	}{
		{"disabled", func(db *jay.DB) error { return db.Subscriptions().Disable(ctx, "all") }, jay.ErrSubscriptionEnded, "docs/2"},
		{"reset", func(db *jay.DB) error { return db.Subscriptions().Reset(ctx, "all", "") }, jay.ErrSubscriptionEnded, "docs/1 docs/2"},
		{"dropped", func(db *jay.DB) error { return db.Subscriptions().Drop(ctx, "all") }, jay.ErrSubscriptionEnded, ""},
		{"closed", func(db *jay.DB) error { return db.Close() }, jay.ErrClosed, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, nil)
			put(t, db, "docs/1", `{}`)
			subscribed(t, db, jay.Subscription{Name: "all", Query: "from @all_docs"})
			equal(t, sent(t, db, "all", jay.WorkOptions{}), "docs/1")
			put(t, db, "docs/2", `{}`)
			subs := db.Subscriptions()
			err := subs.Work(ctx, "all", nil, func(ctx context.Context, _ *jay.SubscriptionBatch) error {
				must(t, test.end(db))
				if ctx.Err() == nil {
					t.Error("the context goes on")
				}
				return nil
			})
			if !errors.Is(err, test.want) {
				t.Error(err)
			}
			switch test.name {
			case "closed":
				return
			case "dropped":
				if _, err := subs.Get(ctx, "all"); !errors.Is(err, jay.ErrSubscription) {
					t.Error(err)
				}
				equal(t, checks.SubscriptionKeys(db), 0)
				return
			case "disabled":
				if err := subs.Work(ctx, "all", nil, nil); !errors.Is(err, jay.ErrSubscription) {
					t.Error(err)
				}
				must(t, subs.Enable(ctx, "all"))
			}
			equal(t, sent(t, db, "all", jay.WorkOptions{}), test.then)
		})
	}
}

// Ensure that declarations that cannot be are refused, and that Ensure changes nothing of
// a subscription that is there.
func TestSubscription_Ensure(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := memory(t, nil)
	subs := db.Subscriptions()
	for _, sub := range []jay.Subscription{
		{Query: "from Orders"},
		{Name: strings.Repeat("x", 257), Query: "from Orders"},
		{Name: "a\x00b", Query: "from Orders"},
		{Name: "a\xff", Query: "from Orders"},
		{Name: "a", Query: "from Orders order by Total"},
		{Name: "a", Query: "from Orders limit 1"},
		{Name: "a", Query: "from Orders select distinct Total"},
		{Name: "a", Query: "from Orders select count()"},
		{Name: "a", Query: "from Orders group by a select a, count()"},
		{Name: "a", Query: "from Orders include Customer"},
		{Name: "a", Query: "from Orders where Price * Quantity > 5"},
		{Name: "a", Query: "from Orders where Total > 5 or not Total < Price + 1"},
		{Name: "a", Query: "from Orders where elemMatch(Lines, Price * Quantity > 5)"},
		{Name: "a", Query: "from Orders select Price * Quantity as Total"},
		{Name: "a", Query: "from Orders", MaxFailures: -1},
		{Name: "a", Query: "from Orders", RetryDelay: -1},
	} {
		if err := subs.Ensure(ctx, sub); !errors.Is(err, jay.ErrSubscription) {
			t.Errorf("%+v: %v", sub, err)
		} else if len(err.Error()) > 1000 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	}
	for query, want := range map[string]error{"from": jay.ErrSyntax, "from Orders where a = $x": jay.ErrSyntax} {
		if err := subs.Ensure(ctx, jay.Subscription{Name: "a", Query: query}); !errors.Is(err, want) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if err := subs.Ensure(ctx, jay.Subscription{Name: "a", Query: "from Orders", Since: "B:1-x"}); !errors.Is(err, jay.ErrChangesGone) {
		t.Error(err)
	}
	equal(t, checks.SubscriptionKeys(db), 0)

	put(t, db, "orders/1", `{}`, jay.InCollection("Orders"))
	subscribed(t, db, jay.Subscription{Name: "a", Query: "from Orders"})
	equal(t, sent(t, db, "a", jay.WorkOptions{}), "orders/1")
	subscribed(t, db, jay.Subscription{Name: "a", Query: "FROM   Orders"})
	equal(t, sent(t, db, "a", jay.WorkOptions{}), "")
	if err := subs.Ensure(ctx, jay.Subscription{Name: "a", Query: "from Users", RetryDelay: 1}); !errors.Is(err, jay.ErrSubscription) {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"work":    subs.Work(ctx, "none", nil, nil),
		"reset":   subs.Reset(ctx, "none", ""),
		"drop":    subs.Drop(ctx, "none"),
		"enable":  subs.Enable(ctx, "none"),
		"no name": subs.Drop(ctx, ""),
	} {
		if !errors.Is(err, jay.ErrSubscription) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []jay.WorkOptions{{InUse: 3}, {BatchDocuments: -1}, {BatchDocuments: 10_001}, {BatchBytes: -1}, {BatchBytes: 1 << 30}} {
		if err := subs.Work(ctx, "a", &o, nil); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for i := range 999 {
		must(t, subs.Ensure(ctx, jay.Subscription{Name: fmt.Sprint("s", i), Query: "from Orders"}))
	}
	if err := subs.Ensure(ctx, jay.Subscription{Name: "too many", Query: "from Orders"}); !errors.Is(err, jay.ErrSubscription) {
		t.Error(err)
	}
	all, err := subs.List(ctx)
	must(t, err)
	equal(t, len(all), 1000)
	equal(t, slices.IsSortedFunc(all, func(a, b jay.SubscriptionInfo) int { return strings.Compare(a.Name, b.Name) }), true)
}

// Ensure that a subscription that asks for deletions is sent them, in order, and keeps
// their records while no worker is there.
func TestSubscription_Deletions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, nil)
	put(t, db, "docs/before", `{}`)
	must(t, db.Delete(ctx, "docs/before"))
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from @all_docs where n > 1", Deletions: true})
	put(t, db, "docs/1", `{"n":1}`)
	put(t, db, "docs/2", `{"n":2}`)
	must(t, db.Delete(ctx, "docs/1"))
	equal(t, sent(t, db, "all", jay.WorkOptions{}), "-docs/before docs/2 -docs/1")
	var b jay.Batch
	for i := range 3000 {
		b.Put(fmt.Sprint("more/", i), json.RawMessage(`{}`), jay.InCollection("More"))
	}
	_, err := db.Apply(ctx, &b)
	must(t, err)
	_, err = db.DropCollection(ctx, "More")
	must(t, err)
	must(t, db.Compact(ctx))
	closeDB(t, db)

	db = open(t, dir, nil)
	deleted := 0
	must(t, db.Subscriptions().Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true, BatchDocuments: 1000}, func(_ context.Context, b *jay.SubscriptionBatch) error {
		for _, item := range b.Items {
			if item.Deleted {
				deleted++
			}
		}
		return nil
	}))
	equal(t, deleted, 3000)
	closeDB(t, db)
}

// Ensure that typed workers get values, whose failures are those of single documents.
func TestSubscription_Typed(t *testing.T) {
	type Order struct {
		ID    string
		Total int
	}
	db := memory(t, nil)
	orders := collectionOf[Order](t, db)
	for i := range 3 {
		_, err := orders.Insert(ctx, &Order{Total: i})
		must(t, err)
	}
	put(t, db, "orders/bad", `{"Total":"text"}`, jay.InCollection("Orders"))
	subscribed(t, db, jay.Subscription{Name: "orders", Query: "from Orders where Total != 1", MaxFailures: 2})
	var got []string
	must(t, orders.Subscribe(ctx, "orders", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, o *Order) error {
		got = append(got, fmt.Sprint(o.ID, "=", o.Total))
		if o.Total == 2 && len(got) < 3 {
			return errors.New("not now")
		}
		return nil
	}))
	equal(t, strings.Join(got, " "), "orders/1-A=0 orders/3-A=2 orders/3-A=2")
	failed, err := db.Subscriptions().Failures(ctx, "orders")
	must(t, err)
	equal(t, len(failed), 1)
	equal(t, failed[0].ID, "orders/bad")
	equal(t, failed[0].Dead, true)

	subscribed(t, db, jay.Subscription{Name: "part", Query: "from Orders select Total"})
	subscribed(t, db, jay.Subscription{Name: "users", Query: "from Users"})
	subscribed(t, db, jay.Subscription{Name: "deletions", Query: "from Orders", Deletions: true})
	for _, name := range []string{"part", "users", "deletions"} {
		if err := orders.Subscribe(ctx, name, nil, nil); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ensure that each document is sent once in its last state to workers that come, go and
// replace each other while writers write, if no worker loses its batch.
func TestSubscription_WorkersAndWriters(t *testing.T) {
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from Docs"})
	var mu sync.Mutex
	times := make(map[uint64]int)
	last := make(chan struct{})
	working, stop := context.WithCancel(ctx)
	defer stop()
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for working.Err() == nil {
				left := 3
				leaving, leave := context.WithCancel(working)
				err := db.Subscriptions().Work(leaving, "all", &jay.WorkOptions{BatchDocuments: 7}, func(_ context.Context, b *jay.SubscriptionBatch) error {
					mu.Lock()
					defer mu.Unlock()
					for _, item := range b.Items {
						if times[item.Etag]++; item.ID == "last" {
							close(last)
						}
					}
					if left--; left == 0 {
						leave() // the batch is acknowledged all the same
					}
					return nil
				})
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				leave()
			}
		})
	}
	concurrently(t, func(g int, random *rand.Rand) {
		for i := range 50 {
			put(t, db, fmt.Sprint("docs/", random.IntN(100)), fmt.Sprintf(`{"g":%d,"i":%d}`, g, i), jay.InCollection("Docs"))
		}
	})
	put(t, db, "last", `{}`, jay.InCollection("Docs"))
	jaytest.Await(t, "the last document", last)
	stop()
	workers.Wait()
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		if n := times[doc.Metadata().Etag]; n != 1 {
			t.Errorf("%s at %d was sent %d times", doc.ID(), doc.Metadata().Etag, n)
		}
	}
	for etag, n := range times {
		if n > 1 {
			t.Errorf("etag %d was sent %d times", etag, n)
		}
	}
}

// Ensure that the worker of a dropped subscription acknowledges nothing for one that was created under its name, whose documents would never be
// sent.
func TestSubscription_CreatedAgain(t *testing.T) {
	for name, raise := range map[string]func(db *jay.DB){ // what makes another worker count
		"reset": func(db *jay.DB) { must(t, db.Subscriptions().Reset(ctx, "all", "")) },
		"worked": func(db *jay.DB) {
			refused := errors.New("refused")
			if err := db.Subscriptions().Work(ctx, "all", &jay.WorkOptions{InUse: jay.ReplaceWorker}, func(context.Context, *jay.SubscriptionBatch) error { return refused }); !errors.Is(err, refused) {
				t.Fatal(err)
			}
		},
	} {
		db := memory(t, nil)
		for i := range 3 {
			put(t, db, fmt.Sprint("docs/", i), `{}`, jay.InCollection("Docs"))
		}
		subscribed(t, db, jay.Subscription{Name: "all", Query: "from Docs"})
		in, goOn, done := make(chan bool), make(chan bool), make(chan error, 1)
		go func() {
			done <- db.Subscriptions().Work(ctx, "all", nil, func(context.Context, *jay.SubscriptionBatch) error {
				in <- true
				<-goOn
				return nil
			})
		}()
		<-in
		must(t, db.Subscriptions().Drop(ctx, "all"))
		subscribed(t, db, jay.Subscription{Name: "all", Query: "from Docs"})
		raise(db)
		close(goOn)
		if err := <-done; err == nil {
			t.Errorf("%s: the worker of the subscription that was dropped returned nil", name)
		}
		equal(t, sent(t, db, "all", jay.WorkOptions{}), "docs/0 docs/1 docs/2")
	}
}

// Ensure that the delay of a document that has failed often is the longest there is, however long the first one is.
func TestSubscription_LongDelays(t *testing.T) {
	for _, delay := range []time.Duration{3 * time.Hour, 24 * time.Hour, math.MaxInt64} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		db := memory(t, &jay.Options{Now: func() time.Time { return now }})
		put(t, db, "docs/1", `{}`, jay.InCollection("Docs"))
		must(t, db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "all", Query: "from Docs", RetryDelay: delay, MaxFailures: 1000}))
		for round := range 30 {
			sent := 0
			must(t, db.Subscriptions().Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
				sent++
				return b.Fail("docs/1", errors.New("refused"))
			}))
			failures, err := db.Subscriptions().Failures(ctx, "all")
			must(t, err)
			if sent != 1 || !failures[0].Due.Equal(now.Add(time.Hour)) {
				t.Fatalf("a delay of %v, round %d: sent %d times, due in %v", delay, round, sent, failures[0].Due.Sub(now))
			}
			now = now.Add(time.Hour)
		}
	}
}
