package lsm

import (
	"runtime"
	"strings"
	"sync"
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
// lets others run after each such write. Half of the time is its own all the same, however
// many commits there are (turn). Otherwise it could fall behind, and Pebble would stop all
// writers. The build of an index has no such haste: it sleeps while the log is synced, as
// a thread that returns from a sync would have to wait for a processor.
type courtesy struct {
	waiting atomic.Int64 // requests that will wait for the disk, from push to answer
	syncing atomic.Int64 // syncs of the log that are under way
	onGive  func()       // for tests, or nil

	mu     sync.Mutex
	builds turn // of all that call GiveWay. Guarded by mu.
}

// maxPause is how long a build sleeps at most, each time that it gives way, and by how
// much what a build, flush or compaction has waited may exceed what it has worked.
// pollInterval is how often a build looks whether a sync has ended: the commit does not wake
// it, as that would cost the commit time.
const (
	maxPause     = time.Millisecond
	pollInterval = 50 * time.Microsecond
)

// give lets other goroutines and threads run.
func (c *courtesy) give() {
	if c.onGive != nil {
		c.onGive()
	}
	runtime.Gosched()
	yieldThread()
}

// sleep waits until no sync of the log is under way, for maxPause at most.
func (c *courtesy) sleep() {
	for began := time.Now(); c.syncing.Load() > 0 && time.Since(began) < maxPause; {
		time.Sleep(pollInterval)
	}
}

// begin notes that a request that wants a sync is about to enter the queue; end must
// follow when its call returns.
func (c *courtesy) begin() { c.waiting.Add(1) }

func (c *courtesy) end() { c.waiting.Add(-1) }

// GiveWay implements storage.Ingester.
func (e *Engine) GiveWay() {
	c := &e.courtesy
	if c.waiting.Load() == 0 {
		runtime.Gosched()
		return
	}

	// All goroutines of builds share one turn, and the waits of each are added up. So two
	// that wait at the same time wait for less than half of the time.
	began := time.Now()
	c.mu.Lock()
	over := c.builds.over(began)
	c.mu.Unlock()
	if !over {
		runtime.Gosched()
		yieldThread()
		return
	}
	c.sleep()
	c.give()
	ended := time.Now()
	c.mu.Lock()
	c.builds.begin(ended, ended.Sub(began))
	c.mu.Unlock()
}

// SyncsAwaited implements storage.Paced.
func (e *Engine) SyncsAwaited() int64 { return e.courtesy.waiting.Load() }

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
	if f.waiting.Load() == 0 {
		return n, err
	}
	if began := time.Now(); f.turn.over(began) {
		f.give()
		ended := time.Now()
		f.turn.begin(ended, ended.Sub(began))
	}
	return n, err
}

// turn divides the time between what makes tables and commits: it balances what the
// former has waited against what it has worked.
type turn struct {
	owed time.Duration // by how much it has waited for longer than it has worked, at least 0
	last time.Time     // when owed was brought up to date
}

// over reports whether to give way now. It works until now.
func (t *turn) over(now time.Time) bool {
	if worked := now.Sub(t.last); worked > 0 {
		t.owed = max(0, t.owed-worked)
		t.last = now
	}
	return t.owed < maxPause
}

// begin begins the next turn, after a wait of this length.
func (t *turn) begin(now time.Time, waited time.Duration) {
	t.owed += waited
	t.last = now
}
