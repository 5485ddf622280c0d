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
