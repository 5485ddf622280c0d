//go:build !cgo

package main

// Without cgo, the blocks and the write buffers of databases lie in Go's heap, and blocks that
// were freed stay there until the collector has run: meanwhile readers of large documents make
// more of them, and go beyond the limit of the heap by hundreds of megabytes.
const (
	heapTenths = 5 // how much of the limit of memory Go's heap may take, in tenths
	loadCopies = 4 // of a block while it is loaded: compressed and not, and as much that is garbage
	leastLoads = 2 // the least bound of loads, so that one slow read does not hold up all others
)
