package storage_test

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// A transaction is a function, which may run more than once.
func ExampleEngine() {
	ctx := context.Background()
	e, err := lsm.Open("example", lsm.Options{InMemory: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	err = e.Update(ctx, true, func(tx storage.Tx) error {
		n, err := tx.Sequence()
		tx.Set([]byte("acorns"), fmt.Append(nil, n), nil)
		return err
	})
	fmt.Println(err)

	value, closer, err := e.Get([]byte("acorns"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer closer.Close()
	fmt.Printf("%s\n", value)
	// Output:
	// <nil>
	// 1
}
