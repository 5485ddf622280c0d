package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"reflect"
	"strings"
	"time"

	"github.com/jaydb/jay"
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
