package catalog

import (
	"bytes"
	"fmt"
	"testing"
)

// Ensure that the size of a range is found out anew after 256 plans, and that neither more ranges are kept than documented nor long keys.
func TestFigures_Bounds(t *testing.T) {
	var f Figures
	f.SetRange([]byte("a"), RangeFigure{Entries: 7})
	for i := range 256 {
		if r, known := f.Range([]byte("a")); !known || r.Entries != 7 {
			t.Fatalf("plan %d: got %d, %v", i, r.Entries, known)
		}
	}
	if _, known := f.Range([]byte("a")); known {
		t.Error("a size is known to the 257th plan")
	}
	for i := range 1000 {
		f.SetRange(fmt.Append(nil, i), RangeFigure{Entries: i})
		if r, known := f.Range(fmt.Append(nil, i)); !known || r.Entries != i || len(f.ranges) > 256 {
			t.Fatalf("range %d: got %d, %v of %d ranges", i, r.Entries, known, len(f.ranges))
		}
	}
	long := bytes.Repeat([]byte("x"), 513)
	f.SetRange(long, RangeFigure{})
	if _, known := f.Range(long); known {
		t.Error("keys of 513 bytes are kept")
	}
}
