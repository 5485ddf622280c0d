//go:build amd64 && !purego

package vectors

import "golang.org/x/sys/cpu"

// useWide is whether dot uses wide. A variable for tests.
var useWide = cpu.X86.HasAVX2

// wide returns the sum of the products of n numbers, n a multiple of wideStep, with AVX2. It looks at no bounds.
//
//go:noescape
func wide(q *int16, c *byte, n int) int32
