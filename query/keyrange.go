package query

import (
	"bytes"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/fold"
)

// KeyRange is a range of parts: all those from Lo on and before Hi, whatever
// follows them in their key. To have it behind parts of other fields, put
// those in front of both. Recheck tells that the values must be looked at
// again, as the range holds some that were not asked for.
type KeyRange struct {
	Lo, Hi  []byte
	Recheck bool
}

// Empty tells whether no key can be in the range.
func (r KeyRange) Empty() bool { return bytes.Compare(r.Lo, r.Hi) >= 0 }

// EqualRange returns where values are that equal v.
func EqualRange(v Value, fold, descending bool) KeyRange {
	part, truncated := AppendKey(nil, v, false)
	if truncated && fold && v.kind == KindText {
		part = part[:len(part)-keyHashSize] // that of the text itself
	} else if !truncated {
		return span(v, fold).keyRange(descending)
	}
	return keySpan{edge{part, false}, edge{part, true}, true}.keyRange(descending)
}

// CompareRange returns where values are that stand in the relation op to v and
// are of its kind. Both booleans count as one kind, as they do in Compare.
func CompareRange(op Op, v Value, fold, descending bool) KeyRange {
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

// BetweenRange returns where values are that are from lo to hi, both included,
// and of the kind of both: nowhere if these differ.
func BetweenRange(lo, hi Value, fold, descending bool) KeyRange {
	if class(lo.kind) != class(hi.kind) {
		return KeyRange{}
	}
	from, to := span(lo, fold), span(hi, fold)
	both := keySpan{lo: from.lo, hi: to.hi, recheck: from.recheck || to.recheck}
	return both.keyRange(descending)
}

// PrefixRange returns where texts are that begin with text. Without fold that
// is nearly always to be rechecked, as keys begin with folded text.
func PrefixRange(text string, fold, descending bool) KeyRange {
	part, cut := prefixPart(text)
	s := keySpan{edge{part, false}, edge{part, true}, cut || !fold && hasCase(text)}
	return s.keyRange(descending)
}

// PresentRange returns where all values are, but not what is missing.
func PresentRange(descending bool) KeyRange {
	s := keySpan{edge{[]byte{tagNull}, false}, edge{[]byte{tagObject}, true}, false}
	return s.keyRange(descending)
}

// MissingRange returns where entries of documents are that lack the field.
func MissingRange(descending bool) KeyRange { return EqualRange(Value{}, false, descending) }

// keySpan is a range of ascending parts.
type keySpan struct {
	lo, hi  edge
	recheck bool
}

// edge is a place between ascending parts: before all that begin with part, or
// after them.
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

// inverted returns the same place between descending parts.
func (e edge) inverted() edge {
	part := bytes.Clone(e.part)
	invert(part)
	return edge{part, !e.after}
}

// bytes returns the least key behind the place.
func (e edge) bytes() []byte {
	key := bytes.Clone(e.part)
	if !e.after {
		return key
	}
	for i := len(key) - 1; ; i-- { // the first byte is never 0xff
		if key[i] != 0xff {
			key[i]++
			return key[:i+1]
		}
	}
}

// span returns where values are that equal v or, if it has to be rechecked, are
// in no order with it.
func span(v Value, foldCase bool) keySpan {
	part, truncated := AppendKey(nil, v, false)
	if truncated {
		part = part[:len(part)-hashes(v)*keyHashSize]
		return keySpan{edge{part, false}, edge{part, true}, true}
	}
	if foldCase && v.kind == KindText {
		r := newKeyReader(part)
		r.next()
		r.skipBytes()
		part = part[:r.i]
	}
	return keySpan{edge{part, false}, edge{part, true}, false}
}

// hashes returns how many hashes end the part of v if it was cut.
func hashes(v Value) int {
	if v.kind == KindText {
		return 2
	}
	return 1
}

// class returns the least kind that counts as one with k where kinds must be
// the same.
func class(k Kind) Kind {
	if k == KindTrue {
		return KindFalse
	}
	return k
}

// kindSpan returns where all values of a kind are.
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
	}
	return keySpan{edge{[]byte{first}, false}, edge{[]byte{last}, true}, false}
}

// prefixPart returns how the parts of all texts begin whose folded form begins
// with that of text, and whether others begin so too.
func prefixPart(text string) (part []byte, cut bool) {
	folded := fold.Append(nil, text)
	if cut = len(folded) > maxKeyBytes; cut {
		folded = folded[:maxKeyBytes]
	}
	return appendEscaped([]byte{tagText}, folded), cut
}

// hasCase tells whether texts may differ from text in case.
func hasCase(text string) bool {
	for i := range len(text) {
		if c := text[i] | 0x20; c >= utf8.RuneSelf || 'a' <= c && c <= 'z' {
			return true
		}
	}
	return false
}
