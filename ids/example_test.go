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
	id, err := r.Identity(c, "users|")
	fmt.Println(id, err)
	id, etag, err := r.ServerSide(c, "users/")
	fmt.Println(id, etag, err)
	// Output:
	// users/1 <nil>
	// users/0000000000000000001-A 1 <nil>
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
