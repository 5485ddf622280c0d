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
	fits   bool   // the number is fixed
	fixed  fixed
	number number // of KindNumber
}

func newOperand(v Value) operand {
	v = v.Clone()
	o := operand{value: v, class: class(v.kind)}
	switch v.kind {
	case KindText:
		o.text = v.text(nil)
		o.folded = fold.Append(nil, o.text)
	case KindNumber:
		o.fixed, o.fits = toFixed(v.raw)
		o.number = parseNumber(v.raw)
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

// compareNumber compares the number v with the operand. Two numbers of few digits, the
// usual case, compare as integers.
func (o *operand) compareNumber(v Value) int {
	if o.fits {
		if n, fits := toFixed(v.raw); fits {
			return n.compare(o.fixed)
		}
	}
	return parseNumber(v.raw).compare(o.number)
}
