package members_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// oncePerCluster are calls with the request ID "once" whose commits a coordinator takes part in. They return what
// a repeated call must return too.
var oncePerCluster = map[string]func(ctx context.Context, db *jay.DB, warm uint64) (any, error){
	"a value": func(ctx context.Context, db *jay.DB, warm uint64) (any, error) {
		var b jay.Batch
		b.PutCompareExchange("emails/ann", "users/1", 0)
		return db.Apply(ctx, &b, jay.RequestID("once"))
	},
	"a value that goes": func(ctx context.Context, db *jay.DB, warm uint64) (any, error) {
		var b jay.Batch
		b.PutCompareExchange("emails/ann", "users/1", 0)
		b.DeleteCompareExchange("warm", warm)
		return db.Apply(ctx, &b, jay.RequestID("once"))
	},
	"documents and a value": func(ctx context.Context, db *jay.DB, warm uint64) (any, error) {
		var b jay.Batch
		b.Put("users/1", []byte(`{"N":1}`), jay.InCollection("Users"))
		b.PutCompareExchange("emails/ann", "users/1", 0)
		b.Delete("users/old")
		b.Put("users/2", []byte(`{"N":2}`))
		results, err := db.Apply(ctx, &b, jay.RequestID("once"))
		for i := range results { // of a repeated call only these are there
			r := &results[i]
			*r = jay.Metadata{ID: r.ID, Collection: r.Collection, ChangeVector: r.ChangeVector, Etag: r.Etag, LastModified: r.LastModified}
		}
		return results, err
	},
	"a transaction": func(ctx context.Context, db *jay.DB, warm uint64) (any, error) {
		return nil, db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.CompareExchange().Put(ctx, "emails/ann", "users/1", 0); err != nil {
				return err
			}
			return second(tx.Insert(ctx, "users/1", []byte(`{}`)))
		}, jay.RequestID("once"))
	},
}

// begun returns a database with what oncePerCluster expects, and the index of its value.
func begun(t *testing.T, disk *storagetest.Disk, c *clustertest.Client) (db *jay.DB, warm uint64) {
	t.Helper()
	db = onTag(t, disk, c, "A")
	warm, err := db.CompareExchange().Put(ctx, "warm", 1, 0) // makes the slot
	must(t, err)
	put(t, db, "users/old", `{}`)
	return db, warm
}

// asStored checks the result of a repeated call against what the database has.
func asStored(t *testing.T, db *jay.DB, result any) {
	t.Helper()
	all, _ := result.([]jay.Metadata)
	for _, m := range all {
		if strings.HasPrefix(m.ID, "users/") {
			if doc, err := db.Get(ctx, m.ID); err == nil {
				stored := doc.Metadata()
				if stored.ChangeVector != m.ChangeVector || stored.Etag != m.Etag || !stored.LastModified.Equal(m.LastModified) || stored.Collection != m.Collection {
					t.Errorf("%s: got %+v, want %+v", m.ID, m, stored)
				}
			} else if !errors.Is(err, jay.ErrNotFound) || m.ID != "users/old" || m.Etag == 0 {
				t.Errorf("%s, %+v: %v", m.ID, m, err)
			}
			continue
		}
		value, err := db.CompareExchange().Get(ctx, m.ID)
		if errors.Is(err, jay.ErrNotFound) {
			equal(t, m.Etag, 0)
			continue
		}
		must(t, err)
		equal(t, m.Etag, value.Index)
	}
}

// Ensure that a call with a request ID whose caller has left, before the coordinator answered, is carried out once:
// a repeated call waits until the first is decided, and returns its result.
func TestCluster_RequestID_CallerLeaves(t *testing.T) {
	t.Parallel()
	for name, call := range oncePerCluster {
		for _, fault := range []clustertest.Fault{clustertest.Happens, clustertest.Never} {
			c := clustertest.NewMemory().Connect()
			db, warm := begun(t, storagetest.NewDisk(), c)
			limited, cancel := context.WithCancel(ctx)
			release := make(chan struct{})
			var once sync.Once
			tries := 0
			c.Fail(fault)
			c.Before(func(call clustertest.Call) {
				if call.Method == "Commit" && len(call.Changes) > 1 {
					if tries++; tries == 2 { // the first one has the fault
						once.Do(cancel)
						<-release
					}
				}
			})
			if _, err := call(limited, db, warm); !errors.Is(err, jay.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: got %v, want ErrUnknownOutcome", name, err)
			}
			type answer struct {
				result any
				err    error
			}
			again := make(chan answer, 1)
			go func() {
				result, err := call(ctx, db, warm)
				again <- answer{result, err}
			}()
			time.AfterFunc(20*time.Millisecond, func() { close(release) })
			first := <-again
			if first.err != nil {
				t.Fatalf("%s, repeated: %v", name, first.err)
			}
			c.Before(nil)
			asStored(t, db, first.result)
			before := dump(t, db)
			result, err := call(ctx, db, warm)
			must(t, err)
			if !reflect.DeepEqual(result, first.result) {
				t.Errorf("%s: got %+v and then %+v", name, first.result, result)
			}
			equal(t, dump(t, db), before)
			equal(t, checks.Undecided(db), 0)
			closeDB(t, db)
		}
	}
}

// Ensure that a call with a request ID which the coordinator has committed, and whose process ended before its
// documents and its result were on disk, is carried out once.
func TestCluster_RequestID_Crash(t *testing.T) {
	t.Parallel()
	for name, call := range oncePerCluster {
		m := clustertest.NewMemory()
		c := m.Connect()
		disk := storagetest.NewDisk()
		db, warm := begun(t, disk, c)
		c.Before(func(call clustertest.Call) {
			if call.Method == "Commit" && len(call.Changes) > 1 {
				disk.FailAfter(0)
			}
		})
		if _, err := call(ctx, db, warm); !errors.Is(err, jay.ErrUnknownOutcome) {
			t.Fatalf("%s: got %v, want ErrUnknownOutcome", name, err)
		}
		disk = disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
		must(t, c.Close())
		_ = db.Close()

		// The repeated call comes before the coordinator says what became of the first.
		c = m.Connect()
		open := make(chan struct{})
		c.Before(func(call clustertest.Call) {
			if call.Method == "Read" && strings.HasPrefix(call.Keys[0], cluster.CallPrefix) {
				<-open
			}
		})
		db = onTag(t, disk, c, "A")
		equal(t, checks.Undecided(db), 1)
		time.AfterFunc(20*time.Millisecond, func() { close(open) })
		result, err := call(ctx, db, warm)
		if err != nil {
			t.Fatalf("%s, repeated: %v", name, err)
		}
		asStored(t, db, result)
		before := dump(t, db)
		again, err := call(ctx, db, warm)
		must(t, err)
		if !reflect.DeepEqual(result, again) {
			t.Errorf("%s: got %+v and then %+v", name, result, again)
		}
		equal(t, dump(t, db), before)
		equal(t, checks.Undecided(db), 0)
		jaytest.Verify(t, db)
		closeDB(t, db)
	}
}

// Ensure that a result which is too large to be kept is refused before the coordinator commits the values.
func TestCluster_RequestID_TooLarge(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 1)
	db := nodes[0]
	must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))
	var b jay.Batch
	b.PutCompareExchange("emails/ann", 1, 0)
	long := strings.Repeat("x", 400)
	for i := range 40_000 {
		b.Put(long+"/"+string(rune('a'+i%26))+"/"+strings.Repeat("y", i/26%70)+"/"+string(rune('a'+i/26/70)), []byte(`{}`))
	}
	commits := 0
	clients[0].Before(func(c clustertest.Call) {
		if c.Method == "Commit" {
			commits++
		}
	})
	if _, err := db.Apply(ctx, &b, jay.RequestID("once")); !errors.Is(err, jay.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	equal(t, commits, 0)
	equal(t, valueIn(t, db, "emails/ann"), "")
	put(t, db, "users/1", `{}`)
}
