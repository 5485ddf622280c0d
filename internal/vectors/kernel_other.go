//go:build !amd64 || purego

package vectors

// useWide is whether dot uses wide.
const useWide = false

// wide is not called.
func wide(*int16, *byte, int) int32 { panic("vectors: there are no wide instructions") }
