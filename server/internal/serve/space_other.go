//go:build !linux && !darwin

package serve

// diskSpace returns that the space of the disk is not known.
func diskSpace(string) (free, total uint64, known bool) { return 0, 0, false }
