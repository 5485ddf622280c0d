package crash_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that no etag and no number of an ID comes twice, whatever record of a deletion
// was the last: each document is deleted, so that with the records of deletions all
// traces of the numbers go but those that the database keeps on purpose. The power
// goes at any sync, also in the removal of the records, or the database is closed.
func TestCrash_DeletionsRemoved(t *testing.T) {
	sample.OneGoroutine(t)
	defer func(old uint64) { knobs.KeptChanges = old }(knobs.KeptChanges)
	knobs.KeptChanges = 0
	today := sample.Of(t, 4)
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprintf("%d%% of the unsynced data kept", percent), func(t *testing.T) {
			disk := storagetest.NewDisk()
			etags := make(map[uint64]string) // of what was acknowledged
			l := newLedger(t)
			highest := uint64(0)
			random := rand.New(rand.NewPCG(5+today.Seed(), uint64(percent)))
			for cut := range today.Rounds(40) {
				durability := jay.Synced
				if cut%4 == 3 {
					durability = jay.Relaxed
				}
				db := onDisk(t, disk, jay.Options{Durability: durability})
				c, err := db.Counters(ctx)
				must(t, err)
				if c.Etag < highest {
					t.Fatalf("cut %d: the highest etag is %d, and %d was used", cut, c.Etag, highest)
				}

				power := disk.CutPower(random.IntN(20), percent, random)
				for range 6 {
					for _, request := range []string{"users/", "users|", "plain"} {
						m, err := db.Put(ctx, request, []byte(`{}`), jay.InCollection("Users"))
						must(t, err)
						// In the world after the crash, a number may come again that
						// was not acknowledged before it.
						if power.Happened() {
							continue
						}
						if request != "plain" {
							l.acknowledge(m.ID)
						}
						if other, twice := etags[m.Etag]; twice {
							t.Fatalf("cut %d: etag %d of %s came before, for %s", cut, m.Etag, m.ID, other)
						}
						etags[m.Etag], highest = m.ID, max(highest, m.Etag)
						must(t, db.Delete(ctx, m.ID))
					}
					if random.IntN(2) == 0 {
						must(t, db.Compact(ctx))
					}
				}
				disk.OnSync(func() {})
				closeDB(t, db)
				if power.Happened() {
					disk = power.Disk()
				}
			}
			t.Logf("%d etags", len(etags))
		})
	}
}
