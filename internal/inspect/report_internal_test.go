package inspect

import (
	"testing"

	"github.com/jaydb/jay/ids"
)

// Ensure that the report counts the IDs of each strategy on their own. The counts are
// found by an unexported method.
func TestCounts_Of(t *testing.T) {
	var c Counts
	counted := make(map[*int64]ids.Strategy)
	for s := ids.Semantic; s.String() != "unknown"; s++ {
		if other, is := counted[c.of(s)]; is {
			t.Errorf("%s IDs are counted as %s", s, other)
		}
		counted[c.of(s)] = s
	}
	if len(counted) < 5 {
		t.Errorf("%d counts", len(counted))
	}
}
