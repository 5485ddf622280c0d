package jay

import (
	"cmp"
	"runtime"
	"sync"
	"sync/atomic"
)

// maxWorkers is the most goroutines that work for one call.
const maxWorkers = 4

// shared calls fn for [0, n), part by part of so many, with several goroutines
// that take the next part when they are done with one. The caller is one of
// them, and waits for no part that was not begun: on a busy machine the others
// may come late. The error is that of the first part that has one, and all
// parts before it have been through; of those behind some are left out.
func shared(n, part int, fn func(lo, hi int) error) error {
	return sharedBy(n, part, func() func(lo, hi int) error { return fn })
}

// sharedBy is shared with a function for each goroutine that takes part.
func sharedBy(n, part int, newWorker func() func(lo, hi int) error) error {
	parts := (n + part - 1) / max(1, part)
	workers := min(runtime.GOMAXPROCS(0), maxWorkers, parts)
	if workers <= 1 {
		return newWorker()(0, n)
	}
	errs := make([]error, parts)
	var next, failed atomic.Int64
	failed.Store(int64(parts))
	var done sync.WaitGroup
	done.Add(parts)
	work := func() {
		var fn func(lo, hi int) error
		for i := next.Add(1) - 1; i < int64(parts); i = next.Add(1) - 1 {
			if fn == nil {
				fn = newWorker()
			}
			if i < failed.Load() {
				lo := int(i) * part
				if errs[i] = fn(lo, min(lo+part, n)); errs[i] != nil {
					failed.Store(i) // parts before this one were taken before
				}
			}
			done.Done()
		}
	}
	// One more than there is work for: an idle processor takes over the goroutine
	// that was started last only after tens of microseconds, as Go expects its
	// starter to wait for it, and those before it at once.
	for range workers {
		go work()
	}
	work()
	done.Wait()
	return cmp.Or(errs...)
}
