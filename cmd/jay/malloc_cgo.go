//go:build cgo && linux

package main

/*
#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
static int return_large_blocks(int bytes) { return mallopt(M_MMAP_THRESHOLD, bytes); }
#else
static int return_large_blocks(int bytes) { (void)bytes; return 1; }
#endif
*/
import "C"

// returnedBytes is the size from which on C's allocator gets each block from the kernel, and
// returns it when it is freed. One block of them is one mapping of memory, of which a process
// may have 65,530.
const returnedBytes = 1 << 20

// returnLargeBlocks makes C's allocator return large blocks to the kernel as soon as they are
// freed. By default glibc raises the size from which on it does that to that of the largest
// block that was freed, up to 32 MiB: after one document of 20 MB, those that follow lie in its
// arenas, of which there are eight for each processor, and these keep what was freed. Pebble
// has the blocks of tables and its write buffers there.
func returnLargeBlocks() { C.return_large_blocks(returnedBytes) } // it fails for sizes above 32 MiB only
