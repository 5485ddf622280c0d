package lsm

import "github.com/cockroachdb/crlib/fifo"

// Loads bounds the blocks of tables that are loaded at a time, which is to say read from the disk and
// decompressed, by all engines that have it in their Options; further loads wait in line. It is
// safe for concurrent use.
//
// A block holds at least one document, however long that is, and is in memory twice while it is
// decompressed. How long it is shows only when it is looked for: so a process that has
// little memory bounds the number of blocks.
type Loads struct{ semaphore *fifo.Semaphore }

// NewLoads returns a bound of n blocks. n must be above 0.
func NewLoads(n int) *Loads { return &Loads{fifo.NewSemaphore(int64(n))} }

// of returns what Pebble takes.
func (l *Loads) of() *fifo.Semaphore {
	if l == nil {
		return nil
	}
	return l.semaphore
}
