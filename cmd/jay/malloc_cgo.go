//go:build cgo && linux

package main

/*
#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
static int return_large_blocks(int bytes) { return mallopt(M_MMAP_THRESHOLD, bytes); }
static int have_few_arenas(int arenas) { return mallopt(M_ARENA_MAX, arenas); }
#else
static int return_large_blocks(int bytes) { (void)bytes; return 1; }
static int have_few_arenas(int arenas) { (void)arenas; return 1; }
#endif
*/
import "C"

import "runtime"

// returnedBytes is the size from which on C's allocator gets each block from the kernel, and
// returns it when it is freed. One block of them is one mapping of memory, of which a process
// may have 65,530.
const returnedBytes = 1 << 20

// limitAllocator makes C's allocator keep less of what was freed. Pebble has the blocks of tables and
// its write buffers there.
//
// Large blocks are returned to the kernel as soon as they are freed. By default glibc raises the size from
// which on it does that to that of the largest block that was freed, up to 32 MiB: after one document of 20
// MB, those that follow lie in its arenas, and these keep what was freed.
//
// There is one arena for each processor, and two at least. By default there are eight: a thread that loads a block
// cannot use what another one has freed in its arena, so that a cache of 128 MiB may take three times as much.
func limitAllocator() {
	C.return_large_blocks(returnedBytes) // it fails for sizes above 32 MiB only
	C.have_few_arenas(C.int(max(2, runtime.GOMAXPROCS(0))))
}
