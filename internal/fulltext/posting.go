package fulltext

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

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

// appendPosting appends a posting behind one with the ordinal last: the difference of ordinals, the class of the length, the number of positions, and
// the differences of positions.
func appendPosting(dst []byte, p *posting, last uint64) []byte {
	dst = append(binary.AppendUvarint(dst, p.ordinal-last), byte(p.length))
	return p.appendPositions(dst)
}

func (p *posting) appendPositions(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(p.positions)))
	before := 0
	for _, at := range p.positions {
		dst = binary.AppendUvarint(dst, uint64(at-before))
		before = at
	}
	return dst
}

// weigh returns what a posting adds to the sum of its document: FNV-1a of the field, the class of the length, the positions and the term.
func (p *posting) weigh(field int, term []byte) int64 {
	sum := fnv.New64a()
	var buf [128]byte
	sum.Write(p.appendPositions(append(buf[:0], byte(field), byte(p.length))))
	sum.Write(term)
	return int64(sum.Sum64())
}

// appendBlock appends the value of a block, whose key has the ordinal of the first posting.
func appendBlock(dst []byte, all []posting) []byte {
	last := all[0].ordinal
	for i := range all {
		dst = appendPosting(dst, &all[i], last)
		last = all[i].ordinal
	}
	return dst
}

// decodeBlock appends the postings of a block.
func decodeBlock(dst []posting, first uint64, value []byte) ([]posting, error) {
	bad := func() ([]posting, error) {
		return nil, fmt.Errorf("block %.60x of postings: %w", value, errs.ErrCorrupt)
	}
	rest, last, begun := value, first, len(dst)
	next := func() (n uint64, ok bool) {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return 0, false
		}
		rest = rest[size:]
		return n, true
	}
	for len(rest) > 0 {
		delta, ok := next()
		if !ok || len(rest) == 0 || (delta == 0) != (len(dst) == begun) || delta > 1<<62 {
			return bad()
		}
		last += delta
		p := posting{ordinal: last, length: text.LengthClass(rest[0])}
		rest = rest[1:]
		n, ok := next()
		if !ok || n == 0 || n > uint64(len(rest)) {
			return bad()
		}
		p.positions = make([]int, 0, n)
		at := uint64(0)
		for i := range n {
			delta, ok := next()
			if at += delta; !ok || i > 0 && delta == 0 || at > 1<<40 {
				return bad()
			}
			p.positions = append(p.positions, int(at))
		}
		dst = append(dst, p)
	}
	if len(dst) == begun {
		return bad()
	}
	return dst, nil
}

// termOf is a term of a field.
type termOf struct {
	field int
	term  string
}

// words are the postings of one document, by term.
type words map[termOf]*posting

// wordsOf makes the postings of the texts of a document, and returns how many terms each field has.
func (k *keeper) wordsOf(texts []byte, ordinal uint64) (all words, lengths []int, err error) {
	all = make(words)
	bases := make([]int, len(k.ix.Fields))
	lengths = make([]int, len(k.ix.Fields))
	err = k.eachText(texts, func(field int, s string) {
		positions := k.analyzer.Each(s, func(t text.Token) bool {
			lengths[field]++
			at := termOf{field, string(t.Term)}
			p := all[at]
			if p == nil {
				p = &posting{ordinal: ordinal}
				all[at] = p
			}
			p.positions = append(p.positions, bases[field]+t.Position)
			return true
		})
		bases[field] += positions + text.ValueGap
	})
	for at, p := range all {
		p.length = text.ClassOf(lengths[at.field])
	}
	return all, lengths, err
}

// sum returns the sum of the postings.
func (w words) sum() (sum int64) {
	for at, p := range w {
		sum += p.weigh(at.field, []byte(at.term))
	}
	return sum
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
