package lsm

import "github.com/cockroachdb/crlib/fifo"

// Loads bounds the blocks of tables that are loaded at the same time, that is, read from the disk
// and decompressed, by all engines that have it in their Options. Further loads wait in line. A
// Loads is safe for concurrent use.
//
// A block holds at least one document, however long, and is in memory twice while it is
// decompressed. The length of a block is unknown before it is loaded, so a process with little
// memory bounds the number of blocks.
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
