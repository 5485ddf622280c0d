package members_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// guardOf returns the index of the guard of a document, 0 if there is none.
func guardOf(t *testing.T, db *jay.DB, id string) uint64 {
	t.Helper()
	_, index := valueOf(t, db.CompareExchange(), jay.GuardKey(id))
	return index
}

// Ensure that a cluster-wide session saves documents, their guards and values in one
// commit, and that of two that have loaded a document one saves.
func TestSession_ClusterWide(t *testing.T) {
	db := memory(t, nil)
	x := db.CompareExchange()
	s := db.OpenSession(jay.ClusterWide())
	ann := &customer{Name: "Ann"} // HiLo
	bob := &customer{ID: "customers/bob", Name: "Bob"}
	must(t, s.Store(ctx, ann))
	must(t, s.Store(ctx, bob))
	must(t, s.PutCompareExchange("names/ann", ann.ID, 0))
	must(t, s.PutCompareExchange("NAMES/Ann", ann.ID, 0)) // in its place
	must(t, s.SaveChanges(ctx))
	for _, id := range []string{ann.ID, bob.ID} {
		m, err := db.Get(ctx, id)
		must(t, err)
		equal(t, guardOf(t, db, id), m.Metadata().Etag)
	}
	v, err := x.Get(ctx, "names/ann")
	must(t, err)
	equal(t, v.Key, "NAMES/Ann")

	// The session goes on from the guards that it has written.
	before := guardOf(t, db, bob.ID)
	bob.Name = "Bobby"
	must(t, s.SaveChanges(ctx))
	if now := guardOf(t, db, bob.ID); now <= before {
		t.Errorf("the guard of a changed document went from %d to %d", before, now)
	}
	before = guardOf(t, db, ann.ID)
	must(t, s.SaveChanges(ctx)) // nothing has changed
	equal(t, guardOf(t, db, ann.ID), before)

	// Two load; the guard decides, even if the version is the same again.
	one, two := db.OpenSession(jay.ClusterWide()), db.OpenSession(jay.ClusterWide())
	first, err := jay.Load[customer](ctx, one, "CUSTOMERS/bob")
	must(t, err)
	other, err := jay.Load[customer](ctx, two, "customers/bob")
	must(t, err)
	first.Name, other.Name = "first", "other"
	must(t, one.SaveChanges(ctx))
	if err := two.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("the second to save: got %v", err)
	}
	equal(t, body(t, db, bob.ID), `{"Name":"first"}`)

	// A guard that was changed alone.
	stale, err := jay.Load[customer](ctx, s, ann.ID)
	must(t, err)
	v, err = x.Get(ctx, jay.GuardKey(ann.ID))
	must(t, err)
	exchanged(t, x, v.Key, 1, v.Index)
	stale.Name = "Anna"
	var conflict *jay.CompareExchangeError
	if err := s.SaveChanges(ctx); !errors.As(err, &conflict) || conflict.Key != jay.GuardKey(ann.ID) {
		t.Errorf("another guard: got %v", err)
	}

	// Deletions remove guards, those by ID whatever they are.
	must(t, one.Delete(first))
	must(t, one.DeleteID(ann.ID))
	must(t, one.SaveChanges(ctx))
	equal(t, guardOf(t, db, bob.ID), 0)
	equal(t, guardOf(t, db, ann.ID), 0)
	must(t, one.Store(ctx, &customer{ID: bob.ID, Name: "again"}))
	must(t, one.SaveChanges(ctx))
}

// Ensure that a document that a cluster-wide session has not loaded must be new and
// without a guard, and that one that it has looked for and not found may have an old
// guard.
func TestSession_ClusterWide_New(t *testing.T) {
	db := memory(t, nil)
	var g jay.AtomicGuard
	must(t, second(db.Put(ctx, "customers/1", []byte(`{"Name":"Ann"}`), jay.InCollection("customers"), jay.Guarded(&g))))
	s := db.OpenSession(jay.ClusterWide())
	must(t, s.Store(ctx, &customer{ID: "customers/1"}))
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrExists) {
		t.Errorf("a document that is there: got %v", err)
	}

	must(t, db.Delete(ctx, "customers/1")) // which leaves the guard
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrExists) {
		t.Errorf("a guard that is there: got %v", err)
	}
	s = db.OpenSession(jay.ClusterWide())
	if _, err := jay.Load[customer](ctx, s, "customers/1"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	must(t, s.Store(ctx, &customer{ID: "customers/1"}))
	must(t, s.SaveChanges(ctx))
	if now := guardOf(t, db, "customers/1"); now <= g.Index {
		t.Errorf("the guard has index %d, and had %d", now, g.Index)
	}
}

// Ensure that documents that come with queries and includes are guarded, too.
func TestSession_ClusterWide_QueriesAndIncludes(t *testing.T) {
	db := memory(t, nil)
	setUp := db.OpenSession(jay.ClusterWide())
	must(t, setUp.Store(ctx, &customer{ID: "customers/1", Name: "Ann"}))
	must(t, setUp.Store(ctx, &order{ID: "orders/1", Customer: "customers/1"}))
	must(t, setUp.SaveChanges(ctx))

	for _, overtaken := range []bool{false, true} {
		s := db.OpenSession(jay.ClusterWide())
		_, err := jay.Load[order](ctx, s, "orders/1", jay.Include("Customer"))
		must(t, err)
		c, err := jay.Load[customer](ctx, s, "customers/1")
		must(t, err)
		q := db.OpenSession(jay.ClusterWide())
		found, err := jay.QueryOf[customer](q).All(ctx)
		must(t, err)
		if overtaken {
			must(t, second(db.Put(ctx, "customers/1", []byte(`{"Name":"other"}`))))
		}
		c.Name += "a"
		if err := s.SaveChanges(ctx); overtaken != errors.Is(err, jay.ErrConflict) || !overtaken && err != nil {
			t.Errorf("overtaken %t: got %v", overtaken, err)
		}
		found[0].Name += "q" // s has saved meanwhile, or the other writer has
		if err := q.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) {
			t.Errorf("a query, overtaken: got %v", err)
		}
	}
	q := db.OpenSession(jay.ClusterWide())
	found, err := jay.QueryOf[customer](q).All(ctx)
	must(t, err)
	before := guardOf(t, db, "customers/1")
	found[0].Name = "queried"
	must(t, q.SaveChanges(ctx))
	if now := guardOf(t, db, "customers/1"); now <= before {
		t.Errorf("the guard went from %d to %d", before, now)
	}
}

// Ensure that what a cluster-wide session cannot do is refused, with nothing changed.
func TestSession_ClusterWide_Refused(t *testing.T) {
	db := memory(t, nil)
	plain := db.OpenSession()
	if err := plain.PutCompareExchange("a", 1, 0); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("a session of one node: got %v", err)
	}
	if err := plain.DeleteCompareExchange("a", 1); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("a session of one node: got %v", err)
	}
	s := db.OpenSession(jay.ClusterWide())
	for name, err := range map[string]error{
		"guard":     s.PutCompareExchange(jay.GuardKey("users/1"), 1, 0),
		"key":       s.PutCompareExchange(strings.Repeat("k", 513), 1, 0),
		"value":     s.PutCompareExchange("a", func() {}, 0),
		"delete 0":  s.DeleteCompareExchange("a", 0),
		"other key": s.DeleteCompareExchange("", 1),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	must(t, s.SaveChanges(ctx)) // nothing was kept

	must(t, s.Store(ctx, &invoice{ID: "invoices|"}))
	must(t, s.PutCompareExchange("a", 1, 0))
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("an identity: got %v", err)
	}
	if got, _ := valueOf(t, db.CompareExchange(), "a"); got != "none" {
		t.Errorf("a refused save has stored %s", got)
	}
	s.Clear()
	must(t, s.SaveChanges(ctx))
	if got, _ := valueOf(t, db.CompareExchange(), "a"); got != "none" {
		t.Errorf("Clear has kept a change, %s", got)
	}
}

// Ensure that a save whose outcome was not known is found out, by the index of a value
// as well, and not repeated.
func TestSession_ClusterWide_InDoubt(t *testing.T) {
	for _, survives := range []bool{true, false} {
		for _, documents := range []bool{true, false} {
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{})
			put(t, db, "warm", `{}`) // etags are reserved on disk
			s := db.OpenSession(jay.ClusterWide())
			c := &customer{ID: "customers/1", Name: "Ann"}
			if documents {
				must(t, s.Store(ctx, c))
			}
			must(t, s.PutCompareExchange("names/ann", 1, 0))
			disk.FailAfter(0)
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
				t.Fatalf("got %v", err)
			}
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrFailed) {
				t.Errorf("before the reopen: got %v", err)
			}
			percent := 0
			if survives {
				percent = 100
			}
			crashed := disk.Crash(percent, rand.New(rand.NewPCG(1, 2)))
			_ = db.Close()
			again := onDisk(t, crashed, jay.Options{})
			_, index := valueOf(t, again.CompareExchange(), "names/ann")
			equal(t, index > 0, survives)
			must(t, s.Reattach(again))
			must(t, s.SaveChanges(ctx))
			_, now := valueOf(t, again.CompareExchange(), "names/ann")
			if survives {
				equal(t, now, index)
			} else if now == 0 {
				t.Error("the save was not repeated")
			}
			if documents {
				c.Name = "Anna"
				must(t, s.SaveChanges(ctx))
				equal(t, body(t, again, "customers/1"), `{"Name":"Anna"}`)
			}
			closeDB(t, again)
		}
	}
}

// Ensure that a save which only deletes a value, and whose outcome was not known, is not
// refused for what it has done itself.
func TestSession_ClusterWide_InDoubt_Deletion(t *testing.T) {
	for _, percent := range []int{0, 100} {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		index := exchanged(t, db.CompareExchange(), "names/ann", 1, 0)
		s := db.OpenSession(jay.ClusterWide())
		must(t, s.DeleteCompareExchange("Names/Ann", index))
		disk.FailAfter(0)
		if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
			t.Fatalf("got %v", err)
		}
		crashed := disk.Crash(percent, rand.New(rand.NewPCG(1, 2)))
		_ = db.Close()
		again := onDisk(t, crashed, jay.Options{})
		_, now := valueOf(t, again.CompareExchange(), "names/ann")
		equal(t, now == 0, percent == 100)
		must(t, s.Reattach(again))
		if err := s.SaveChanges(ctx); err != nil {
			t.Errorf("%d%% kept: %v", percent, err)
		}
		_, now = valueOf(t, again.CompareExchange(), "names/ann")
		equal(t, now, 0)
		closeDB(t, again)
	}
}

// leftInDoubt has SaveChanges return because its context has ended, before the coordinator's decision is known: the
// answer to the first try was lost, by the fault. decide lets the node go on.
func leftInDoubt(t *testing.T, s *jay.Session, client *clustertest.Client, fault clustertest.Fault) (decide func()) {
	t.Helper()
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	release := make(chan struct{})
	tries := 0
	client.Fail(fault)
	client.Before(func(c clustertest.Call) {
		if c.Method == "Commit" && len(c.Changes) > 1 {
			if tries++; tries == 2 { // the first one has the fault
				cancel()
				<-release
			}
		}
	})
	if err := s.SaveChanges(limited); !errors.Is(err, jay.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	return func() {
		client.Before(nil)
		close(release)
	}
}

// Ensure that a cluster-wide session finds out what the coordinator has decided about a save that its caller has left, on the same
// handle and after a reopen, and neither takes another write for its own nor its own for another.
func TestSession_ClusterWide_Left(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(t *testing.T, s *jay.Session) *customer{
		"a value": func(t *testing.T, s *jay.Session) *customer { return nil },
		"a loaded document": func(t *testing.T, s *jay.Session) *customer {
			c, err := jay.Load[customer](ctx, s, "customers/1")
			must(t, err)
			c.Name = "mine"
			return c
		},
		"a new document": func(t *testing.T, s *jay.Session) *customer {
			c := &customer{ID: "customers/2", Name: "mine"}
			must(t, s.Store(ctx, c))
			return c
		},
		"a document and a deletion": func(t *testing.T, s *jay.Session) *customer {
			must(t, s.DeleteID("customers/1"))
			c := &customer{ID: "customers/2", Name: "mine"}
			must(t, s.Store(ctx, c))
			return c
		},
	}
	for kind, change := range kinds {
		for _, where := range []string{"here", "reopened", "reopened twice"} {
			if where != "here" && kind == "a new document" || where == "reopened twice" && (testing.Short() || kind == "a document and a deletion") {
				continue // each Close waits for a second
			}
			for outcome, fault := range map[string]clustertest.Fault{"happens": clustertest.Happens, "happens late": clustertest.Never, "never": clustertest.Never} {
				t.Run(kind+", "+where+", "+outcome, func(t *testing.T) {
					t.Parallel()
					m := clustertest.NewMemory()
					client, disk := m.Connect(), storagetest.NewDisk()
					db := onDisk(t, disk, *inCluster(client, "A"))
					other := memory(t, inCluster(m.Connect(), "B"))
					must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))
					put(t, db, "customers/1", `{"Name":"before"}`, jay.InCollection("Customers"))
					s := db.OpenSession(jay.ClusterWide())
					must(t, s.PutCompareExchange("names/ann", "mine", 0))
					c := change(t, s)
					decide := leftInDoubt(t, s, client, fault)
					put(t, db, "unrelated", `{}`) // gets the etag that the save had in its rehearsal
					if outcome == "never" {
						must(t, second(other.CompareExchange().Put(ctx, "names/ann", "theirs", 0)))
					}
					if where == "here" {
						limited, cancel := context.WithTimeout(ctx, time.Millisecond)
						if err := s.SaveChanges(limited); !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("before it is decided: %v", err)
						}
						cancel()
						decide()
					} else {
						client.Cut()
						decide()
						must(t, db.Close())
						for range map[string]int{"reopened": 1, "reopened twice": 2}[where] {
							if db != nil && where == "reopened twice" {
								_ = db.Close()
							}
							db = onDisk(t, disk, *inCluster(m.Connect(), "A"))
							for more := jaytest.Patience(); more(checks.Undecided(db) == 0); { // Open waits for a while only
							}
						}
						must(t, s.Reattach(db))
					}

					err := s.SaveChanges(ctx)
					happened := outcome != "never" && (outcome != "happens late" || where == "here") // else Open has given it up
					switch unknown := where == "reopened twice" && errors.Is(err, jay.ErrUnknownOutcome); {
					case unknown:
						s.Clear()
					case outcome == "never":
						if !errors.Is(err, jay.ErrConflict) {
							t.Errorf("got %v, want a conflict", err)
						}
						if changes, err := s.HasChanges(); !changes || err != nil {
							t.Errorf("the changes are gone, %v", err)
						}
					case err != nil:
						t.Error(err)
					case c != nil: // it goes on with the version that the document has
						c.Name = "mine, again"
						must(t, s.SaveChanges(ctx))
						equal(t, body(t, db, c.ID), `{"Name":"mine, again"}`)
					}
					want := `"mine"`
					if outcome == "never" {
						want = `"theirs"`
					}
					if happened || err == nil {
						equal(t, valueIn(t, db, "names/ann"), want)
					}
					if c != nil && outcome == "never" {
						if got, err := db.Get(ctx, "customers/2"); err == nil {
							t.Errorf("a save that has not happened has left %s", got.Body())
						}
						equal(t, body(t, db, "customers/1"), `{"Name":"before"}`)
					}
					must(t, db.Close())
				})
			}
		}
	}
}
