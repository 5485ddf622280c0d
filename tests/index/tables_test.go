package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// smallTables makes every build one by tables, with runs and tables of a few entries.
func smallTables() (restore func()) { return checks.SetBuildTables(1, 2000, 1200) }

// Ensure that an index that is built by tables while others write has all entries when
// it is ready.
func TestTables_Contents_DuringBuilds(t *testing.T) {
	defer smallTables()()
	contentsDuringBuilds(t, 3)
}

// Ensure that a loss of power at any sync of the log leaves indexes that hold what
// the documents give, if they are built by tables.
func TestTables_Crash_AtAnySync(t *testing.T) {
	sample.OneGoroutine(t)
	defer smallTables()()
	defer checks.SetBuildChunks(15, 40)()
	crashAtAnySync(t, 3)
}

// writersWin changes documents in all ways between the steps of a build of an index on m.
// Afterwards m of a document is unique.
func writersWin(t *testing.T, db *jay.DB) func(step int) {
	put := func(id, m string) {
		t.Helper()
		if _, err := db.Put(ctx, id, fmt.Appendf(nil, `{"m":%q}`, m), jay.InCollection("Users")); err != nil {
			t.Errorf("put %s: %v", id, err)
		}
	}
	remove := func(id string) {
		t.Helper()
		must(t, db.Delete(ctx, id))
	}
	return func(step int) {
		at := func(name string) string { return fmt.Sprintf("users/%s%d", name, step) }
		put(at("changed"), fmt.Sprint("changed in ", step))
		remove(at("deleted"))
		put(at("new"), fmt.Sprint("new in ", step))
		put(at("twice"), "for a moment")
		put(at("twice"), fmt.Sprint("twice in ", step))
		remove(at("again"))
		put(at("again"), at("again"))
		put(at("Upper"), at("upper")) // the capitals of an ID are in the entry
		remove(at("gone"))
		put(at("gone"), fmt.Sprint("gone in ", step))
		remove(at("gone"))
		put(at("moved"), fmt.Sprint("moved in ", step)) // and its value goes to another document
		put(at("taker"), at("moved"))
		put("users/always", fmt.Sprint("always ", step))
		if step == 0 {
			put("users/back", "elsewhere")
		} else {
			put("users/back", "users/back")
		}
	}
}

// userDocuments puts the documents that writersWin changes, and others.
func userDocuments(t *testing.T, db *jay.DB) {
	var b jay.Batch
	put := func(id string) { b.Put(id, fmt.Appendf(nil, `{"m":%q}`, id), jay.InCollection("Users")) }
	for step := range 3 {
		for _, name := range []string{"changed", "deleted", "twice", "again", "upper", "gone", "moved"} {
			put(fmt.Sprintf("users/%s%d", name, step))
		}
	}
	put("users/always")
	put("users/back")
	put("apart") // not clustered
	for i := range 100 {
		put(fmt.Sprintf("users/%03d", i))
	}
	_, err := db.Apply(ctx, &b)
	must(t, err)
}

// Ensure that what writers have done since the snapshot of a build wins over its tables,
// whenever they did it.
func TestTables_WritersWin(t *testing.T) {
	for _, unique := range []bool{false, true} {
		for _, fields := range [][]string{{"m"}, {"-m"}} {
			restore := smallTables()
			db := memory(t, nil)
			userDocuments(t, db)
			writers := writersWin(t, db)
			steps := 0
			undo := checks.OnBuildTables(func(step checks.TableStep) { writers(int(step)); steps++ })
			if err := db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: fields, Unique: unique}); err != nil {
				t.Errorf("unique %v, %v: %v", unique, fields, err)
			}
			undo()
			restore()
			if steps != 3 {
				t.Fatalf("%d steps, want 3: the test does not test it", steps)
			}
			if err := checks.Indexes(db); err != nil {
				t.Errorf("unique %v, %v: %v", unique, fields, err)
			}
			if n, err := checks.IndexKeys(db); err != nil || n != 124 {
				t.Errorf("unique %v: %d entries and records, %v, want one entry for each document", unique, n, err)
			}
			jaytest.Verify(t, db)
		}
	}
}

// Ensure that writers of a unique index find every document that has a value, whatever the
// tables of its build hide, and no other.
func TestTables_Unique_Hidden(t *testing.T) {
	defer smallTables()()
	db := memory(t, nil)
	put := func(id, m string) error {
		_, err := db.Put(ctx, id, fmt.Appendf(nil, `{"m":%q}`, m), jay.InCollection("Users"))
		return err
	}
	for _, id := range []string{"one", "two", "three"} {
		must(t, put(id, id))
	}
	taken := func(step, id, m, by string) {
		t.Helper()
		var unique *jay.UniqueError
		if err := put(id, m); !errors.As(err, &unique) || unique.Other != by {
			t.Errorf("%s: %q of %s, which %s has: %v", step, m, id, by, err)
		}
	}
	defer checks.OnBuildTables(func(step checks.TableStep) {
		switch step {
		case checks.TablesWritten:
			must(t, put("one", "1"))
			must(t, put("four", "one")) // the tables name "one" for it
			must(t, put("two", "2"))    // they name "two" for "two", which no document has
			taken("written", "five", "one", "four")
		case checks.TablesTaken:
			taken("taken", "five", "one", "four")
			taken("taken", "five", "three", "three")
			taken("taken", "five", "2", "two")
			must(t, put("six", "two"))
			taken("taken", "five", "two", "six")
			must(t, db.Delete(ctx, "four"))
			must(t, put("five", "one"))
			taken("taken", "seven", "one", "five")
		}
	})()
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: []string{"m"}, Unique: true}))
	must(t, checks.Indexes(db))
	taken("ready", "seven", "one", "five")
	taken("ready", "seven", "two", "six")
	must(t, put("seven", "four"))
	must(t, checks.Indexes(db))
	jaytest.Verify(t, db)
}

// Ensure that two documents with one value fail the build of a unique index, whether
// the snapshot has both or a writer has made one, and that nothing is left of it; and that two of
// the snapshot do not, if one of them has another value by then.
func TestTables_Unique_Violated(t *testing.T) {
	defer smallTables()()
	for _, in := range []int{-1, int(checks.TablesRead), int(checks.TablesWritten)} {
		db := memory(t, nil)
		userDocuments(t, db)
		undo := sameValueIn(t, db, in)
		err := db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: []string{"m"}, Unique: true})
		undo()
		var unique *jay.UniqueError
		if !errors.As(err, &unique) || unique.Value != `["users/050"]` || unique.ID == unique.Other || unique.ID != "users/other" && unique.Other != "users/other" {
			t.Errorf("in step %d: %v", in, err)
		}
		if n, err := checks.IndexKeys(db); n != 0 || err != nil {
			t.Errorf("in step %d: %d entries and records are left, %v", in, n, err)
		}

		undo = checks.OnBuildTables(func(step checks.TableStep) {
			if step == checks.TablesRead {
				must(t, db.Delete(ctx, []string{"users/other", "users/050"}[max(0, in)]))
			}
		})
		if err := db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: []string{"m"}, Unique: true}); err != nil {
			t.Errorf("one is deleted meanwhile: %v", err)
		}
		undo()
		must(t, checks.Indexes(db))
	}
}

// temporaries returns the temporary files of sorts on a disk.
func temporaries(t *testing.T, disk *storagetest.Disk) (names []string) {
	t.Helper()
	all, err := disk.List("db")
	must(t, err)
	for _, name := range all {
		if strings.HasPrefix(path.Base(name), "JAY.sort.") {
			names = append(names, name)
		}
	}
	return names
}

// crashAtEverySync calls build beside writers, and cuts the power at its first sync of any
// file; then at the second one of a new database, and so on, until a build has none left. It
// calls after with each disk that the power has left, and returns how many there were.
func crashAtEverySync(t *testing.T, build func(at int, db *jay.DB), after func(at int, crashed *storagetest.Disk)) (crashes int) {
	t.Helper()
	for at := 0; ; at++ {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{Durability: []jay.Durability{jay.Synced, jay.Relaxed}[at%2]})
		userDocuments(t, db)
		must(t, db.Flush(ctx))
		var mu sync.Mutex
		var crashed *storagetest.Disk
		random := rand.New(rand.NewPCG(uint64(at), 1))
		n := 0
		disk.OnEverySync(func() {
			mu.Lock()
			defer mu.Unlock()
			if n++; n == at+1 {
				crashed = disk.Crash([]int{0, 50, 100}[at%3], random)
			}
		})
		writers := writersWin(t, db)
		undo := checks.OnBuildTables(func(step checks.TableStep) { writers(int(step)) })
		build(at, db)
		undo()
		if files := temporaries(t, disk); len(files) > 0 {
			t.Errorf("temporary files stay: %v", files)
		}
		mu.Lock()
		n = -1 << 30 // the rest of the syncs does not count
		mu.Unlock()
		closeDB(t, db)
		if crashed == nil {
			return at
		}
		after(at, crashed)
	}
}

// sameValueIn makes a second document with the value of users/050 in a step of builds by
// tables, or now if in is below 0.
func sameValueIn(t *testing.T, db *jay.DB, in int) (undo func()) {
	same := func() {
		_, err := db.Put(ctx, "users/other", []byte(`{"m":"users/050"}`), jay.InCollection("Users"))
		must(t, err)
	}
	if in < 0 {
		same()
	}
	return checks.OnBuildTables(func(step checks.TableStep) {
		if int(step) == in {
			same()
		}
	})
}

// failTables makes the disk full when a build by tables begins to read, or else lets it make
// only so many temporary files.
func failTables(disk *storagetest.Disk, full bool, files int) (undo func()) {
	return checks.OnBuildTables(func(step checks.TableStep) {
		switch {
		case step != checks.TablesRead:
		case full:
			disk.Fill()
		default:
			disk.FailCreationsIn(path.Join("db", "JAY.sort."), files)
		}
	})
}

// Ensure that a loss of power at any sync of any file in a build by tables, beside
// writers, leaves no wrong entry and no temporary file, and that no commit is lost
// that is older than the tables.
func TestTables_Crash_AtEverySync(t *testing.T) {
	sample.OneGoroutine(t)
	defer smallTables()()
	left, ready := 0, 0
	build := func(at int, db *jay.DB) {
		must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: []string{"m"}, Unique: at%4 < 2}))
	}
	crashes := crashAtEverySync(t, build, func(at int, crashed *storagetest.Disk) {
		if len(temporaries(t, crashed)) > 0 {
			left++
		}
		db := onDisk(t, crashed, jay.Options{})
		infos, err := db.Indexes(ctx, "Users")
		must(t, err)
		if len(infos) == 1 && infos[0].State == jay.IndexReady {
			ready++
		}
		checks.WaitIndexTasks(db)
		if files := temporaries(t, crashed); len(files) > 0 { // of before, or of the build that Open goes on with
			t.Errorf("crash at sync %d: temporary files stay: %v", at, files)
		}
		if err := checks.Indexes(db); err != nil {
			t.Fatalf("crash at sync %d, %+v: %v", at, infos, err)
		}
		must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: []string{"m"}, Unique: at%4 < 2}))
		must(t, checks.Indexes(db))
		jaytest.Verify(t, db)
		closeDB(t, db)
	})
	t.Logf("%d crashes, %d with temporary files, %d with the index ready", crashes, left, ready)
	if crashes < 10 || left == 0 { // about 20: some syncs are shared
		t.Error("too few syncs: the test does not test it")
	}
}

// Ensure that a build whose temporary files cannot be made, at any of them, or for which
// the disk is full, returns an error, leaves documents and disk as they were, and
// succeeds when it is asked for again.
func TestTables_Faults(t *testing.T) {
	sample.OneGoroutine(t)
	defer smallTables()()
	for room := 0; ; room++ {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		userDocuments(t, db)
		full := room%2 == 1
		undo := failTables(disk, full, room/2)
		err := db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: []string{"m"}})
		undo()
		disk.Heal()
		if full && !errors.Is(err, storagetest.ErrFull) {
			t.Errorf("on a full disk: %v", err)
		}
		if err == nil {
			closeDB(t, db)
			if room < 6 {
				t.Errorf("only %d temporary files: the test does not test it", room/2)
			}
			break
		}
		if files := temporaries(t, disk); len(files) > 0 {
			t.Errorf("%v: temporary files stay: %v", err, files)
		}
		if infos, err := db.Indexes(ctx, "Users"); err != nil || len(infos) != 1 || infos[0].State != jay.IndexBuilding {
			t.Errorf("the index is %+v, %v, want one that can be built again", infos, err)
		}
		if !full { // a full disk may have failed the log as well
			_, err := db.Put(ctx, "users/later", []byte(`{"m":"later"}`), jay.InCollection("Users"))
			must(t, err)
			must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: []string{"m"}}))
			must(t, checks.Indexes(db))
		}
		closeDB(t, db)
		db = onDisk(t, disk, jay.Options{})
		must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: []string{"m"}}))
		must(t, checks.Indexes(db))
		jaytest.Verify(t, db)
		closeDB(t, db)
	}
}

// hurried is a context that is found to be cancelled when it is asked for the second time.
type hurried struct {
	context.Context
	asked atomic.Bool
}

func (h *hurried) Err() error {
	if !h.asked.Swap(true) {
		return nil
	}
	return h.Context.Err()
}

// joinDrop makes the task of an index of Users drop it, and does not wait for that.
func joinDrop(t *testing.T, db *jay.DB, name string) {
	t.Helper()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.DropIndex(&hurried{Context: cancelled}, "Users", name); !errors.Is(err, context.Canceled) {
		t.Errorf("a hurried drop of %s: %v", name, err)
	}
}

// Ensure that a drop and Close end a build by tables in every step, and leave nothing behind.
func TestTables_Ended(t *testing.T) {
	defer smallTables()()
	for _, step := range []checks.TableStep{checks.TablesRead, checks.TablesWritten, checks.TablesTaken} {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		userDocuments(t, db)
		for _, closes := range []bool{false, true} {
			ended := make(chan error, 1)
			undo := checks.OnBuildTables(func(at checks.TableStep) {
				if at != step {
					return
				}
				begun := make(chan struct{})
				go func() {
					if closes {
						close(begun)
						ended <- db.Close()
						return
					}
					joinDrop(t, db, "m")
					close(begun)
					ended <- db.DropIndex(ctx, "Users", "m")
				}()
				<-begun
			})
			err := db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: []string{"m"}})
			switch endErr := <-ended; {
			case endErr != nil && !errors.Is(endErr, jay.ErrIndex):
				t.Errorf("step %d, close %v: %v", step, closes, endErr)
			case !closes && !errors.Is(err, jay.ErrIndex):
				t.Errorf("step %d, dropped: %v", step, err)
			case closes && err != nil && !errors.Is(err, jay.ErrClosed):
				t.Errorf("step %d, closed: %v", step, err)
			}
			undo()
			if !closes {
				if n, err := checks.IndexKeys(db); n != 0 || err != nil {
					t.Errorf("step %d: %d entries and records are left, %v", step, n, err)
				}
			}
		}
		db = onDisk(t, disk, jay.Options{})
		checks.WaitIndexTasks(db)
		// An ingestion that is cut short has an unknown outcome. Its files stay until then.
		if files := temporaries(t, disk); len(files) > 0 {
			t.Errorf("step %d: temporary files stay: %v", step, files)
		}
		must(t, checks.Indexes(db))
		jaytest.Verify(t, db)
		closeDB(t, db)
	}
}

// Ensure that no more than two builds sort at once, and that all end.
func TestTables_FewAtOnce(t *testing.T) {
	defer smallTables()()
	db := memory(t, nil)
	userDocuments(t, db)
	var active atomic.Int32
	both := make(chan struct{})
	meet := sync.OnceFunc(func() { close(both) })
	undo := checks.OnBuildTables(func(step checks.TableStep) {
		switch step {
		case checks.TablesRead:
			if n := active.Add(1); n > 2 {
				t.Errorf("%d builds sort at once", n)
			} else if n == 2 {
				meet()
			}
			<-both
		case checks.TablesTaken:
			active.Add(-1)
		}
	})
	var group sync.WaitGroup
	for i := range 5 {
		group.Go(func() {
			if err := db.EnsureIndex(ctx, "Users", jay.Index{Name: fmt.Sprint("m", i), Fields: []string{"m"}}); err != nil {
				t.Errorf("build: %v", err)
			}
		})
	}
	group.Wait()
	undo()
	must(t, checks.Indexes(db))
}

// Ensure that a document which goes to another collection during a build has no entry in the
// index when it is ready.
func TestTables_CollectionChanges(t *testing.T) {
	for _, unique := range []bool{false, true} {
		restore := smallTables()
		db := memory(t, nil)
		userDocuments(t, db)
		undo := checks.OnBuildTables(func(step checks.TableStep) {
			together := fmt.Sprint("users/changed", int(step))
			var batch jay.Batch
			batch.Delete(together)
			batch.Put(together, []byte(`{"m":"m"}`), jay.InCollection("Orders"))
			if _, err := db.Apply(ctx, &batch); err != nil {
				t.Errorf("deleted, and again in another collection, in one commit: %v", err)
			}
			id := fmt.Sprint("users/again", int(step))
			must(t, db.Delete(ctx, id))
			if _, err := db.Put(ctx, id, []byte(`{"m":"m"}`), jay.InCollection("Orders")); err != nil {
				t.Errorf("deleted, and again in another collection: %v", err)
			}
		})
		must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "m", Fields: []string{"m"}, Unique: unique}))
		undo()
		restore()
		if err := checks.Indexes(db); err != nil {
			t.Errorf("unique %v: %v", unique, err)
		}
	}
}
