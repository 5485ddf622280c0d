package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Ensure that no more processors are given than there are beside the caller's, and that those which come back are given again.
func TestDoSpare_Processors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if n := spare(); n != 0 {
		t.Errorf("of one processor: %d", n)
	}
	for processors, want := range map[int]int{2: 1, 3: 2, 4: 3, 9: MaxWorkers - 1} {
		runtime.GOMAXPROCS(processors)
		first := spare()
		if first != want {
			t.Errorf("of %d processors: %d, want %d", processors, first, want)
		}
		if n := spare(); n != min(processors-1-want, MaxWorkers-1) {
			t.Errorf("of %d processors, for a second one: %d", processors, n)
		} else {
			spared.Add(-int64(n))
		}
		spared.Add(-int64(first))
	}
	runtime.GOMAXPROCS(3)
	var wg sync.WaitGroup
	var all atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				n := spare()
				if taken := all.Add(int64(n)); taken > 2 {
					t.Errorf("%d helpers beside others on 3 processors", taken)
				}
				all.Add(int64(-n))
				spared.Add(-int64(n))
			}
		})
	}
	wg.Wait()
	if n := spared.Load(); n != 0 {
		t.Errorf("%d were not given back", n)
	}
}

// Ensure that DoSpare does each chunk once, with as many goroutines as it says, and has given its processors back.
func TestDoSpare(t *testing.T) {
	for _, processors := range []int{1, 3} {
		before := runtime.GOMAXPROCS(processors)
		for _, n := range []int{0, 1, 7, 100} {
			var done [100]atomic.Int64
			var workers atomic.Int64
			err := DoSpare(n, 1, func(helpers int) func(lo, hi int) error {
				want := min(processors-1, MaxWorkers-1)
				if n <= 1 {
					want = 0
				}
				if workers.Add(1); helpers != want {
					t.Errorf("%d chunks on %d processors: %d helpers, want %d", n, processors, helpers, want)
				}
				return func(lo, hi int) error {
					for i := lo; i < hi; i++ {
						done[i].Add(1)
					}
					return nil
				}
			})
			if err != nil || workers.Load() > int64(processors) || workers.Load() == 0 {
				t.Errorf("%d chunks: %v, %d workers", n, err, workers.Load())
			}
			for i := range n {
				if done[i].Load() != 1 {
					t.Errorf("chunk %d of %d was done %d times", i, n, done[i].Load())
				}
			}
		}
		runtime.GOMAXPROCS(before)
	}
	if n := spared.Load(); n != 0 {
		t.Errorf("%d processors were not given back", n)
	}
}
