//go:build !cgo || !linux

package main

// limitAllocator does nothing: Pebble's memory lies in Go's heap, or C's allocator returns
// large blocks by itself.
func limitAllocator() {}
