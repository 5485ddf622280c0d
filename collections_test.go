package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// collectionsOf returns what Collections says, as text.
func collectionsOf(t *testing.T, db *jay.DB) string {
	t.Helper()
	all, err := db.Collections(ctx)
	must(t, err)
	parts := make([]string, len(all))
	for i, c := range all {
		parts[i] = fmt.Sprint(c.Name, " ", c.Documents)
	}
	return strings.Join(parts, ", ")
}

// Ensure that every way to make and delete documents is counted, and that what changes
// no number of documents changes no number.
func TestCollections(t *testing.T) {
	db := memory(t, nil)
	equal(t, collectionsOf(t, db), "")
	put(t, db, "users/1", `{}`, jay.InCollection("Users"))
	put(t, db, "users/1", `{"a":1}`, jay.InCollection("USERS"))
	put(t, db, "away", `{}`, jay.InCollection("users"))
	put(t, db, "loose", `{}`)
	equal(t, collectionsOf(t, db), "@empty 1, users 2")
	store(t, db, "Orders")
	equal(t, collectionsOf(t, db), "@empty 1, @hilo 1, Orders 1, users 2")
	must(t, db.Delete(ctx, "loose"))
	must(t, db.Delete(ctx, "loose"))
	equal(t, collectionsOf(t, db), "@hilo 1, Orders 1, users 2")

	var b jay.Batch
	b.Put("users/2", []byte(`{}`), jay.InCollection("Users"))
	b.Delete("users/2")
	b.Put("users/2", []byte(`{}`), jay.InCollection("Users"))
	b.Put("users|", []byte(`{}`), jay.InCollection("Users"))
	b.Put("users/", []byte(`{}`), jay.InCollection("Users"))
	b.Patch("orders/new", jay.Set("a", 1), jay.OrInsert(map[string]int{}), jay.InCollection("Orders"))
	_, err := db.Apply(ctx, &b)
	must(t, err)
	equal(t, collectionsOf(t, db), "@hilo 1, Orders 2, users 5")

	_, err = db.Insert(ctx, "users/1", []byte(`{}`), jay.InCollection("Users"))
	if !errors.Is(err, jay.ErrExists) {
		t.Errorf("got %v", err)
	}
	equal(t, collectionsOf(t, db), "@hilo 1, Orders 2, users 5")
	failed := errors.New("no")
	if err := db.Update(ctx, func(tx *jay.Tx) error {
		must(t, tx.Delete(ctx, "users/1"))
		return failed
	}); err != failed {
		t.Errorf("got %v", err)
	}
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		must(t, tx.Delete(ctx, "users/1"))
		_, err := tx.Put(ctx, "loose", []byte(`{}`))
		return err
	}))
	equal(t, collectionsOf(t, db), "@empty 1, @hilo 1, Orders 2, users 4")
	must(t, jay.CheckCounts(db))

	bulk, err := db.BulkInsert(nil)
	must(t, err)
	for i := range 2500 {
		_, err := bulk.Put(ctx, fmt.Sprint("items/", i%2000), []byte(`{}`), jay.InCollection(fmt.Sprint("Items", i%40)))
		must(t, err)
	}
	must(t, bulk.Close())
	must(t, jay.CheckCounts(db))
}

// Ensure that counting a collection reads none of its documents, and that Skip and
// Limit count.
func TestCollection_Count(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[struct{ ID string }](t, db, jay.Named("Users"))
	for range 7 {
		store(t, db, "Users")
	}
	n, err := users.Count(ctx)
	must(t, err)
	equal(t, n, 7)
	for text, want := range map[string]int64{
		"from Users": 7, "from Users limit 5": 5, "from Users limit 3, 5": 4, "from Users limit 9, 5": 0, "from Nobody": 0,
		"from '@all_docs'": 8, "from Users where id() != 'users/1-A'": 6, "from Users order by Name": 7,
	} {
		q, err := db.RQL(text, nil)
		must(t, err)
		n, err := q.Count(ctx)
		must(t, err)
		if n != want {
			t.Errorf("%s: %d documents, want %d", text, n, want)
		}
	}

	// A transaction counts what it sees.
	must(t, db.View(ctx, func(tx *jay.Tx) error {
		store(t, db, "Users")
		n, err := users.In(tx).Count(ctx)
		equal(t, n, 7)
		return err
	}))
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		must(t, tx.Delete(ctx, "users/1-A"))
		_, err := tx.Put(ctx, "users/x", []byte(`{}`), jay.InCollection("Users"))
		must(t, err)
		_, err = tx.Put(ctx, "users/y", []byte(`{}`), jay.InCollection("Users"))
		must(t, err)
		n, err := users.In(tx).Count(ctx)
		equal(t, n, 9)
		return err
	}))
	closed, err := jay.OpenMemory(nil)
	must(t, err)
	must(t, closed.Close())
	if _, err := closed.Collections(ctx); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := db.Collections(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

// Ensure that the numbers are those of the documents after a loss of power at any sync,
// also while the documents of an older database are being counted, and under
// concurrent writes of every kind.
func TestCollections_Crash(t *testing.T) {
	defer jay.SetCountSteps(5)()
	for _, percent := range []int{0, 50, 100} {
		disk := storagetest.NewDisk()
		for round := range 12 {
			opts := jay.Options{Durability: jay.Synced}
			if round%3 == 1 {
				opts.Durability = jay.Relaxed
			}
			if round%2 == 1 { // counts from the beginning, as after an upgrade
				opts.AcceptLoss = func(d *jay.DamageError) { t.Errorf("round %d: %v", round, d) }
			}
			db := onDisk(t, disk, opts)
			random := rand.New(rand.NewPCG(uint64(round), uint64(percent)))
			cut := disk.CutPower(3+random.IntN(30), percent, random)
			var writers sync.WaitGroup
			for w := range 3 {
				writers.Go(func() { countedWrites(t, db, uint64(10*round+w), cut.Happened) })
			}
			writers.Wait()
			disk.OnSync(func() {})
			must(t, jay.CheckCounts(db))
			closeDB(t, db)

			disk = cut.Disk()
			db = onDisk(t, disk, jay.Options{})
			if err := jay.CheckCounts(db); err != nil {
				t.Fatalf("%d%%, round %d: %v", percent, round, err)
			}
			closeDB(t, db)
		}
	}
}

// countedWrites makes and deletes documents until the power is gone.
func countedWrites(t *testing.T, db *jay.DB, seed uint64, gone func() bool) {
	random := rand.New(rand.NewPCG(seed, 2))
	id := func() string { return fmt.Sprint("items/", random.IntN(60)) }
	for n := 0; !gone() && !t.Failed(); n++ {
		var err error
		if n%20 == 19 { // under Relaxed, little else syncs
			err = db.Flush(ctx)
		}
		if err != nil {
			t.Errorf("flush: %v", err)
		}
		switch random.IntN(6) {
		case 0:
			err = db.Delete(ctx, id())
		case 1:
			_, err = db.Store(ctx, "Orders", []byte(`{}`))
		case 2:
			_, err = db.Patch(ctx, id(), jay.Increment("n", 1), jay.OrInsert(map[string]int{}), jay.InCollection("Items"))
		case 3:
			var b jay.Batch
			for range random.IntN(5) + 1 {
				if b.Delete(id()); random.IntN(2) == 0 {
					b.Put(id(), []byte(`{}`), jay.InCollection("Items"))
				}
			}
			_, err = db.Apply(ctx, &b)
		case 4:
			err = db.Update(ctx, func(tx *jay.Tx) error {
				one := id()
				if there, err := tx.Exists(ctx, one); there || err != nil {
					return errors.Join(err, tx.Delete(ctx, one))
				}
				_, err := tx.Put(ctx, one, []byte(`{}`), jay.InCollection("Items"))
				return err
			}, jay.Retry(100))
			if errors.Is(err, jay.ErrConflict) {
				err = nil
			}
		default:
			_, err = db.Put(ctx, id(), []byte(fmt.Sprintf(`{"n":%d}`, n)), jay.InCollection("Items"))
		}
		if err != nil {
			t.Errorf("write %d: %v", n, err)
		}
	}
}

// Ensure that a database of an older format is counted when it is opened, right from
// the first call, and only once.
func TestCollections_OlderDatabase(t *testing.T) {
	defer jay.SetCountSteps(1)()
	for _, format := range []string{"format1", "format2"} {
		dir := t.TempDir()
		copyTree(t, filepath.Join("testdata", format, "db"), dir)
		db := open(t, dir, nil)
		equal(t, collectionsOf(t, db), "@empty 1, @hilo 1, Users 6")
		must(t, db.Delete(ctx, "away"))
		put(t, db, "zebra", `{}`)
		equal(t, collectionsOf(t, db), "@empty 2, @hilo 1, Users 5")
		must(t, jay.CheckCounts(db))
		equal(t, collectionsOf(t, db), "@empty 2, @hilo 1, Users 5")
		closeDB(t, db)
		db = open(t, dir, nil)
		equal(t, collectionsOf(t, db), "@empty 2, @hilo 1, Users 5")
		closeDB(t, db)
	}
}

func ExampleDB_Collections() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	ctx := context.Background()
	for _, id := range []string{"orders/1", "orders/2"} {
		if _, err := db.Put(ctx, id, json.RawMessage(`{}`), jay.InCollection("Orders")); err != nil {
			panic(err)
		}
	}
	collections, err := db.Collections(ctx)
	if err != nil {
		panic(err)
	}
	for _, c := range collections {
		fmt.Println(c.Name, c.Documents)
	}
	// Output: Orders 2
}

func ExampleCollectionCount() {
	c := jay.CollectionCount{Name: "Orders", Documents: 2}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
	// Output: {"name":"Orders","documents":2}
}
