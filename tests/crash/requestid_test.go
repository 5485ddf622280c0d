package crash_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that after a loss of power at each sync a call that is made again, as its caller
// got no answer, returns what was committed, or is carried out: no number is skipped and
// none is given twice.
func TestRequestID_Crash_AtEachSync(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	for _, percent := range []int{0, 50, 100} {
		for at := 0; ; at++ {
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{})
			cut := disk.CutPower(at, percent, rand.New(rand.NewPCG(uint64(at), uint64(percent))))
			answered := 0
			for i := range 4 {
				n, err := db.NextIdentity(ctx, "users", jay.RequestID(fmt.Sprint(i)))
				must(t, err)
				equal(t, n, int64(i+1))
				if !cut.Happened() {
					answered = i + 1
				}
			}
			closeDB(t, db)
			if !cut.Happened() {
				break
			}
			db = onDisk(t, cut.Disk(), jay.Options{})
			list, err := db.Identities(ctx)
			must(t, err)
			if list["users|"] < int64(answered) {
				t.Fatalf("%d%% kept, crash at sync %d: the counter is at %d, and %d calls were answered", percent, at, list["users|"], answered)
			}
			for i := range 4 { // all are made again, answered or not
				n, err := db.NextIdentity(ctx, "users", jay.RequestID(fmt.Sprint(i)))
				must(t, err)
				if n != int64(i+1) {
					t.Fatalf("%d%% kept, crash at sync %d: call %d returns %d", percent, at, i, n)
				}
			}
			closeDB(t, db)
		}
	}
}

// Ensure the same of writes of every kind: whatever survives a loss of power, each call made again has one effect.
func TestRequestID_Writes_Crash_AtEachSync(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	type entry struct {
		ID string
		N  int
	}
	calls := func(db *jay.DB) []func() error {
		entries, err := jay.CollectionOf[entry](db)
		must(t, err)
		once := func(id string) jay.RequestOption { return jay.RequestID(id) }
		return []func() error{
			func() error { _, err := db.Patch(ctx, "n", jay.Increment("N", 1), once("patch")); return err },
			func() error { _, err := entries.Insert(ctx, &entry{N: 1}, once("insert")); return err },
			func() error {
				return db.Update(ctx, func(tx *jay.Tx) error {
					_, err := tx.Patch(ctx, "n", jay.Increment("N", 10))
					return err
				}, once("update"))
			},
			func() error {
				s := db.OpenSession()
				must(t, s.Store(ctx, &entry{N: 2}))
				return s.SaveChanges(ctx, once("save"))
			},
			func() error { return db.Delete(ctx, "gone", once("delete")) },
			func() error {
				s := db.OpenSession(jay.ClusterWide())
				must(t, s.Store(ctx, &entry{N: 3}))
				must(t, s.PutCompareExchange("one", 1, 0)) // a second time would be a conflict
				return s.SaveChanges(ctx, once("clusterwide"))
			},
		}
	}
	today := sample.Of(t, 4)
	for _, percent := range []int{0, 50, 100} {
		for at := 0; ; at++ {
			if !today.Has(at) {
				continue
			}
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{})
			_, err := db.Put(ctx, "n", []byte(`{"N":0}`))
			must(t, err)
			_, err = db.Put(ctx, "gone", []byte(`{}`))
			must(t, err)
			cut := disk.CutPower(at, percent, rand.New(rand.NewPCG(uint64(at), uint64(percent))))
			for _, call := range calls(db) {
				must(t, call())
			}
			closeDB(t, db)
			if !cut.Happened() {
				break
			}
			db = onDisk(t, cut.Disk(), jay.Options{})
			for range 2 { // all are made again, answered or not
				for i, call := range calls(db) {
					if err := call(); err != nil {
						t.Fatalf("%d%% kept, crash at sync %d: call %d: %v", percent, at, i, err)
					}
				}
			}
			doc, err := db.Get(ctx, "n")
			must(t, err)
			equal(t, string(doc.Body()), `{"N":11}`)
			n, err := db.Query("Entries").Count(ctx)
			must(t, err)
			equal(t, n, 3)
			closeDB(t, db)
		}
	}
}
