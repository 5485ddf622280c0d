package jaytest

import "github.com/jaydb/jay/internal/invariants"

// Allocates says whether this build allocates what others do not: the race detector
// and the checks of invariants do, and with either Pebble copies what some of its
// iterators read, by chance. Tests that measure allocations skip then.
const Allocates = Race || invariants.Enabled
