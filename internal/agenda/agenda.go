// Package agenda keeps in memory when something is due next for a document. The worker of
// package expiry sleeps until then, and a writer wakes it by committing something that is
// due earlier.
//
// The agenda also keeps a start of the key space 't' before which no entry is left.
// Finished entries are deleted, and an iterator from the first key of the space would
// have to walk over all tombstones that are not compacted yet.
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
	// Shared says that other processes have entries that this one does not hear of: so every instant
	// may have some. It is set before the first call.
	Shared bool

	used    atomic.Bool   // something was staged or found since Open
	waiting atomic.Int64  // Unix nanoseconds of the worker's next scan; always during a scan
	wake    chan struct{} // capacity 1
	start   func()        // starts the worker; set by Serve
	running atomic.Bool   // the worker runs

	mu     sync.Mutex
	from   time.Time   // no committed or staged entry is before it. Guarded by mu.
	lowers uint64      // how often from was lowered. Guarded by mu.
	staged []time.Time // instants staged by transactions that have not ended. Guarded by mu.
	// least is the earliest staged instant that the present scan may not see; zero for none.
	// Guarded by mu.
	least time.Time
}

// always is a value of Agenda.waiting with which every commit wakes the worker.
const always = math.MaxInt64

// New returns an agenda that knows of no entries.
func New() *Agenda {
	a := &Agenda{wake: make(chan struct{}, 1)}
	a.waiting.Store(always)
	return a
}

// Serve sets the function that starts the worker when there is something to do. It must
// be called before the first write.
func (a *Agenda) Serve(start func()) { a.start = start }

// Used reports whether the database may have entries.
func (a *Agenda) Used() bool { return a.used.Load() }

// Staged records the instant of the earliest entry that a transaction stages, before the
// transaction commits. Ended must follow.
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

// Ended reports the end of a transaction for which Staged was called. It wakes the worker
// if the staged entry is due before the worker's next scan. It must not be called while
// the engine may still be running the transaction.
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

// Wake makes the worker scan, and starts it if it does not run.
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

// Looks reports that the worker begins a scan for what is due: until Waits every commit
// wakes it. It returns an instant before which there is no entry.
func (a *Agenda) Looks() (from time.Time) {
	a.waiting.Store(always)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.least = time.Time{}
	for _, at := range a.staged {
		a.lower(at)
	}
	if a.Shared {
		return time.Time{}
	}
	return a.from
}

// lower lowers a.least. a.mu is held.
func (a *Agenda) lower(at time.Time) {
	if a.least.IsZero() || at.Before(a.least) {
		a.least = at
	}
}

// Swept reports that no entry before at is left on disk, among those that were committed
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

// Waits reports that nothing is due before at, and that the worker waits until then. The
// zero time means that there is no entry.
func (a *Agenda) Waits(at time.Time) {
	if at.IsZero() {
		return
	}
	a.waiting.Store(nanos(at))
}

// Leave reports that the worker ends. It returns false if the worker was woken meanwhile
// and must go on.
func (a *Agenda) Leave() bool {
	a.running.Store(false)
	return len(a.wake) == 0 || !a.running.CompareAndSwap(false, true)
}

// nanos returns an instant in Unix nanoseconds, limited to the range of an int64 below
// always.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s > math.MaxInt64/int64(time.Second)-1:
		return math.MaxInt64 - 1
	case s < math.MinInt64/int64(time.Second)+1:
		return math.MinInt64
	}
	return t.UnixNano()
}

// Mark is the state of the agenda before a snapshot: see Begin.
type Mark struct {
	from   time.Time
	lowers uint64
}

// Begin returns a mark for From. It must be called before the snapshot is taken.
func (a *Agenda) Begin() Mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Mark{a.from, a.lowers}
}

// From returns an instant before which the snapshot that was taken between Begin and From
// has no entries.
func (a *Agenda) From(m Mark) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lowers != m.lowers || a.Shared {
		return time.Time{} // the snapshot may have an entry before m.from
	}
	return m.from
}
