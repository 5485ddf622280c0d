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
