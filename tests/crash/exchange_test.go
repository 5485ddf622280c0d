package crash_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that after a loss of power at each sync of the log, what was acknowledged is
// there, a document and its value only together, and that no index that was seen before
// is given again.
func TestCompareExchange_Crash_AtEachSync(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	today := sample.Of(t, 4)
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		for _, percent := range []int{0, 50, 100} {
			for at := 0; ; at++ {
				if !today.Has(at) {
					continue
				}
				name := fmt.Sprintf("durability %d, %d%% kept, crash at sync %d", durability, percent, at)
				disk := storagetest.NewDisk()
				db := onDisk(t, disk, jay.Options{Durability: durability})
				cut := disk.CutPower(at, percent, rand.New(rand.NewPCG(uint64(at), uint64(percent))))
				given, seen := make(map[uint64]string), make(map[uint64]bool) // all indexes, and those from before the crash
				acknowledged := 0
				must(t, exchangesUntilCrash(db, func(index uint64, what string, step int) {
					given[index] = what
					if !cut.Happened() {
						seen[index], acknowledged = true, step
					}
				}))
				if durability == jay.Relaxed {
					must(t, db.Flush(ctx))
				}
				closeDB(t, db)
				if !cut.Happened() {
					break // beyond the last sync
				}

				db = onDisk(t, cut.Disk(), jay.Options{Durability: durability})
				x := db.CompareExchange()
				n := 0
				if v, err := x.Get(ctx, "n"); err == nil {
					must(t, v.Decode(&n))
				} else if !errors.Is(err, jay.ErrNotFound) {
					t.Fatalf("%s: %v", name, err)
				}
				if n < acknowledged && durability == jay.Synced {
					t.Fatalf("%s: the value is %d, and %d was acknowledged", name, n, acknowledged)
				}
				found, err := db.Exists(ctx, fmt.Sprintf("docs/%d", n))
				must(t, err)
				if next, err := db.Exists(ctx, fmt.Sprintf("docs/%d", n+1)); n > 0 && !found || next || err != nil {
					t.Fatalf("%s: the value is %d, and the documents are others: %t, %t, %v", name, n, found, next, err)
				}
				all, err := x.List(ctx, "", "", 0)
				must(t, err)
				for _, v := range all {
					if was := given[v.Index]; was != v.Key+string(v.Value) {
						t.Fatalf("%s: index %d was that of %q, and is that of %s %s", name, v.Index, was, v.Key, v.Value)
					}
				}
				for i := range 3 {
					index := exchanged(t, x, fmt.Sprintf("after/%d", i), i, 0)
					if seen[index] {
						t.Fatalf("%s: index %d is given again: it was that of %s", name, index, given[index])
					}
				}
				closeDB(t, db)
			}
		}
	}
}

// exchangesUntilCrash counts a value up, each time with a new document, and makes and
// deletes another value in between. It calls saw with each index that it sees, of which
// key and value, and the number that the count has reached.
func exchangesUntilCrash(db *jay.DB, saw func(index uint64, what string, step int)) error {
	x, index := db.CompareExchange(), uint64(0)
	for n := 1; n <= 4; n++ {
		other, err := x.Put(ctx, "other", n, 0) // at first there is no document whose etags are reserved
		if err != nil {
			return err
		}
		saw(other, fmt.Sprint("other", n), n-1)
		if err := x.Delete(ctx, "other", other); err != nil {
			return err
		}
		var b jay.Batch
		b.PutCompareExchange("n", n, index)
		b.Put(fmt.Sprintf("docs/%d", n), []byte(`{}`))
		results, err := db.Apply(ctx, &b)
		if err != nil {
			return err
		}
		index = results[0].Etag
		saw(index, fmt.Sprint("n", n), n)
	}
	return nil
}

func exchanged(t testing.TB, x jay.CompareExchange, key string, value any, index uint64) uint64 {
	t.Helper()
	got, err := x.Put(ctx, key, value, index)
	must(t, err)
	return got
}
