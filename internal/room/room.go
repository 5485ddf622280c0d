// Package room refuses writes before the disk is full.
//
// A database that has filled its disk cannot write its log, and refuses every write until
// it is opened again, also the deletions that would make room. Options.MinFreeBytes keeps
// a reserve: as long as less is free, documents cannot be written, and can be deleted.
//
// The system is asked for what is free outside of transactions (Look), not by each write
// but once in an interval, and after as many bytes as may bring the disk near its limit.
// In between, transactions count what they write (Spend): that is an atomic addition.
package room

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/storage"
)

// Interval is how long one answer of the system holds. A variable for tests.
var Interval = time.Second

// writtenTimes is how often a byte is written before space is freed again: into the log,
// and into a table.
const writtenTimes = 2

// Room knows how much room the disk of a database has. A nil *Room means that it does not
// matter. It is safe for concurrent use.
type Room struct {
	dir  string
	min  uint64
	free func() (uint64, error)
	log  *slog.Logger // or nil

	begun  time.Time
	next   atomic.Int64 // when to look again, in nanoseconds after begun
	lookAt atomic.Int64 // look again when margin is below
	margin atomic.Int64 // bytes that may still be written
	last   atomic.Uint64
	low    atomic.Bool // as the last look found, or transactions since

	looking sync.Mutex // held by the look under way; never waited for
	failed  bool       // the last look. Guarded by looking.
}

// New returns the Room of a database in dir, or nil if min is 0. It asks the system once.
func New(dir string, min uint64, e storage.Engine, log *slog.Logger) (*Room, error) {
	if min == 0 {
		return nil, nil
	}
	spacer, ok := e.(storage.FreeSpacer)
	if !ok {
		return nil, fmt.Errorf("the storage engine does not know how much room its disk has")
	}
	r := &Room{dir: dir, min: min, free: spacer.FreeBytes, log: log, begun: time.Now()}
	free, err := r.free()
	if err != nil {
		return nil, err
	}
	r.found(free)
	return r, nil
}

// Look asks the system how much is free, if it is time to. If another goroutine does so,
// Look returns at once. It must not be called in a transaction: a disk that does not
// answer would stop all writers.
func (r *Room) Look() {
	if r == nil || time.Since(r.begun).Nanoseconds() < r.next.Load() && r.margin.Load() > r.lookAt.Load() {
		return
	}
	if !r.looking.TryLock() {
		return
	}
	defer r.looking.Unlock()
	free, err := r.free()
	if err != nil {
		if !r.failed && r.log != nil {
			r.log.Warn("jay: the free space of the disk is not known", "dir", r.dir, "err", err)
		}
		r.failed = true
		r.next.Store(r.inAnInterval())
		return
	}
	r.failed = false
	r.found(free)
}

func (r *Room) inAnInterval() int64 { return (time.Since(r.begun) + Interval).Nanoseconds() }

// found takes in what is free.
func (r *Room) found(free uint64) {
	margin, lookAt := int64(-1), int64(math.MinInt64) // look again after the interval, whatever is written
	if free >= r.min {
		margin = int64(min(free-r.min, math.MaxInt64))
		lookAt = margin - margin/4
	}
	r.last.Store(free)
	r.margin.Store(margin)
	r.lookAt.Store(lookAt)
	r.next.Store(r.inAnInterval())
	r.set(margin < 0)
}

// set notes whether the disk is almost full.
func (r *Room) set(low bool) {
	if r.low.Swap(low) == low || r.log == nil {
		return
	}
	if low {
		r.log.Error("jay: the disk is almost full, writes are refused", "dir", r.dir, "freeBytes", r.last.Load(), "minFreeBytes", r.min)
	} else {
		r.log.Info("jay: the disk has room again, writes go on", "dir", r.dir, "freeBytes", r.last.Load(), "minFreeBytes", r.min)
	}
}

// Spend accounts for bytes that a transaction is about to write, or returns a
// *storage.DiskFullError.
func (r *Room) Spend(bytes int) error {
	if r == nil {
		return nil
	}
	if !r.low.Load() && r.margin.Add(-writtenTimes*int64(bytes)) >= 0 {
		return nil
	}
	return &storage.DiskFullError{Dir: r.dir, FreeBytes: r.last.Load(), MinFreeBytes: r.min}
}

// IsLow reports whether writes are refused, as far as is known without asking the system.
func (r *Room) IsLow() bool { return r != nil && r.low.Load() }

// Wait returns when there is room, or when ctx ends, with its error.
func (r *Room) Wait(ctx context.Context) error {
	for r != nil && ctx.Err() == nil {
		if r.Look(); !r.low.Load() {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(Interval):
		}
	}
	return ctx.Err()
}
