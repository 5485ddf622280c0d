package catalog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// What the keys and values of several kinds have in common. Part of the on-disk format. Must not change.

// CutID returns the folded ID in a key of an index that has nothing but a byte and the ID behind the number, in the memory of the key. It reports false
// for another key.
func CutID(key []byte) (folded []byte, ok bool) {
	if len(key) < 8 || bytes.IndexByte(key[6:], 0) != len(key)-7 {
		return nil, false
	}
	return key[6 : len(key)-1], true
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSum appends the CRC-32C of a value.
func AppendSum(value []byte) []byte {
	return binary.BigEndian.AppendUint32(value, crc32.Checksum(value, castagnoli))
}

// CutSum returns a value without its CRC-32C, and false if that is another one.
func CutSum(value []byte) ([]byte, bool) {
	n := len(value) - 4
	return value[:max(n, 0)], n >= 0 && binary.BigEndian.Uint32(value[n:]) == crc32.Checksum(value[:n], castagnoli)
}
