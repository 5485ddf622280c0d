// Package agenda knows when something is due next for a document, without reading the
// store: the worker of package expiry sleeps until then, and writers wake it if they
// commit something that is due earlier.
//
// It also keeps the start of the key space 't': all entries before it are gone. What is
// done is deleted, and an iterator that begins at the first key of the space would walk
// over all that was deleted and not compacted yet.
package agenda

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Agenda is the agenda of an open database. It is safe for concurrent use.
type Agenda struct {
	used    atomic.Bool   // something was staged, or found, since Open
	waiting atomic.Int64  // Unix nanoseconds at which the worker looks again; all wakes it while it looks
	wake    chan struct{} // capacity 1
	start   func()        // starts the worker; set by Serve
	running atomic.Bool   // the worker

	mu     sync.Mutex
	from   time.Time   // no entry is before it. Guarded by mu.
	lowers uint64      // how often from was lowered. Guarded by mu.
	staged []time.Time // by transactions that have not ended. Guarded by mu.
	least  time.Time   // the earliest that was staged and may not be seen by the look that is under way; zero for none. Guarded by mu.
}

// always makes every commit wake the worker.
const always = math.MaxInt64

// New returns an agenda of which nothing is known.
func New() *Agenda {
	a := &Agenda{wake: make(chan struct{}, 1)}
	a.waiting.Store(always)
	return a
}

// Serve sets what starts the worker when there is something to do. It is called before
// the first write.
func (a *Agenda) Serve(start func()) { a.start = start }

// Used reports whether the database may have entries.
func (a *Agenda) Used() bool { return a.used.Load() }

// Staged notes the earliest entry that a transaction stages, before it commits. Ended
// must follow.
func (a *Agenda) Staged(at time.Time) {
	a.used.Store(true)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.staged = append(a.staged, at)
	a.lower(at)
	if at.Before(a.from) {
		a.from = at
		a.lowers++
	}
}

// Ended notes that a transaction has ended for which Staged was called. It wakes the
// worker if what was staged is due before the worker looks again. It is not called for
// a transaction that the engine may still be running.
func (a *Agenda) Ended(at time.Time) {
	a.mu.Lock()
	if i := slices.Index(a.staged, at); i >= 0 {
		a.staged = slices.Delete(a.staged, i, i+1)
	}
	a.mu.Unlock()
	if nanos(at) < a.waiting.Load() {
		a.Wake()
	}
}

// Wake makes the worker look, and starts it if there is none.
func (a *Agenda) Wake() {
	a.used.Store(true)
	select {
	case a.wake <- struct{}{}:
	default:
	}
	if a.start != nil && a.running.CompareAndSwap(false, true) {
		a.start()
	}
}

// Awaken returns the channel that wakes the worker.
func (a *Agenda) Awaken() <-chan struct{} { return a.wake }

// Looks notes that the worker begins to look for what is due: from now on every commit
// wakes it. It returns an instant before which there is nothing.
func (a *Agenda) Looks() (from time.Time) {
	a.waiting.Store(always)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.least = time.Time{}
	for _, at := range a.staged {
		a.lower(at)
	}
	return a.from
}

// lower lowers a.least. a.mu is held.
func (a *Agenda) lower(at time.Time) {
	if a.least.IsZero() || at.Before(a.least) {
		a.least = at
	}
}

// Swept notes that no entry before at is left, durably, of those that were committed
// before the last call of Looks.
func (a *Agenda) Swept(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.least.IsZero() && a.least.Before(at) {
		at = a.least
	}
	if at.After(a.from) {
		a.from = at
	}
}

// Waits notes that the worker has found nothing that is due before at, and waits. The
// zero time stands for nothing at all.
func (a *Agenda) Waits(at time.Time) {
	if at.IsZero() {
		return
	}
	a.waiting.Store(nanos(at))
}

// Leave notes that the worker ends. It returns false if there is something to do again,
// and the worker must go on.
func (a *Agenda) Leave() bool {
	a.running.Store(false)
	return len(a.wake) == 0 || !a.running.CompareAndSwap(false, true)
}

// nanos returns an instant in Unix nanoseconds, as near as an int64 comes.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s > math.MaxInt64/int64(time.Second)-1:
		return math.MaxInt64 - 1
	case s < math.MinInt64/int64(time.Second)+1:
		return math.MinInt64
	}
	return t.UnixNano()
}

// Mark is a moment of the agenda: see Begin.
type Mark struct {
	from   time.Time
	lowers uint64
}

// Begin returns a mark, which is taken before a snapshot is. From then says where its
// entries begin.
func (a *Agenda) Begin() Mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Mark{a.from, a.lowers}
}

// From returns an instant before which a snapshot has no entries that was taken after
// the mark, and before the call of From.
func (a *Agenda) From(m Mark) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lowers != m.lowers {
		return time.Time{} // an entry before it may be in the snapshot
	}
	return m.from
}
