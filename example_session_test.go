package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay"
)

// Tree is what squirrels live in.
type Tree struct {
	ID   string
	Kind string
}

// Nest refers to a tree and to squirrels, by their IDs.
type Nest struct {
	ID        string
	Tree      string
	Squirrels []string
}

// forest is a database with a nest in a tree, where two squirrels live.
func forest() *jay.DB {
	ctx := context.Background()
	db := example()
	session := db.OpenSession()
	oak := &Tree{Kind: "oak"}
	check(session.Store(ctx, oak))
	nest := &Nest{Tree: oak.ID}
	check(session.Store(ctx, nest))
	for _, name := range []string{"Hazel", "Conker"} {
		s := &Squirrel{Name: name, Nuts: 10}
		check(session.Store(ctx, s))
		nest.Squirrels = append(nest.Squirrels, s.ID)
	}
	check(session.SaveChanges(ctx))
	return db
}

// A session is a unit of work: it notices what is changed, and writes it all
// at once.
func ExampleSession() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	hazel, err := jay.Load[Squirrel](ctx, session, "squirrels/1-A")
	check(err)
	hazel.Nuts += 23
	acorn := &Squirrel{Name: "Acorn"}
	check(session.Store(ctx, acorn)) // gives an ID at once
	fmt.Println(acorn.ID)
	check(session.SaveChanges(ctx)) // writes both

	doc, err := db.Get(ctx, hazel.ID)
	check(err)
	fmt.Printf("%s\n", doc.Body())
	// Output:
	// squirrels/3-A
	// {"Name":"Hazel","Nuts":33}
}

// A session belongs to one piece of work, such as a request. It holds no
// resources and needs no closing.
func ExampleDB_OpenSession() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	tree, err := jay.Load[Tree](ctx, session, "trees/1-A")
	check(err)
	fmt.Println(tree.Kind)
	// Output: oak
}

// Within a session one document is one pointer.
func ExampleLoad() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	hazel, err := jay.Load[Squirrel](ctx, session, "squirrels/1-A")
	check(err)
	again, err := jay.Load[Squirrel](ctx, session, "SQUIRRELS/1-a")
	check(err)
	fmt.Println(hazel == again)

	_, err = jay.Load[Squirrel](ctx, session, "squirrels/99-A")
	fmt.Println(errors.Is(err, jay.ErrNotFound))
	// Output:
	// true
	// true
}

// What is not there is nil.
func ExampleLoadMany() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	found, err := jay.LoadMany[Squirrel](ctx, session, []string{"squirrels/2-A", "squirrels/99-A", "squirrels/1-A"})
	check(err)
	fmt.Println(found[0].Name, found[1] == nil, found[2].Name)
	// Output: Conker true Hazel
}

// A nest, its tree and its squirrels come in one read, as they were at one
// moment. The later loads are answered by the session.
func ExampleInclude() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	nest, err := jay.Load[Nest](ctx, session, "nests/1-A", jay.Include("Tree", "Squirrels[]"))
	check(err)
	fmt.Println(session.Holds(nest.Tree), session.Holds(nest.Squirrels[1]))

	tree, err := jay.Load[Tree](ctx, session, nest.Tree)
	check(err)
	squirrels, err := jay.LoadMany[Squirrel](ctx, session, nest.Squirrels)
	check(err)
	fmt.Println(squirrels[0].Name, "and", squirrels[1].Name, "live in an", tree.Kind)
	// Output:
	// true true
	// Hazel and Conker live in an oak
}

// An include follows a path to IDs through objects and arrays.
func ExampleLoadOption() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	type Stay struct{ Squirrel string }
	type Diary struct {
		ID    string
		Stays []Stay
	}

	session := db.OpenSession()
	check(session.Store(ctx, &Diary{ID: "diaries/oak", Stays: []Stay{{"squirrels/1-A"}, {"squirrels/2-A"}, {"nobody"}}}))
	check(session.SaveChanges(ctx))
	session.Clear()

	_, err := jay.Load[Diary](ctx, session, "diaries/oak", jay.Include("Stays[].Squirrel"))
	check(err)
	fmt.Println(session.Holds("squirrels/1-A"), session.Holds("squirrels/2-A"))
	// Output: true true
}

// SaveChanges is one atomic write. It fills in the IDs that the database makes.
func ExampleSession_SaveChanges() {
	type Invoice struct {
		ID     string
		Amount int
	}
	ctx := context.Background()
	db := example()
	defer db.Close()

	session := db.OpenSession()
	invoice := &Invoice{ID: "invoices|", Amount: 5}
	check(session.Store(ctx, invoice))
	fmt.Println(invoice.ID)
	check(session.SaveChanges(ctx))
	fmt.Println(invoice.ID)
	// Output:
	// invoices|
	// invoices/1
}

// WhatChanged returns what SaveChanges would write, in its order.
func ExampleSession_WhatChanged() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	hazel, err := jay.Load[Squirrel](ctx, session, "squirrels/1-A")
	check(err)
	hazel.Nuts, hazel.Likes = 11, []string{"pears"}
	check(session.Store(ctx, &Tree{Kind: "beech"}))
	check(session.DeleteID("squirrels/2-A"))

	changes, err := session.WhatChanged()
	check(err)
	for _, c := range changes {
		fmt.Println(c.ID, c.State)
	}
	// Output:
	// squirrels/2-A deleted
	// squirrels/1-A changed
	// trees/2-A added
}

func ExampleSession_HasChanges() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	hazel, err := jay.Load[Squirrel](ctx, session, "squirrels/1-A")
	check(err)
	for _, nuts := range []int{10, 11} { // it has 10
		hazel.Nuts = nuts
		changed, err := session.HasChanges()
		check(err)
		fmt.Println(changed)
	}
	// Output:
	// false
	// true
}

// Refresh brings an entity up to date, and forgets what was not saved.
func ExampleSession_Refresh() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	hazel, err := jay.Load[Squirrel](ctx, session, "squirrels/1-A")
	check(err)
	_, err = db.Patch(ctx, hazel.ID, jay.Increment("Nuts", 5))
	check(err)
	fmt.Println(hazel.Nuts)
	check(session.Refresh(ctx, hazel))
	fmt.Println(hazel.Nuts)
	// Output:
	// 10
	// 15
}

// A document can say more about itself than its struct does.
func ExampleSession_SetMetadata() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	hazel, err := jay.Load[Squirrel](ctx, session, "squirrels/1-A")
	check(err)
	check(session.SetMetadata(hazel, []byte(`{"source":"form"}`)))
	check(session.SaveChanges(ctx))
	meta, err := session.Metadata(hazel)
	check(err)
	fmt.Printf("%s %s %s\n", meta.ID, meta.Collection, meta.Custom)
	// Output: squirrels/1-A Squirrels {"source":"form"}
}

// Each changed member is a FieldChange.
func ExampleEntityChanges() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	hazel, err := jay.Load[Squirrel](ctx, session, "squirrels/1-A")
	check(err)
	hazel.Name, hazel.Nuts = "Hazelnut", 11
	changes, err := session.WhatChanged()
	check(err)
	fmt.Println(changes[0].Entity == any(hazel))
	for _, f := range changes[0].Fields {
		fmt.Printf("%s: %s, was %s\n", f.Path, f.New, f.Old)
	}
	// Output:
	// true
	// Name: "Hazelnut", was "Hazel"
	// Nuts: 11, was 10
}

// A member that was not there has no old value.
func ExampleFieldChange() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	hazel, err := jay.Load[Squirrel](ctx, session, "squirrels/1-A")
	check(err)
	hazel.Likes = []string{"pears"}
	changes, err := session.WhatChanged()
	check(err)
	field := changes[0].Fields[0]
	fmt.Printf("%s: %q, was %q\n", field.Path, field.New, field.Old)
	// Output: Likes: "[\"pears\"]", was ""
}

func ExampleEntityState() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	session := db.OpenSession()
	check(session.Store(ctx, &Tree{Kind: "beech"}))
	changes, err := session.WhatChanged()
	check(err)
	switch changes[0].State {
	case jay.EntityAdded:
		fmt.Println(changes[0].ID, "is new")
	case jay.EntityChanged, jay.EntityDeleted:
		fmt.Println(changes[0].ID, "was there")
	}
	// Output: trees/2-A is new
}

// The second of two sessions that change one document is refused, and nothing
// of it is written.
func ExampleOptimisticConcurrency() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	one, two := db.OpenSession(jay.OptimisticConcurrency()), db.OpenSession(jay.OptimisticConcurrency())
	for _, session := range []*jay.Session{one, two} {
		hazel, err := jay.Load[Squirrel](ctx, session, "squirrels/1-A")
		check(err)
		hazel.Nuts++
	}
	check(one.SaveChanges(ctx))
	err := two.SaveChanges(ctx)
	var conflict *jay.ConflictError
	fmt.Println(errors.As(err, &conflict), conflict.ID)
	// Output: true squirrels/1-A
}

// A session maps types as collections do that were made with options.
func ExampleSessionOption() {
	type Person struct {
		ID   string
		Name string
	}
	ctx := context.Background()
	db := example()
	defer db.Close()
	staff, err := jay.CollectionOf[Person](db, jay.Named("Staff"), jay.WithPrefix("staff"))
	check(err)

	session := db.OpenSession(jay.WithCollections(staff))
	ann := &Person{Name: "Ann"}
	check(session.Store(ctx, ann))
	check(session.SaveChanges(ctx))
	doc, err := db.Get(ctx, ann.ID)
	check(err)
	fmt.Println(doc.ID(), doc.Collection())
	// Output: staff/1-A Staff
}

// A version field makes writes of its type conditional in every session, and
// beyond: it holds the version that was read.
func ExampleSession_version() {
	type Page struct {
		ID      string
		Version string `jay:"version"`
		Text    string
	}
	ctx := context.Background()
	db := example()
	defer db.Close()

	session := db.OpenSession()
	page := &Page{ID: "pages/home", Text: "Hello"}
	check(session.Store(ctx, page))
	check(session.SaveChanges(ctx))
	_, err := db.Put(ctx, page.ID, json.RawMessage(`{"Text":"Hi"}`), jay.InCollection("Pages")) // another writer
	check(err)

	page.Text = "Welcome"
	fmt.Println(errors.Is(session.SaveChanges(ctx), jay.ErrConflict))
	// Output: true
}
