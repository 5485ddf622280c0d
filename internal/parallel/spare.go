package parallel

import (
	"runtime"
	"sync/atomic"
)

// spared is the number of processors that spare has given.
var spared atomic.Int64

// DoSpare is DoChunks for work that one goroutine can do as well: on the goroutine of the caller, and one more for each processor that no
// other call of DoSpare has, MaxWorkers in all. Helpers is how many these may be, 0 for the caller alone. They let other goroutines run after
// each chunk.
func DoSpare(n, part int, newWorker func(helpers int) func(lo, hi int) error) error {
	parts := chunks(n, part)
	if parts <= 1 {
		return newWorker(0)(0, n)
	}
	helpers := spare()
	if helpers == 0 {
		return newWorker(0)(0, n)
	}
	defer spared.Add(-int64(helpers))
	w := &sharing{n: n, part: part, yields: true, errs: make([]error, parts)}
	w.newWorker = func() func(lo, hi int) error { return newWorker(helpers) }
	return w.run(min(parts, 1+helpers))
}

// spare takes processors and returns their number. Whoever has them gives them back to spared.
func spare() (helpers int) {
	for {
		taken := spared.Load()
		free := min(int64(runtime.GOMAXPROCS(0))-1-taken, MaxWorkers-1)
		if free <= 0 {
			return 0
		}
		if spared.CompareAndSwap(taken, taken+free) {
			return int(free)
		}
	}
}
