package query

import (
	"bytes"

	"github.com/jaydb/jay/internal/fold"
)

// operand is a value that a condition compares with, decoded once.
type operand struct {
	value  Value  // in memory of its own
	class  Kind   // of value.kind
	text   []byte // of KindText
	folded []byte // of KindText, case-folded
	small  bool   // the number is an integer of at most 18 digits, in whole
	whole  int64
	number number // of KindNumber, unless small
}

func newOperand(v Value) operand {
	v = v.Clone()
	o := operand{value: v, class: class(v.kind)}
	switch v.kind {
	case KindText:
		o.text = v.text(nil)
		o.folded = fold.Append(nil, o.text)
	case KindNumber:
		if o.whole, o.small = smallInt(v.raw); !o.small {
			o.number = parseNumber(v.raw)
		}
	}
	return o
}

// equals reports whether v equals the operand. Text is the text of v if v is of
// KindText.
func (o *operand) equals(v Value, text []byte, fold bool) bool {
	if v.kind != o.value.kind {
		return false
	}
	switch v.kind {
	case KindNumber:
		return o.compareNumber(v) == 0
	case KindText:
		if fold {
			return equalFolded(text, o.folded)
		}
		return bytes.Equal(text, o.text)
	case KindInstant:
		return compareInstants(v, o.value) == 0
	}
	return true
}

// compare compares v with the operand. Text is the text of v if v is of KindText.
func (o *operand) compare(v Value, text []byte, fold bool) int {
	if v.kind != o.value.kind {
		return compareInts(int64(v.kind), int64(o.value.kind))
	}
	switch v.kind {
	case KindNumber:
		return o.compareNumber(v)
	case KindText:
		if c := compareFolded(text, o.folded); c != 0 || fold {
			return c
		}
		return bytes.Compare(text, o.text)
	case KindInstant:
		return compareInstants(v, o.value)
	}
	return 0
}

// compareNumber compares the number v with the operand. Two small integers, the
// usual case, compare without parsing digits.
func (o *operand) compareNumber(v Value) int {
	if !o.small {
		return parseNumber(v.raw).compare(o.number)
	}
	if n, small := smallInt(v.raw); small {
		return compareInts(n, o.whole)
	}
	return parseNumber(v.raw).compare(parseNumber(o.value.raw))
}
