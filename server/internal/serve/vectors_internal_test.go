package serve

import (
	"strings"
	"testing"
	"time"
)

// Ensure that the change vectors that are remembered are bounded, and the newest ones.
func TestVectors(t *testing.T) {
	t.Parallel()
	v := newVectors()
	for i := range 2*maxVectors + 5 {
		v.Add("a", strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String(), "id")
	}
	if len(v.ids) != maxVectors || len(v.order) != maxVectors {
		t.Errorf("%d vectors are remembered", len(v.ids))
	}
}

// Ensure that the memory of the change vectors that are remembered is bounded, as nothing pays for it.
func TestVectors_Long(t *testing.T) {
	t.Parallel()
	v := newVectors()
	v.Add("a", "A:1", strings.Repeat("x", maxVectorBytes-2))
	v.Add("a", strings.Repeat("A", maxVectorBytes), "x")
	if len(v.ids) != 0 || len(v.order) != 0 {
		t.Errorf("%d vectors are remembered", len(v.ids))
	}
}
