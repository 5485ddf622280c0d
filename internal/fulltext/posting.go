package fulltext

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/text"
)

// posting is where a document has a term.
type posting struct {
	ordinal   uint64
	length    text.LengthClass // of the texts of the field
	positions []int            // ascending, at least one
}

// Bounds of a block.
const (
	blockPostings = 128
	blockBytes    = 64 << 10 // a block that has as many is not added to
)

// appendHead appends what a block has of a posting in front of all positions, behind one with the ordinal last: the difference of ordinals, the class
// of the length, and the number of positions.
func (p *posting) appendHead(dst []byte, last uint64) []byte {
	dst = append(binary.AppendUvarint(dst, p.ordinal-last), byte(p.length))
	return binary.AppendUvarint(dst, uint64(len(p.positions)))
}

// appendPositions appends the differences of positions.
func (p *posting) appendPositions(dst []byte) []byte {
	before := 0
	for _, at := range p.positions {
		dst = binary.AppendUvarint(dst, uint64(at-before))
		before = at
	}
	return dst
}

// weigh returns what a posting adds to the sum of its document: FNV-1a of the field, the class of the length, the number of positions, these, and
// the term.
func weigh[T string | []byte](p *posting, field int, term T) int64 {
	var buf [128]byte
	dst := p.appendPositions(binary.AppendUvarint(append(buf[:0], byte(field), byte(p.length)), uint64(len(p.positions))))
	return int64(fnv1a(fnv1a(fnvBasis, dst), term))
}

// The numbers of FNV-1a of 64 bits.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// fnv1a adds s to an FNV-1a hash.
func fnv1a[T string | []byte](hash uint64, s T) uint64 {
	for i := range len(s) {
		hash = (hash ^ uint64(s[i])) * fnvPrime
	}
	return hash
}

// appendBlock appends the value of a block, whose key has the ordinal of the first posting: a uvarint of the length of the heads, the heads of all
// postings, and the positions of all.
func appendBlock(dst []byte, all []posting) []byte {
	var buf [512]byte
	heads, last := buf[:0], all[0].ordinal
	for i := range all {
		heads = all[i].appendHead(heads, last)
		last = all[i].ordinal
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(heads))), heads...)
	for i := range all {
		dst = all[i].appendPositions(dst)
	}
	return dst
}

// occurrence says how often a document has a term, or a clause of a search.
type occurrence struct {
	ordinal uint64
	count   uint32
	length  text.LengthClass // of the texts of the field
}

// decodeHeads appends the occurrences of a block, and returns the bytes of their positions.
func decodeHeads(dst []occurrence, first uint64, value []byte) (all []occurrence, positions []byte, err error) {
	bad := fmt.Errorf("block %.60x of postings: %w", value, errs.ErrCorrupt)
	n, size := binary.Uvarint(value)
	if size <= 0 || n == 0 || n > uint64(len(value)-size) {
		return dst, nil, bad
	}
	heads, positions := value[size:size+int(n)], value[size+int(n):]
	last, begun, counted := first, len(dst), uint64(0)
	for len(heads) > 0 {
		delta, size := binary.Uvarint(heads)
		if size <= 0 || size == len(heads) || (delta == 0) != (len(dst) == begun) || delta > 1<<62 {
			return dst, nil, bad
		}
		last += delta
		length := text.LengthClass(heads[size])
		heads = heads[size+1:]
		count, size := binary.Uvarint(heads)
		if counted += count; size <= 0 || count == 0 || count > math.MaxUint32 || counted > uint64(len(positions)) {
			return dst, nil, bad
		}
		heads = heads[size:]
		dst = append(dst, occurrence{last, uint32(count), length})
	}
	return dst, positions, nil
}

// cutPositions appends the next positions of a block, and returns what is behind them.
func cutPositions(dst []int, count uint32, rest []byte) (_ []int, behind []byte, ok bool) {
	at := uint64(0)
	for i := range count {
		delta, size := binary.Uvarint(rest)
		if at += delta; size <= 0 || i > 0 && delta == 0 || at > 1<<40 {
			return dst, nil, false
		}
		rest = rest[size:]
		dst = append(dst, int(at))
	}
	return dst, rest, true
}

// skipPositions returns what is behind the next positions of a block.
func skipPositions(count uint32, rest []byte) []byte {
	for i, b := range rest {
		if b < 0x80 {
			if count--; count == 0 {
				return rest[i+1:]
			}
		}
	}
	return nil
}

// decodeBlock appends the postings of a block.
func decodeBlock(dst []posting, first uint64, value []byte) ([]posting, error) {
	var buf [4]occurrence
	all, rest, err := decodeHeads(buf[:0], first, value)
	if err != nil {
		return dst, err
	}
	n := 0
	for i := range all {
		n += int(all[i].count) // no more than there are bytes
	}
	positions, ok := make([]int, 0, n), true
	for i := range all {
		begun := len(positions)
		if positions, rest, ok = cutPositions(positions, all[i].count, rest); !ok {
			break
		}
		dst = append(dst, posting{all[i].ordinal, all[i].length, positions[begun:len(positions):len(positions)]})
	}
	if !ok || len(rest) > 0 {
		return dst, fmt.Errorf("block %.60x of postings: %w", value, errs.ErrCorrupt)
	}
	return dst, nil
}

// blocks cuts postings, ascending by ordinal, into those of blocks.
func blocks(all []posting) (cut [][]posting) {
	for len(all) > 0 {
		n, bytes := 0, 0
		for n < len(all) && n < blockPostings && bytes < blockBytes {
			bytes += 2*len(all[n].positions) + 4
			n++
		}
		cut = append(cut, all[:n])
		all = all[n:]
	}
	return cut
}
