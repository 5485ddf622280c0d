package storagetest

import (
	"math/rand/v2"
	"sync"
)

// PowerCut is a loss of power at a sync to come.
type PowerCut struct {
	mu   sync.Mutex
	left int   // syncs before it. Guarded by mu.
	disk *Disk // as it is found. Guarded by mu.
}

// CutPower has the power go at the sync of the log that n others precede, as OnSync counts
// them: it takes the place of its function. Of what is not synced then, each piece is kept
// with a probability in percent. The disk itself goes on: what happens from then on,
// happens in a world that is gone.
func (d *Disk) CutPower(n, percent int, random *rand.Rand) *PowerCut {
	cut := &PowerCut{left: n}
	d.OnSync(func() {
		cut.mu.Lock()
		defer cut.mu.Unlock()
		if cut.left--; cut.left == -1 {
			cut.disk = d.Crash(percent, random)
		}
	})
	return cut
}

// Happened reports whether the power is gone.
func (c *PowerCut) Happened() bool { return c.Disk() != nil }

// Disk returns the disk as it is found after the loss, nil as long as there is power.
func (c *PowerCut) Disk() *Disk {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.disk
}
