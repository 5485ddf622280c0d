package members_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/storage/storagetest"
)

// valueIn returns the JSON of a compare-exchange value, "" if there is none.
func valueIn(t testing.TB, db *jay.DB, key string) string {
	t.Helper()
	v, err := db.CompareExchange().Get(ctx, key)
	if errors.Is(err, jay.ErrNotFound) {
		return ""
	}
	must(t, err)
	return string(v.Value)
}

// Ensure that compare-exchange values are those of all nodes, with the API of one.
func TestCluster_CompareExchange(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 2)
	a, b := nodes[0].CompareExchange(), nodes[1].CompareExchange()
	index, err := a.Put(ctx, "Emails/Ann", "users/1", 0, jay.CompareExchangeMetadata([]byte(`{"by":"a"}`)))
	must(t, err)
	v, err := b.Get(ctx, "emails/ann")
	must(t, err)
	equal(t, fmt.Sprint(v.Key, string(v.Value), string(v.Metadata), v.Index == index), `Emails/Ann"users/1"{"by":"a"}true`)

	var conflict *jay.CompareExchangeError
	if _, err := b.Put(ctx, "emails/ann", "users/2", 0); !errors.As(err, &conflict) || !errors.Is(err, jay.ErrExists) || conflict.Actual != index || string(conflict.Value) != `"users/1"` || conflict.Key != "emails/ann" {
		t.Errorf("got %v, %+v", err, conflict)
	}
	next, err := b.Put(ctx, "emails/ann", "users/2", index)
	must(t, err)
	if next <= index {
		t.Errorf("index %d after %d", next, index)
	}
	if err := a.Delete(ctx, "emails/ann", index); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	must(t, a.Delete(ctx, "emails/ann", next))
	if _, err := b.Get(ctx, "emails/ann"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if err := b.Delete(ctx, "emails/ann", next); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}

	var batch jay.Batch
	for i := range 5 {
		batch.PutCompareExchange(fmt.Sprintf("list/%d", i), i, 0)
	}
	batch.PutCompareExchange("other", 1, 0)
	batch.Put("notes/1", []byte(`{}`))
	results, err := nodes[0].Apply(ctx, &batch)
	must(t, err)
	equal(t, results[0].Etag > next, true)
	list, err := b.List(ctx, "list/", "list/1", 2)
	must(t, err)
	equal(t, fmt.Sprint(len(list))+" "+list[0].Key+" "+list[1].Key, "2 list/2 list/3")
	list, err = b.List(ctx, "", "", 0)
	must(t, err)
	equal(t, len(list), 6)
	if _, err := nodes[0].Apply(ctx, &batch); !errors.Is(err, jay.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	equal(t, checks.Undecided(nodes[0]), 0)
	put(t, nodes[0], "notes/1", `{"free":true}`)

	clients[0].Cut()
	cutOff(t, "a value", func(ctx context.Context) error { return second(a.Put(ctx, "x", 1, 0)) })
	cutOff(t, "a read of a value", func(ctx context.Context) error { return second(a.Get(ctx, "x")) })
	cutOff(t, "a list", func(ctx context.Context) error { return second(a.List(ctx, "x", "", 0)) })
	cutOff(t, "a transaction with a value", func(limited context.Context) error {
		return nodes[0].Update(limited, func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, "notes/2", []byte(`{}`)); err != nil {
				return err
			}
			return second(tx.CompareExchange().Put(limited, "x", 1, 0))
		})
	})
	put(t, nodes[0], "notes/2", `{}`)
	_, err = b.Put(ctx, "x", 2, 0)
	must(t, err)
	clients[0].Mend()
	equal(t, valueIn(t, nodes[0], "x"), "2")
}

// Ensure that a transaction stores documents and values together, or neither, and that what
// it has read is compared, on whichever node it was changed.
func TestCluster_CompareExchange_Tx(t *testing.T) {
	t.Parallel()
	_, nodes, _ := members(t, 2)
	a, b := nodes[0], nodes[1]
	register := func(db *jay.DB, id string) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.CompareExchange().Put(ctx, "emails/ann", id, 0); err != nil {
				return err
			}
			_, err := tx.Insert(ctx, id, []byte(`{}`))
			return err
		})
	}
	must(t, register(a, "users/1"))
	if err := register(b, "users/2"); !errors.Is(err, jay.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	for _, id := range []string{"users/1", "users/2"} {
		found, err := map[string]*jay.DB{"users/1": a, "users/2": b}[id].Exists(ctx, id)
		must(t, err)
		equal(t, found, id == "users/1")
	}

	// Lost over a value that another node changes, and over a document.
	_, err := a.CompareExchange().Put(ctx, "visits", 0, 0)
	must(t, err)
	runs := 0
	must(t, a.Update(ctx, func(tx *jay.Tx) error {
		v, err := tx.CompareExchange().Get(ctx, "visits")
		if err != nil {
			return err
		}
		if runs++; runs == 1 {
			if _, err := b.CompareExchange().Put(ctx, "visits", 10, v.Index); err != nil {
				return err
			}
		}
		_, err = tx.Put(ctx, "copies/visits", fmt.Appendf(nil, `{"n":%s}`, v.Value))
		return err
	}, jay.Retry(3)))
	equal(t, fmt.Sprint(runs, body(t, a, "copies/visits")), `2{"n":10}`)
	equal(t, checks.Undecided(a), 0)

	if err := a.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.CompareExchange().List(ctx, "", "", 0)
		return err
	}); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("a list in a transaction that writes: got %v, want ErrUsage", err)
	}
	must(t, a.View(ctx, func(tx *jay.Tx) error {
		list, err := tx.CompareExchange().List(ctx, "", "", 0)
		equal(t, len(list), 2)
		return err
	}))
}

// Ensure that of two cluster-wide sessions on two nodes that compete over a value one
// saves, and that guards are compared.
func TestCluster_Session(t *testing.T) {
	t.Parallel()
	type User struct{ ID, Name string }
	_, nodes, _ := members(t, 2)
	save := func(db *jay.DB, id string) error {
		s := db.OpenSession(jay.ClusterWide())
		if err := s.Store(ctx, &User{ID: id, Name: "Ann"}); err != nil {
			return err
		}
		if err := s.PutCompareExchange("emails/ann", id, 0); err != nil {
			return err
		}
		return s.SaveChanges(ctx)
	}
	must(t, save(nodes[0], "users/1"))
	if err := save(nodes[1], "users/2"); !errors.Is(err, jay.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	found, err := nodes[1].Exists(ctx, "users/2")
	must(t, err)
	equal(t, found, false)

	one, two := nodes[0].OpenSession(jay.ClusterWide()), nodes[0].OpenSession(jay.ClusterWide())
	for _, s := range []*jay.Session{one, two} {
		u, err := jay.Load[User](ctx, s, "users/1")
		must(t, err)
		u.Name = "Anna"
	}
	must(t, one.SaveChanges(ctx))
	if err := two.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	u, err := jay.Load[User](ctx, one, "users/1")
	must(t, err)
	one.Delete(u)
	must(t, one.SaveChanges(ctx))
	equal(t, valueIn(t, nodes[1], jay.GuardKey("users/1")), "")
}

// Ensure that while the coordinator has not decided, other writes of the same documents and
// of the same values of a unique index wait, that reads of its values do, which would else
// show half of it, and that nothing else does; and that the documents follow the values,
// whatever became of the caller.
func TestCluster_CompareExchange_Undecided(t *testing.T) {
	t.Parallel()
	for _, fault := range []clustertest.Fault{clustertest.Happens, clustertest.Never} {
		_, nodes, clients := members(t, 1)
		db, client := nodes[0], clients[0]
		must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "email", Fields: []string{"Email"}, Unique: true}))
		put(t, db, "users/1", `{"Email":"old"}`, jay.InCollection("Users"))
		must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))

		client.Fail(fault)
		stopped := make(chan struct{})
		var once sync.Once
		release := make(chan struct{})
		tries := 0
		client.Before(func(c clustertest.Call) {
			if c.Method == "Commit" {
				if tries++; tries == 2 { // the first one has the fault
					once.Do(func() { close(stopped) })
					<-release
				}
			}
		})
		limited, cancel := context.WithCancel(ctx)
		answer := make(chan error, 1)
		go func() {
			answer <- db.Update(limited, func(tx *jay.Tx) error {
				if _, err := tx.CompareExchange().Put(ctx, "emails/ann", "users/1", 0); err != nil {
					return err
				}
				_, err := tx.Put(ctx, "users/1", []byte(`{"Email":"ann"}`))
				return err
			})
		}()
		<-stopped
		equal(t, checks.Undecided(db), 1)
		for what, write := range map[string]func(limited context.Context) error{
			"the document":          func(limited context.Context) error { return second(db.Put(limited, "users/1", []byte(`{}`))) },
			"its deletion":          func(limited context.Context) error { return db.Delete(limited, "users/1") },
			"a read of its value":   func(limited context.Context) error { return second(db.CompareExchange().Get(limited, "emails/ann")) },
			"a list with its value": func(limited context.Context) error { return second(db.CompareExchange().List(limited, "em", "", 0)) },
			"the unique value": func(limited context.Context) error {
				return second(db.Put(limited, "users/2", []byte(`{"Email":"ann"}`), jay.InCollection("Users")))
			},
			"a transaction that has read it": func(limited context.Context) error {
				return db.Update(limited, func(tx *jay.Tx) error {
					if _, err := tx.Get(ctx, "users/1"); err != nil {
						return err
					}
					return second(tx.Put(ctx, "users/3", []byte(`{}`)))
				})
			},
		} {
			cutOff(t, what, write)
		}
		put(t, db, "users/4", `{"Email":"bob"}`, jay.InCollection("Users"))
		equal(t, body(t, db, "users/1"), `{"Email":"old"}`)
		cancel()
		if err := within(t, answer, "the transaction"); !errors.Is(err, jay.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want ErrUnknownOutcome", err)
		}
		close(release)
		for checks.Undecided(db) > 0 {
			time.Sleep(time.Millisecond)
		}
		equal(t, valueIn(t, db, "emails/ann"), `"users/1"`) // made again, if it had not happened
		equal(t, body(t, db, "users/1"), `{"Email":"ann"}`)
		put(t, db, "users/1", `{"Email":"new"}`)
		put(t, db, "users/2", `{"Email":"ann"}`, jay.InCollection("Users"))
	}
}

// Ensure that a commit that was refused when it was made again never happens, though its
// first try is still on its way, and its conditions come to hold once more.
func TestCluster_CompareExchange_Late(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 2)
	a, b := nodes[0].CompareExchange(), nodes[1].CompareExchange()
	must(t, second(a.Put(ctx, "warm", 1, 0))) // makes the slot
	var other uint64
	clients[0].Fail(clustertest.Withhold)
	commits := 0
	clients[0].Before(func(c clustertest.Call) {
		if c.Method == "Commit" {
			if commits++; commits == 2 {
				var err error
				other, err = b.Put(ctx, "x", "other", 0)
				must(t, err)
			}
		}
	})
	if _, err := a.Put(ctx, "x", "late", 0); !errors.Is(err, jay.ErrConflict) {
		t.Fatalf("got %v, want ErrConflict", err)
	}
	must(t, b.Delete(ctx, "x", other))
	equal(t, clients[0].Deliver(), 1)
	equal(t, valueIn(t, nodes[1], "x"), "")
}

// Ensure that after a failure of the disk at each sync, and a crash, whether or not the
// coordinator had the commit, values show exactly what documents show.
func TestCluster_CompareExchange_Crash(t *testing.T) {
	t.Parallel()
	var happened, crashes atomic.Int64
	var faults sync.WaitGroup // beside one another: they wait for a run that is dead
	for _, fault := range []clustertest.Fault{clustertest.Passes, clustertest.Happens, clustertest.Never, clustertest.Withhold} {
		faults.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(fault)))
			for n := 0; ; n++ {
				m := clustertest.NewMemory()
				disk := storagetest.NewDisk()
				c := m.Connect()
				db := onTag(t, disk, c, "A")
				put(t, db, "users/2", `{"n":0}`)
				must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0))) // makes the slot
				disk.FailAfter(n)
				limited, cancel := context.WithCancel(ctx)
				if fault != clustertest.Passes {
					// The crash comes before the second try.
					c.Fail(fault)
					tries := 0
					c.Before(func(call clustertest.Call) {
						if call.Method == "Commit" {
							if tries++; tries == 2 {
								cancel()
								c.Cut()
							}
						}
					})
				}
				err := db.Update(limited, func(tx *jay.Tx) error {
					if _, err := tx.CompareExchange().Put(ctx, "both", 1, 0); err != nil {
						return err
					}
					if err := tx.Delete(ctx, "users/2"); err != nil {
						return err
					}
					return second(tx.Put(ctx, "Users/1", []byte(`{"n":1}`), jay.InCollection("People"), jay.WithMetadata([]byte(`{"kept":true}`))))
				})
				cancel()
				if err == nil {
					disk.Heal()
					closeDB(t, db)
					break
				}
				crashes.Add(1)
				disk = disk.Crash(50, random)
				must(t, c.Close())
				_ = db.Close()
				again := m.Connect()
				if n%2 == 0 {
					c.Deliver()
				} else { // when the next run has found that it had not happened, and forgets the slot
					again.Before(func(call clustertest.Call) {
						if call.Method == "Commit" && bytes.Contains(call.Changes[0].Value, []byte(`"taken"`)) {
							c.Deliver()
						}
					})
				}

				db = onTag(t, disk, again, "A")
				c.Deliver()
				equal(t, checks.Undecided(db), 0)
				there := valueIn(t, db, "both") != ""
				if there {
					happened.Add(1)
					doc, err := db.Get(ctx, "users/1")
					must(t, err)
					equal(t, doc.ID()+doc.Collection()+string(doc.Body())+string(doc.Metadata().Custom), `Users/1People{"n":1}{"kept":true}`)
				}
				for id, want := range map[string]bool{"users/1": there, "users/2": !there} {
					found, err := db.Exists(ctx, id)
					must(t, err)
					if found != want {
						t.Errorf("fault %d, the disk fails after %d syncs: the value is there: %t; document %s: %t", fault, n, there, id, found)
					}
				}
				put(t, db, "users/1", `{}`)
				must(t, checks.BeatCluster(db))
				equal(t, len(m.Records("calls/")) <= 1, true)
				closeDB(t, db)
				if fault != clustertest.Passes && n > 3 {
					break
				}
				if t.Failed() {
					t.Fatalf("fault %d, sync %d: %v", fault, n, err)
				}
			}
		})
	}
	faults.Wait()
	if crashes.Load() < 5 || happened.Load() == 0 {
		t.Errorf("%d crashes, the commit had happened in %d", crashes.Load(), happened.Load())
	}
}

// Ensure that no update is lost and none happens twice when nodes count with a value and a
// document each, while answers are lost.
func TestCluster_CompareExchange_Race(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 3)
	must(t, second(nodes[0].CompareExchange().Put(ctx, "counter", 0, 0)))
	faults := []clustertest.Fault{clustertest.Happens, clustertest.Never, clustertest.Passes, clustertest.Withhold}
	var group sync.WaitGroup
	for g := range 6 {
		random := rand.New(rand.NewPCG(uint64(g), 4))
		n := g % len(nodes)
		db := nodes[n]
		group.Go(func() {
			for i := range 10 {
				if random.IntN(3) == 0 {
					clients[n].Fail(faults[random.IntN(len(faults))])
				}
				if random.IntN(4) == 0 {
					clients[n].Deliver()
				}
				err := db.Update(ctx, func(tx *jay.Tx) error {
					x := tx.CompareExchange()
					v, err := x.Get(ctx, "counter")
					if err != nil {
						return err
					}
					var count int
					if err := v.Decode(&count); err != nil {
						return err
					}
					if _, err := x.Put(ctx, "counter", count+1, v.Index); err != nil {
						return err
					}
					return second(tx.Insert(ctx, fmt.Sprintf("counts/%d", count+1), fmt.Appendf(nil, `{"by":"%d/%d"}`, g, i)))
				}, jay.Retry())
				if err != nil {
					t.Errorf("goroutine %d: %v", g, err)
					return
				}
			}
		})
	}
	group.Wait()
	for _, c := range clients {
		c.Deliver()
	}
	equal(t, valueIn(t, nodes[0], "counter"), "60")
	documents := 0
	for n := range 60 {
		for _, db := range nodes {
			found, err := db.Exists(ctx, fmt.Sprintf("counts/%d", n+1))
			must(t, err)
			if found {
				documents++
			}
		}
	}
	equal(t, documents, 60)
	for _, db := range nodes {
		equal(t, checks.Undecided(db), 0)
	}
}

// Ensure that a commit with more values than the coordinator takes changes nothing, that
// one with as many as it takes is made, and that what cannot be kept as an intent is refused.
func TestCluster_CompareExchange_TooMany(t *testing.T) {
	t.Parallel()
	_, nodes, _ := members(t, 1)
	db := nodes[0]
	for n, want := range map[int]error{127: nil, 128: jay.ErrTooLarge} {
		var b jay.Batch
		b.Put("users/1", []byte(`{}`))
		for i := range n {
			b.PutCompareExchange(fmt.Sprintf("%d/%d", n, i), i, 0)
		}
		if _, err := db.Apply(ctx, &b); !errors.Is(err, want) {
			t.Errorf("%d values: got %v, want %v", n, err, want)
		}
		equal(t, valueIn(t, db, fmt.Sprintf("%d/0", n)) != "", want == nil)
		put(t, db, "users/1", `{}`) // it is free
	}
	for what, fill := range map[string]func(b *jay.Batch){
		"a server-side id": func(b *jay.Batch) { b.Put("users/", []byte(`{}`)) },
		"a patch":          func(b *jay.Batch) { b.Patch("users/1", jay.Set("a", 1)) },
	} {
		var b jay.Batch
		fill(&b)
		b.PutCompareExchange("refused", 1, 0)
		if _, err := db.Apply(ctx, &b); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s: got %v, want ErrUsage", what, err)
		}
	}
	equal(t, valueIn(t, db, "refused"), "")
}

// tally is the document of the tests of lost updates.
type tally struct {
	ID, Next string
	N        int
}

// Ensure that no update is lost when cluster-wide sessions count in several goroutines on two
// nodes, in a document of each node and in a value of both.
func TestCluster_Session_Count(t *testing.T) {
	t.Parallel()
	const goroutines, times = 8, 50
	_, nodes, _ := members(t, 2)
	must(t, second(nodes[0].CompareExchange().Put(ctx, "counter", 0, 0)))
	for n, db := range nodes {
		s := db.OpenSession(jay.ClusterWide())
		must(t, s.Store(ctx, &tally{ID: fmt.Sprint("tallies/", n)}))
		must(t, s.SaveChanges(ctx))
	}
	count := func(node int) error {
		db := nodes[node]
		s := db.OpenSession(jay.ClusterWide())
		doc, err := jay.Load[tally](ctx, s, fmt.Sprint("tallies/", node))
		if err != nil {
			return err
		}
		v, err := db.CompareExchange().Get(ctx, "counter")
		if err != nil {
			return err
		}
		var n int
		if err := v.Decode(&n); err != nil {
			return err
		}
		doc.N++
		if err := s.PutCompareExchange("counter", n+1, v.Index); err != nil {
			return err
		}
		return s.SaveChanges(ctx)
	}
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for range times {
				err := count(g % 2)
				for errors.Is(err, jay.ErrConflict) || errors.Is(err, jay.ErrExists) {
					err = count(g % 2)
				}
				if err != nil {
					t.Errorf("goroutine %d: %v", g, err)
					return
				}
			}
		})
	}
	group.Wait()
	equal(t, valueIn(t, nodes[1], "counter"), fmt.Sprint(goroutines*times))
	for n, db := range nodes {
		doc, err := jay.Load[tally](ctx, db.OpenSession(), fmt.Sprint("tallies/", n))
		must(t, err)
		equal(t, doc.N, goroutines*times/2)
	}
}

// Ensure that a cluster-wide session that has loaded a document, or got it as an included one,
// when another one saved between the reads of the document and its guard, neither saves it nor
// deletes it, by its entity or its ID; and neither stores what it has found missing then.
func TestCluster_Session_LostUpdate(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 1)
	db := nodes[0]
	other := func(id string) {
		s := db.OpenSession(jay.ClusterWide())
		doc, err := jay.Load[tally](ctx, s, id)
		if errors.Is(err, jay.ErrNotFound) {
			doc, err = &tally{ID: id}, nil
			must(t, s.Store(ctx, doc))
		}
		must(t, err)
		doc.N++
		must(t, s.SaveChanges(ctx))
	}
	for _, straddled := range []bool{false, true} {
		for name, change := range map[string]func(s *jay.Session, doc *tally) error{
			"save":        func(_ *jay.Session, doc *tally) error { doc.N = 9; return nil },
			"delete":      func(s *jay.Session, doc *tally) error { return s.Delete(doc) },
			"delete-id":   func(s *jay.Session, doc *tally) error { return s.DeleteID(doc.ID) },
			"DELETE-ID":   func(s *jay.Session, doc *tally) error { return s.DeleteID(strings.ToUpper(doc.ID)) },
			"include":     func(_ *jay.Session, doc *tally) error { doc.N = 9; return nil },
			"store":       func(s *jay.Session, doc *tally) error { return s.Store(ctx, &tally{ID: doc.ID}) },
			"include-del": func(s *jay.Session, doc *tally) error { return s.DeleteID(doc.ID) },
		} {
			id := fmt.Sprintf("tallies/%s-%v", name, straddled)
			if name != "store" {
				other(id)
			}
			pointing := db.OpenSession()
			must(t, pointing.Store(ctx, &tally{ID: "pointers/1", Next: id}))
			must(t, pointing.SaveChanges(ctx))
			if straddled {
				var done atomic.Bool
				clients[0].Before(func(call clustertest.Call) {
					if call.Method == "Read" && slices.Contains(call.Keys, cluster.ValuePrefix+jay.GuardKey(strings.ToLower(id))) {
						if !done.Swap(true) {
							other(id)
						}
					}
				})
			}
			s := db.OpenSession(jay.ClusterWide())
			if strings.HasPrefix(name, "include") {
				must(t, second(jay.Load[tally](ctx, s, "pointers/1", jay.Include("Next"))))
			}
			doc, err := jay.Load[tally](ctx, s, id)
			if name == "store" && errors.Is(err, jay.ErrNotFound) {
				doc, err = &tally{ID: id}, nil
			}
			must(t, err)
			clients[0].Before(nil)
			if !straddled {
				other(id)
			}
			must(t, change(s, doc))
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) && !errors.Is(err, jay.ErrExists) {
				t.Errorf("%s: got %v, want a conflict", id, err)
			}
			found, err := jay.Load[tally](ctx, db.OpenSession(), id)
			must(t, err)
			if found.N == 9 {
				t.Errorf("%s: the other's save is lost", id)
			}
		}
	}
}

// Ensure that the documents of a commit which the coordinator has made, and which the disk has
// refused, are there at the next Open, though the database has made other commits of values
// meanwhile.
func TestCluster_CompareExchange_DocumentsRefused(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"the caller waits": false, "the caller has left": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := clustertest.NewMemory()
			disk := storagetest.NewDisk()
			c := m.Connect()
			db := onTag(t, disk, c, "A")
			must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0))) // makes the slot
			limited, cancel := context.WithCancel(ctx)
			defer cancel()
			if leaves {
				c.Fail(clustertest.Happens)
			}
			c.Before(func(call clustertest.Call) {
				if call.Method != "Commit" || len(call.Changes) < 2 {
					return
				}
				disk.FailAfter(0)
				if leaves {
					cancel()
				}
			})
			err := db.Update(limited, func(tx *jay.Tx) error {
				if _, err := tx.CompareExchange().Put(ctx, "both", 1, 0); err != nil {
					return err
				}
				return second(tx.Put(ctx, "users/1", []byte(`{}`)))
			})
			if !errors.Is(err, jay.ErrUnknownOutcome) {
				t.Fatalf("got %v, want ErrUnknownOutcome", err)
			}
			c.Before(nil)
			for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				err := second(db.CompareExchange().Get(ctx, "both"))
				if errors.Is(err, jay.ErrFailed) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("a value without its document: got %v, want ErrFailed", err)
				}
			}
			for i := range 2 * mostCommitsOfValues {
				must(t, second(db.CompareExchange().Put(ctx, fmt.Sprint("later/", i), 1, 0)))
			}

			disk = disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
			must(t, c.Close())
			_ = db.Close()
			db = onTag(t, disk, m.Connect(), "A")
			must(t, checks.BeatCluster(db))
			equal(t, checks.Undecided(db), 0)
			whole(t, db, true)
			closeDB(t, db)
		})
	}
}

// mostCommitsOfValues is how many commits of values a node has under way at a time.
const mostCommitsOfValues = 64

// Ensure that a session with a request ID is saved once however many save it at a time, each with IDs of its own
// and the values that they refer to, and that the others get the IDs of the first.
func TestCluster_Session_RequestID(t *testing.T) {
	t.Parallel()
	type User struct{ ID, Name string }
	_, nodes, _ := members(t, 2)
	db := nodes[0]
	save := func(request, name string, valuesOnly bool, begin <-chan struct{}) (*User, error) {
		s := db.OpenSession(jay.ClusterWide())
		u := &User{Name: name}
		if !valuesOnly {
			must(t, s.Store(ctx, u))
		}
		must(t, s.PutCompareExchange("emails/"+request, u.ID, 0))
		<-begin
		return u, s.SaveChanges(ctx, jay.RequestID(request))
	}
	for round := range 8 {
		request := fmt.Sprint("request-", round)
		var mu sync.Mutex
		ids := make(map[string]bool)
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				u, err := save(request, "Ann", round%2 == 1, begin)
				if err != nil {
					t.Errorf("%s: %v", request, err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[u.ID] = true
			})
		}
		close(begin)
		wg.Wait()
		equal(t, len(ids), 1)
		if _, err := save(request, "Bob", false, begin); !errors.Is(err, jay.ErrRequestID) {
			t.Errorf("another user: got %v, want ErrRequestID", err)
		}
	}
	n, err := db.Query("Users").Count(ctx)
	must(t, err)
	equal(t, n, 4)
}
