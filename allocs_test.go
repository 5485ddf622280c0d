package jay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that the common calls allocate no more than they did. Each limit is what
// was measured when it was written; it may be lowered, and raised only on purpose.
func TestAllocations(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	type person struct {
		ID   string `json:"-"`
		Name string
		Age  int
	}
	ctx := context.Background()
	db := open(t, t.TempDir(), &jay.Options{Durability: jay.Relaxed})
	people, err := jay.CollectionOf[person](db)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.EnsureIndex(ctx, "People", jay.Index{Name: "age", Fields: []string{"Age"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		p := person{ID: fmt.Sprint("people/", i), Name: "Ann", Age: i / 10}
		if _, err := people.Put(ctx, &p); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Put(ctx, fmt.Sprint("plain/", i), json.RawMessage(`{"Name":"Ann"}`)); err != nil {
			t.Fatal(err)
		}
	}
	body := json.RawMessage(`{"Name":"Ann","City":"Rome"}`)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, c := range []struct {
		name string
		most float64
		call func()
	}{
		{"Get", 3, func() { n++; _, err := db.Get(ctx, fmt.Sprint("plain/", n%1000)); check(err) }},
		{"Get of one document again and again", 0, func() { _, err := db.Get(ctx, "plain/1"); check(err) }},
		{"Collection.Get", 2, func() { _, err := people.Get(ctx, "people/1"); check(err) }},
		{"Store", 11, func() { _, err := db.Store(ctx, "Things", body); check(err) }},
		{"Put of a document that is there", 10, func() { _, err := db.Put(ctx, "plain/2", body); check(err) }},
		{"Collection.Insert under an index", 22, func() { _, err := people.Insert(ctx, &person{Name: "Bob", Age: 1000}); check(err) }},
		{"Update that reads and writes, and does not lose", 38, func() {
			check(db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := tx.Get(ctx, "plain/3"); err != nil {
					return err
				}
				_, err := tx.Put(ctx, "plain/3", body)
				return err
			}, jay.Retry(10)))
		}},
		{"InsertMany of 100 under an index", 1030, func() {
			many := make([]*person, 100)
			for i := range many {
				many[i] = &person{Name: "Bob", Age: 1000}
			}
			_, err := people.InsertMany(ctx, many)
			check(err)
		}},
		{"Scan of 1,000", 1025, func() {
			for _, err := range db.Documents(ctx, jay.Scan{Prefix: "plain/"}) {
				check(err)
			}
		}},
		{"query by an index, 10 documents", 84, func() {
			found, err := people.Query().Where(jay.Eq("Age", 7)).All(ctx)
			if check(err); len(found) != 10 {
				t.Fatalf("%d documents", len(found))
			}
		}},
	} {
		for range 20 {
			c.call()
		}
		if got := jaytest.Allocs(200, c.most, c.call); got > c.most {
			t.Errorf("%s allocates %v times, at most %v before", c.name, got, c.most)
		} else {
			t.Logf("%s: %v of %v", c.name, got, c.most)
		}
	}
}
