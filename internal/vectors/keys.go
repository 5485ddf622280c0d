package vectors

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// The keys of an index, behind its number. A partition is a number, 4 bytes, from 1 on; no two have the same one at any time, and its center does not change.
//
//	63 partition                  its center: a code, and the CRC-32C of it
//	64 id 00                      of a document: where its vectors are, 0 for nowhere, 1 for the tail, 2 for partitions; the first 16 bytes of the SHA-256 of its
//	                              codes; and the partition of each vector
//	6e partition                  by storage.Tx.Add: how many vectors it has, and 1 for its center
//	73 00                         the next partition, 4 bytes, how many there are, 4 bytes, how often centers have changed and how often vectors were moved, 8 bytes each; then the CRC-32C of these
//	74 id 00                      of a document in the tail: its codes
//	76 partition id 00 which      a vector of a document in a partition: its code. which is its position in the document, 2 bytes; 8000 is added if the document has several
//
// Part of the on-disk format. Must not change.
const (
	keyCenter = 'c'
	keyOf     = 'd'
	keyCount  = 'n'
	keyState  = 's'
	keyTail   = 't'
	keyVector = 'v'

	isNowhere     = 0
	isInTail      = 1
	isPartitioned = 2

	severalVectors = 0x8000
)

func (k *keeper) key(kind byte) []byte {
	return append(format.AppendIndexPrefix(make([]byte, 0, 64), k.ix.Number), kind)
}

func (k *keeper) stateKey() []byte { return append(k.key(keyState), 0) }

func (k *keeper) documentKey(kind byte, folded string) []byte {
	return append(append(k.key(kind), folded...), 0)
}

func (k *keeper) partitionKey(kind byte, partition uint32) []byte {
	return binary.BigEndian.AppendUint32(k.key(kind), partition)
}

// vectorKey returns the key of a vector of a document that has so many.
func (k *keeper) vectorKey(partition uint32, folded string, i, of int) []byte {
	which := uint16(i)
	if of > 1 {
		which |= severalVectors
	}
	return binary.BigEndian.AppendUint16(append(append(k.partitionKey(keyVector, partition), folded...), 0), which)
}

// cutVectorKey returns the parts of the key of a vector.
func cutVectorKey(key []byte) (partition uint32, folded []byte, i int, several bool, err error) {
	if len(key) >= 14 {
		if at := bytes.IndexByte(key[10:], 0); at > 0 && 10+at+3 == len(key) {
			which := binary.BigEndian.Uint16(key[10+at+1:])
			return binary.BigEndian.Uint32(key[6:]), key[10 : 10+at], int(which &^ severalVectors), which&severalVectors != 0, nil
		}
	}
	return 0, nil, 0, false, fmt.Errorf("key %x of vectors: %w", key, errs.ErrCorrupt)
}

// cutID returns the folded ID in a key that has it only.
func cutID(key []byte) ([]byte, error) {
	folded, ok := catalog.CutID(key)
	if !ok {
		return nil, fmt.Errorf("key %x of vectors: %w", key, errs.ErrCorrupt)
	}
	return folded, nil
}

// cutPartition returns the partition in a key that has it only.
func cutPartition(key []byte) (uint32, error) {
	if len(key) != 10 {
		return 0, fmt.Errorf("key %x of vectors: %w", key, errs.ErrCorrupt)
	}
	return binary.BigEndian.Uint32(key[6:]), nil
}

// codeIn returns the code that a value is.
func (k *keeper) codeIn(value []byte) (code, error) {
	if len(value) == k.codeSize() {
		if c := cut(value); c.isSound() {
			return c, nil
		}
	}
	return code{}, fmt.Errorf("code %.40x of a vector: %w", value, errs.ErrCorrupt)
}

// codesIn returns how many codes a value of the tail has. Those are checked.
func (k *keeper) codesIn(value []byte) (n int, err error) {
	size := k.codeSize()
	if n = len(value) / size; n == 0 || n > MaxVectors || n*size != len(value) {
		return 0, fmt.Errorf("codes %.40x of vectors: %w", value, errs.ErrCorrupt)
	}
	for i := range n {
		if _, err := k.codeIn(value[i*size : (i+1)*size]); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// printBytes is the size of what printOf returns.
const printBytes = 16

// record is what a document has in the index.
type record struct {
	where      byte
	print      [printBytes]byte // of its codes
	partitions []uint32         // of each vector, if they are in partitions
}

// printOf returns what says whether vectors have changed.
func printOf(codes []byte) (print [printBytes]byte) {
	sum := sha256.Sum256(codes)
	return [printBytes]byte(sum[:])
}

func (r *record) append(dst []byte) []byte {
	dst = append(append(dst, r.where), r.print[:]...)
	for _, p := range r.partitions {
		dst = binary.BigEndian.AppendUint32(dst, p)
	}
	return dst
}

func decodeRecord(value []byte) (r record, err error) {
	if len(value) < 17 || value[0] > isPartitioned || (len(value)-17)%4 != 0 || (len(value) > 17) != (value[0] == isPartitioned) || len(value) > 17+4*MaxVectors {
		return r, fmt.Errorf("record %.40x of a document with vectors: %w", value, errs.ErrCorrupt)
	}
	r.where = value[0]
	copy(r.print[:], value[1:])
	for rest := value[17:]; len(rest) > 0; rest = rest[4:] {
		r.partitions = append(r.partitions, binary.BigEndian.Uint32(rest))
	}
	return r, nil
}

// state is the record under keyState.
type state struct {
	next    uint32 // partition
	live    uint32 // how many partitions there are
	version uint64 // of the centers
	parts   uint64 // that were settled: so of two that have read the same state, one holds
}

func (s *state) append() []byte {
	dst := binary.BigEndian.AppendUint32(nil, s.next)
	dst = binary.BigEndian.AppendUint32(dst, s.live)
	dst = binary.BigEndian.AppendUint64(dst, s.version)
	return catalog.AppendSum(binary.BigEndian.AppendUint64(dst, s.parts))
}

// decodeState decodes the record, nil if it is not there.
func decodeState(value []byte) (s state, err error) {
	if value == nil {
		return state{next: 1}, nil
	}
	rest, ok := catalog.CutSum(value)
	if !ok || len(rest) != 24 {
		return s, fmt.Errorf("state %x of an index of vectors: %w", value, errs.ErrCorrupt)
	}
	return state{binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:]), binary.BigEndian.Uint64(rest[8:]), binary.BigEndian.Uint64(rest[16:])}, nil
}

// centerIn returns the code of a center.
func (k *keeper) centerIn(value []byte) (code, error) {
	rest, ok := catalog.CutSum(value)
	if !ok {
		return code{}, fmt.Errorf("center %.40x of vectors: %w", value, errs.ErrCorrupt)
	}
	return k.codeIn(rest)
}

// Describe implements catalog.Keeper.
func (k *keeper) Describe(key []byte) string {
	if len(key) < 6 {
		return "one of its keys"
	}
	switch key[5] {
	case keyOf, keyTail:
		if folded, err := cutID(key); err == nil {
			return fmt.Sprintf("the vectors of document %.100q", folded)
		}
	case keyVector:
		if partition, folded, i, _, err := cutVectorKey(key); err == nil {
			return fmt.Sprintf("vector %d of document %.100q in partition %d", i+1, folded, partition)
		}
	case keyCenter, keyCount:
		if partition, err := cutPartition(key); err == nil {
			return fmt.Sprintf("partition %d of its vectors", partition)
		}
	case keyState:
		return "which partitions its vectors have"
	}
	return catalog.Hex(key)
}
