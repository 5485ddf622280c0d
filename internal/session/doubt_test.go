package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

var ctx = context.Background()

type customer struct {
	ID   string
	Name string
}

// load returns an entity that is loaded.
func load(t *testing.T, s *jay.Session, id string) *customer {
	t.Helper()
	c, err := jay.Load[customer](ctx, s, id)
	jaytest.Must(t, err)
	return c
}

// Ensure that what a caller asks for after a save in doubt is done by the next save, whether or not the first one
// has survived, and that what the first one carried is done once.
func TestDoubt_AskedForMeanwhile(t *testing.T) {
	t.Parallel()
	kinds := map[string]struct {
		ask   func(s *jay.Session, c *customer) error
		found func(t *testing.T, db *jay.DB) bool
	}{
		"attachment": {
			func(s *jay.Session, c *customer) error {
				return s.Attachments(c).Store("late.txt", strings.NewReader("late"), "text/plain")
			},
			func(t *testing.T, db *jay.DB) bool {
				content, err := jaytest.Attached(t, db.Attachments("customers/1"), "late.txt")
				return err == nil && string(content) == "late"
			},
		},
		"another content of an attachment": {
			func(s *jay.Session, c *customer) error {
				return s.Attachments(c).Store("First.txt", strings.NewReader("again"), "")
			},
			func(t *testing.T, db *jay.DB) bool {
				content, err := jaytest.Attached(t, db.Attachments("customers/1"), "first.txt")
				return err == nil && string(content) == "again"
			},
		},
		"metadata": {
			func(s *jay.Session, c *customer) error { return s.SetMetadata(c, []byte(`{"late":true}`)) },
			func(t *testing.T, db *jay.DB) bool {
				d, err := db.Get(ctx, "customers/1")
				return err == nil && string(d.Metadata().Custom) == `{"late":true}`
			},
		},
		"compare exchange": {
			func(s *jay.Session, c *customer) error { return s.PutCompareExchange("late", 1, 0) },
			func(t *testing.T, db *jay.DB) bool {
				_, err := db.CompareExchange().Get(ctx, "late")
				return err == nil
			},
		},
		"revision": {
			func(s *jay.Session, c *customer) error { return s.ForceRevision(c) },
			func(t *testing.T, db *jay.DB) bool {
				return jaytest.RevisionBodies(t, db, "customers/1", jay.RevisionPage{}) != ""
			},
		},
	}
	for kind, k := range kinds {
		for _, percent := range []int{0, 100} {
			t.Run(fmt.Sprintf("%s, %d%% survive", kind, percent), func(t *testing.T) {
				t.Parallel()
				disk := storagetest.NewDisk()
				db := jaytest.OnDisk(t, disk, jay.Options{})
				jaytest.Put(t, db, "customers/1", `{"Name":"before"}`, jay.InCollection("Customers"))
				var opts []jay.SessionOption
				exchanges := kind == "compare exchange" // such a save attaches nothing
				if exchanges {
					opts = append(opts, jay.ClusterWide())
				}
				s := db.OpenSession(opts...)
				c := load(t, s, "customers/1")
				c.Name = "changed"
				if kind != "metadata" {
					jaytest.Must(t, s.SetMetadata(c, []byte(`{"first":true}`)))
				}
				if exchanges {
					jaytest.Must(t, s.PutCompareExchange("first", 1, 0))
				} else {
					jaytest.Must(t, s.Attachments(c).Store("first.txt", strings.NewReader("first"), ""))
				}
				disk.FailAfter(0)
				if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
					t.Fatal(err)
				}
				jaytest.Must(t, k.ask(s, c))
				crashed := disk.Crash(percent, rand.New(rand.NewPCG(1, 2)))
				_ = db.Close()

				again := jaytest.OnDisk(t, crashed, jay.Options{})
				defer jaytest.Close(t, again)
				jaytest.Equal(t, jaytest.Body(t, again, "customers/1") == `{"Name":"changed"}`, percent == 100)
				jaytest.Must(t, s.Reattach(again))
				jaytest.Must(t, s.SaveChanges(ctx))
				if !k.found(t, again) {
					t.Error("what was asked for later is lost")
				}
				d, err := again.Get(ctx, "customers/1")
				jaytest.Must(t, err)
				jaytest.Equal(t, string(d.Body()), `{"Name":"changed"}`)
				if kind != "metadata" {
					jaytest.Equal(t, string(d.Metadata().Custom), `{"first":true}`)
				}
				if exchanges {
					_, err = again.CompareExchange().Get(ctx, "first")
				} else {
					_, err = jaytest.Attached(t, again.Attachments("customers/1"), "first.txt")
				}
				jaytest.Must(t, err)
				if changes, err := s.HasChanges(); changes || err != nil {
					t.Errorf("changes are left: %v, %v", changes, err)
				}
			})
		}
	}
}

// cancelled has SaveChanges return because its context has ended, while the disk is asked to sync. The write goes on.
func cancelled(t *testing.T, disk *storagetest.Disk, s *jay.Session) {
	t.Helper()
	hold := disk.Hold(storagetest.Logs, storagetest.Syncs)
	leaving, leave := context.WithCancel(ctx)
	answer := make(chan error, 1)
	go func() { answer <- s.SaveChanges(leaving) }()
	<-hold.Met()
	leave()
	err := jaytest.Within(t, answer, "SaveChanges")
	hold.Release()
	if !errors.Is(err, jay.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// Ensure that a session whose save was left by its context goes on with the same handle, and does not write twice.
func TestDoubt_ContextEnded(t *testing.T) {
	t.Parallel()
	for _, optimistic := range []bool{false, true} {
		disk := storagetest.NewDisk()
		db := jaytest.OnDisk(t, disk, jay.Options{})
		jaytest.Put(t, db, "customers/1", `{"Name":"before"}`, jay.InCollection("Customers"))
		jaytest.Put(t, db, "customers/ann", `{"Name":"goes"}`, jay.InCollection("Customers"))
		var opts []jay.SessionOption
		if optimistic {
			opts = append(opts, jay.OptimisticConcurrency())
		}
		s := db.OpenSession(opts...)
		c, made := load(t, s, "customers/1"), &customer{ID: "customers|", Name: "made"}
		c.Name = "mine"
		jaytest.Must(t, s.Store(ctx, made))
		jaytest.Must(t, s.Delete(load(t, s, "customers/ann")))
		cancelled(t, disk, s)

		jaytest.Must(t, s.Refresh(ctx, c))
		jaytest.Equal(t, c.Name, "mine")
		jaytest.Equal(t, made.ID, "customers/2")
		before, err := db.Get(ctx, "customers/1")
		jaytest.Must(t, err)
		jaytest.Must(t, s.SaveChanges(ctx))
		after, err := db.Get(ctx, "customers/1")
		jaytest.Must(t, err)
		jaytest.Equal(t, after.ChangeVector(), before.ChangeVector()) // there was nothing to save
		c.Name, made.Name = "mine, again", "made, again"
		jaytest.Must(t, s.SaveChanges(ctx))
		jaytest.Equal(t, jaytest.Body(t, db, "customers/1"), `{"Name":"mine, again"}`)
		jaytest.Equal(t, jaytest.Body(t, db, made.ID), `{"Name":"made, again"}`)
		n, err := db.Query("Customers").Count(ctx)
		jaytest.Must(t, err)
		jaytest.Equal(t, n, 2)
		jaytest.Close(t, db)
	}
}

// Ensure that a session says that it does not know what became of a save, and writes nothing, if others have overwritten
// all of it: on the same handle, and after two reopens.
func TestDoubt_Overwritten(t *testing.T) {
	t.Parallel()
	for _, reopened := range []bool{false, true} {
		disk := storagetest.NewDisk()
		db := jaytest.OnDisk(t, disk, jay.Options{})
		jaytest.Put(t, db, "customers/1", `{"Name":"before"}`, jay.InCollection("Customers"))
		s := db.OpenSession()
		c := load(t, s, "customers/1")
		c.Name = "mine"
		jaytest.Must(t, s.DeleteID("customers/2"))
		if reopened {
			disk.FailAfter(0)
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
				t.Fatal(err)
			}
			disk = disk.Crash(100, rand.New(rand.NewPCG(1, 2)))
			_ = db.Close()
			db = jaytest.OnDisk(t, disk, jay.Options{})
		} else {
			cancelled(t, disk, s)
			jaytest.Must(t, db.Flush(ctx))
		}
		for _, id := range []string{"customers/1", "customers/2"} {
			jaytest.Put(t, db, id, `{"Name":"theirs"}`, jay.InCollection("Customers"))
		}
		if reopened {
			jaytest.Close(t, db)
			db = jaytest.OnDisk(t, disk, jay.Options{})
			jaytest.Must(t, s.Reattach(db))
		}
		for range 2 {
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
				t.Errorf("reopened %v: %v", reopened, err)
			}
		}
		for _, id := range []string{"customers/1", "customers/2"} {
			jaytest.Equal(t, jaytest.Body(t, db, id), `{"Name":"theirs"}`)
		}
		s.Clear()
		load(t, s, "customers/1").Name = "mine, again"
		jaytest.Must(t, s.SaveChanges(ctx))
		jaytest.Equal(t, jaytest.Body(t, db, "customers/1"), `{"Name":"mine, again"}`)
		jaytest.Close(t, db)
	}
}

// Ensure that a save in doubt that shows not to have happened is repeated after a second reopen, too: the documents have the versions that it
// would have replaced.
func TestDoubt_SecondReopen(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	db := jaytest.OnDisk(t, disk, jay.Options{})
	jaytest.Put(t, db, "customers/1", `{"Name":"before"}`, jay.InCollection("Customers"))
	s := db.OpenSession()
	load(t, s, "customers/1").Name = "mine"
	disk.FailAfter(0)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	crashed := disk.Crash(0, rand.New(rand.NewPCG(1, 2)))
	_ = db.Close()
	others := jaytest.OnDisk(t, crashed, jay.Options{})
	jaytest.Put(t, others, "customers/2", `{}`)
	jaytest.Close(t, others)
	again := jaytest.OnDisk(t, crashed, jay.Options{})
	defer jaytest.Close(t, again)
	jaytest.Must(t, s.Reattach(again))
	jaytest.Must(t, s.SaveChanges(ctx))
	jaytest.Equal(t, jaytest.Body(t, again, "customers/1"), `{"Name":"mine"}`)
}
