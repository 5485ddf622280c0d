package parallel

import (
	"cmp"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/relay"
)

// MaxWorkers is the most goroutines that work for one call.
const MaxWorkers = 4

// Do calls fn for [0, n), part by part of so many, with several goroutines
// that take the next part when they are done with one. The caller is one of
// them, and waits for no part that was not begun: on a busy machine the others
// may come late. The error is that of the first part that has one, and all
// parts before it have been through; of those behind some are left out.
//
// If fn panics, or calls runtime.Goexit, so does shared, on the goroutine of
// its caller and with the same value. Either way no goroutine is inside fn any
// more when shared ends.
func Do(n, part int, fn func(lo, hi int) error) error {
	return DoChunks(n, part, func() func(lo, hi int) error { return fn })
}

// DoChunks is shared with a function for each goroutine that takes part.
func DoChunks(n, part int, newWorker func() func(lo, hi int) error) error {
	parts := (n + part - 1) / max(1, part)
	workers := min(runtime.GOMAXPROCS(0), MaxWorkers, parts)
	if workers <= 1 {
		return newWorker()(0, n)
	}
	w := &sharing{n: n, part: part, newWorker: newWorker, errs: make([]error, parts)}
	w.failed.Store(int64(parts))
	w.parts.Add(parts)
	// One more than there is work for: an idle processor takes over the goroutine
	// that was started last only after tens of microseconds, as Go expects its
	// starter to wait for it, and those before it at once.
	for range workers {
		go w.help()
	}
	w.lead()
	if w.broken != nil {
		w.broken.Repeat()
	}
	return cmp.Or(w.errs...)
}

// sharing is one call of sharedBy.
type sharing struct {
	n, part   int
	newWorker func() func(lo, hi int) error

	next, failed atomic.Int64   // parts that were taken, the first that is known to have failed
	parts        sync.WaitGroup // those that are not done
	errs         []error        // by part

	mu     sync.Mutex
	broken *relay.Ending // of a helper that did not return from a part, or nil. Guarded by mu until all parts are done.
}

// take returns the next part, or false when all have been taken.
func (w *sharing) take() (i int, ok bool) {
	i = int(w.next.Add(1)) - 1
	return i, i < len(w.errs)
}

// do does part i, unless an earlier one has failed. fn is the function of this
// goroutine, made when it is needed.
func (w *sharing) do(i int, fn *func(lo, hi int) error) {
	if int64(i) >= w.failed.Load() {
		return
	}
	if *fn == nil {
		*fn = w.newWorker()
	}
	lo := i * w.part
	if w.errs[i] = (*fn)(lo, min(lo+w.part, w.n)); w.errs[i] != nil {
		w.failed.Store(int64(i)) // parts before this one were taken before
	}
}

// lead is the work of the caller. When it ends, by whatever way, no helper is
// inside of a part: they use memory of the caller.
func (w *sharing) lead() {
	inside := false
	defer func() {
		if inside { // the part has panicked, or ended the goroutine
			w.failed.Store(0)
			w.parts.Done()
		}
		for _, ok := w.take(); ok; _, ok = w.take() {
			w.parts.Done()
		}
		w.parts.Wait()
	}()
	var fn func(lo, hi int) error
	for i, ok := w.take(); ok; i, ok = w.take() {
		inside = true
		w.do(i, &fn)
		inside = false
		w.parts.Done()
	}
}

// help is the work of another goroutine. It ends with the first part that does
// not return.
func (w *sharing) help() {
	var fn func(lo, hi int) error
	var e relay.Ending
	for i, ok := w.take(); ok; i, ok = w.take() {
		w.helpWith(i, &fn, &e)
		if !e.Returned() {
			return
		}
	}
}

func (w *sharing) helpWith(i int, fn *func(lo, hi int) error, e *relay.Ending) {
	defer func() {
		if !e.Returned() {
			w.failed.Store(0)
			w.mu.Lock()
			w.broken = e
			w.mu.Unlock()
		}
		w.parts.Done() // last: the caller may go on
	}()
	e.Watch(func() { w.do(i, fn) })
}
