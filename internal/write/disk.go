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

	// Of the reads of late, more than one in slowWeight must be slow, and slowLeast/slowWeight at least: on a busy machine, a
	// read may take long because another thread got the processor.
	slowWeight = 8
	slowLeast  = 64
	slowMost   = 256
)

// disk remembers whether reads of documents wait for the disk. The zero value says that they do not.
type disk struct {
	heat atomic.Int64 // a slow read adds slowWeight, up to slowMost; another one takes 1, down to 0
}

// slow reports whether reads have waited for the disk lately.
func (d *disk) slow() bool { return d.heat.Load() >= slowLeast }

// took notes that n reads, one after another, have taken so long. Goroutines may overwrite what others note: it is an estimate.
func (d *disk) took(n int, t time.Duration) {
	heat := d.heat.Load()
	if t >= time.Duration(n)*SlowRead {
		d.heat.Store(min(heat+slowWeight*int64(n), slowMost))
	} else if heat > 0 {
		d.heat.Store(max(heat-int64(n), 0))
	}
}
