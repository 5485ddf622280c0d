package jaytest

import (
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/internal/sample"
)

// Race says whether the tests run with the race detector.
const Race = sample.Race

// Allocates says whether this build allocates what others do not: the race detector
// and the checks of invariants do, and with either Pebble copies what some of its
// iterators read, by chance. Tests that measure allocations skip then.
const Allocates = Race || invariants.Enabled
