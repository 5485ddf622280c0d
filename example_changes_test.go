package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// A feed shows the newest change of each document, the past first. Without
// UntilCaughtUp it then waits for more.
func ExampleDB_Changes() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, id := range []string{"squirrels/hazel", "squirrels/conker", "squirrels/hazel"} {
		_, err := db.Put(ctx, id, json.RawMessage(`{"Nuts":1}`), jay.InCollection("Squirrels"))
		check(err)
	}
	check(db.Delete(ctx, "squirrels/conker"))

	for change, err := range db.Changes(ctx, "", jay.OfCollections("Squirrels"), jay.UntilCaughtUp()) {
		check(err)
		fmt.Println(change.Etag, change.ID, change.Deleted)
	}
	// Output:
	// 3 squirrels/hazel false
	// 4 squirrels/conker true
}

// The token of a change leads to those behind it, in a later process, too.
func ExampleChange() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	put := func(id string) {
		_, err := db.Put(ctx, id, json.RawMessage(`{"Kind":"oak"}`), jay.InCollection("Trees"))
		check(err)
	}
	token := ""
	show := func() {
		for change, err := range db.Changes(ctx, token, jay.WithDocuments(), jay.UntilCaughtUp()) {
			check(err)
			fmt.Printf("%s %s\n", change.ID, change.Document.Body())
			token = change.Token()
		}
	}

	put("trees/1")
	put("trees/2")
	show()
	put("trees/3")
	show()
	// Output:
	// trees/1 {"Kind":"oak"}
	// trees/2 {"Kind":"oak"}
	// trees/3 {"Kind":"oak"}
}

// Filters of one kind are alternatives, those of different kinds must all hold.
func ExampleChangesOption() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, id := range []string{"trees/1", "trees/2", "nests/1"} {
		_, err := db.Put(ctx, id, json.RawMessage(`{}`))
		check(err)
	}

	options := []jay.ChangesOption{jay.OfPrefixes("trees/", "nests/"), jay.OfIDs("trees/2", "nests/1"), jay.UntilCaughtUp()}
	for change, err := range db.Changes(ctx, "", options...) {
		check(err)
		fmt.Println(change.ID)
	}
	// Output:
	// trees/2
	// nests/1
}

// A token that changes may be missing behind is an error, never a gap: begin again with
// all documents.
func ExampleChangesGoneError() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	for _, err := range db.Changes(ctx, "B:7-AAECAwQFBgcICQoLDA0ODw") { // of another database
		var gone *jay.ChangesGoneError
		if errors.As(err, &gone) {
			fmt.Println(gone.Since, gone.Oldest)
		}
	}
	// Output: B:7-AAECAwQFBgcICQoLDA0ODw 0
}

// A subscription sends documents to a worker, batch after batch, and remembers which
// are done.
func ExampleSubscriptions() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	subs := db.Subscriptions()
	check(subs.Ensure(ctx, jay.Subscription{Name: "mail", Query: "from Squirrels where Nuts >= 10 select Name"}))

	work := func() error {
		return subs.Work(ctx, "mail", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, batch *jay.SubscriptionBatch) error {
			for _, item := range batch.Items {
				fmt.Println(item.ID, string(item.Body))
			}
			return nil // the batch is done
		})
	}
	check(work())
	check(work()) // nothing is sent twice
	// Output:
	// squirrels/1-A {"Name":"Hazel"}
	// squirrels/2-A {"Name":"Conker"}
}

// A typed worker is called with each document as a value.
func ExampleCollection_Subscribe() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	squirrels, err := jay.CollectionOf[Squirrel](db)
	check(err)
	check(db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "mail", Query: "from Squirrels"}))

	err = squirrels.Subscribe(ctx, "mail", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, s *Squirrel) error {
		fmt.Println(s.Name, s.Nuts)
		return nil
	})
	check(err)
	// Output:
	// Hazel 10
	// Conker 10
}

// A subscription can begin with what comes, and be sent deletions.
func ExampleSubscription() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	subs := db.Subscriptions()
	check(subs.Ensure(ctx, jay.Subscription{Name: "gone", Query: "from Squirrels", Since: jay.SinceNow, Deletions: true}))
	check(db.Delete(ctx, "squirrels/1-A"))

	err := subs.Work(ctx, "gone", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, batch *jay.SubscriptionBatch) error {
		for _, item := range batch.Items {
			fmt.Println(item.ID, item.Deleted)
		}
		return nil
	})
	check(err)
	// Output: squirrels/1-A true
}

// What cannot be processed is sent again, a few times, while the rest goes on.
func ExampleSubscriptionBatch() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	subs := db.Subscriptions()
	check(subs.Ensure(ctx, jay.Subscription{Name: "mail", Query: "from Squirrels", MaxFailures: 2, RetryDelay: 1}))

	err := subs.Work(ctx, "mail", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, batch *jay.SubscriptionBatch) error {
		for _, item := range batch.Items {
			fmt.Println("sent:", item.ID)
			if item.ID == "squirrels/1-A" {
				check(batch.Fail(item.ID, errors.New("no such address")))
			}
		}
		return nil
	})
	check(err)
	failures, err := subs.Failures(ctx, "mail")
	check(err)
	fmt.Println(failures[0].ID, failures[0].Failures, failures[0].Dead, failures[0].Error)
	// Output:
	// sent: squirrels/1-A
	// sent: squirrels/2-A
	// sent: squirrels/1-A
	// squirrels/1-A 2 true no such address
}

// An item has what the query selects, and the whole document.
func ExampleSubscriptionItem() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	subs := db.Subscriptions()
	check(subs.Ensure(ctx, jay.Subscription{Name: "trees", Query: "from Trees select Kind as K"}))
	err := subs.Work(ctx, "trees", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, batch *jay.SubscriptionBatch) error {
		for _, item := range batch.Items {
			fmt.Println(item.ID, item.Collection, string(item.Body), string(item.Document.Body()))
		}
		return nil
	})
	check(err)
	// Output: trees/1-A Trees {"K":"oak"} {"Kind":"oak"}
}

// Failures lists what could not be processed; Retry sends it again.
func ExampleSubscriptionFailure() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	squirrels, err := jay.CollectionOf[Squirrel](db)
	check(err)
	subs := db.Subscriptions()
	check(subs.Ensure(ctx, jay.Subscription{Name: "mail", Query: "from Squirrels", MaxFailures: 1}))

	online := false
	work := func() {
		check(squirrels.Subscribe(ctx, "mail", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, s *Squirrel) error {
			if !online && s.Name == "Hazel" {
				return errors.New("offline")
			}
			fmt.Println("done:", s.Name)
			return nil
		}))
	}
	work()
	failures, err := subs.Failures(ctx, "mail")
	check(err)
	for _, f := range failures {
		fmt.Println("dead:", f.ID, f.Error)
	}
	online = true
	_, err = subs.Retry(ctx, "mail", failures[0].ID)
	check(err)
	work()
	// Output:
	// done: Conker
	// dead: squirrels/1-A offline
	// done: Hazel
}

// Behind is the lag of a subscription.
func ExampleSubscriptionInfo() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	subs := db.Subscriptions()
	check(subs.Ensure(ctx, jay.Subscription{Name: "new", Query: "from Nests", Since: jay.SinceNow}))
	_, err := db.Put(ctx, "nests/2-A", json.RawMessage(`{}`))
	check(err)

	infos, err := subs.List(ctx)
	check(err)
	for _, info := range infos {
		fmt.Println(info.Name, info.Behind, info.Query)
	}
	// Output: new 1 from Nests
}

// Batches are as large as the worker wants them.
func ExampleWorkOptions() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	subs := db.Subscriptions()
	check(subs.Ensure(ctx, jay.Subscription{Name: "all", Query: "from Squirrels"}))

	options := &jay.WorkOptions{BatchDocuments: 1, UntilCaughtUp: true}
	err := subs.Work(ctx, "all", options, func(_ context.Context, batch *jay.SubscriptionBatch) error {
		fmt.Println(len(batch.Items))
		return nil
	})
	check(err)
	// Output:
	// 1
	// 1
}

// A second worker waits for the first, replaces it, or is refused.
func ExampleWhenInUse() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	subs := db.Subscriptions()
	check(subs.Ensure(ctx, jay.Subscription{Name: "all", Query: "from Squirrels"}))

	err := subs.Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true}, func(context.Context, *jay.SubscriptionBatch) error {
		err := subs.Work(ctx, "all", &jay.WorkOptions{InUse: jay.FailInUse}, nil)
		fmt.Println(errors.Is(err, jay.ErrSubscriptionInUse))
		return nil
	})
	check(err)
	// Output: true
}

// DB.Stats says how many subscriptions there are, and how far they are behind.
func ExampleSubscriptionStats() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	check(db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "all", Query: "from Squirrels", Since: jay.SinceNow}))
	_, err := db.Put(ctx, "squirrels/3", []byte(`{}`), jay.InCollection("Squirrels"))
	check(err)

	s, err := db.Stats(ctx)
	check(err)
	fmt.Printf("%d subscription, %d write behind\n", s.Subscriptions.Subscriptions, s.Subscriptions.Behind)
	// Output: 1 subscription, 1 write behind
}

// What takes space: collections and indexes, the largest first. New documents are in the
// log and in memory; Compact brings them into tables.
func ExampleDiskUsage() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Users", jay.Index{Name: "name", Fields: []string{"Name"}}))
	for range 100 {
		_, err := db.Store(ctx, "Users", json.RawMessage(`{"Name":"Ann"}`))
		check(err)
	}
	check(db.Compact(ctx))
	usage, err := db.DiskUsage(ctx)
	check(err)
	fmt.Println(usage.Collections[0].Name, usage.Collections[0].Bytes > 0)
	fmt.Println(usage.Indexes[0].Name, usage.Indexes[0].Bytes > 0)
	fmt.Println(usage.TotalBytes >= usage.Collections[0].Bytes+usage.Indexes[0].Bytes)
	// Output:
	// Users true
	// name true
	// true
}

// The space of each collection.
func ExampleCollectionDiskUsage() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "users/1", json.RawMessage(`{}`), jay.InCollection("Users"))
	check(err)
	usage, err := db.DiskUsage(ctx)
	check(err)
	for _, c := range usage.Collections {
		fmt.Println(c.Name)
	}
	// Output: Users
}

// The space of each index.
func ExampleIndexDiskUsage() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Users", jay.Index{Name: "name", Fields: []string{"Name"}}))
	usage, err := db.DiskUsage(ctx)
	check(err)
	for _, i := range usage.Indexes {
		fmt.Println(i.Collection, i.Name)
	}
	// Output: Users name
}

// Writes are refused before the disk is full, and deletions are not.
func ExampleDiskFullError() {
	ctx := context.Background()
	disk := storagetest.NewDisk() // a program has a real one
	disk.SetFreeBytes(100 << 20)
	db, err := jay.Open("db", &jay.Options{FS: disk, MinFreeBytes: 1 << 30})
	check(err)
	defer db.Close()
	_, err = db.Put(ctx, "users/1", json.RawMessage(`{}`))
	var full *jay.DiskFullError
	if errors.As(err, &full) {
		fmt.Println(full.Dir, full.FreeBytes>>20, "MiB of", full.MinFreeBytes>>20)
	}
	fmt.Println(db.Delete(ctx, "users/1"))
	// Output:
	// db 100 MiB of 1024
	// <nil>
}

// A query that needs more memory than all work may have is refused, and says so.
func ExampleMemoryError() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{MaxMemory: 64 << 20})
	check(err)
	defer db.Close()
	s, err := db.Stats(ctx)
	check(err)
	for _, share := range s.Memory.Shares {
		if share.Name == "work" {
			fmt.Println(share.Name, share.UsedBytes)
		}
	}
	_, err = db.BulkInsert(&jay.BulkOptions{BatchBytes: 64 << 20})
	var e *jay.MemoryError
	if errors.As(err, &e) {
		fmt.Printf("the %s asked for %d MiB\n", e.What, e.Wanted>>20)
	}
	// Output:
	// work 0
	// the bulk writer asked for 192 MiB
}

// The figures say how the memory of a database is divided.
func ExampleMemoryStats() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{MaxMemory: 64 << 20, CacheBytes: 8 << 20})
	check(err)
	defer db.Close()
	s, err := db.Stats(ctx)
	check(err)
	fmt.Println(s.Memory.BoundBytes>>20, "MiB")
	blocks := s.Memory.Shares[0]
	fmt.Println(blocks.Name, blocks.Bytes>>20, "MiB")
	// Output:
	// 64 MiB
	// blocks 8 MiB
}

// Two databases share one bound.
func ExampleMemory() {
	shared, err := jay.NewMemory(256 << 20)
	check(err)
	a, err := jay.OpenMemory(&jay.Options{Memory: shared})
	check(err)
	defer a.Close()
	b, err := jay.OpenMemory(&jay.Options{Memory: shared})
	check(err)
	defer b.Close()
	bound, claimed, caches := shared.Bytes()
	fmt.Println(bound>>20, "MiB, of which", caches>>20, "MiB for caches:", claimed < caches)
	// Output:
	// 256 MiB, of which 160 MiB for caches: true
}

// operationPrinter is an Observer that prints what was done.
type operationPrinter struct{}

func (operationPrinter) Begin(ctx context.Context, o *jay.Operation) context.Context { return ctx }

func (operationPrinter) End(ctx context.Context, o *jay.Operation) {
	fmt.Println(o.Verb, o.Collection, o.Documents, o.Duration > 0, o.Err)
}

// An observer sees each operation.
func ExampleObserver() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{Observer: operationPrinter{}})
	check(err)
	defer db.Close()
	_, err = db.Put(ctx, "users/1", json.RawMessage(`{}`), jay.InCollection("Users"))
	check(err)
	_, err = db.Query("Users").All(ctx)
	check(err)
	// Output:
	// put Users 1 true <nil>
	// query Users 1 true <nil>
}

// slowest keeps the operation that took longest. It is for one goroutine.
type slowest struct{ jay.Operation }

func (s *slowest) Begin(ctx context.Context, o *jay.Operation) context.Context { return ctx }

func (s *slowest) End(ctx context.Context, o *jay.Operation) {
	if o.Duration > s.Duration {
		s.Operation = *o
	}
}

// The operation of an observer says what was done, to what, and how long it took.
func ExampleOperation() {
	ctx := context.Background()
	var s slowest
	db, err := jay.OpenMemory(&jay.Options{Observer: &s})
	check(err)
	defer db.Close()
	check(db.View(ctx, func(*jay.Tx) error {
		time.Sleep(50 * time.Millisecond)
		return nil
	}))
	fmt.Println(s.Verb, s.Duration >= 50*time.Millisecond)
	// Output: view true
}

// A share has a name, a size, and what is used of it.
func ExampleMemoryShare() {
	share := jay.MemoryShare{Name: "work", Bytes: 16 << 20, UsedBytes: 4 << 20}
	fmt.Printf("%s: %d of %d MiB\n", share.Name, share.UsedBytes>>20, share.Bytes>>20)
	// Output: work: 4 of 16 MiB
}

// The tickets that are open, as they become: first those of now, then what enters, changes
// and leaves them.
func ExampleQuery_Live() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	check(err)
	defer db.Close()
	put := func(id, body string) {
		_, err := db.Put(ctx, id, json.RawMessage(body), jay.InCollection("Tickets"))
		check(err)
	}
	put("tickets/1", `{"Status":"open"}`)
	put("tickets/2", `{"Status":"closed"}`)
	steps := []func(){
		func() { put("tickets/2", `{"Status":"open"}`) },
		func() { check(db.Delete(ctx, "tickets/1")) },
	}
	for e, err := range db.Query("Tickets").Where(jay.Eq("Status", "open")).Live(ctx, "") {
		check(err)
		if e.Kind != jay.LiveCurrent {
			fmt.Println(e.Kind, e.ID)
			continue
		}
		fmt.Println(e.Kind)
		if len(steps) == 0 {
			break
		}
		steps[0]()
		steps = steps[1:]
	}
	// Output:
	// enter tickets/1
	// current
	// enter tickets/2
	// current
	// leave tickets/1
	// current
}

// The token of an event is where a later live query goes on.
func ExampleLiveEvent() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	check(err)
	defer db.Close()
	q := db.Query("Tickets")
	token := ""
	for e, err := range q.Live(ctx, "") {
		check(err)
		token = e.Token // of the first event, as there are no tickets
		break
	}
	_, err = db.Put(ctx, "tickets/1", json.RawMessage(`{}`), jay.InCollection("Tickets"))
	check(err)
	for e, err := range q.Live(ctx, token) {
		check(err)
		fmt.Println(e.Kind, e.ID, e.CatchingUp)
		break
	}
	// Output: enter tickets/1 true
}

// The kind of an event prints as a word.
func ExampleLiveKind() {
	fmt.Println(jay.LiveEnter, jay.LiveChange, jay.LiveLeave, jay.LiveCurrent)
	// Output: enter change leave current
}
