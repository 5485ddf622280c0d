package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

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
	must(t, checks.Counts(db))

	bulk, err := db.BulkInsert(nil)
	must(t, err)
	for i := range 2500 {
		_, err := bulk.Put(ctx, fmt.Sprint("items/", i%2000), []byte(`{}`), jay.InCollection(fmt.Sprint("Items", i%40)))
		must(t, err)
	}
	must(t, bulk.Close())
	must(t, checks.Counts(db))
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
	defer checks.SetCountSteps(5)()
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
			must(t, checks.Counts(db))
			closeDB(t, db)

			disk = cut.Disk()
			db = onDisk(t, disk, jay.Options{})
			if err := checks.Counts(db); err != nil {
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
	defer checks.SetCountSteps(1)()
	for _, format := range []string{"format1", "format2"} {
		dir := t.TempDir()
		copyTree(t, filepath.Join("testdata", format, "db"), dir)
		db := open(t, dir, nil)
		equal(t, collectionsOf(t, db), "@empty 1, @hilo 1, Users 6")
		must(t, db.Delete(ctx, "away"))
		put(t, db, "zebra", `{}`)
		equal(t, collectionsOf(t, db), "@empty 2, @hilo 1, Users 5")
		must(t, checks.Counts(db))
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

// Ensure that a dropped collection leaves neither documents nor indexes, that other
// collections stay, and that no HiLo ID is given again.
func TestDropCollection(t *testing.T) {
	defer checks.SetChangeBatch(3)()
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
	must(t, checks.Indexes(db))
	must(t, checks.Counts(db))
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

// Ensure that a drop leaves the documents that are created while it runs, before and after the place that it has come to, and
// that they have no index.
func TestDropCollection_CreatedSince(t *testing.T) {
	defer checks.SetChangeBatch(3)()
	db := memory(t, nil)
	for n := range 10 {
		put(t, db, fmt.Sprint("users/", n), `{"N":1}`, jay.InCollection("Users"))
	}
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"N"}}))
	created := 0
	n, err := db.DropCollection(ctx, "Users", jay.CollectionProgress(func(int64) {
		for _, id := range []string{"users/", "users/5-", "users/9999-"} {
			put(t, db, fmt.Sprint(id, created, "-A"), `{"N":1}`, jay.InCollection("Users"))
			created++
		}
	}))
	must(t, err)
	equal(t, n, 10)
	if created < 9 {
		t.Errorf("it took %d batches", created/3)
	}
	equal(t, collectionsOf(t, db), fmt.Sprintf("Users %d", created))
	indexes, err := db.Indexes(ctx, "")
	must(t, err)
	equal(t, len(indexes), 0)
	must(t, checks.Counts(db))
}

// Ensure that a drop that a loss of power cuts anywhere leaves whole documents, index
// entries and numbers, and goes on when it is called again.
func TestDropCollection_Crash(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.SetChangeBatch(2)()
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
		must(t, checks.Counts(db))
		jaytest.FinishIndexTasks(t, db)
		must(t, checks.Indexes(db))
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

// users64 returns a database on disk with 64 documents of the collection Users, which a
// call changes in 64 batches, and one of another collection.
func users64(t *testing.T, disk *storagetest.Disk) *jay.DB {
	t.Helper()
	db := onDisk(t, disk, jay.Options{})
	var b jay.Batch
	for n := range 64 {
		b.Put(fmt.Sprint("users/", n), []byte(`{}`), jay.InCollection("Users"))
	}
	b.Put("logs/1", []byte(`{}`), jay.InCollection("Logs"))
	_, err := db.Apply(ctx, &b)
	must(t, err)
	return db
}

// usersLeft returns how many documents of users64 a disk has after a loss of power, and
// checks that the database is whole and that a second call finishes the drop.
func usersLeft(t *testing.T, disk *storagetest.Disk) int64 {
	t.Helper()
	db := onDisk(t, disk, jay.Options{})
	defer closeDB(t, db)
	n, err := db.Query("Users").Count(ctx)
	must(t, err)
	_, err = db.Verify(ctx, nil)
	must(t, err)
	again, err := db.DropCollection(ctx, "Users")
	must(t, err)
	if all := collectionsOf(t, db); again != n || strings.Contains(all, "Users") || !strings.Contains(all, "Logs") {
		t.Errorf("of %d documents a second call deletes %d and leaves %s", n, again, all)
	}
	return n
}

// watchedContext closes seen when its end has been noticed.
type watchedContext struct {
	context.Context
	seen chan struct{}
	once *sync.Once
}

func (c watchedContext) Err() error {
	err := c.Context.Err()
	if err != nil {
		c.once.Do(func() { close(c.seen) })
	}
	return err
}

// Ensure that a drop whose context ends while the disk syncs returns that error and waits for
// the disk: what it has deleted is deleted for good, so the outcome is not unknown.
func TestDropCollection_ContextEndsInSync(t *testing.T) {
	defer checks.SetSmallBatches(1)()
	disk := storagetest.NewDisk()
	db := users64(t, disk)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := watchedContext{inner, make(chan struct{}), new(sync.Once)}
	disk.OnSync(func() {
		cancel()
		<-watched.seen
	})
	n, err := db.DropCollection(watched, "Users")
	disk.OnSync(func() {})
	if !errors.Is(err, context.Canceled) || errors.Is(err, jay.ErrUnknownOutcome) {
		t.Errorf("got %v, want the end of the context and no unknown outcome", err)
	}
	if left := usersLeft(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2)))); n == 0 || left != 64-n {
		t.Errorf("%d of 64 documents were deleted, and %d are left", n, left)
	}
	closeDB(t, db)
}

// Ensure that a drop during which the disk fails, at any sync, says so, and says that the
// outcome is unknown unless what it has deleted is deleted for good.
func TestDropCollection_DiskFails(t *testing.T) {
	defer checks.SetSmallBatches(1)()
	for after := range 5 {
		disk := storagetest.NewDisk()
		db := users64(t, disk)
		disk.FailAfter(after)
		n, err := db.DropCollection(ctx, "Users")
		if err == nil {
			if after < 4 {
				t.Errorf("after %d syncs: the drop succeeded", after)
			}
		} else if strings.Count(err.Error(), jay.ErrUnknownOutcome.Error()) > 1 {
			t.Errorf("after %d syncs: the error says it twice: %v", after, err)
		}
		disk.Heal()
		left := usersLeft(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))))
		if !errors.Is(err, jay.ErrUnknownOutcome) && left != 64-n || left < 64-n {
			t.Errorf("after %d syncs: %d of 64 documents were deleted, and %d are left: %v", after, n, left, err)
		}
		db.Close() // the disk has failed
	}
}

// Ensure that a loss of power at any sync of a drop leaves each document whole or gone, and
// that a second call finishes the drop.
func TestDropCollection_PowerCut(t *testing.T) {
	defer checks.SetSmallBatches(1)()
	for n := 0; ; n++ {
		disk := storagetest.NewDisk()
		db := users64(t, disk)
		cut := disk.CutPower(n, 50*(n%3), rand.New(rand.NewPCG(uint64(n), 2)))
		_, err := db.DropCollection(ctx, "Users")
		must(t, err)
		happened := cut.Happened()
		closeDB(t, db)
		if !happened {
			if n == 0 {
				t.Error("the drop has no sync")
			}
			return
		}
		usersLeft(t, cut.Disk())
	}
}

// Ensure that the batches of a drop, of a rename and of a deletion by query share syncs of
// the disk, one of which takes as long as many of them, and that all is on disk when the
// call returns.
func TestDropCollection_SharesSyncs(t *testing.T) {
	defer checks.SetSmallBatches(1)()
	const documents = 64
	for name, change := range map[string]func(db *jay.DB) error{
		"drop":   func(db *jay.DB) error { _, err := db.DropCollection(ctx, "Users"); return err },
		"rename": func(db *jay.DB) error { _, err := db.RenameCollection(ctx, "Users", "People"); return err },
		"delete": func(db *jay.DB) error { _, err := db.Query("Users").Delete(ctx); return err },
	} {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		var b jay.Batch
		for n := range documents {
			b.Put(fmt.Sprint("users/", n), []byte(`{}`), jay.InCollection("Users"))
		}
		_, err := db.Apply(ctx, &b)
		must(t, err)
		before := disk.Syncs()
		must(t, change(db))
		if n := disk.Syncs() - before; n < documents/16 || n > documents/4 {
			t.Errorf("%s: %d syncs of %d batches", name, n, documents)
		}
		cut := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
		if all := collectionsOf(t, cut); strings.Contains(all, "Users") {
			t.Errorf("%s: a loss of power after its end brings back %s", name, all)
		}
		closeDB(t, cut)
		closeDB(t, db)
	}
}

// Ensure that the steps of a purge of revisions share syncs of the disk, and that all is on
// disk when the call returns.
func TestRevisions_Purge_SharesSyncs(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
	const documents = 32 * 64 // of 32 steps
	for range 2 {
		var b jay.Batch
		for n := range documents {
			b.Put(fmt.Sprint("users/", n), []byte(`{}`), jay.InCollection("Users"))
		}
		_, err := db.Apply(ctx, &b)
		must(t, err)
	}
	before := disk.Syncs()
	done, err := db.Revisions().Purge(ctx, jay.RevisionPurge{Before: time.Now().Add(time.Hour)})
	must(t, err)
	if n := disk.Syncs() - before; done.Revisions < documents || n == 0 || n > 8 {
		t.Errorf("%d syncs for %d revisions of %d documents", n, done.Revisions, documents)
	}
	cut := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
	again, err := cut.Revisions().Purge(ctx, jay.RevisionPurge{Before: time.Now().Add(time.Hour)})
	must(t, err)
	if again.Revisions != 0 {
		t.Errorf("a loss of power after its end brings back %d revisions", again.Revisions)
	}
	closeDB(t, cut)
	closeDB(t, db)
}

// fillUsers fills a database with 20 users, half of them under IDs of other prefixes, and
// with two indexes.
func fillUsers(t *testing.T, db *jay.DB) {
	t.Helper()
	for n := range 10 {
		put(t, db, fmt.Sprint("Users/", n), fmt.Sprintf(`{"N":%d,"Mod":%d}`, n, n%3), jay.InCollection("Users"), jay.WithMetadata([]byte(`{"Source":"a"}`)))
		put(t, db, fmt.Sprint("loose", n), fmt.Sprintf(`{"N":%d,"Mod":%d}`, n+10, n%3), jay.InCollection("users"))
	}
	put(t, db, "others/1", `{"N":1}`, jay.InCollection("Others"))
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"N"}, Unique: true}))
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "mod", Fields: []string{"-Mod"}, Where: "N > 3"}))
}

// indexesOf returns the indexes of the database, as text.
func indexesOf(t *testing.T, db *jay.DB) string {
	t.Helper()
	all, err := db.Indexes(ctx, "")
	must(t, err)
	parts := make([]string, len(all))
	for i, ix := range all {
		parts[i] = fmt.Sprint(ix.Collection, " ", ix.Name, " ", ix.State)
	}
	return strings.Join(parts, ", ")
}

// Ensure that a renamed collection has the documents and the indexes of the old one,
// that IDs, bodies and metadata stay, and that numbers and uniqueness are kept.
func TestRenameCollection(t *testing.T) {
	defer checks.SetChangeBatch(3)()
	db := memory(t, nil)
	fillUsers(t, db)
	before, err := db.Get(ctx, "users/3")
	must(t, err)
	var seen []int64
	n, err := db.RenameCollection(ctx, "USERS", "People", jay.CollectionProgress(func(n int64) { seen = append(seen, n) }))
	must(t, err)
	equal(t, n, 20)
	equal(t, fmt.Sprint(seen), "[3 6 9 12 15 18 20]")
	equal(t, collectionsOf(t, db), "Others 1, People 20")
	equal(t, indexesOf(t, db), "People mod ready, People n ready")
	must(t, checks.Indexes(db))
	must(t, checks.Counts(db))

	after, err := db.Get(ctx, "users/3")
	must(t, err)
	equal(t, after.ID(), "Users/3")
	equal(t, after.Collection(), "People")
	equal(t, string(after.Body()), string(before.Body()))
	equal(t, string(after.Metadata().Custom), `{"Source":"a"}`)
	if after.ChangeVector() == before.ChangeVector() || after.Metadata().LastModified.Before(before.Metadata().LastModified) {
		t.Errorf("version %s and %s of a renamed document", after.ChangeVector(), before.ChangeVector())
	}
	q := db.Query("People").Where(jay.Gt("N", 14))
	count, err := q.Count(ctx)
	must(t, err)
	equal(t, count, 5)
	plan, err := q.Explain(ctx)
	must(t, err)
	if !strings.Contains(plan.String(), `"n"`) && !strings.Contains(plan.String(), " n") {
		t.Errorf("the index is not used:\n%s", plan)
	}
	for _, name := range []string{"Users", "users"} {
		count, err := db.Query(name).Count(ctx)
		must(t, err)
		equal(t, count, 0)
	}
	if _, err := db.Put(ctx, "users/a", []byte(`{"N":3}`), jay.InCollection("People")); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("got %v, want ErrUnique", err)
	}
	if _, err := db.Put(ctx, "users/3", []byte(`{"N":3}`), jay.InCollection("Users")); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("got %v, want ErrCollection", err)
	}
	put(t, db, "users/new", `{"N":3}`, jay.InCollection("Users")) // a new collection, without indexes
	equal(t, collectionsOf(t, db), "Others 1, People 20, Users 1")
}

// Ensure that names that differ in case respell the collection.
func TestRenameCollection_Case(t *testing.T) {
	db := memory(t, nil)
	fillUsers(t, db)
	n, err := db.RenameCollection(ctx, "users", "USERS")
	must(t, err)
	equal(t, n, 20)
	equal(t, collectionsOf(t, db), "Others 1, USERS 20")
	n, err = db.RenameCollection(ctx, "users", "USERS")
	must(t, err)
	equal(t, n, 0)
	must(t, checks.Indexes(db))
	must(t, checks.Counts(db))
	if _, err := db.RenameCollection(ctx, "nobody", "Nobody"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

// Ensure that what cannot be renamed is refused and changes nothing.
func TestRenameCollection_Refused(t *testing.T) {
	db := memory(t, nil)
	fillUsers(t, db)
	must(t, db.EnsureIndex(ctx, "Other", jay.Index{Name: "N", Fields: []string{"M"}}))
	store(t, db, "Stored")
	collections, indexes := collectionsOf(t, db), indexesOf(t, db)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for _, test := range []struct {
		ctx      context.Context
		from, to string
		want     error
	}{
		{ctx, "Users", "Others", jay.ErrUsage},
		{ctx, "Users", "Users", jay.ErrUsage},
		{ctx, "", "People", jay.ErrUsage},
		{ctx, "Users", "", jay.ErrUsage},
		{ctx, "@hilo", "People", jay.ErrUsage},
		{ctx, "Users", "@hilo", jay.ErrUsage},
		{ctx, "@empty", "People", jay.ErrUsage},
		{ctx, "Users", "@empty", jay.ErrUsage},
		{ctx, "Users", "a\x00b", jay.ErrInvalidDocument},
		{ctx, "Nobody", "People", jay.ErrNotFound},
		{ctx, "Users", "Other", jay.ErrIndexExists}, // n is another index there
		{cancelled, "Users", "People", context.Canceled},
	} {
		if n, err := db.RenameCollection(test.ctx, test.from, test.to); n != 0 || !errors.Is(err, test.want) {
			t.Errorf("%q to %q: %d, %v, want %v", test.from, test.to, n, err, test.want)
		}
	}
	equal(t, collectionsOf(t, db), collections)
	equal(t, indexesOf(t, db), indexes)
	err := error(nil)
	if _, e := db.RenameCollection(ctx, "Users", "People", jay.CollectionProgress(func(int64) {
		_, err = db.RenameCollection(ctx, "Others", "Else")
	})); e != nil {
		t.Error(e)
	}
	if !errors.Is(err, jay.ErrUsage) {
		t.Errorf("a second rename: %v, want ErrUsage", err)
	}
}

// Ensure that a rename that ends early is gone on with, or turned back, that a rename
// into its collections is refused meanwhile, and that no document is lost.
func TestRenameCollection_Continued(t *testing.T) {
	defer checks.SetChangeBatch(3)()
	for _, back := range []bool{false, true} {
		db := memory(t, nil)
		fillUsers(t, db)
		part, cancel := context.WithCancel(ctx)
		n, err := db.RenameCollection(part, "Users", "People", jay.CollectionProgress(func(n int64) {
			if n == 6 {
				cancel()
			}
		}))
		equal(t, n, 6)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
		must(t, checks.Indexes(db))
		must(t, checks.Counts(db))
		equal(t, strings.ToLower(collectionsOf(t, db)), "others 1, people 6, users 14")
		for _, names := range [][2]string{{"Others", "people"}, {"Others", "users"}, {"users", "Else"}, {"people", "Else"}} {
			if _, err := db.RenameCollection(ctx, names[0], names[1]); !errors.Is(err, jay.ErrUsage) {
				t.Errorf("%v: got %v, want ErrUsage", names, err)
			}
		}
		put(t, db, "users/late", `{"N":100}`, jay.InCollection("Users"))
		put(t, db, "people/late", `{"N":101}`, jay.InCollection("People"))
		from, to, want := "Users", "People", int64(15)
		if back {
			from, to, want = to, from, 7
		}
		n, err = db.RenameCollection(ctx, from, to)
		must(t, err)
		equal(t, n, want)
		equal(t, collectionsOf(t, db), map[bool]string{false: "Others 1, People 22", true: "Others 1, Users 22"}[back])
		equal(t, indexesOf(t, db), fmt.Sprintf("%s mod ready, %[1]s n ready", to))
		must(t, checks.Indexes(db))
		must(t, checks.Counts(db))
		_, err = db.RenameCollection(ctx, to, "Else") // it is finished
		must(t, err)
	}
}

// Ensure that what is written meanwhile moves as well, and that a unique index holds in
// each collection: a document that has the values of a renamed one stops the rename
// until it is changed.
func TestRenameCollection_WrittenMeanwhile(t *testing.T) {
	defer checks.SetChangeBatch(5)()
	db := memory(t, nil)
	fillUsers(t, db)
	_, err := db.RenameCollection(ctx, "Users", "People", jay.CollectionProgress(func(n int64) {
		if n == 5 { // loose0 to loose4 have moved
			put(t, db, "a", `{"N":50}`, jay.InCollection("Users"))       // behind the rename
			put(t, db, "users/3", `{"N":51}`, jay.InCollection("Users")) // before it
			must(t, db.Delete(ctx, "users/4"))
			put(t, db, "users/5", `{"N":10}`, jay.InCollection("Users")) // as loose0, which is in another collection
		}
	}))
	var unique *jay.UniqueError
	if !errors.As(err, &unique) || unique.Collection != "People" {
		t.Fatalf("got %v, want a UniqueError of People", err)
	}
	must(t, checks.Indexes(db))
	must(t, checks.Counts(db))
	put(t, db, "users/5", `{"N":52}`)
	_, err = db.RenameCollection(ctx, "Users", "People")
	must(t, err)
	equal(t, collectionsOf(t, db), "Others 1, People 20")
	doc, err := db.Get(ctx, "users/3")
	must(t, err)
	equal(t, string(doc.Body()), `{"N":51}`)
	must(t, checks.Indexes(db))
	must(t, checks.Counts(db))
}

// Ensure that a transaction that has looked at the old or the new collection sees the
// rename as a conflict, and a snapshot sees nothing of it.
func TestRenameCollection_Transactions(t *testing.T) {
	for _, name := range []string{"Users", "People"} {
		db := memory(t, nil)
		fillUsers(t, db)
		err := db.Update(ctx, func(tx *jay.Tx) error {
			for _, err := range tx.Documents(ctx, jay.Scan{Collection: name, Prefix: "loose"}) {
				must(t, err)
			}
			_, err := db.RenameCollection(ctx, "Users", "People")
			must(t, err)
			_, err = tx.Put(ctx, "mark", []byte(`{}`))
			return err
		})
		if !errors.Is(err, jay.ErrConflict) {
			t.Errorf("%s: got %v, want ErrConflict", name, err)
		}
		must(t, db.View(ctx, func(tx *jay.Tx) error {
			_, err := db.RenameCollection(ctx, "People", "Users")
			must(t, err)
			n, err := tx.Query("People").Count(ctx)
			must(t, err)
			equal(t, n, 20)
			return nil
		}))
	}
}

// Ensure that a rename that a loss of power cuts at any sync leaves whole documents,
// index entries and numbers, and goes on, or back, when it is called again.
func TestRenameCollection_Crash(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.SetChangeBatch(4)()
	partly, rounds := 0, 0
	for done := false; !done; rounds++ {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		fillUsers(t, db)
		random := rand.New(rand.NewPCG(uint64(rounds), 15))
		cut := disk.CutPower(rounds, 50, random)
		_, err := db.RenameCollection(ctx, "Users", "People")
		must(t, err)
		disk.OnSync(func() {})
		closeDB(t, db)
		if done = !cut.Happened(); done {
			break
		}

		db = onDisk(t, cut.Disk(), jay.Options{})
		must(t, checks.Counts(db))
		jaytest.FinishIndexTasks(t, db)
		must(t, checks.Indexes(db))
		from, to := "Users", "People"
		old, err := db.Query(from).Count(ctx)
		must(t, err)
		moved, err := db.Query(to).Count(ctx)
		must(t, err)
		equal(t, old+moved, 20)
		if old > 0 && moved > 0 {
			partly++
			if rounds%2 == 0 {
				from, to, old = to, from, moved
			}
		}
		n, err := db.RenameCollection(ctx, from, to)
		if old > 0 || !errors.Is(err, jay.ErrNotFound) {
			must(t, err)
			equal(t, n, old)
		}
		equal(t, collectionsOf(t, db), map[string]string{"People": "Others 1, People 20", "Users": "Others 1, Users 20"}[to])
		equal(t, indexesOf(t, db), fmt.Sprintf("%s mod ready, %[1]s n ready", to))
		must(t, checks.Indexes(db))
		must(t, checks.Counts(db))
		closeDB(t, db)
	}
	t.Logf("%d syncs, %d of them in the middle", rounds, partly)
	if partly < 3 {
		t.Errorf("only %d renames were cut in the middle: the test does not test it", partly)
	}
}

// Ensure that renames, drops, writes, transactions and contexts that end, in any order,
// leave what a model of them has: every document in one collection, once.
func TestRenameCollection_Model(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.SetChangeBatch(2)()
	type state struct{ collection, body string }
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 15))
		db := memory(t, nil)
		names := []string{"Users", "People", "Persons"}
		model := make(map[string]state)
		open := "" // the target of an unfinished rename, and its source
		source := ""
		in := func(name string) (ids []string) {
			for id, s := range model {
				if s.collection == name {
					ids = append(ids, id)
				}
			}
			slices.Sort(ids)
			return ids
		}
		must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"N"}, Unique: true}))
		for step := range 60 {
			name := names[random.IntN(len(names))]
			switch random.IntN(6) {
			case 0, 1: // a write, which keeps its collection
				id := fmt.Sprint([]string{"users/", "people/", "x"}[random.IntN(3)], random.IntN(8))
				body := fmt.Sprintf(`{"N":%d}`, 1000*int(seed)+step)
				if old, there := model[id]; there {
					name = old.collection
				}
				put(t, db, id, body, jay.InCollection(name))
				model[id] = state{name, body}
			case 2: // a delete
				if ids := in(name); len(ids) > 0 {
					id := ids[random.IntN(len(ids))]
					must(t, db.Delete(ctx, id))
					delete(model, id)
				}
			default:
				to := names[random.IntN(len(names))]
				if open != "" && random.IntN(2) == 0 {
					name, to = source, open
					if random.IntN(3) == 0 {
						name, to = to, name
					}
				}
				c, cancel := context.WithCancel(ctx)
				stop := random.IntN(6)
				n, err := db.RenameCollection(c, name, to, jay.CollectionProgress(func(n int64) {
					if int(n) >= stop && stop > 0 {
						cancel()
					}
				}))
				cancel()
				ours := open != "" && (name == source && to == open || name == open && to == source)
				switch {
				case errors.Is(err, jay.ErrNotFound) && name != to && !ours && len(in(name)) == 0 && n == 0:
					continue
				case name == to, open != "" && !ours && (name == open || name == source || to == open || to == source), !ours && len(in(to)) > 0:
					if !errors.Is(err, jay.ErrUsage) || n != 0 {
						t.Fatalf("seed %d, step %d: %s to %s: %d, %v, want ErrUsage", seed, step, name, to, n, err)
					}
					continue
				case errors.Is(err, context.Canceled):
					open, source = to, name
				case err != nil:
					t.Fatalf("seed %d, step %d: %s to %s: %v", seed, step, name, to, err)
				default:
					if int(n) != len(in(name)) {
						t.Fatalf("seed %d, step %d: %s to %s: %d documents, want %d", seed, step, name, to, n, len(in(name)))
					}
					if ours {
						open, source = "", ""
					}
				}
				for i, id := range in(name) { // in the order of IDs
					if i < int(n) {
						model[id] = state{to, model[id].body}
					}
				}
			}
		}
		found := make(map[string]state)
		for doc, err := range db.Documents(ctx, jay.Scan{}) {
			must(t, err)
			found[doc.ID()] = state{doc.Collection(), string(doc.Body())}
		}
		for _, name := range names {
			for doc, err := range db.Query(name).Where(jay.Ge("N", 0)).Iter(ctx) {
				must(t, err)
				if found[doc.ID()].collection != name {
					t.Errorf("seed %d: %s is in %s, and the query finds it in %s", seed, doc.ID(), found[doc.ID()].collection, name)
				}
			}
		}
		if fmt.Sprint(found) != fmt.Sprint(model) {
			t.Errorf("seed %d: got\n%v, want\n%v", seed, found, model)
		}
		must(t, checks.Indexes(db))
		must(t, checks.Counts(db))
		closeDB(t, db)
	}
}

// Ensure that writers who name no collection, and changes by query, lose nothing to
// renames that run beside them.
func TestRenameCollection_Writers(t *testing.T) {
	defer checks.SetChangeBatch(4)()
	db := memory(t, nil)
	fillUsers(t, db)
	const writers, increments = 4, 40
	var group sync.WaitGroup
	for g := range writers {
		group.Go(func() {
			for n := range increments {
				id := fmt.Sprint("loose", (g+n)%10)
				if r, err := db.Patch(ctx, id, jay.Increment("Hits", 1)); err != nil || r.Status != jay.PatchPatched {
					t.Errorf("%s: %v, %v", id, r.Status, err)
				}
			}
		})
	}
	group.Go(func() { // documents that move away meanwhile are overtaken
		for range 5 {
			if _, err := db.Query("Users").Where(jay.Lt("N", 5)).Patch(ctx, jay.Set("Seen", true)); err != nil {
				t.Error(err)
			}
		}
	})
	for round := range 6 {
		from, to := "Users", "People"
		if round%2 == 1 {
			from, to = to, from
		}
		n, err := db.RenameCollection(ctx, from, to)
		must(t, err)
		equal(t, n, 20)
	}
	group.Wait()
	equal(t, collectionsOf(t, db), "Others 1, Users 20")
	hits := 0
	for doc, err := range db.Query("Users").Iter(ctx) {
		must(t, err)
		n, _, err := jay.Value[int](doc, "Hits")
		must(t, err)
		hits += n
	}
	equal(t, hits, writers*increments)
	must(t, checks.Indexes(db))
	must(t, checks.Counts(db))
}

func ExampleDB_RenameCollection() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	ctx := context.Background()
	if _, err := db.Put(ctx, "logs/1", []byte(`{}`), jay.InCollection("Logs")); err != nil {
		panic(err)
	}
	n, err := db.RenameCollection(ctx, "Logs", "Events")
	if err != nil {
		panic(err)
	}
	doc, err := db.Get(ctx, "logs/1")
	if err != nil {
		panic(err)
	}
	fmt.Println(n, doc.ID(), doc.Collection())
	// Output: 1 logs/1 Events
}

func ExampleCollectionChange() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	ctx := context.Background()
	if _, err := db.Put(ctx, "logs/1", []byte(`{}`), jay.InCollection("Logs")); err != nil {
		panic(err)
	}
	progress := jay.CollectionProgress(func(documents int64) { fmt.Println(documents, "documents so far") })
	if _, err := db.DropCollection(ctx, "Logs", progress); err != nil {
		panic(err)
	}
	// Output: 1 documents so far
}

// Ensure that attachments go along with their documents, and that their contents are
// counted right afterwards.
func TestRenameCollection_Attachments(t *testing.T) {
	db := memory(t, nil)
	for _, id := range []string{"users/1", "users/2"} {
		put(t, db, id, `{}`, jay.InCollection("Users"))
		_, err := db.Attachments(id).Put(ctx, "a.txt", strings.NewReader("some text"))
		must(t, err)
	}
	content := func(id string) string {
		r, err := db.Attachments(id).Get(ctx, "a.txt")
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, errors.Join(err, r.Close()))
		return string(text)
	}
	for _, names := range [][2]string{{"Users", "People"}, {"People", "PEOPLE"}, {"PEOPLE", "Users"}} {
		n, err := db.RenameCollection(ctx, names[0], names[1])
		must(t, err)
		equal(t, n, int64(2))
		equal(t, content("users/1")+content("users/2"), "some textsome text")
		must(t, checks.Contents(db))
	}
	must(t, db.Delete(ctx, "users/1"))
	equal(t, content("users/2"), "some text")
	must(t, db.Delete(ctx, "users/2"))
	must(t, checks.Contents(db))
	s, err := db.Stats(ctx)
	must(t, err)
	equal(t, s.Attachments.Attachments, int64(0))
}

// Ensure that the name of a collection is read without a copy of its first document, however
// long that is.
func TestCollections_LargeDocument(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	db := memory(t, nil)
	const size = 8 << 20
	put(t, db, "big/1", `{"s":"`+strings.Repeat("x", size)+`"}`, jay.InCollection("Big"))
	least := uint64(math.MaxUint64)
	for range 10 { // the engine, which writes the document into a table, may allocate meanwhile
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := collectionsOf(t, db)
		stats, err := db.Stats(ctx)
		runtime.ReadMemStats(&after)
		must(t, err)
		equal(t, got, "Big 1")
		equal(t, stats.Collections[0].Name, "Big")
		if least = min(least, after.TotalAlloc-before.TotalAlloc); least <= size/2 {
			return
		}
	}
	t.Errorf("%d bytes were allocated for the name of one collection", least)
}
