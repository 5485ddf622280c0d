package write

import (
	"testing"
	"time"
)

// Ensure that a slow read makes so many documents be read before their transactions, and that a slow one among
// these begins anew.
func TestDisk(t *testing.T) {
	var d disk
	if d.slow(1) {
		t.Error("reads are slow before the first one")
	}
	d.took(4, 4*SlowRead-time.Nanosecond)
	if d.slow(1) {
		t.Error("four reads that were quick are slow")
	}
	for range 2 {
		d.took(4, 4*SlowRead)
		if !d.slow(slowFor - 1) {
			t.Error("reads are quick after four slow ones")
		}
	}
	if !d.slow(10) {
		t.Error("the last document does not count")
	}
	if d.slow(1) {
		t.Error("reads are slow for ever")
	}
}
