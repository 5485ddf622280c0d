package write

import (
	"sync/atomic"
	"time"
)

// What a transaction reads is read by the leader of its group, while all other writers wait. As long as the
// store is in memory that takes less time than reading before the transaction would. A read that waits for
// the disk takes a hundred times as long: then each writer reads what it will need beforehand, and all of
// them read at the same time.

// SlowRead is how long a read takes at least that has waited for the disk. A solid-state disk needs some 100 µs. A
// variable for tests.
var SlowRead = 30 * time.Microsecond

const (
	// readsAtOnce is how many documents one call reads at the same time while reads wait for the disk.
	readsAtOnce = 16

	// slowFor is for how many documents that are written a slow read counts.
	slowFor = 256
)

// disk remembers whether reads of documents wait for the disk. The zero value says that they do not.
type disk struct{ left atomic.Int64 } // how many more documents are written as if they do

// slow reports whether reads have waited for the disk lately. n documents are to be written.
func (d *disk) slow(n int) bool { return d.left.Load() > 0 && d.left.Add(-int64(n)) > -int64(n) }

// took notes that n reads, one after another, have taken so long.
func (d *disk) took(n int, t time.Duration) {
	if t >= time.Duration(n)*SlowRead {
		d.left.Store(slowFor)
	}
}
