package jay_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

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
