package query

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/fold"
)

// KeyRange is a range of index keys that begin with a part from Lo, inclusive,
// to Hi, exclusive. For a field that is not the first of its index, prepend the
// parts of the fields before it to both bounds. Recheck is set if the range also
// holds values outside the condition: then each value must be tested.
type KeyRange struct {
	Lo, Hi  []byte
	Recheck bool
}

// Empty reports whether the range can hold no key.
func (r KeyRange) Empty() bool { return bytes.Compare(r.Lo, r.Hi) >= 0 }

// EqualRange returns the range of the values that equal v.
func EqualRange(v Value, fold, descending bool) KeyRange {
	part, truncated := AppendKey(nil, v, false)
	if truncated && fold && v.kind == KindText {
		part = part[:len(part)-keyHashSize] // leave out the hash of the original text
	} else if !truncated {
		return spanOf(part, v, fold).keyRange(descending)
	}
	return keySpan{edge{part, false}, edge{part, true}, true}.keyRange(descending)
}

// CompareRange returns the range of the values that are of the kind of v and
// stand in the relation op to it. The two booleans are of one kind, as they are
// for Compare.
func CompareRange(op Op, v Value, fold, descending bool) KeyRange {
	// If v is truncated, its span holds values on both sides of v: every range
	// includes it and is rechecked.
	at, all := span(v, fold), kindSpan(v.kind)
	switch op {
	case Less:
		all.hi = edge{at.lo.part, at.recheck}
	case LessOrEqual:
		all.hi = at.hi
	case Greater:
		all.lo = edge{at.hi.part, !at.recheck}
	case GreaterOrEqual:
		all.lo = at.lo
	default:
		return EqualRange(v, fold, descending)
	}
	all.recheck = at.recheck
	return all.keyRange(descending)
}

// BetweenRange returns the range of the values from lo to hi, both included. It
// is empty if lo and hi are of different kinds.
func BetweenRange(lo, hi Value, fold, descending bool) KeyRange {
	if class(lo.kind) != class(hi.kind) {
		return KeyRange{}
	}
	from, to := span(lo, fold), span(hi, fold)
	both := keySpan{lo: from.lo, hi: to.hi, recheck: from.recheck || to.recheck}
	return both.keyRange(descending)
}

// PrefixRange returns the range of the texts that begin with text. Without fold
// the range must be rechecked if text has letters, since keys begin with
// case-folded text.
func PrefixRange(text string, fold, descending bool) KeyRange {
	part, cut := prefixPart(text)
	s := keySpan{edge{part, false}, edge{part, true}, cut || !fold && hasCase(text)}
	return s.keyRange(descending)
}

// keySpan is a range of ascending parts.
type keySpan struct {
	lo, hi  edge
	recheck bool
}

// edge is a position between ascending parts: before all parts that begin with
// part, or after them.
type edge struct {
	part  []byte
	after bool
}

func (s keySpan) keyRange(descending bool) KeyRange {
	if !descending {
		return KeyRange{s.lo.bytes(), s.hi.bytes(), s.recheck}
	}
	return KeyRange{s.hi.inverted().bytes(), s.lo.inverted().bytes(), s.recheck}
}

// inverted returns the same position between descending parts.
func (e edge) inverted() edge {
	part := bytes.Clone(e.part)
	invert(part)
	return edge{part, !e.after}
}

// bytes returns the least key after the position. It may share memory with the part.
func (e edge) bytes() []byte {
	if !e.after {
		return slices.Clip(e.part)
	}
	key := bytes.Clone(e.part)
	for i := len(key) - 1; ; i-- { // ends at the first byte, which is never 0xff
		if key[i] != 0xff {
			key[i]++
			return key[:i+1]
		}
	}
}

// span returns the range of the values that equal v. If v is truncated, it
// returns the range of all values with the same beginning, to be rechecked.
func span(v Value, foldCase bool) keySpan {
	part, truncated := AppendKey(nil, v, false)
	if truncated {
		part = part[:len(part)-hashes(v)*keyHashSize]
		return keySpan{edge{part, false}, edge{part, true}, true}
	}
	return spanOf(part, v, foldCase)
}

// spanOf is span for a value that is not truncated, of which it has the part.
func spanOf(part []byte, v Value, foldCase bool) keySpan {
	if foldCase && v.kind == KindText { // leave out what restores the original case
		r := newKeyReader(part)
		r.next()
		r.skipBytes()
		part = part[:r.i]
	}
	return keySpan{edge{part, false}, edge{part, true}, false}
}

// hashes returns the number of hashes at the end of the part of v if v is
// truncated: text has those of the folded and of the original text.
func hashes(v Value) int {
	if v.kind == KindText {
		return 2
	}
	return 1
}

// class returns k, but one kind for both booleans. Values compare if their
// classes are the same.
func class(k Kind) Kind {
	if k == KindTrue {
		return KindFalse
	}
	return k
}

// kindSpan returns the range of all values of a class.
func kindSpan(k Kind) keySpan {
	first, last := byte(0), byte(0)
	switch k {
	case KindMissing:
		first, last = tagMissing, tagMissing
	case KindNull:
		first, last = tagNull, tagNull
	case KindFalse, KindTrue:
		first, last = tagFalse, tagTrue
	case KindNumber:
		first, last = tagNegativeLarge, tagPositiveLarge
	case KindText:
		first, last = tagText, tagText
	case KindArray:
		first, last = tagArray, tagArray
	case KindObject:
		first, last = tagObject, tagObject
	case KindInstant:
		first, last = tagInstant, tagInstant
	}
	return keySpan{edge{[]byte{first}, false}, edge{[]byte{last}, true}, false}
}

// prefixPart returns the common beginning of the parts of all texts that begin
// with text, case folded. Cut reports that other texts have this beginning, too.
func prefixPart(text string) (part []byte, cut bool) {
	folded := fold.Append(nil, text)
	if cut = len(folded) > maxKeyBytes; cut {
		folded = folded[:maxKeyBytes]
	}
	return appendEscaped([]byte{tagText}, folded), cut
}

// hasCase reports whether another text may differ from text in case only.
func hasCase(text string) bool {
	for i := range len(text) {
		if c := text[i] | 0x20; c >= utf8.RuneSelf || 'a' <= c && c <= 'z' {
			return true
		}
	}
	return false
}
