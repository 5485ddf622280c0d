//go:build !cgo

package budget

// Outside is true if Pebble has its blocks and write buffers in memory of C's allocator. Without cgo they are on Go's heap.
const Outside = false
