package ids_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay/ids"
)

func ExampleClassify() {
	for _, request := range []string{"users/ann", "", "users/", "users|"} {
		fmt.Println(ids.Classify(request, "/"))
	}
	// Output:
	// semantic
	// guid
	// server-side
	// identity
}

func ExampleRules() {
	rules := ids.DefaultRules()
	fmt.Println(rules.Fold("Users/ANN"))
	fmt.Println(rules.Check(`users\ann`))
	// Output:
	// users/ann
	// invalid id "users\\ann": must not hold the character \ (byte 5)
}

// A resolver makes IDs from the counters of the transaction it is given.
func ExampleResolver() {
	r := ids.NewResolver(ids.DefaultRules(), false, false, nil)
	c := &counters{} // in a database, the transaction that writes the document
	for _, asked := range []string{"users/ann", "users|", "users/"} {
		request, strategy := r.Request(asked)
		id, etag, err := r.Make(strategy, c, request)
		fmt.Println(r.Form(request, strategy), id, etag, err)
	}
	// Output:
	// users/ann users/ann 0 <nil>
	// users/… users/1 0 <nil>
	// users/…-A users/0000000000000000001-A 1 <nil>
}

// A strategy says when its IDs are known: a client that shows the ID of what it stores has
// to wait for the commit only if the commit makes it.
func ExampleStrategy() {
	for _, request := range []string{"users/ann", "", "users/", "users|"} {
		s := ids.Classify(request, "/")
		fmt.Printf("%-12s made %-5v by the commit %v\n", s, s.Made(), s.MadeByCommit())
	}
	// Output:
	// semantic     made false by the commit false
	// guid         made true  by the commit false
	// server-side  made true  by the commit true
	// identity     made true  by the commit true
}

// Marks are what makes HiLo numbers unique: one document stored, the range
// given back, and the next begins behind it.
func ExampleMarks() {
	var m ids.Marks
	low, high, _, err := m.Grant(0, ids.RangeRequest{Tag: "employees"}, time.Now())
	fmt.Println(low, high, err)
	fmt.Println(m.Return(high, 1, high), m.Mark)
	low, high, _, err = m.Grant(1, ids.RangeRequest{Tag: "employees"}, time.Now())
	fmt.Println(low, high, err)
	// Output:
	// 1 32 <nil>
	// true 1
	// 2 33 <nil>
}

func ExampleClient() {
	c := ids.NewClient(&source{}, true) // in a database, ranges are granted durably
	for range 2 {
		id, err := c.Next(context.Background(), "users")
		fmt.Println(id, err)
	}
	// Output:
	// users/1-A <nil>
	// users/2-A <nil>
}

// Pace is how the older generations sized their ranges.
func ExamplePace() {
	var p ids.Pace
	now := time.Date(2012, 5, 16, 0, 0, 0, 0, time.UTC)
	for range 3 {
		fmt.Println(p.Next(ids.Growth2, 32, now, 0))
		now = now.Add(time.Second / 2)
	}
	// Output:
	// 32
	// 64
	// 128
}
