package jay

import (
	"errors"
	"fmt"
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
				err := shared(n, part, func(lo, hi int) error {
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
	if err := sharedBy(10, 1, func() func(lo, hi int) error {
		return func(int, int) error { return errors.ErrUnsupported }
	}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
