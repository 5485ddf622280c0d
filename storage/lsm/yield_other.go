//go:build !linux

package lsm

// yieldThread does nothing: only the goroutine gives way.
func yieldThread() {}
