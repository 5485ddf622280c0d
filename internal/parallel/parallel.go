package parallel

import (
	"cmp"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/relay"
)

// MaxWorkers is the largest number of goroutines that work for one call.
const MaxWorkers = 4

// Do is a parallel for: it calls fn for the chunks of [0, n), each of part elements
// but the last. Several goroutines take chunks, the caller among them. The caller
// waits for no chunk that was not begun, as on a busy machine the other goroutines
// may start late. The error is that of the first chunk that has one; all chunks
// before it were run, and some after it are left out.
//
// If fn panics, or calls runtime.Goexit, so does Do, on the goroutine of its caller
// and with the same value. In any case no goroutine is inside fn when Do ends.
func Do(n, part int, fn func(lo, hi int) error) error {
	return DoChunks(n, part, func() func(lo, hi int) error { return fn })
}

// DoChunks is Do with a function for each goroutine that takes chunks.
func DoChunks(n, part int, newWorker func() func(lo, hi int) error) error {
	return DoWaiting(Workers(), n, part, newWorker)
}

// Workers is how many goroutines work for one call that computes.
func Workers() int { return min(runtime.GOMAXPROCS(0), MaxWorkers) }

// DoWaiting is DoChunks on at most so many goroutines, for chunks that wait for the disk more than they compute:
// there may be more of them than processors.
func DoWaiting(workers, n, part int, newWorker func() func(lo, hi int) error) error {
	parts := chunks(n, part)
	if workers = min(workers, parts); workers <= 1 {
		return newWorker()(0, n)
	}
	w := &sharing{n: n, part: part, newWorker: newWorker, errs: make([]error, parts)}
	return w.run(workers)
}

// chunks is the number of chunks of [0, n).
func chunks(n, part int) int { return (n + part - 1) / max(1, part) }

// run does all chunks, on so many goroutines.
func (w *sharing) run(workers int) error {
	parts := len(w.errs)
	w.failed.Store(int64(parts))
	w.parts.Add(parts)
	// One goroutine more than there is work for. The scheduler expects the
	// goroutine that was started last to be waited for: an idle processor steals it
	// only after tens of microseconds, and the ones started before it at once.
	for range workers {
		go w.help()
	}
	w.lead()
	if w.broken != nil {
		w.broken.Repeat()
	}
	return cmp.Or(w.errs...)
}

// sharing is one call of DoChunks.
type sharing struct {
	n, part   int
	yields    bool // see DoSpare
	newWorker func() func(lo, hi int) error

	next, failed atomic.Int64   // chunks taken; the first chunk known to have failed
	parts        sync.WaitGroup // chunks not done
	errs         []error        // by chunk

	mu     sync.Mutex
	broken *relay.Ending // of a helper that did not return from a part, or nil. Guarded by mu until all parts are done.
}

// take returns the next chunk, or false when all have been taken.
func (w *sharing) take() (i int, ok bool) {
	i = int(w.next.Add(1)) - 1
	return i, i < len(w.errs)
}

// do runs chunk i, unless an earlier one has failed. fn is the function of this
// goroutine, made when it is first needed.
func (w *sharing) do(i int, fn *func(lo, hi int) error) {
	if int64(i) >= w.failed.Load() {
		return
	}
	if *fn == nil {
		*fn = w.newWorker()
	}
	lo := i * w.part
	if w.errs[i] = (*fn)(lo, min(lo+w.part, w.n)); w.errs[i] != nil {
		w.failed.Store(int64(i)) // the chunks before this one were taken before it
	}
}

// lead is the work of the caller. When it ends, in whatever way, no helper is
// inside a chunk: chunks use memory of the caller.
func (w *sharing) lead() {
	inside := false
	defer func() {
		if inside { // the chunk has panicked, or ended the goroutine
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

// help is the work of another goroutine. It ends with the first chunk that does not
// return.
func (w *sharing) help() {
	var fn func(lo, hi int) error
	var e relay.Ending
	for i, ok := w.take(); ok; i, ok = w.take() {
		w.helpWith(i, &fn, &e)
		if !e.Returned() {
			return
		}
		if w.yields {
			runtime.Gosched()
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
