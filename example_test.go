package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/storage/storagetest"
)

// Squirrel is what the examples store.
type Squirrel struct {
	ID    string
	Name  string
	Nuts  int
	Likes []string `json:",omitempty"`
}

// example opens a database that the example need not close by hand.
func example() *jay.DB {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	return db
}

// check keeps the examples short. Programs return their errors.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A database is a directory. Documents go in and out as JSON, or as Go values
// through a Collection.
func Example() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil) // jay.Open("acorns.jay", nil) for one on disk
	check(err)
	defer db.Close()

	squirrels, err := jay.CollectionOf[Squirrel](db)
	check(err)
	hazel := &Squirrel{Name: "Hazel", Nuts: 33}
	_, err = squirrels.Insert(ctx, hazel)
	check(err)
	fmt.Println(hazel.ID)

	found, err := squirrels.Get(ctx, hazel.ID)
	check(err)
	fmt.Println(found.Name, found.Nuts)
	// Output:
	// squirrels/1-A
	// Hazel 33
}

// A program looks into a database that another one, or as here the same, has open.
func ExampleLook() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "acorns")
	check(err)
	defer os.RemoveAll(dir)
	db, err := jay.Open(dir, nil)
	check(err)
	defer db.Close()
	_, err = db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"Nuts":33}`))
	check(err)

	seen, err := jay.Look(dir, nil)
	check(err)
	defer seen.Close()
	doc, err := seen.Get(ctx, "squirrels/hazel")
	check(err)
	fmt.Println(string(doc.Body()))
	_, err = seen.Put(ctx, "squirrels/oak", json.RawMessage(`{}`))
	fmt.Println(errors.Is(err, jay.ErrReadOnly))
	// Output:
	// {"Nuts":33}
	// true
}

// A program shows its database through a connection of its own, such as that of a tunnel.
func ExampleAnswerLook() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"Nuts":33}`))
	check(err)
	ours, theirs := net.Pipe()
	go func() { check(jay.AnswerLook(ctx, db, ours)) }()

	seen, err := jay.LookThrough(theirs, "acorns", nil) // in the other program
	check(err)
	defer seen.Close()
	doc, err := seen.Get(ctx, "squirrels/hazel")
	check(err)
	fmt.Println(seen.Dir(), string(doc.Body()))
	// Output:
	// acorns {"Nuts":33}
}

// The ID that is asked for decides how the final one is made.
func ExampleDB_Put() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, request := range []string{"users/ann", "users|", "users|", "users/"} {
		meta, err := db.Put(ctx, request, json.RawMessage(`{"Name":"Ann"}`))
		check(err)
		fmt.Println(meta.ID)
	}
	meta, err := db.Put(ctx, "", json.RawMessage(`{}`))
	check(err)
	fmt.Println(len(meta.ID), "characters")
	// Output:
	// users/ann
	// users/1
	// users/2
	// users/0000000000000000004-A
	// 36 characters
}

func ExampleDB_Store() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for range 2 {
		meta, err := db.Store(ctx, "Orders", json.RawMessage(`{"Total":12.50}`))
		check(err)
		fmt.Println(meta.ID)
	}
	doc, err := db.Get(ctx, "Raven/HiLo/orders")
	check(err)
	fmt.Printf("%s\n", doc.Body())
	// Output:
	// orders/1-A
	// orders/2-A
	// {"Max":32}
}

func ExampleOptions() {
	db, err := jay.OpenMemory(&jay.Options{
		Separator: "-",
		NodeTag:   "OAK",
		Now:       func() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) },
	})
	check(err)
	defer db.Close()
	meta, err := db.Store(context.Background(), "Users", json.RawMessage(`{}`))
	check(err)
	fmt.Println(meta.ID, meta.LastModified)
	// Output: users-1-OAK 2026-11-21 00:00:00 +0000 UTC
}

// Relaxed durability is for data that can be had again.
func ExampleDurability() {
	db, err := jay.OpenMemory(&jay.Options{Durability: jay.Relaxed})
	check(err)
	defer db.Close()
	_, err = db.Put(context.Background(), "cache/weather", json.RawMessage(`{"Rain":true}`))
	fmt.Println(err)
	// Output: <nil>
}

// The type entry goes to the collection "entry", as in 2010.
func ExampleConventions() {
	type Entry struct{ ID string }
	db, err := jay.OpenMemory(&jay.Options{Conventions: jay.Conventions{
		CollectionName: func(t reflect.Type) string { return strings.ToLower(t.Name()) },
	}})
	check(err)
	defer db.Close()
	entries, err := jay.CollectionOf[Entry](db)
	check(err)
	e := &Entry{}
	_, err = entries.Insert(context.Background(), e)
	check(err)
	fmt.Println(entries.Name(), e.ID)
	// Output: entry entry/1-A
}

func ExampleCollection() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	squirrels, err := jay.CollectionOf[Squirrel](db)
	check(err)
	_, err = squirrels.InsertMany(ctx, []*Squirrel{{Name: "Hazel"}, {Name: "Conker"}})
	check(err)
	for s, err := range squirrels.All(ctx) {
		check(err)
		fmt.Println(s.ID, s.Name)
	}
	// Output:
	// squirrels/1-A Hazel
	// squirrels/2-A Conker
}

// Fields can hold what Jay keeps beside a document: the time of its last write, and
// metadata of the program's own.
func ExampleCollection_metadata() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	type Article struct {
		ID      string
		Title   string
		Changed time.Time `json:"-" jay:"lastModified"`
		Source  string    `json:"-" jay:"metadata=Source"`
	}
	articles, err := jay.CollectionOf[Article](db)
	check(err)
	_, err = articles.Insert(ctx, &Article{Title: "Pebbles", Source: "mail"})
	check(err)

	found, err := articles.Query().Where(jay.Eq("@metadata.Source", "mail")).First(ctx)
	check(err)
	fmt.Println(found.Title, found.Source, found.Changed.IsZero())
	doc, err := db.Get(ctx, found.ID)
	check(err)
	fmt.Println(string(doc.Body()), string(doc.Metadata().Custom))
	// Output:
	// Pebbles mail false
	// {"Title":"Pebbles"} {"Source":"mail"}
}

// Invoices want consecutive numbers: their IDs are identities.
func ExampleCollectionOption() {
	type Invoice struct {
		ID    string
		Total int
	}
	ctx := context.Background()
	db := example()
	defer db.Close()
	invoices, err := jay.CollectionOf[Invoice](db, jay.WithIDRequest("invoices|"))
	check(err)
	for range 2 {
		i := &Invoice{Total: 100}
		_, err := invoices.Insert(ctx, i)
		check(err)
		fmt.Println(i.ID)
	}
	// Output:
	// invoices/1
	// invoices/2
}

// A batch is written whole or not at all.
func ExampleBatchOf() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	type Order struct {
		ID    string
		Total int
	}
	type Event struct {
		ID   string
		What string
	}
	orders, err := jay.CollectionOf[Order](db)
	if err != nil {
		log.Fatal(err)
	}
	events, err := jay.CollectionOf[Event](db, jay.WithIDRequest("events/"))
	if err != nil {
		log.Fatal(err)
	}

	var b jay.Batch
	order, event := &Order{Total: 30}, &Event{What: "ordered"}
	if err := errors.Join(orders.InBatch(&b).Insert(ctx, order), events.InBatch(&b).Insert(ctx, event)); err != nil {
		log.Fatal(err)
	}
	if _, err := db.Apply(ctx, &b); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.ID, event.ID)

	// Output: orders/1-A events/0000000000000000003-A
}

func ExampleBatch() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	var b jay.Batch
	b.Put("accounts/ann", json.RawMessage(`{"Balance":90}`))
	b.Put("accounts/bob", json.RawMessage(`{"Balance":110}`))
	b.Insert("transfers|", json.RawMessage(`{"From":"accounts/ann","To":"accounts/bob","Amount":10}`))
	metas, err := db.Apply(ctx, &b)
	check(err)
	fmt.Println(metas[2].ID)
	// Output: transfers/1
}

// A write can be made to depend on the version that was read.
func ExampleWriteOption() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	meta, err := db.Put(ctx, "users/ann", json.RawMessage(`{"Age":41}`), jay.InCollection("Users"))
	check(err)
	_, err = db.Put(ctx, "users/ann", json.RawMessage(`{"Age":42}`), jay.InCollection("Users"), jay.IfMatch(meta.ChangeVector))
	fmt.Println(err)
	_, err = db.Put(ctx, "users/ann", json.RawMessage(`{"Age":43}`), jay.InCollection("Users"), jay.IfMatch(meta.ChangeVector))
	fmt.Println(errors.Is(err, jay.ErrConflict))
	// Output:
	// <nil>
	// true
}

func ExampleDocument() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "users/ann", json.RawMessage(`{"Name": "Ann", "@metadata": {"@collection": "Users", "source": "form"}}`))
	check(err)
	doc, err := db.Get(ctx, "USERS/ANN")
	check(err)
	fmt.Println(doc.ID(), doc.Collection())
	fmt.Printf("%s %s\n", doc.Body(), doc.Metadata().Custom)
	// Output:
	// users/ann Users
	// {"Name":"Ann"} {"source":"form"}
}

func ExampleMetadata() {
	db := example()
	defer db.Close()
	meta, err := db.Put(context.Background(), "users/ann", json.RawMessage(`{}`), jay.WithMetadata([]byte(`{"source":"form"}`)))
	check(err)
	fmt.Println(meta.ID, meta.Collection, meta.Etag, string(meta.Custom))
	// Output: users/ann @empty 1 {"source":"form"}
}

// Documents come a page at a time with After and Limit.
func ExampleScan() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for range 5 {
		_, err := db.Store(ctx, "Users", json.RawMessage(`{}`))
		check(err)
	}
	page := jay.Scan{Collection: "Users", Limit: 2}
	for {
		var ids []string
		for doc, err := range db.Documents(ctx, page) {
			check(err)
			ids = append(ids, doc.ID())
			page.After = doc.ID()
		}
		fmt.Println(strings.Join(ids, " "))
		if len(ids) < page.Limit {
			break
		}
	}
	// Output:
	// users/1-A users/2-A
	// users/3-A users/4-A
	// users/5-A
}

func ExampleStats() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Store(ctx, "Users", json.RawMessage(`{"Name":"Ann"}`))
	check(err)
	stats, err := db.Stats(ctx)
	check(err)
	fmt.Println(stats.NodeTag, stats.Counters.HiLo["users"])
	// Output: A 32
}

func ExampleCollectionStats() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Store(ctx, "Users", json.RawMessage(`{"Name":"Ann"}`))
	check(err)
	stats, err := db.Stats(ctx)
	check(err)
	for _, c := range stats.Collections {
		fmt.Println(c.Name, c.Documents)
	}
	// Output:
	// @hilo 1
	// Users 1
}

// Concurrent writes share syncs of the log.
func ExampleEngineStats() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "a", json.RawMessage(`{}`))
	check(err)
	stats, err := db.Stats(ctx)
	check(err)
	fmt.Println(stats.Engine.Commits > 0, stats.Engine.LogSyncs <= stats.Engine.Commits)
	// Output: true true
}

// What an export takes along, so that the copy repeats no number.
func ExampleCounters() {
	ctx := context.Background()
	original, twin := example(), example()
	defer original.Close()
	defer twin.Close()
	for range 3 {
		_, err := original.Put(ctx, "invoices|", json.RawMessage(`{}`))
		check(err)
	}
	counters, err := original.Counters(ctx)
	check(err)
	check(twin.RaiseCounters(ctx, counters))
	meta, err := twin.Put(ctx, "invoices|", json.RawMessage(`{}`))
	check(err)
	fmt.Println(meta.ID)
	// Output: invoices/4
}

// A remote client makes its own IDs from the ranges it is granted.
func ExampleRange() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	r, err := db.NextRange(ctx, jay.RangeRequest{Tag: "users"})
	check(err)
	fmt.Printf("%s%d-%s to %s%d-%s\n", r.Prefix, r.Low, r.NodeTag, r.Prefix, r.High, r.NodeTag)
	accepted, err := db.ReturnRange(ctx, "users", 1, r.High) // only number 1 was used
	check(err)
	fmt.Println(accepted)
	// Output:
	// users/1-A to users/32-A
	// true
}

// A client says what its last range said; within 30 seconds it gets twice as
// many numbers.
func ExampleRangeRequest() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	req := jay.RangeRequest{Tag: "users"}
	for range 3 {
		r, err := db.NextRange(ctx, req)
		check(err)
		fmt.Println(r.Low, r.High)
		req.LastSize, req.LastRangeAt, req.LastMax = r.Size, r.GrantedAt, r.High
	}
	// Output:
	// 1 32
	// 33 96
	// 97 224
}

func ExampleIDError() {
	db := example()
	defer db.Close()
	_, err := db.Put(context.Background(), `users\ann`, json.RawMessage(`{}`))
	var invalid *jay.IDError
	fmt.Println(errors.As(err, &invalid), invalid.Rule)
	// Output: true must not hold the character \
}

func ExampleDocumentError() {
	db := example()
	defer db.Close()
	_, err := db.Put(context.Background(), "users/ann", json.RawMessage(`{"Name":"Ann","Name":"Bob"}`))
	var invalid *jay.DocumentError
	fmt.Println(errors.As(err, &invalid), invalid.Rule, invalid.Offset)
	// Output: true keys must not repeat within an object 14
}

func ExampleConflictError() {
	db := example()
	defer db.Close()
	_, err := db.Put(context.Background(), "users/ann", json.RawMessage(`{}`), jay.IfMatch("A:1-x"))
	var conflict *jay.ConflictError
	fmt.Println(errors.As(err, &conflict), conflict.ID, conflict.Expected, conflict.Actual == "")
	// Output: true users/ann A:1-x true
}

func ExampleCollectionError() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "ann", json.RawMessage(`{}`), jay.InCollection("Users"))
	check(err)
	_, err = db.Put(ctx, "ann", json.RawMessage(`{}`), jay.InCollection("Admins"))
	var wrong *jay.CollectionError
	fmt.Println(errors.As(err, &wrong), wrong.Current, wrong.Given)
	// Output: true Users Admins
}

// An order's ID cannot be passed where a customer's is wanted.
func ExampleID() {
	type Customer struct {
		ID   jay.ID[Customer]
		Name string
	}
	type Order struct {
		ID       jay.ID[Order]
		Customer jay.ID[Customer]
	}
	ctx := context.Background()
	db := example()
	defer db.Close()
	customers, err := jay.CollectionOf[Customer](db)
	check(err)
	ann := &Customer{Name: "Ann"}
	_, err = customers.Insert(ctx, ann)
	check(err)

	order := Order{Customer: ann.ID}
	buyer, err := customers.Load(ctx, order.Customer)
	check(err)
	fmt.Println(buyer.ID, buyer.Name)
	// Output: customers/1-A Ann
}

func ExampleEscapeID() {
	segment := jay.EscapeID("users/1-A")
	id, err := jay.UnescapeID(segment)
	fmt.Println(segment, id, err)
	// Output: users~1-A users/1-A <nil>
}

func ExampleDB_NextIdentity() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.SeedIdentity(ctx, "invoices", 1990, false)
	check(err)
	n, err := db.NextIdentity(ctx, "invoices")
	check(err)
	meta, err := db.Put(ctx, "invoices|", json.RawMessage(`{}`))
	check(err)
	fmt.Println(n, meta.ID)
	// Output: 1991 invoices/1992
}

// Data of RavenDB 3.x goes on as it was: no node tag, a trailing slash asks for
// an identity.
func ExampleHiLoMode() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{HiLoMode: jay.HiLo2})
	check(err)
	defer db.Close()
	_, err = db.Put(ctx, "Raven/HiLo/users", json.RawMessage(`{"Max":96}`), jay.InCollection("@hilo"))
	check(err)
	user, err := db.Store(ctx, "Users", json.RawMessage(`{}`))
	check(err)
	invoice, err := db.Put(ctx, "invoices/", json.RawMessage(`{}`))
	check(err)
	fmt.Println(user.ID, invoice.ID)
	// Output: users/97 invoices/1
}

// Ranges that do not grow.
func ExampleGrowth() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{HiLoMode: jay.HiLo2, HiLo2Growth: jay.GrowthNone, HiLoCapacity: 10})
	check(err)
	defer db.Close()
	for range 11 {
		_, err := db.Store(ctx, "Users", json.RawMessage(`{}`))
		check(err)
	}
	doc, err := db.Get(ctx, "Raven/HiLo/users")
	check(err)
	fmt.Printf("%s\n", doc.Body())
	// Output: {"Max":20}
}

// Two clients never hold the same number.
func ExampleHiLoClient() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	a, b := db.NewHiLoClient(), db.NewHiLoClient()
	first, err := a.Next(ctx, "users")
	check(err)
	second, err := b.Next(ctx, "users")
	check(err)
	fmt.Println(first, second)
	check(b.Close(ctx))
	check(a.Close(ctx))
	// Output: users/1-A users/33-A
}

// A BulkWriter takes documents from any number of goroutines. What it was
// given is on disk when Close has returned nil.
func ExampleBulkWriter() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	w, err := db.BulkInsert(nil)
	check(err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1_000 {
				_, err := w.Store(ctx, "Acorns", json.RawMessage(`{"Weight":3}`))
				check(err)
			}
		})
	}
	wg.Wait()
	check(w.Close())
	fmt.Println(w.Progress().Documents)
	// Output: 4000
}

// IDs are returned at once, except those that only the commit can make.
func ExampleBulkWriter_Put() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	w, err := db.BulkInsert(nil)
	check(err)
	var invoice jay.Metadata
	for _, request := range []string{"users/ann", "invoices|"} {
		id, err := w.Put(ctx, request, json.RawMessage(`{}`), jay.Returning(&invoice))
		check(err)
		fmt.Println(id)
	}
	check(w.Close())
	fmt.Println(invoice.ID)
	// Output:
	// users/ann
	// invoices|
	// invoices/1
}

// A document that is refused is an error of its call. The writer goes on.
func ExampleBulkWriter_Store() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	w, err := db.BulkInsert(nil)
	check(err)
	for _, body := range []string{`{"Name":"Ann"}`, `{"Name":`, `{"Name":"Bob"}`} {
		id, err := w.Store(ctx, "Users", json.RawMessage(body))
		fmt.Printf("%q %t\n", id, errors.Is(err, jay.ErrInvalidDocument))
	}
	check(w.Close())
	// Output:
	// "users/1-A" false
	// "" true
	// "users/2-A" false
}

// Go values go in with the ID that an Insert would give them.
func ExampleCollection_BulkStore() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	squirrels, err := jay.CollectionOf[Squirrel](db)
	check(err)

	w, err := db.BulkInsert(nil)
	check(err)
	for _, name := range []string{"Hazel", "Conker"} {
		s := &Squirrel{Name: name}
		check(squirrels.BulkStore(ctx, w, s))
		fmt.Println(s.ID)
	}
	check(w.Close())
	// Output:
	// squirrels/1-A
	// squirrels/2-A
}

// Batches are committed when they are full, or after a while.
func ExampleBulkOptions() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	w, err := db.BulkInsert(&jay.BulkOptions{
		BatchDocuments: 100,
		MaxDelay:       time.Minute,
		Progress:       func(p jay.BulkProgress) { fmt.Println(p.Documents, "documents") },
	})
	check(err)
	for range 250 {
		_, err := w.Store(ctx, "Acorns", json.RawMessage(`{}`))
		check(err)
	}
	check(w.Close())
	// Output:
	// 100 documents
	// 200 documents
	// 250 documents
}

// Progress counts what is committed. Flush waits until all of it is on disk.
func ExampleBulkProgress() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	w, err := db.BulkInsert(&jay.BulkOptions{MaxDelay: time.Hour}) // no batch begins before Flush
	check(err)
	for range 10 {
		_, err := w.Store(ctx, "Acorns", json.RawMessage(`{"Weight":3}`))
		check(err)
	}
	check(w.Flush(ctx))
	p := w.Progress()
	fmt.Println(p.Documents, p.Batches, p.Bytes > 0)
	check(w.Close())
	// Output: 10 1 true
}

// A document that does not decode into the type of its collection does not end a loop.
func ExampleDecodeError() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()
	_, err := db.Put(ctx, "orders/0", json.RawMessage(`{"Total":"a lot"}`), jay.InCollection("Orders"))
	check(err)

	n := 0
	for _, err := range orders.Query().Iter(ctx) {
		var broken *jay.DecodeError
		switch {
		case errors.As(err, &broken):
			fmt.Println("skipped", broken.ID)
		case err != nil:
			fmt.Println(err)
			return
		default:
			n++
		}
	}
	fmt.Println(n, "orders")
	// Output:
	// skipped orders/0
	// 4 orders
}

// What a query of a session returns are entities of the session: SaveChanges writes
// those that have changed, and what the query includes is there for Load.
func ExampleQueryOf() {
	ctx := context.Background()
	db, _ := exampleOrders()
	defer db.Close()
	type customer struct{ ID, Name string }
	customers, err := jay.CollectionOf[customer](db, jay.Named("Customers"))
	check(err)
	_, err = customers.Insert(ctx, &customer{ID: "customers/dan", Name: "Dan"})
	check(err)
	_, err = db.Put(ctx, "orders/9", json.RawMessage(`{"Customer":"customers/dan","Status":"open"}`), jay.InCollection("Orders"))
	check(err)

	session := db.OpenSession(jay.WithCollections(customers))
	open, err := jay.QueryOf[Order](session).Where(jay.Eq("Customer", "customers/dan")).Include("Customer").All(ctx)
	check(err)
	for _, order := range open {
		dan, err := jay.Load[customer](ctx, session, order.Customer) // reads nothing
		check(err)
		fmt.Println(order.ID, dan.Name)
		order.Status = "paid"
	}
	check(session.SaveChanges(ctx))
	n, err := db.Query("Orders").Where(jay.Eq("Status", "paid")).Count(ctx)
	check(err)
	fmt.Println(n, "paid")
	// Output:
	// orders/9 Dan
	// 2 paid
}

// A database that a newer version of Jay has upgraded is not opened, and stays as it is.
func ExampleFormatError() {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	// The file JAY has the number of the format.
	if err := os.WriteFile(filepath.Join(dir, "JAY"), []byte("jay database, format 1000\n"), 0o600); err != nil {
		log.Fatal(err)
	}

	_, err = jay.Open(dir, nil)
	var newer *jay.FormatError
	if errors.As(err, &newer) {
		fmt.Println(newer.What, newer.Found, newer.Found > newer.Newest, errors.Is(err, jay.ErrNewerFormat))
	}
	// Output: database 1000 true true
}

// A program can test what a power failure leaves of its data: Disk is a file
// system in memory that forgets, in a crash, what was not synced.
func ExampleOptions_powerFailure() {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	db, err := jay.Open("acorns.jay", &jay.Options{FS: disk})
	check(err)
	_, err = db.Put(ctx, "squirrels/1", []byte(`{"name":"Chip"}`))
	check(err)
	found := disk.Crash(0, rand.New(rand.NewPCG(1, 2))) // nothing unsynced survives
	check(db.Close())

	db, err = jay.Open("acorns.jay", &jay.Options{FS: found})
	check(err)
	defer db.Close()
	doc, err := db.Get(ctx, "squirrels/1")
	check(err)
	fmt.Printf("%s\n", doc.Body())
	// Output: {"name":"Chip"}
}

// A function sees the document where it lies, without a copy, and takes out
// what it needs.
func ExampleDB_Read() {
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "users/1", json.RawMessage(`{"Name":"Ada","Bio":"a very long text","Tags":["x","y"]}`))
	check(err)

	var name string
	err = db.Read(ctx, "users/1", func(doc *jay.RawDocument) error {
		name, _, err = jay.Value[string](doc, "Name")
		fmt.Println(len(doc.Body()), "bytes were not copied")
		return err
	})
	check(err)
	fmt.Println(name)
	// Output:
	// 56 bytes were not copied
	// Ada
}

// A RawDocument gives its bytes only while the function of Read runs.
func ExampleRawDocument() {
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "users/1", json.RawMessage(`{"Name":"Ada"}`))
	check(err)

	check(db.Read(ctx, "users/1", func(doc *jay.RawDocument) error {
		raw, found, err := doc.Path("Name")
		fmt.Println(doc.ID(), string(raw), found)
		return err
	}))
	// Output: users/1 "Ada" true
}

// Value decodes one place of a document and nothing else of it.
func ExampleValue() {
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "orders/1", json.RawMessage(`{"Lines":[{"Product":"nut","Qty":2},{"Product":"bolt","Qty":3}]}`))
	check(err)
	doc, err := db.Get(ctx, "orders/1")
	check(err)

	qty, found, err := jay.Value[int](doc, "Lines[0].Qty")
	fmt.Println(qty, found, err)
	products, _, err := jay.Value[[]string](doc, "Lines[].Product")
	fmt.Println(products, err)
	// Output:
	// 2 true <nil>
	// [nut bolt] <nil>
}

// Patterns choose among the IDs behind a prefix.
func ExampleDB_Documents_patterns() {
	db := example()
	defer db.Close()
	for _, id := range []string{"logs/2026-01-a", "logs/2026-01-b", "logs/2026-02-a", "logs/2027-01-a"} {
		_, err := db.Put(ctx, id, json.RawMessage(`{}`))
		check(err)
	}

	scan := jay.Scan{Prefix: "logs/", Matches: "2026-??-a|2027*", Exclude: "*-02-*"}
	for doc, err := range db.Documents(ctx, scan) {
		check(err)
		fmt.Println(doc.ID())
	}
	// Output:
	// logs/2026-01-a
	// logs/2027-01-a
}

// doctored is a database with a document whose number was never granted.
func doctored() *jay.DB {
	ctx := context.Background()
	db := example()
	_, err := db.Store(ctx, "Users", json.RawMessage(`{"Name":"Ann"}`))
	check(err)
	_, err = db.Put(ctx, "users/500-A", json.RawMessage(`{"Name":"Bob"}`), jay.InCollection("Users"))
	check(err)
	_, err = db.Put(ctx, "invoices|", json.RawMessage(`{}`))
	check(err)
	return db
}

// An inspection reports how IDs were made, and what is odd about them.
func ExampleDB_InspectIDs() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	fmt.Println(report.Documents, len(report.Warnings))
	// Output: 4 1
}

// A report is plain data, for tables and for JSON.
func ExampleIDReport() {
	db := doctored()
	defer db.Close()
	var report jay.IDReport
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	text, err := json.Marshal(report.Prefixes[0])
	check(err)
	fmt.Println(string(text))
	// Output: {"prefix":"invoices/","collection":"@empty","documents":1,"hilo":0,"identity":1,"serverSide":0,"guid":0,"semantic":0,"highestHiLo":0,"highestIdentity":1}
}

// There is one entry for each prefix and collection.
func ExampleIDPrefix() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	for _, p := range report.Prefixes {
		fmt.Println(p.Prefix, p.Collection, p.Documents)
	}
	// Output:
	// invoices/ @empty 1
	// raven/hilo/ @hilo 1
	// users/ Users 2
}

// The form of an ID shows its strategy.
func ExampleIDCounts() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	var all jay.IDCounts
	for _, p := range report.Prefixes {
		all.HiLo += p.HiLo
		all.Identity += p.Identity
		all.Semantic += p.Semantic
	}
	fmt.Println(all.HiLo, all.Identity, all.Semantic)
	// Output: 2 1 1
}

// Of 32 numbers granted one has a document; the others are still to be used.
func ExampleHiLoReport() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	for _, h := range report.HiLo {
		fmt.Println(h.Tag, *h.Max, h.Mark, h.Highest, h.InOpenLeases)
	}
	// Output: users 32 32 500 31
}

// A forecast has no figures where there is nothing to count.
func ExampleForecast() {
	db := example()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	f := report.Etags.Forecast
	fmt.Println(f.PerDay == nil, f.YearsLeft == nil)
	// Output: true true
}

// Server-side IDs are made of etags: one for every write.
func ExampleEtagReport() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	fmt.Println(report.Etags.Last)
	// Output: 4
}

// Identities are compared with the documents that have their numbers.
func ExampleIdentityReport() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	for _, i := range report.Identities {
		fmt.Println(i.Name, i.Last, i.Highest)
	}
	// Output: invoices| 1 1
}

// A warning says what is so, what follows, and what can be done.
func ExampleIDWarning() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	for _, w := range report.Warnings {
		fmt.Println(w.Kind, w.Name)
		fmt.Println(w.Text)
	}
	// Output:
	// above-mark users/
	// number 500 of "users/" is in use, but HiLo has counted up to 32; it will be passed over, or put a Max of 500 in the HiLo document
}

// Programs look at the kind.
func ExampleIDWarningKind() {
	db := doctored()
	defer db.Close()
	report, err := db.InspectIDs(context.Background(), nil)
	check(err)
	for _, w := range report.Warnings {
		fmt.Println(w.Kind == jay.WarnAboveMark)
	}
	// Output: true
}

// ExampleClusterStats has two nodes make identities together, one of which is cut off for a while.
func ExampleClusterStats() {
	coordinator := clustertest.NewMemory() // in a program: package cluster/etcd
	there := coordinator.Connect()
	a, err := jay.OpenMemory(&jay.Options{NodeTag: "A", Cluster: coordinator.Connect()})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	b, err := jay.OpenMemory(&jay.Options{NodeTag: "B", Cluster: there})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	insert := func(ctx context.Context, db *jay.DB, id string) {
		switch m, err := db.Insert(ctx, id, []byte(`{}`)); {
		case errors.Is(err, jay.ErrNoMajority):
			fmt.Println("no majority")
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(m.ID)
		}
	}
	ctx := context.Background()
	insert(ctx, a, "invoices|")
	insert(ctx, b, "invoices|")
	there.Cut()
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	insert(limited, b, "invoices|")
	insert(ctx, b, "invoices/draft")
	there.Mend()

	stats, err := b.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Cluster.NodeTag, stats.Cluster.Joined, stats.Cluster.Refusal == "")
	// Output:
	// invoices/1
	// invoices/2
	// no majority
	// invoices/draft
	// B true true
}

func ExampleLoads() {
	// Together the databases of this process read four blocks from the disk at a time.
	loads := jay.NewLoads(4)
	for _, name := range []string{"orders", "pictures"} {
		db, err := jay.OpenMemory(&jay.Options{Loads: loads})
		if err != nil {
			panic(err)
		}
		defer db.Close()
		if _, err := db.Put(context.Background(), name+"/1", []byte(`{}`)); err != nil {
			panic(err)
		}
		fmt.Println(db.Exists(context.Background(), name+"/1"))
	}
	// Output:
	// true <nil>
	// true <nil>
}

// List the words that an index has, as its analyzer makes them.
func ExampleIndexTerm() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}, Options: map[string]string{"analyzer": "english"}}))
	for _, text := range []string{"Oaks have acorns", "An acorn"} {
		_, err := db.Insert(ctx, "notes|", fmt.Appendf(nil, `{"Text":%q}`, text), jay.InCollection("Notes"))
		check(err)
	}
	terms, err := jay.IndexOf(db, "Notes", "Words").Terms(ctx, jay.IndexTermList{Prefix: "a"})
	check(err)
	for _, term := range terms {
		fmt.Println(term.Text, term.Documents)
	}
	// Output:
	// acorn 2
}

// Go through all terms of an index, some at a time.
func ExampleIndexTermList() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}}))
	_, err := db.Insert(ctx, "notes|", []byte(`{"Text":"beech ash oak"}`), jay.InCollection("Notes"))
	check(err)
	for list := (jay.IndexTermList{Limit: 2}); ; {
		terms, err := jay.IndexOf(db, "Notes", "Words").Terms(ctx, list)
		check(err)
		fmt.Println(terms)
		if len(terms) < list.Limit {
			break
		}
		list.After = terms[len(terms)-1].Text
	}
	// Output:
	// [{ash 1} {beech 1}]
	// [{oak 1}]
}
