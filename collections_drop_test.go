package jay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a dropped collection leaves neither documents nor indexes, that other
// collections stay, and that no HiLo ID is given again.
func TestDropCollection(t *testing.T) {
	defer jay.SetChangeBatch(3)()
	db := memory(t, nil)
	for n := range 10 {
		put(t, db, fmt.Sprint("users/", n, "-X"), fmt.Sprintf(`{"N":%d}`, n), jay.InCollection("Users"))
		put(t, db, fmt.Sprint("loose", n), fmt.Sprintf(`{"N":%d}`, n+20), jay.InCollection("users"))
		put(t, db, fmt.Sprint("users/other", n), `{"N":1}`, jay.InCollection("Others"))
	}
	first := store(t, db, "Users")
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"N"}, Unique: true}))
	must(t, db.EnsureIndex(ctx, "Others", jay.Index{Fields: []string{"N"}}))
	n, err := db.DropCollection(ctx, "USERS")
	must(t, err)
	equal(t, n, 21)
	equal(t, collectionsOf(t, db), "@hilo 1, Others 10")
	indexes, err := db.Indexes(ctx, "")
	must(t, err)
	equal(t, len(indexes), 1)
	equal(t, indexes[0].Collection, "Others")
	must(t, jay.CheckIndexes(db))
	must(t, jay.CheckCounts(db))
	if again := store(t, db, "Users"); again == first {
		t.Errorf("%s was given twice", again)
	}
	put(t, db, "users/a", `{"N":1}`, jay.InCollection("Users"))
	put(t, db, "users/b", `{"N":1}`, jay.InCollection("Users")) // no index is in the way

	n, err = db.DropCollection(ctx, "Nobody")
	must(t, err)
	equal(t, n, 0)
	for _, name := range []string{"", "@hilo", "@HiLo", "a\x00b"} {
		if _, err := db.DropCollection(ctx, name); err == nil {
			t.Errorf("%q is dropped", name)
		}
	}
	equal(t, collectionsOf(t, db), "@hilo 1, Others 10, Users 3")
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := db.DropCollection(cancelled, "Users"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

// Ensure that a drop that a loss of power cuts anywhere leaves whole documents, index
// entries and numbers, and goes on when it is called again.
func TestDropCollection_Crash(t *testing.T) {
	defer jay.SetChangeBatch(2)()
	partly := 0
	for round := range 9 {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		for n := range 20 {
			put(t, db, fmt.Sprint("users/", n), fmt.Sprintf(`{"N":%d}`, n), jay.InCollection("Users"))
		}
		put(t, db, "others/1", `{}`, jay.InCollection("Others"))
		must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"N"}, Unique: true}))
		random := rand.New(rand.NewPCG(uint64(round), 3))
		cut := disk.CutPower(round, 50, random)
		_, err := db.DropCollection(ctx, "Users")
		must(t, err)
		disk.OnSync(func() {})
		closeDB(t, db)
		if !cut.Happened() {
			t.Fatalf("round %d: the drop made too few syncs", round)
		}

		db = onDisk(t, cut.Disk(), jay.Options{})
		must(t, jay.CheckCounts(db))
		jaytest.FinishIndexTasks(t, db)
		must(t, jay.CheckIndexes(db))
		before, err := db.Query("Users").Count(ctx)
		must(t, err)
		if before > 0 && before < 20 {
			partly++
		}
		n, err := db.DropCollection(ctx, "Users")
		must(t, err)
		equal(t, n, before)
		equal(t, collectionsOf(t, db), "Others 1")
		indexes, err := db.Indexes(ctx, "")
		must(t, err)
		equal(t, len(indexes), 0)
		closeDB(t, db)
	}
	if partly == 0 {
		t.Error("no drop was cut in the middle: the test does not test it")
	}
}

func ExampleDB_DropCollection() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	ctx := context.Background()
	if _, err := db.Put(ctx, "logs/1", []byte(`{}`), jay.InCollection("Logs")); err != nil {
		panic(err)
	}
	n, err := db.DropCollection(ctx, "Logs")
	if err != nil {
		panic(err)
	}
	fmt.Println(n, "documents deleted")
	// Output: 1 documents deleted
}
