//go:build !invariants

package invariants

// Enabled is true in a build with the tag invariants.
const Enabled = false
