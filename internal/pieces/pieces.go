// Package pieces copies and compares large memory in pieces. A copy or a comparison
// of tens of megabytes in one go is a loop in assembler that nothing interrupts: the
// garbage collector, to begin and to end, stops all goroutines, and all but this one
// would stand still until the loop ends, for milliseconds.
package pieces

import (
	"bytes"
	"strings"
	"unsafe"
)

// size of a piece, which takes some 20 µs.
const size = 256 << 10

// Copy is copy(dst, src).
func Copy(dst, src []byte) (n int) {
	for n < len(dst) && n < len(src) {
		n += copy(dst[n:min(len(dst), n+size)], src[n:])
	}
	return n
}

// Append is append(dst, src...).
func Append(dst, src []byte) []byte {
	if len(src) <= size || cap(dst)-len(dst) < len(src) {
		return append(dst, src...)
	}
	n := len(dst)
	dst = dst[:n+len(src)]
	Copy(dst[n:], src)
	return dst
}

// Clone is bytes.Clone, but the copy has no room for more.
func Clone(b []byte) []byte {
	if len(b) <= size {
		b = bytes.Clone(b)
		return b[:len(b):len(b)]
	}
	var text strings.Builder // does not clear its memory first
	text.Grow(len(b))
	for rest := b; len(rest) > 0; {
		n := min(size, len(rest))
		text.Write(rest[:n])
		rest = rest[n:]
	}
	// The text is used nowhere else.
	return unsafe.Slice(unsafe.StringData(text.String()), len(b))
}

// Equal is bytes.Equal.
func Equal(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for len(a) > size {
		if !bytes.Equal(a[:size], b[:size]) {
			return false
		}
		a, b = a[size:], b[size:]
	}
	return bytes.Equal(a, b)
}
