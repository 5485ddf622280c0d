package parallel

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
)

// Ensure that shared work covers everything once, that the first error is the
// one that is returned, and that all before it was done.
func TestShared(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 100, 1000} {
		for _, part := range []int{1, 8, 13, 2000} {
			for _, bad := range []int{-1, 0, n / 2, n - 1} {
				done := make([]atomic.Int32, n)
				err := Do(n, part, func(lo, hi int) error {
					for i := lo; i < hi; i++ {
						done[i].Add(1)
						if bad >= 0 && i >= bad {
							return fmt.Errorf("%d", i)
						}
					}
					return nil
				})
				name := fmt.Sprintf("%d by %d, bad from %d", n, part, bad)
				if n == 0 || bad < 0 {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					bad = n
				} else if err == nil || err.Error() != fmt.Sprint(bad) {
					t.Errorf("%s: %v", name, err)
				}
				for i := range bad {
					if got := done[i].Load(); got != 1 {
						t.Fatalf("%s: %d was done %d times", name, i, got)
					}
				}
			}
		}
	}
	if err := DoChunks(10, 1, func() func(lo, hi int) error {
		return func(int, int) error { return errors.ErrUnsupported }
	}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// Ensure that a panic of shared work, and the end of its goroutine, come back
// to the caller, on whichever goroutine they happen, and that no other part is
// under way by then.
func TestShared_PanicAndGoexit(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, byHelper := range []bool{false, true} {
		for want, end := range map[any]func(){"bad part": func() { panic("bad part") }, nil: runtime.Goexit} {
			t.Run(fmt.Sprintf("%v, by a helper %v", want, byHelper), func(t *testing.T) {
				for range 100 {
					testSharedEnds(t, byHelper, end, want)
				}
			})
		}
	}
}

// testSharedEnds shares work of which the first part of a helper, or of the
// caller, calls end. The others wait until it does.
func testSharedEnds(t *testing.T, byHelper bool, end func(), want any) {
	t.Helper()
	var inside atomic.Int32
	var once sync.Once
	broken := make(chan struct{})
	work := func(int, int) error {
		inside.Add(1)
		defer inside.Add(-1)
		if bytes.Contains(debug.Stack(), []byte("helpWith")) == byHelper {
			once.Do(func() {
				close(broken)
				end()
			})
		}
		<-broken
		return nil
	}

	var got any = "nothing"
	left := int32(-1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { got, left = recover(), inside.Load() }()
		err := Do(16, 1, work)
		t.Errorf("shared has returned %v", err)
	}()
	<-done
	if got != want || left != 0 {
		t.Fatalf("got %v, want %v; %d parts under way", got, want, left)
	}
}
