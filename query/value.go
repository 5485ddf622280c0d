package query

import (
	"bytes"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Kind is the kind of a value. The constants stand in the order of all
// values.
type Kind uint8

const (
	KindMissing Kind = iota
	KindNull
	KindFalse
	KindTrue
	KindNumber
	KindText
	KindArray
	KindObject
)

// String returns the kind's name in messages, such as "number".
func (k Kind) String() string {
	return [...]string{"missing", "null", "false", "true", "number", "text", "array", "object"}[k]
}

// Value is one JSON value as queries see it, or the absence of one. The zero
// Value is missing.
//
// A Value is immutable as long as nobody writes to the memory it was made of,
// which is the caller's duty for ValueOf. Clone gives one that has its own.
type Value struct {
	raw   []byte // JSON text, or the text itself if plain
	kind  Kind
	plain bool // a text without its quotes and escapes
}

// ValueOf returns the value that raw is the JSON text of, missing if it is
// empty. Raw must be valid and compact, as the bodies of documents are; that
// is not checked. The value shares memory with raw.
func ValueOf(raw []byte) Value { return Value{raw: raw, kind: kindOf(raw)} }

// TextValue returns text as a value.
func TextValue(text string) Value { return plainText([]byte(text)) }

// plainText returns a text as a value that shares its memory.
func plainText(text []byte) Value { return Value{raw: text, kind: KindText, plain: true} }

// kindOf tells a value's kind by its first byte.
func kindOf(raw []byte) Kind {
	if len(raw) == 0 {
		return KindMissing
	}
	switch raw[0] {
	case '"':
		return KindText
	case '{':
		return KindObject
	case '[':
		return KindArray
	case 'n':
		return KindNull
	case 't':
		return KindTrue
	case 'f':
		return KindFalse
	}
	return KindNumber
}

// Kind returns the value's kind.
func (v Value) Kind() Kind { return v.kind }

// IsMissing tells whether there is no value.
func (v Value) IsMissing() bool { return v.kind == KindMissing }

// IsScalar tells whether the value is null, a boolean, a number or text: one
// that a condition can compare with.
func (v Value) IsScalar() bool { return v.kind >= KindNull && v.kind <= KindText }

// Raw returns the value's JSON text, nil if it is missing. It shares memory
// with the value, and must not be changed.
func (v Value) Raw() []byte {
	if v.plain {
		return v.AppendJSON(nil)
	}
	return v.raw
}

// AppendJSON appends the value's JSON text to dst, nothing if it is missing.
func (v Value) AppendJSON(dst []byte) []byte {
	if !v.plain {
		return append(dst, v.raw...)
	}
	for _, c := range v.raw {
		if c < ' ' || c == '"' || c == '\\' {
			return jsonpath.AppendQuoted(dst, string(v.raw))
		}
	}
	dst = append(dst, '"')
	return append(append(dst, v.raw...), '"')
}

// Text returns the text of a value of KindText without quotes and escapes,
// and "" for any other.
func (v Value) Text() string { return string(v.text(nil)) }

// text returns the text of a value of KindText: a part of the value if it has
// no escapes, else written over buf.
func (v Value) text(buf []byte) []byte {
	if v.plain {
		return v.raw
	}
	if v.kind != KindText || len(v.raw) < 2 {
		return nil
	}
	if inside := v.raw[1 : len(v.raw)-1]; bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	return jsonpath.AppendUnquoted(buf[:0], v.raw)
}

// String returns the value for people to read: its JSON text, or "missing".
func (v Value) String() string {
	if v.kind == KindMissing {
		return KindMissing.String()
	}
	return string(v.Raw())
}

// Clone returns the value in memory of its own.
func (v Value) Clone() Value {
	v.raw = bytes.Clone(v.raw)
	return v
}

// Equal tells whether v and w are the same value. Text regards case; numbers
// are the same however they are written; arrays, and objects, are if their
// JSON texts are.
func (v Value) Equal(w Value) bool { return v.kind == w.kind && compare(v, w, false) == 0 }

// EqualFold is Equal, but text does not regard case.
func (v Value) EqualFold(w Value) bool { return v.kind == w.kind && compare(v, w, true) == 0 }

// Compare returns -1, 0 or +1 as v is less than, equal to or greater than w in
// the order of all values: see the package documentation. It allocates only
// for long text with escapes.
func (v Value) Compare(w Value) int { return compare(v, w, false) }

// CompareFold is Compare, but texts that differ in case only are equal.
func (v Value) CompareFold(w Value) int { return compare(v, w, true) }

func compare(v, w Value, fold bool) int {
	if v.kind != w.kind {
		return compareInts(int64(v.kind), int64(w.kind))
	}
	switch v.kind {
	case KindNumber:
		return compareNumbers(v.raw, w.raw)
	case KindText:
		var bufV, bufW [64]byte
		x, y := v.text(bufV[:]), w.text(bufW[:])
		if c := compareFolded(x, y); c != 0 || fold {
			return c
		}
		return bytes.Compare(x, y)
	case KindArray, KindObject:
		return bytes.Compare(v.raw, w.raw)
	}
	return 0
}
