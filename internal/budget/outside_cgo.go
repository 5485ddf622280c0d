//go:build cgo

package budget

// Outside is true if Pebble has its blocks and write buffers in memory of C's allocator, which is the case with cgo.
const Outside = true
