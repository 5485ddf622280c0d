package jay_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// anything is a document that can hold what cannot be stored.
type anything struct {
	ID    string
	Email string `json:",omitempty"`
	Any   any    `json:",omitempty"`
}

// Ensure that a save that is refused, for whatever reason, writes nothing and
// loses nothing: once its cause is gone, the next save writes all of it, under
// the IDs that Store gave, and nothing twice.
func TestSession_SaveChanges_Refused(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	tests := []struct {
		name   string
		opts   []jay.SessionOption
		want   error
		poison func(t *testing.T, db *jay.DB, s *jay.Session) (cure func())
	}{
		{name: "cyclic value", want: jay.ErrType, poison: value(loop())},
		{name: "channel", want: jay.ErrType, poison: value(make(chan int))},
		{name: "not a number", want: jay.ErrType, poison: value(math.NaN())},
		{name: "too deep", want: jay.ErrInvalidDocument, poison: value(raw(deep))},
		{name: "too large", want: jay.ErrInvalidDocument, poison: value(strings.Repeat("x", 5000))},
		{name: "too large, of a loaded one", want: jay.ErrInvalidDocument, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := load[anything](t, s, "anythings/there")
			v.Any = strings.Repeat("x", 5000)
			return func() { v.Any = nil }
		}},
		{name: "unique index", want: jay.ErrUnique, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := &anything{Email: "taken"}
			must(t, s.Store(ctx, v))
			return func() { v.Email = "free" }
		}},
		{name: "conflict", opts: []jay.SessionOption{jay.OptimisticConcurrency()}, want: jay.ErrConflict, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := load[anything](t, s, "anythings/there")
			put(t, db, "anythings/there", `{"Email":"taken"}`, jay.InCollection("Anythings"))
			v.Any = 1
			return func() { must(t, s.Refresh(ctx, v)) }
		}},
		{name: "conflict of a delete", opts: []jay.SessionOption{jay.OptimisticConcurrency()}, want: jay.ErrConflict, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := load[anything](t, s, "anythings/there")
			put(t, db, "anythings/there", `{"Email":"taken"}`, jay.InCollection("Anythings"))
			must(t, s.Delete(v))
			return func() { must(t, s.Evict(v)) }
		}},
		{name: "another collection", want: jay.ErrCollection, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := &customer{ID: "anythings/there"}
			must(t, s.Store(ctx, v))
			return func() { must(t, s.Evict(v)) }
		}},
		{name: "id taken by hand", want: jay.ErrExists, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := &anything{}
			must(t, s.Store(ctx, v))
			put(t, db, v.ID, `{"Any":"by hand"}`, jay.InCollection("Anythings"))
			return func() {
				must(t, s.Evict(v))
				v.ID = ""
				must(t, s.Store(ctx, v))
			}
		}},
		{name: "id field changed", want: jay.ErrUsage, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := load[anything](t, s, "anythings/there")
			v.ID = "x"
			return func() { v.ID = "anythings/there" }
		}},
	}
	for _, test := range tests {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, first %v", test.name, first), func(t *testing.T) {
				db := memory(t, &jay.Options{MaxDocumentBytes: 4000, MaxDepth: 50})
				must(t, db.EnsureIndex(ctx, "Anythings", jay.Index{Fields: []string{"Email"}, Unique: true}))
				put(t, db, "anythings/there", `{"Email":"taken"}`, jay.InCollection("Anythings"))
				put(t, db, "kept/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
				put(t, db, "kept/2", `{"Name":"Bea"}`, jay.InCollection("Customers"))

				s := db.OpenSession(test.opts...)
				var cure func()
				evicted := &customer{Name: "evicted"} // leaves a hole before the others
				must(t, s.Store(ctx, evicted))
				if first {
					cure = test.poison(t, db, s)
				}
				hilo, made := &customer{Name: "hilo"}, &customer{ID: "customers|", Name: "made"}
				must(t, s.Store(ctx, hilo))
				must(t, s.Store(ctx, made))
				ann, bea := load[customer](t, s, "kept/1"), load[customer](t, s, "kept/2")
				ann.Name = "Anna"
				must(t, s.Delete(bea))
				if !first {
					cure = test.poison(t, db, s)
				}
				must(t, s.Evict(evicted))
				given := hilo.ID
				before := everything(t, db)
				for range 2 {
					if err := s.SaveChanges(ctx); !errors.Is(err, test.want) {
						t.Fatalf("got %v, want %v", err, test.want)
					}
				}
				equal(t, everything(t, db), before)
				equal(t, hilo.ID, given)
				equal(t, made.ID, "customers|")
				equal(t, ann.Name, "Anna")

				cure()
				must(t, s.SaveChanges(ctx))
				equal(t, hilo.ID, given)
				equal(t, made.ID, "customers/1")
				equal(t, bodyAt(t, db, given)+bodyAt(t, db, made.ID)+bodyAt(t, db, "kept/1")+bodyAt(t, db, "kept/2"), `{"Name":"hilo"}{"Name":"made"}{"Name":"Anna"}`)
				equal(t, count(t, db, "Customers"), 3)
				after := everything(t, db)
				must(t, s.SaveChanges(ctx))
				equal(t, everything(t, db), after)
			})
		}
	}
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// value stores an entity with a value that cannot be.
func value(v any) func(*testing.T, *jay.DB, *jay.Session) func() {
	return func(t *testing.T, db *jay.DB, s *jay.Session) func() {
		bad := &anything{Any: v}
		must(t, s.Store(ctx, bad))
		return func() { bad.Any = nil }
	}
}

// everything returns all documents with their versions, but those of HiLo.
func everything(t testing.TB, db *jay.DB) string {
	t.Helper()
	var all strings.Builder
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		if doc.Collection() != "@hilo" {
			fmt.Fprintf(&all, "%s %s %s %s\n", doc.ID(), doc.ChangeVector(), doc.Body(), doc.Metadata().Custom)
		}
	}
	return all.String()
}

// Ensure that a save with a cancelled context, or on a closed database, is
// refused and can be repeated, in the second case on a new handle.
func TestSession_SaveChanges_CancelledAndClosed(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, nil)
	s := db.OpenSession()
	hilo, made := &customer{Name: "hilo"}, &customer{ID: "customers|", Name: "made"}
	must(t, s.Store(ctx, hilo))
	must(t, s.Store(ctx, made))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.SaveChanges(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	closeDB(t, db)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := s.Store(ctx, &customer{}); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("store: %v", err)
	}
	if _, err := jay.Load[customer](ctx, s, "customers/1"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("load: %v", err)
	}
	if err := s.Reattach(memory(t, nil)); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("reattach to another database: %v", err)
	}
	db = open(t, dir, nil)
	defer closeDB(t, db)
	must(t, s.Reattach(db))
	must(t, s.SaveChanges(ctx))
	equal(t, hilo.ID, "customers/1-A")
	equal(t, made.ID, "customers/1")
	equal(t, count(t, db, "Customers"), 2)
}

// Ensure that a save whose outcome the disk left open is recognised after the
// reopen, whether it survived or not: SaveChanges is refused until then, and
// afterwards no document is there twice, no ID came twice, no deletion is lost,
// and what survived is not written again; whatever the user did meanwhile.
func TestSession_UnknownOutcome(t *testing.T) {
	kinds := map[string]func(t *testing.T, s *jay.Session, u *unknown){
		"identities": func(t *testing.T, s *jay.Session, u *unknown) { u.storeMade(t, s) },
		"HiLo":       func(t *testing.T, s *jay.Session, u *unknown) { u.storeHiLo(t, s) },
		"changes":    func(t *testing.T, s *jay.Session, u *unknown) { u.change(t, s) },
		"deletions":  func(t *testing.T, s *jay.Session, u *unknown) { u.remove(t, s) },
		"all": func(t *testing.T, s *jay.Session, u *unknown) {
			u.storeMade(t, s)
			u.storeHiLo(t, s)
			u.change(t, s)
			u.remove(t, s)
		},
	}
	meanwhile := map[string]func(t *testing.T, s *jay.Session, u *unknown){
		"nothing": func(*testing.T, *jay.Session, *unknown) {},
		"entities change again": func(t *testing.T, s *jay.Session, u *unknown) {
			for v := range u.want {
				v.Name += ", again"
				u.want[v] = v.Name
			}
		},
		"entities are deleted": func(t *testing.T, s *jay.Session, u *unknown) {
			for v := range u.want {
				must(t, s.Delete(v))
				delete(u.want, v)
			}
		},
		"more is stored": func(t *testing.T, s *jay.Session, u *unknown) { u.storeMade(t, s) },
	}
	for kind, prepare := range kinds {
		for meant, do := range meanwhile {
			for _, survive := range []int{0, 100} {
				for _, optimistic := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, then %s, %d%% survive, optimistic %v", kind, meant, survive, optimistic), func(t *testing.T) {
						t.Parallel()
						testUnknownOutcome(t, prepare, do, survive, optimistic)
					})
				}
			}
		}
	}
}

// unknown is what must be there in the end.
type unknown struct {
	want map[*customer]string // names, by entity
	gone []string
}

func (u *unknown) storeMade(t *testing.T, s *jay.Session) {
	for range 2 {
		u.store(t, s, &customer{ID: "customers|", Name: fmt.Sprint("made ", len(u.want))})
	}
}

func (u *unknown) storeHiLo(t *testing.T, s *jay.Session) {
	u.store(t, s, &customer{Name: fmt.Sprint("HiLo ", len(u.want))})
}

func (u *unknown) store(t *testing.T, s *jay.Session, v *customer) {
	must(t, s.Store(ctx, v))
	u.want[v] = v.Name
}

func (u *unknown) change(t *testing.T, s *jay.Session) {
	v := load[customer](t, s, "kept/1")
	v.Name = "changed"
	u.want[v] = v.Name
}

func (u *unknown) remove(t *testing.T, s *jay.Session) {
	must(t, s.Delete(load[customer](t, s, "gone/1")))
	must(t, s.DeleteID("gone/2"))
	u.gone = append(u.gone, "gone/1", "gone/2")
}

func testUnknownOutcome(t *testing.T, prepare, meanwhile func(*testing.T, *jay.Session, *unknown), survive int, optimistic bool) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	for _, id := range []string{"kept/1", "gone/1", "gone/2"} {
		put(t, db, id, `{"Name":"before"}`, jay.InCollection("Customers"))
	}
	var opts []jay.SessionOption
	if optimistic {
		opts = append(opts, jay.OptimisticConcurrency())
	}
	s := db.OpenSession(opts...)
	warm := &customer{Name: "warm"} // the range of HiLo is on disk
	must(t, s.Store(ctx, warm))
	must(t, s.SaveChanges(ctx))
	u := &unknown{want: map[*customer]string{warm: "warm"}}
	prepare(t, s, u)
	given := make(map[*customer]string)
	for v := range u.want {
		given[v] = v.ID
	}

	disk.FailAfter(0)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatalf("on a failing disk: %v", err)
	}
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrFailed) {
		t.Fatalf("again on the same handle: %v", err)
	}
	for v, id := range given {
		equal(t, v.ID, id)
	}
	meanwhile(t, s, u)
	crashed := disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
	_ = db.Close()

	again := onDisk(t, crashed, jay.Options{})
	defer closeDB(t, again)
	survived := bodyAt(t, again, "gone/1") == "" || bodyAt(t, again, "kept/1") == `{"Name":"changed"}` || count(t, again, "Customers") > 4
	equal(t, survived, survive == 100)
	must(t, s.Reattach(again))
	must(t, s.SaveChanges(ctx))

	ids := make(map[string]bool)
	for v, name := range u.want {
		if ids[v.ID] || strings.HasSuffix(v.ID, "|") {
			t.Errorf("id %q", v.ID)
		}
		ids[v.ID] = true
		if before := given[v]; before != "" && !strings.HasSuffix(before, "|") {
			equal(t, v.ID, before)
		}
		equal(t, bodyAt(t, again, v.ID), fmt.Sprintf(`{"Name":%q}`, name))
	}
	for _, id := range u.gone {
		equal(t, bodyAt(t, again, id), "")
	}
	for doc, err := range again.Documents(ctx, jay.Scan{Collection: "Customers"}) {
		must(t, err)
		if !ids[doc.ID()] && string(doc.Body()) != `{"Name":"before"}` {
			t.Errorf("%s is there, too: %s", doc.ID(), doc.Body())
		}
	}
	after := everything(t, again)
	must(t, s.SaveChanges(ctx))
	equal(t, everything(t, again), after)
	for v := range u.want {
		v.Name = "last"
	}
	must(t, s.SaveChanges(ctx))
	for v := range u.want {
		equal(t, bodyAt(t, again, v.ID), `{"Name":"last"}`)
	}
}

// Ensure that a save that survived is not written a second time.
func TestSession_UnknownOutcome_NotRepeated(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "warm", `{}`)
	s := db.OpenSession()
	v := &customer{ID: "customers|"}
	must(t, s.Store(ctx, v))
	disk.FailAfter(0)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	crashed := disk.Crash(100, rand.New(rand.NewPCG(1, 2)))
	_ = db.Close()
	again := onDisk(t, crashed, jay.Options{})
	defer closeDB(t, again)
	before := everything(t, again)
	must(t, s.Reattach(again))
	must(t, s.SaveChanges(ctx))
	equal(t, everything(t, again), before)
	equal(t, v.ID, "customers/1")
}

// Ensure that a save which survived is recognised even if everything it wrote
// was overwritten or deleted before the session asked.
func TestSession_UnknownOutcome_Overwritten(t *testing.T) {
	for _, by := range []string{"put", "delete"} {
		for _, survive := range []int{0, 100} {
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{})
			put(t, db, "warm", `{}`)
			s := db.OpenSession()
			v := &customer{ID: "customers|", Name: "mine"}
			must(t, s.Store(ctx, v))
			disk.FailAfter(0)
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
				t.Fatal(err)
			}
			crashed := disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
			_ = db.Close()
			again := onDisk(t, crashed, jay.Options{})
			if by == "put" {
				put(t, again, "customers/1", `{"Name":"theirs"}`, jay.InCollection("Customers"))
			} else {
				must(t, again.Delete(ctx, "customers/1"))
			}
			must(t, s.Reattach(again))
			must(t, s.SaveChanges(ctx))
			theirs, mine := 0, 1
			if by == "put" {
				theirs = 1
			}
			if survive == 100 {
				mine = 0 // it was there and another writer has replaced it
			}
			if n := count(t, again, "Customers"); n != theirs+mine {
				t.Errorf("%s, %d%%: %d documents:\n%s", by, survive, n, everything(t, again))
			}
			closeDB(t, again)
		}
	}
}

// Ensure that deletions are not lost if what failed was the reservation of
// version numbers, before anything was written.
func TestSession_UnknownOutcome_BeforeTheWrite(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "gone/1", `{}`, jay.InCollection("Customers"))
	closeDB(t, db)
	db = onDisk(t, disk, jay.Options{}) // nothing is reserved any more
	s := db.OpenSession()
	must(t, s.DeleteID("gone/1"))
	disk.FailAfter(0)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	for _, survive := range []int{0, 100} {
		crashed := disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
		again := onDisk(t, crashed, jay.Options{})
		must(t, s.Reattach(again))
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, again, "gone/1"), "")
		closeDB(t, again)
		break
	}
	_ = db.Close()
}

// Ensure that an entity which was refreshed after a failed save goes on from
// what it was refreshed to.
func TestSession_UnknownOutcome_Refresh(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "customers/1", `{"Name":"before"}`, jay.InCollection("Customers"))
	put(t, db, "customers/2", `{"Name":"before"}`, jay.InCollection("Customers"))
	s := db.OpenSession(jay.OptimisticConcurrency())
	a, b := load[customer](t, s, "customers/1"), load[customer](t, s, "customers/2")
	a.Name, b.Name = "a", "b"
	disk.FailAfter(0)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	crashed := disk.Crash(100, rand.New(rand.NewPCG(1, 2)))
	_ = db.Close()
	again := onDisk(t, crashed, jay.Options{})
	defer closeDB(t, again)
	put(t, again, "customers/1", `{"Name":"theirs"}`, jay.InCollection("Customers"))
	must(t, s.Reattach(again))
	must(t, s.Refresh(ctx, a))
	before := everything(t, again)
	must(t, s.SaveChanges(ctx))
	equal(t, everything(t, again), before)
	a.Name = "mine"
	must(t, s.SaveChanges(ctx))
	equal(t, bodyAt(t, again, "customers/1"), `{"Name":"mine"}`)
}

// Ensure that goroutines with a session each, on shared documents, lose no
// change if they load anew after a conflict.
func TestSession_Concurrent(t *testing.T) {
	const goroutines, rounds = 8, 40
	type Counter struct {
		ID  string
		N   int
		Log []string
	}
	db := memory(t, nil)
	for i := range 3 {
		put(t, db, fmt.Sprintf("counters/%d", i), `{"N":0,"Log":[]}`, jay.InCollection("Counters"))
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range rounds {
				from, to := fmt.Sprintf("counters/%d", random.IntN(3)), fmt.Sprintf("counters/%d", random.IntN(3))
				for {
					s := db.OpenSession(jay.OptimisticConcurrency())
					both, err := jay.LoadMany[Counter](ctx, s, []string{from, to})
					if err != nil {
						t.Error(err)
						return
					}
					both[0].N--
					both[1].N++
					both[1].Log = append(both[1].Log, fmt.Sprintf("%d.%d", g, i))
					if err = s.SaveChanges(ctx); err == nil {
						break
					}
					if !errors.Is(err, jay.ErrConflict) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	sum, seen := 0, make(map[string]bool)
	s := db.OpenSession()
	for i := range 3 {
		c := load[Counter](t, s, fmt.Sprintf("counters/%d", i))
		sum += c.N
		for _, entry := range c.Log {
			if seen[entry] {
				t.Errorf("%s came twice", entry)
			}
			seen[entry] = true
		}
	}
	equal(t, sum, 0)
	equal(t, len(seen), goroutines*rounds)
}

// Ensure that a save which survived is recognised by its versions, too, when
// others have opened, written and closed the database before the session moves
// to it: what was found at the last opening says nothing then.
func TestSession_UnknownOutcome_SecondReopen(t *testing.T) {
	for _, survive := range []int{0, 100} {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		put(t, db, "warm", `{}`)
		s := db.OpenSession()
		one, two := &customer{ID: "customers|", Name: "one"}, &customer{ID: "customers|", Name: "two"}
		must(t, s.Store(ctx, one))
		must(t, s.Store(ctx, two))
		disk.FailAfter(0)
		if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		crashed := disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
		_ = db.Close()
		others := onDisk(t, crashed, jay.Options{})
		must(t, others.Delete(ctx, "customers/1")) // one of two is enough to show it
		put(t, others, "later", `{}`)
		closeDB(t, others)
		again := onDisk(t, crashed, jay.Options{})
		must(t, s.Reattach(again))
		must(t, s.SaveChanges(ctx))
		want := 2
		if survive == 100 {
			want = 1
		}
		equal(t, count(t, again, "Customers"), want)
		closeDB(t, again)
	}
}
