package lsm

import (
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// courtesy makes flushes and compactions give way to commits that wait for the disk.
//
// A synced commit passes through three goroutines and two waits for the kernel, and
// between them needs a processor for some microseconds. Flushes and compactions
// compute for as long as they are let: 10 ms of Go's scheduler, and some ms of the
// kernel's. On a machine whose processors they fill, one commit in twenty waited so,
// most of all in the return from its sync.
//
// A flush or compaction writes some KB of its table at a time. While commits wait, it
// lets others run after each such write. On a machine so crowded that it then waits
// for longer than maxPause, it works as long as it waited before it gives way again:
// half of the time is its own, however many commits there are. Otherwise it could
// fall behind, and Pebble would stop all writers.
type courtesy struct {
	waiting atomic.Int64 // requests that will wait for the disk, from push to answer
	onGive  func()       // for tests, or nil
}

// give lets other goroutines and threads run.
func (c *courtesy) give() {
	if c.onGive != nil {
		c.onGive()
	}
	runtime.Gosched()
	yieldThread()
}

// begin notes that a request that wants a sync is about to enter the queue; end must
// follow when its call returns.
func (c *courtesy) begin() { c.waiting.Add(1) }

func (c *courtesy) end() { c.waiting.Add(-1) }

// GiveWay implements storage.Ingester.
func (e *Engine) GiveWay() {
	if e.courtesy.waiting.Load() > 0 {
		e.courtesy.give()
		return
	}
	runtime.Gosched()
}

// courteousFS is a file system on which writing a table gives way.
type courteousFS struct {
	vfs.FS
	*courtesy
}

// Unwrap returns the file system underneath.
func (f courteousFS) Unwrap() vfs.FS { return f.FS }

// Create implements vfs.FS.
func (f courteousFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return file, err
	}
	return &courteousFile{File: file, courtesy: f.courtesy}, nil
}

// courteousFile is a table that one goroutine writes.
type courteousFile struct {
	vfs.File
	*courtesy
	turn turn
}

// Write implements vfs.File.
func (f *courteousFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if f.waiting.Load() > 0 && f.turn.over(time.Now()) {
		f.give()
		f.turn.begin(time.Now())
	}
	return n, err
}

// maxPause is how long a flush or compaction may wait each time that it gives way, for
// nothing in return.
const maxPause = time.Millisecond

// turn is the time for which a flush or compaction works before it gives way again.
type turn struct {
	ended time.Time // when it last gave way
	until time.Time // it works until then
}

// over reports whether to give way now.
func (t *turn) over(now time.Time) bool {
	if now.Before(t.until) {
		return false
	}
	t.ended = now
	return true
}

// begin begins the next turn.
func (t *turn) begin(now time.Time) {
	if waited := now.Sub(t.ended); waited > maxPause {
		t.until = now.Add(waited)
	}
}
