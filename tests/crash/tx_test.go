package crash_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// Several writers, each with documents of its own, put this many at once: more
// than a block of the log.
const (
	crashWriters = 4
	crashDocs    = 40
)

// page replaces all documents of a writer in one transaction that makes one of
// each kind of ID besides.
func page(db *jay.DB, writer, n int) error {
	body := fmt.Appendf(nil, `{"N":%d,"Padding":%q}`, n, strings.Repeat("x", 1000))
	return db.Update(ctx, func(tx *jay.Tx) error {
		for i := range crashDocs {
			if _, err := tx.Put(ctx, fmt.Sprintf("pages/%d/%d", writer, i), body); err != nil {
				return err
			}
		}
		for _, id := range []string{"made|", "made/", ""} {
			if _, err := tx.Put(ctx, id, body, jay.InCollection(fmt.Sprintf("Made%d", writer))); err != nil {
				return err
			}
		}
		if _, err := tx.Store(ctx, fmt.Sprintf("Stored%d", writer), body); err != nil {
			return err
		}
		if _, err := tx.Insert(ctx, fmt.Sprintf("marks/%d/%d", writer, n), body); err != nil {
			return err
		}
		return tx.Delete(ctx, fmt.Sprintf("marks/%d/%d", writer, n-1))
	})
}

// pages returns the number of the last transaction of a writer, which must be
// there as a whole.
func pages(t *testing.T, db *jay.DB, writer int) int {
	t.Helper()
	last := -1
	for i := range crashDocs {
		n := 0
		if text := body(t, db, fmt.Sprintf("pages/%d/%d", writer, i)); text != "absent" {
			if _, err := fmt.Sscanf(text, `{"N":%d`, &n); err != nil {
				t.Fatal(err)
			}
		}
		if i > 0 && n != last {
			t.Fatalf("writer %d: one document is of transaction %d, another of %d", writer, last, n)
		}
		last = n
	}
	marks := 0
	for doc, err := range db.Documents(ctx, jay.Scan{Prefix: fmt.Sprintf("marks/%d/", writer)}) {
		if err != nil {
			t.Fatal(err)
		}
		marks++
		jaytest.Equal(t, doc.ID(), fmt.Sprintf("marks/%d/%d", writer, last))
	}
	jaytest.Equal(t, marks, min(last, 1))
	for collection, each := range map[string]int{"Made": 3, "Stored": 1} {
		made := 0
		for _, err := range db.Documents(ctx, jay.Scan{Collection: fmt.Sprint(collection, writer)}) {
			if err != nil {
				t.Fatal(err)
			}
			made++
		}
		if made != each*last {
			t.Fatalf("writer %d: transaction %d is there, with %d of %d new documents of %s", writer, last, made, each*last, collection)
		}
	}
	return last
}

// Ensure that a transaction of many documents is there as a whole or not at
// all after a loss of power at any sync of the log, and that it is there if it
// was acknowledged, under relaxed durability if the database was closed.
func TestTx_Crash(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
			t.Run(fmt.Sprintf("%d%% kept, durability %d", percent, durability), func(t *testing.T) {
				cuts := 12
				if testing.Short() {
					cuts = 3
				}
				disk := storagetest.NewDisk()
				there := make([]int, crashWriters)
				lost := 0
				met := func() bool { return durability == jay.Synced || percent > 0 || lost > 0 || testing.Short() }
				more := jaytest.Patience()
				for cut := 0; cut < cuts || more(met()); cut++ {
					db := onDisk(t, disk, jay.Options{Durability: durability})
					for w := range there {
						there[w] = pages(t, db, w)
					}
					var acknowledged [crashWriters]atomic.Int64
					var mu sync.Mutex
					var crashed *storagetest.Disk
					var before [crashWriters]int64
					fall := func() {
						for w := range before {
							before[w] = acknowledged[w].Load()
						}
						crashed = disk.Crash(percent, rand.New(rand.NewPCG(uint64(cut), uint64(percent))))
					}
					left := cut
					disk.OnSync(func() {
						mu.Lock()
						defer mu.Unlock()
						if left--; left == -1 {
							fall()
						}
					})
					gone := func() bool { mu.Lock(); defer mu.Unlock(); return crashed != nil }
					var wg sync.WaitGroup
					for w := range crashWriters {
						wg.Go(func() {
							for n := 1; n <= 12 && !gone(); n++ {
								if err := page(db, w, there[w]+n); err != nil {
									t.Error(err)
									return
								}
								acknowledged[w].Store(int64(there[w] + n))
							}
						})
					}
					wg.Wait()
					mu.Lock()
					if crashed == nil {
						fall()
					}
					mu.Unlock()
					disk.OnSync(func() {})
					closeDB(t, db)

					after := onDisk(t, crashed, jay.Options{})
					for w := range crashWriters {
						if n := pages(t, after, w); int64(n) < before[w] {
							lost++
							if durability == jay.Synced {
								t.Errorf("cut %d, writer %d: transaction %d was acknowledged, %d is there", cut, w, before[w], n)
							}
						}
					}
					closeDB(t, after)
					disk = crashed
				}
				if !met() {
					t.Error("nothing was ever lost: the test does not test relaxed durability")
				}
			})
		}
	}
}
