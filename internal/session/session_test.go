package session_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

type lease struct {
	ID      string
	Name    string
	Note    string    `jay:"metadata=note"`
	Expires time.Time `jay:"expires"`
}

// Ensure that a session which has only put attachments does not write back the body, the metadata and the times that it loaded, over those of another writer.
func TestAttachments_MetadataOfOthers(t *testing.T) {
	t.Parallel()
	clock := jaytest.NewClock()
	db := jaytest.Memory(t, &jay.Options{Now: clock.Now, ExactExpiry: true})
	jaytest.Put(t, db, "leases/1", `{"Name":"Ann","@metadata":{"note":"old"}}`, jay.InCollection("Leases"), jay.WithTTL(time.Hour))
	s := db.OpenSession()
	l, err := jay.Load[lease](ctx, s, "leases/1")
	jaytest.Must(t, err)
	jaytest.Put(t, db, "leases/1", `{"Name":"Anna","@metadata":{"note":"new"}}`, jay.InCollection("Leases"), jay.WithTTL(1000*time.Hour))
	for _, name := range []string{"one", "two"} {
		jaytest.Must(t, s.Attachments(l).Store(name, strings.NewReader(name), ""))
		jaytest.Must(t, s.SaveChanges(ctx))
		if changes, err := s.HasChanges(); changes || err != nil {
			t.Errorf("after %s: changes %v, %v", name, changes, err)
		}
	}
	clock.Advance(2 * time.Hour)
	d, err := db.Get(ctx, "leases/1")
	jaytest.Must(t, err)
	jaytest.Equal(t, string(d.Body()), `{"Name":"Anna"}`)
	if custom := string(d.Metadata().Custom); !strings.Contains(custom, `"note":"new"`) {
		t.Errorf("the metadata is %s", custom)
	}
	all, err := db.Attachments("leases/1").List(ctx)
	jaytest.Must(t, err)
	jaytest.Equal(t, len(all), 2)
}

// Ensure that a cluster-wide session which reads a document anew after a conflict can save it: the guard of the first read does not refuse it for ever.
func TestClusterWide_ReadAnew(t *testing.T) {
	t.Parallel()
	anew := map[string]func(s *jay.Session, c *customer) (*customer, error){
		"Refresh": func(s *jay.Session, c *customer) (*customer, error) { return c, s.Refresh(ctx, c) },
		"Evict and a query": func(s *jay.Session, c *customer) (*customer, error) {
			if err := s.Evict(c); err != nil {
				return nil, err
			}
			return jay.QueryOf[customer](s).First(ctx)
		},
		"Evict and Load": func(s *jay.Session, c *customer) (*customer, error) {
			if err := s.Evict(c); err != nil {
				return nil, err
			}
			return jay.Load[customer](ctx, s, "customers/1")
		},
	}
	for name, read := range anew {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := jaytest.Memory(t, nil)
			jaytest.Put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
			mine, theirs := db.OpenSession(jay.ClusterWide()), db.OpenSession(jay.ClusterWide())
			a := load(t, mine, "customers/1")
			load(t, theirs, "customers/1").Name = "theirs"
			jaytest.Must(t, theirs.SaveChanges(ctx))
			a.Name = "mine"
			if err := mine.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) {
				t.Fatal(err)
			}
			a, err := read(mine, a)
			jaytest.Must(t, err)
			jaytest.Equal(t, a.Name, "theirs")
			a.Name = "mine"

			// A write in between is still found.
			late := db.OpenSession(jay.ClusterWide())
			load(t, late, "customers/1").Name = "late"
			jaytest.Must(t, late.SaveChanges(ctx))
			if err := mine.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) {
				t.Fatalf("a write in between: %v", err)
			}
			jaytest.Must(t, mine.Refresh(ctx, a))
			a.Name = "mine"
			jaytest.Must(t, mine.SaveChanges(ctx))
			a.Name = "mine, again" // with the guard of that save
			jaytest.Must(t, mine.SaveChanges(ctx))
			jaytest.Equal(t, jaytest.Body(t, db, "customers/1"), `{"Name":"mine, again"}`)
		})
	}
}

// Ensure that DeleteID deletes a document that a new entity would have replaced, too.
func TestDeleteID_OfStored(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	jaytest.Put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
	s := db.OpenSession()
	jaytest.Must(t, s.Store(ctx, &customer{ID: "customers/1", Name: "new"}))
	jaytest.Must(t, s.DeleteID("Customers/1"))
	jaytest.Must(t, s.SaveChanges(ctx))
	if _, err := db.Get(ctx, "customers/1"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

type order struct {
	ID       string
	Customer string
}

// Ensure that a document which a session will delete stays away when a query includes it.
func TestInclude_OfDeleted(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	jaytest.Put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
	jaytest.Put(t, db, "orders/1", `{"Customer":"customers/1"}`, jay.InCollection("Orders"))
	s := db.OpenSession()
	jaytest.Must(t, s.Delete(load(t, s, "customers/1")))
	found, err := jay.QueryOf[order](s).Include("Customer").All(ctx)
	jaytest.Must(t, err)
	jaytest.Equal(t, len(found), 1)
	if s.Holds("customers/1") {
		t.Error("the session holds it")
	}
	if _, err := jay.Load[customer](ctx, s, "customers/1"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	jaytest.Must(t, s.SaveChanges(ctx))
	if _, err := db.Get(ctx, "customers/1"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// Ensure that a value which is no entity is refused, even one that cannot be compared.
func TestDelete_NotComparable(t *testing.T) {
	t.Parallel()
	s := jaytest.Memory(t, nil).OpenSession()
	for _, v := range []any{nil, customer{}, struct{ X any }{[]int{1}}, []int{1}, map[string]int{}, (*customer)(nil)} {
		if err := s.Delete(v); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%T: %v", v, err)
		}
		if err := s.Evict(v); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("evict %T: %v", v, err)
		}
	}
}

// Ensure that a change of a compare-exchange value is a change.
func TestHasChanges_CompareExchange(t *testing.T) {
	t.Parallel()
	s := jaytest.Memory(t, nil).OpenSession(jay.ClusterWide())
	jaytest.Must(t, s.PutCompareExchange("names/ann", 1, 0))
	for _, want := range []bool{true, false} {
		has, err := s.HasChanges()
		jaytest.Must(t, err)
		jaytest.Equal(t, has, want)
		jaytest.Must(t, s.SaveChanges(ctx))
	}
}

// Ensure that a session looks into a database that another program has open, and that its changes are refused: the program answers without what the session would go on from.
func TestLook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/db"
	db := jaytest.Open(t, dir, &jay.Options{LookWrites: true})
	defer jaytest.Close(t, db)
	jaytest.Put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
	look, err := jay.Look(dir, nil)
	jaytest.Must(t, err)
	defer look.Close()
	s := look.OpenSession(jay.ClusterWide())
	c := load(t, s, "customers/1")
	jaytest.Must(t, s.SaveChanges(ctx)) // there is nothing to save
	c.Name = "Anna"
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrReadOnly) {
		t.Errorf("a changed entity: %v", err)
	}
	s.Clear()
	jaytest.Must(t, s.PutCompareExchange("a", 1, 0))
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrReadOnly) {
		t.Errorf("a value: %v", err)
	}
	jaytest.Equal(t, jaytest.Body(t, db, "customers/1"), `{"Name":"Ann"}`)
}
