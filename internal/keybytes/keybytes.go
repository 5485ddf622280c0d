// Package keybytes looks at keys as the numbers that their bytes make, in the order of keys.
package keybytes

import (
	"bytes"
	"encoding/binary"
)

// Middle returns a key above lo and below hi, about in the middle of the first 8 bytes
// from the first on in which they differ: for goroutines that share a range of keys. It returns
// nil if these are the same, or next to each other.
func Middle(lo, hi []byte) []byte {
	same := Common(lo, hi)
	from, to := NumberAt(lo, same), NumberAt(hi, same)
	if to < from || to-from < 2 {
		return nil
	}
	return binary.BigEndian.AppendUint64(bytes.Clone(hi[:same]), from+(to-from)/2)
}

// Common returns how many first bytes two keys share.
func Common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// NumberAt returns the 8 bytes of key from i on as a number, as if zeros followed the key.
func NumberAt(key []byte, i int) uint64 {
	if key = key[min(i, len(key)):]; len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var digits [8]byte
	copy(digits[:], key)
	return binary.BigEndian.Uint64(digits[:])
}
