//go:build cgo

package main

// With cgo, the blocks and the write buffers of databases lie outside of Go's heap, and are
// freed at once.
const (
	heapTenths = 4 // how much of the limit of memory Go's heap may take, in tenths
	loadCopies = 2 // of a block while it is loaded: compressed and not
	leastLoads = 4 // the least bound of loads, so that one slow read does not hold up all others
)
