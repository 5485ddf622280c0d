package jaytest

import (
	"testing"

	"github.com/jaydb/jay/internal/invariants"
)

// Allocates says whether this build allocates what others do not: the race detector
// and the checks of invariants do, and with either Pebble copies what some of its
// iterators read, by chance. Tests that measure allocations skip then.
const Allocates = Race || invariants.Enabled

// OneGoroutine skips a test in a short run with the race detector: nothing calls the database beside
// it, so that the detector sees what it sees in many quicker tests. In full (make race-full) it runs.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Race && testing.Short() {
		t.Skip("it has one goroutine")
	}
}
