package main

import (
	"fmt"
	"math"
	"runtime/debug"
	"strconv"
	"strings"
)

// byteSize is a number of bytes of a flag, such as 268435456, 256MiB or 1GB.
type byteSize int64

// byteUnits are the units of a byteSize, in lower case.
var byteUnits = map[string]int64{
	"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *byteSize) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit, known := byteUnits[strings.ToLower(string(text[len(digits):]))]
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if !known || err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is no number of bytes, such as 268435456, 256MiB or 1GB", text)
	}
	*b = byteSize(n * unit)
	return nil
}

// limitHeap makes the process stay near --max-memory: it sets the limit of Go's heap, unless GOMEMLIMIT does, and makes C's allocator keep
// little of what was freed. heap is what the bound leaves to Go's heap. Documents that are written and read come on top of it: three of the largest, or a quarter
// of the bound if that is less.
func limitHeap(bound, heap, documentBytes int64) {
	limitAllocator()
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(heap + min(3*documentBytes, bound/4))
	}
}
