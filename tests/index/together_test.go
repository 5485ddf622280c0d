package index_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// userIndexes are indexes on what userDocuments and writersWin write. So many of their entries are
// there for each document but the partial one.
var userIndexes = []jay.Index{
	{Name: "unique", Fields: []string{"m"}, Unique: true},
	{Name: "descending", Fields: []string{"-m"}},
	{Name: "partial", Fields: []string{"m"}, Where: "m > 'users/h'"},
	{Name: "two", Fields: []string{"missing", "m"}},
}

// stepsOf calls fn in each step of builds by tables, and returns how often it was called.
func stepsOf(fn func(step int)) (steps func() int, undo func()) {
	n := 0
	undo = checks.OnBuildTables(func(step checks.TableStep) { n++; fn(int(step)) })
	return func() int { return n }, undo
}

// states returns the names of the indexes of Users with their states, sorted.
func states(t *testing.T, db *jay.DB) string {
	t.Helper()
	infos, err := db.Indexes(ctx, "Users")
	must(t, err)
	text := ""
	for _, info := range infos {
		text += fmt.Sprintf("%s %s; ", info.Name, info.State)
	}
	return text
}

const allReady = "descending ready; partial ready; two ready; unique ready; "

// Ensure that indexes that are declared together are built in one pass, that what writers have
// done since its snapshot wins over the tables of each, and that they are the same as indexes that were built
// one after another.
func TestTogether_WritersWin(t *testing.T) {
	defer smallTables()()
	db := memory(t, nil)
	userDocuments(t, db)
	steps, undo := stepsOf(writersWin(t, db))
	must(t, db.EnsureIndexes(ctx, "Users", userIndexes))
	undo()
	if steps() != 3 {
		t.Errorf("%d steps, want the 3 of one pass", steps())
	}
	if got := states(t, db); got != allReady {
		t.Errorf("got %s, want %s", got, allReady)
	}
	must(t, checks.Indexes(db))
	if n, err := checks.IndexKeys(db); err != nil || n < 3*124 {
		t.Errorf("%d entries and records, %v, want 124 in each index but one", n, err)
	}
	jaytest.Verify(t, db)
}

// Ensure that an index that documents refuse ends by itself, with its error and without a trace, and that
// those that were declared with it become ready, whenever the violation comes about.
func TestTogether_OneViolated(t *testing.T) {
	defer smallTables()()
	for _, in := range []int{-1, int(checks.TablesRead), int(checks.TablesWritten)} {
		db := memory(t, nil)
		userDocuments(t, db)
		undo := sameValueIn(t, db, in)
		err := db.EnsureIndexes(ctx, "Users", userIndexes)
		undo()
		var unique *jay.UniqueError
		if !errors.As(err, &unique) || unique.Index != "unique" || unique.Value != `["users/050"]` {
			t.Errorf("in step %d: %v", in, err)
		}
		if got, want := states(t, db), strings.Replace(allReady, "unique ready; ", "", 1); got != want {
			t.Errorf("in step %d: got %s, want %s", in, got, want)
		}
		must(t, checks.Indexes(db)) // nothing is left of the one that is gone, either
		must(t, db.Delete(ctx, "users/other"))
		must(t, db.EnsureIndexes(ctx, "Users", userIndexes))
		if got := states(t, db); got != allReady {
			t.Errorf("in step %d, again: got %s, want %s", in, got, allReady)
		}
		must(t, checks.Indexes(db))
	}
}

// Ensure that a document with too many entries for one index ends that index, and not those that are
// declared with it.
func TestTogether_OneBeyondBounds(t *testing.T) {
	defer smallTables()()
	db := memory(t, nil)
	userDocuments(t, db)
	list := strings.TrimSuffix(strings.Repeat("1,", 101), ",")
	for i := range 3 {
		put(t, db, fmt.Sprint("users/long", i), fmt.Sprintf(`{"m":"long%d","a":[%s],"b":[%s]}`, i, list, list), jay.InCollection("Users"))
	}
	pair := jay.Index{Name: "pair", Fields: []string{"a", "b"}} // 101 × 101 of a document
	err := db.EnsureIndexes(ctx, "Users", append([]jay.Index{pair, {Name: "a", Fields: []string{"a"}}}, userIndexes...))
	var document *jay.DocumentError
	if !errors.As(err, &document) || !strings.Contains(err.Error(), "users/long") || !strings.Contains(err.Error(), `"pair"`) {
		t.Errorf("got %v, want the document and the index", err)
	}
	if got := states(t, db); got != "a ready; "+allReady {
		t.Errorf("got %s, want all but pair", got)
	}
	must(t, checks.Indexes(db))
	jaytest.Verify(t, db)
}

// Ensure that a loss of power at any sync of any file while indexes are built together, beside
// writers, leaves no wrong entry in any of them, and that the next Open goes on with all.
func TestTogether_Crash_AtEverySync(t *testing.T) {
	sample.OneGoroutine(t)
	defer smallTables()()
	building := 0
	build := func(_ int, db *jay.DB) { must(t, db.EnsureIndexes(ctx, "Users", userIndexes)) }
	crashes := crashAtEverySync(t, build, func(at int, crashed *storagetest.Disk) {
		db := onDisk(t, crashed, jay.Options{})
		found := states(t, db)
		if strings.Contains(found, string(jay.IndexBuilding)) {
			building++
		}
		checks.WaitIndexTasks(db)
		if err := checks.Indexes(db); err != nil {
			t.Fatalf("crash at sync %d, %s: %v", at, found, err)
		}
		must(t, db.EnsureIndexes(ctx, "Users", userIndexes))
		if got := states(t, db); got != allReady {
			t.Errorf("crash at sync %d: got %s, want %s", at, got, allReady)
		}
		must(t, checks.Indexes(db))
		jaytest.Verify(t, db)
		closeDB(t, db)
	})
	t.Logf("%d crashes, %d with indexes being built", crashes, building)
	if crashes < 10 || building < 3 { // some syncs are shared
		t.Error("too few syncs: the test does not test it")
	}
}

// Ensure that what a crash has left of indexes that were built together is built in one pass
// by the next Open.
func TestTogether_Resumed(t *testing.T) {
	defer smallTables()()
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	userDocuments(t, db)
	var crashed *storagetest.Disk
	undo := checks.OnBuildTables(func(step checks.TableStep) {
		if step == checks.TablesTaken {
			crashed = disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
		}
	})
	must(t, db.EnsureIndexes(ctx, "Users", userIndexes))
	undo()
	closeDB(t, db)
	steps, undo := stepsOf(func(int) {})
	db = onDisk(t, crashed, jay.Options{})
	checks.WaitIndexTasks(db)
	undo()
	if got := states(t, db); steps() != 3 || got != allReady {
		t.Errorf("%d steps, want 3; %s", steps(), got)
	}
	must(t, checks.Indexes(db))
	jaytest.Verify(t, db)
}

// Ensure that temporary files that cannot be made, any of them, and a full disk leave all indexes
// such that they can be built again.
func TestTogether_Faults(t *testing.T) {
	sample.OneGoroutine(t)
	defer smallTables()()
	for room := 0; ; room++ {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		userDocuments(t, db)
		full := room%8 == 1
		undo := failTables(disk, full, room)
		err := db.EnsureIndexes(ctx, "Users", userIndexes)
		undo()
		disk.Heal()
		if err == nil {
			closeDB(t, db)
			if room < 6 {
				t.Errorf("only %d temporary files: the test does not test it", room)
			}
			break
		}
		if files := temporaries(t, disk); len(files) > 0 {
			t.Errorf("%v: temporary files stay: %v", err, files)
		}
		if got := states(t, db); got != strings.ReplaceAll(allReady, "ready", "building") {
			t.Errorf("%v: %s, want indexes that can be built again", err, got)
		}
		if !full { // a full disk may have failed the log as well
			must(t, db.EnsureIndexes(ctx, "Users", userIndexes))
			must(t, checks.Indexes(db))
		}
		closeDB(t, db)
		db = onDisk(t, disk, jay.Options{})
		must(t, db.EnsureIndexes(ctx, "Users", userIndexes))
		must(t, checks.Indexes(db))
		closeDB(t, db)
	}
}

// Ensure that the drop of one index, in any step, ends its part of the build and no other one, and
// that Close ends all.
func TestTogether_Ended(t *testing.T) {
	defer smallTables()()
	for _, at := range []checks.TableStep{checks.TablesRead, checks.TablesWritten, checks.TablesTaken} {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		userDocuments(t, db)
		for _, ix := range userIndexes {
			dropped := make(chan error, 1)
			_, undo := stepsOf(func(step int) {
				if step != int(at) {
					return
				}
				joinDrop(t, db, ix.Name)
				go func() { dropped <- db.DropIndex(ctx, "Users", ix.Name) }()
			})
			err := db.EnsureIndexes(ctx, "Users", userIndexes)
			undo()
			if dropErr := <-dropped; dropErr != nil && !errors.Is(dropErr, jay.ErrIndex) {
				t.Errorf("step %d: drop %s: %v", at, ix.Name, dropErr)
			}
			if !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), ix.Name) {
				t.Errorf("step %d: %s is dropped: %v", at, ix.Name, err)
			}
			if got, want := states(t, db), strings.Replace(allReady, ix.Name+" ready; ", "", 1); got != want {
				t.Errorf("step %d: got %s, want %s", at, got, want)
			}
			must(t, checks.Indexes(db))
			for _, other := range userIndexes {
				if other.Name != ix.Name {
					must(t, db.DropIndex(ctx, "Users", other.Name))
				}
			}
			noEntries(t, db)
		}

		closed := make(chan error, 1)
		_, undo := stepsOf(func(step int) {
			if step == int(at) {
				begun := make(chan struct{})
				go func() { close(begun); closed <- db.Close() }()
				<-begun
			}
		})
		if err := db.EnsureIndexes(ctx, "Users", userIndexes); err != nil && !errors.Is(err, jay.ErrClosed) {
			t.Errorf("step %d, closed: %v", at, err)
		}
		must(t, <-closed)
		undo()
		db = onDisk(t, disk, jay.Options{})
		checks.WaitIndexTasks(db)
		if got := states(t, db); got != allReady {
			t.Errorf("step %d, after Close: got %s, want %s", at, got, allReady)
		}
		must(t, checks.Indexes(db))
		jaytest.Verify(t, db)
		closeDB(t, db)
	}
}

// Ensure that declarations of which one is refused change nothing, that one that is there twice is
// one, and that those that are there are left as they are.
func TestTogether_Declarations(t *testing.T) {
	defer smallTables()()
	db := memory(t, nil)
	userDocuments(t, db)
	must(t, db.EnsureIndex(ctx, "Users", userIndexes[1]))
	before := states(t, db)
	for name, indexes := range map[string][]jay.Index{
		"invalid":     {userIndexes[0], {Fields: []string{"a["}}},
		"exists":      {userIndexes[0], {Name: userIndexes[1].Name, Fields: []string{"other"}}},
		"two of one":  {{Name: "x", Fields: []string{"a"}}, {Name: "X", Fields: []string{"b"}}},
		"no field":    {userIndexes[0], {}},
		"one, invald": {{Fields: []string{"id()"}}},
	} {
		err := db.EnsureIndexes(ctx, "Users", indexes)
		want := jay.ErrIndex
		if name == "exists" {
			want = jay.ErrIndexExists
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
		checks.WaitIndexTasks(db)
		if got := states(t, db); got != before {
			t.Errorf("%s: got %s, want %s", name, got, before)
		}
	}
	must(t, db.EnsureIndexes(ctx, "Users", nil))
	must(t, db.EnsureIndexes(ctx, "Users", append(userIndexes, userIndexes...)))
	if got := states(t, db); got != allReady {
		t.Errorf("got %s, want %s", got, allReady)
	}
	must(t, checks.Indexes(db))
}

// Ensure that more indexes than one pass builds, and more than a collection can have, end well.
func TestTogether_Many(t *testing.T) {
	defer smallTables()()
	db := memory(t, nil)
	userDocuments(t, db)
	var indexes []jay.Index
	for i := range 67 {
		indexes = append(indexes, jay.Index{Name: fmt.Sprint("m", i), Fields: []string{"m", fmt.Sprint("f", i)}})
	}
	err := db.EnsureIndexes(ctx, "Users", indexes)
	if n := strings.Count(fmt.Sprint(err), "64 indexes already"); !errors.Is(err, jay.ErrIndex) || n != 3 {
		t.Errorf("%d refusals, want 3: %v", n, err)
	}
	if n := strings.Count(states(t, db), "ready"); n != 64 {
		t.Errorf("%d indexes are ready, want 64", n)
	}
	must(t, checks.Indexes(db))
}

// Ensure that indexes over few documents, which are entered by transactions, can be declared
// together, and that a replacement can be among them.
func TestTogether_Few(t *testing.T) {
	db := memory(t, nil)
	userDocuments(t, db)
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "two", Fields: []string{"m"}}))
	must(t, db.EnsureIndexes(ctx, "Users", userIndexes, jay.ReplaceIndex()))
	if got := states(t, db); got != allReady {
		t.Errorf("got %s, want %s", got, allReady)
	}
	must(t, checks.Indexes(db))

	restore := smallTables()
	other := jay.Index{Name: "two", Fields: []string{"-m"}}
	must(t, db.EnsureIndexes(ctx, "Users", append([]jay.Index{other, {Name: "new", Fields: []string{"m"}}}, userIndexes[:3]...), jay.ReplaceIndex()))
	checks.WaitIndexTasks(db)
	restore()
	if got, want := states(t, db), strings.Replace(allReady, "partial", "new ready; partial", 1); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	must(t, checks.Indexes(db))
}
