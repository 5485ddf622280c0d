//go:build cgo && !race

package idle

// buffersInHeap is what the write buffers may take of the heap: with cgo Pebble allocates
// them in C.
const buffersInHeap = 0
