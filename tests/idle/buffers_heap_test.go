//go:build !cgo || race

package idle

// buffersInHeap is what the write buffers may take of the heap: two of the default size. With the
// race detector Pebble allocates them there now and then, to have them watched.
const buffersInHeap = 2 * (32 << 20)
