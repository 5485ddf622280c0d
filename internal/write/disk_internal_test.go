package write

import (
	"testing"
	"time"
)

// Ensure that reads count as slow when more than one in eight is, and as quick when none is any more.
func TestDisk(t *testing.T) {
	for _, c := range []struct {
		every int // so many reads one is slow; 0 for none
		slow  bool
	}{{1, true}, {4, true}, {7, true}, {10, false}, {100, false}, {0, false}} {
		var d disk
		for i := range 1000 {
			took := SlowRead - time.Nanosecond
			if c.every > 0 && i%c.every == 0 {
				took = SlowRead
			}
			d.took(1, took)
		}
		if d.slow() != c.slow {
			t.Errorf("one slow read in %d: slow is %v", c.every, d.slow())
		}
		for range slowMost / 4 {
			d.took(4, 4*SlowRead-1)
		}
		if d.slow() {
			t.Errorf("one slow read in %d: still slow after %d quick ones", c.every, slowMost)
		}
	}
	var d disk
	d.took(slowLeast/slowWeight-1, time.Second)
	if d.slow() {
		t.Error("too few reads are slow")
	}
	d.took(1, time.Second)
	if !d.slow() {
		t.Error("enough reads are quick")
	}
}
