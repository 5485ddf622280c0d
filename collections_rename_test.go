package jay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

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
	defer jay.SetChangeBatch(3)()
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
	must(t, jay.CheckIndexes(db))
	must(t, jay.CheckCounts(db))

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
	must(t, jay.CheckIndexes(db))
	must(t, jay.CheckCounts(db))
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
	defer jay.SetChangeBatch(3)()
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
		must(t, jay.CheckIndexes(db))
		must(t, jay.CheckCounts(db))
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
		must(t, jay.CheckIndexes(db))
		must(t, jay.CheckCounts(db))
		_, err = db.RenameCollection(ctx, to, "Else") // it is finished
		must(t, err)
	}
}

// Ensure that what is written meanwhile moves as well, and that a unique index holds in
// each collection: a document that has the values of a renamed one stops the rename
// until it is changed.
func TestRenameCollection_WrittenMeanwhile(t *testing.T) {
	defer jay.SetChangeBatch(5)()
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
	must(t, jay.CheckIndexes(db))
	must(t, jay.CheckCounts(db))
	put(t, db, "users/5", `{"N":52}`)
	_, err = db.RenameCollection(ctx, "Users", "People")
	must(t, err)
	equal(t, collectionsOf(t, db), "Others 1, People 20")
	doc, err := db.Get(ctx, "users/3")
	must(t, err)
	equal(t, string(doc.Body()), `{"N":51}`)
	must(t, jay.CheckIndexes(db))
	must(t, jay.CheckCounts(db))
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
	defer jay.SetChangeBatch(4)()
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
		must(t, jay.CheckCounts(db))
		jaytest.FinishIndexTasks(t, db)
		must(t, jay.CheckIndexes(db))
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
		must(t, jay.CheckIndexes(db))
		must(t, jay.CheckCounts(db))
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
	defer jay.SetChangeBatch(2)()
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
		must(t, jay.CheckIndexes(db))
		must(t, jay.CheckCounts(db))
		closeDB(t, db)
	}
}

// Ensure that writers who name no collection, and changes by query, lose nothing to
// renames that run beside them.
func TestRenameCollection_Writers(t *testing.T) {
	defer jay.SetChangeBatch(4)()
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
	must(t, jay.CheckIndexes(db))
	must(t, jay.CheckCounts(db))
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
		must(t, jay.CheckContents(db))
	}
	must(t, db.Delete(ctx, "users/1"))
	equal(t, content("users/2"), "some text")
	must(t, db.Delete(ctx, "users/2"))
	must(t, jay.CheckContents(db))
	s, err := db.Stats(ctx)
	must(t, err)
	equal(t, s.Attachments.Attachments, int64(0))
}
