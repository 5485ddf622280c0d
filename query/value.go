package query

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Kind is the kind of a value. The order of the constants is the order of all values.
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
	KindInstant // a point in time; only fields that are read as dates reach it
)

// String returns the kind's name in messages, such as "number".
func (k Kind) String() string {
	return [...]string{"missing", "null", "false", "true", "number", "text", "array", "object", "instant"}[k]
}

// Value is one JSON value as queries see it, or the absence of one. The zero
// Value is missing.
//
// A Value is immutable unless the memory that it was made of changes: the caller
// of ValueOf must not write to it. Clone makes a Value with memory of its own.
type Value struct {
	raw   []byte // JSON text, or the unquoted text if plain; of KindInstant the canonical spelling
	kind  Kind
	plain bool // of KindText: raw has no quotes and escapes
}

// null is the value of JSON that is called so.
var null = ValueOf([]byte("null"))

// ValueOf returns the value with the JSON text raw, missing if raw is empty. Raw
// must be valid and compact, as the bodies of documents are; ValueOf does not
// check that. The value shares memory with raw.
func ValueOf(raw []byte) Value { return Value{raw: raw, kind: kindOf(raw)} }

// TextValue returns text as a value.
func TextValue(text string) Value { return plainText([]byte(text)) }

// plainText returns text as a value that shares its memory.
func plainText(text []byte) Value { return Value{raw: text, kind: KindText, plain: true} }

// kindOf returns the kind of a JSON value by its first byte.
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

// IsMissing reports whether v is the absence of a value.
func (v Value) IsMissing() bool { return v.kind == KindMissing }

// IsScalar reports whether v is null, a boolean, a number, text or an instant.
// Conditions compare with scalars only.
func (v Value) IsScalar() bool {
	return v.kind >= KindNull && v.kind <= KindText || v.kind == KindInstant
}

// Raw returns the JSON text of v, nil if v is missing. It may share memory with
// v and must not be changed.
func (v Value) Raw() []byte {
	if v.plain {
		return v.AppendJSON(nil)
	}
	return v.raw
}

// AppendJSON appends the JSON text of v to dst, nothing if v is missing.
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

// text returns the text of a value of KindText. It is a part of the value if
// that has no escapes, and otherwise overwrites buf.
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

// String returns the JSON text of v, or "missing".
func (v Value) String() string {
	if v.kind == KindMissing {
		return KindMissing.String()
	}
	return string(v.Raw())
}

// Clone returns v in memory of its own.
func (v Value) Clone() Value {
	v.raw = bytes.Clone(v.raw)
	return v
}

// Equal reports whether v and w are the same value. Case matters in text; the
// notation of numbers does not. Arrays are the same if their JSON texts are, and
// so are objects.
func (v Value) Equal(w Value) bool { return v.kind == w.kind && compare(v, w, false) == 0 }

// EqualFold is Equal, but case does not matter.
func (v Value) EqualFold(w Value) bool { return v.kind == w.kind && compare(v, w, true) == 0 }

// Compare returns -1, 0 or +1 as v is less than, equal to or greater than w in
// the order of all values: see the package documentation. It allocates only
// for long text with escapes.
func (v Value) Compare(w Value) int { return compare(v, w, false) }

// compare is Compare; with fold, texts that differ in case only are equal.
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
	case KindInstant:
		return compareInstants(v, w)
	}
	return 0
}

// NewValue returns the value that encoding/json writes for v, which must be a
// scalar in JSON: nil, a boolean, a number, a string, a type based on one of
// these, a type that marshals itself as one of these, or a pointer to any of them. A
// time.Time is an instant: see InstantValue. NewValue returns a Value unchanged.
//
// The errors are ErrNumber for NaN, infinities and a json.Number that is not a
// number or is beyond MaxExponent, ErrText for text that is not valid UTF-8, and
// ErrValue for anything else, such as slices and structs.
func NewValue(v any) (Value, error) {
	switch v := v.(type) {
	case nil:
		return ValueOf([]byte("null")), nil
	case Value:
		return v, checkNumber(v)
	case string:
		return textValue(v)
	case time.Time:
		return InstantValue(v)
	case *time.Time:
		if v != nil {
			return InstantValue(*v)
		}
	case int:
		return ValueOf(strconv.AppendInt(nil, int64(v), 10)), nil
	case json.Number:
		if !isNumber([]byte(v)) {
			return Value{}, fmt.Errorf("%w: %.60q", ErrNumber, string(v))
		}
		value := ValueOf([]byte(v))
		return value, checkNumber(value)
	}

	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer && r.IsNil() { // as encoding/json does, also for types that marshal themselves
		return ValueOf([]byte("null")), nil
	}
	switch v.(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return marshaledValue(v)
	}
	if r.Kind() == reflect.Pointer {
		return NewValue(r.Elem().Interface())
	}
	return scalarValue(r)
}

// textValue returns text as a value, or ErrText.
func textValue(text string) (Value, error) {
	if !utf8.ValidString(text) {
		return Value{}, fmt.Errorf("%w: %.60q", ErrText, text)
	}
	return TextValue(text), nil
}

// marshaledValue returns the value of a type that marshals itself.
func marshaledValue(v any) (Value, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return Value{}, fmt.Errorf("%w: %w", ErrValue, err)
	}
	if i := jsonpath.LoneSurrogate(raw); i >= 0 {
		return Value{}, fmt.Errorf("%w: surrogates must come in pairs: %s is half of a character", ErrText, raw[i:i+6])
	}
	value := ValueOf(raw)
	if !value.IsScalar() {
		return Value{}, fmt.Errorf("%w: %T is an %v", ErrValue, v, value.Kind())
	}
	if value.kind == KindText {
		return TextValue(value.Text()), nil // without encoding/json's escapes
	}
	return value, checkNumber(value)
}

// scalarValue returns a value of one of Go's basic kinds.
func scalarValue(r reflect.Value) (Value, error) {
	switch r.Kind() {
	case reflect.Bool:
		return ValueOf(strconv.AppendBool(nil, r.Bool())), nil
	case reflect.String:
		return textValue(r.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return ValueOf(strconv.AppendInt(nil, r.Int(), 10)), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return ValueOf(strconv.AppendUint(nil, r.Uint(), 10)), nil
	case reflect.Float32, reflect.Float64:
		f := r.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return Value{}, fmt.Errorf("%w: %v", ErrNumber, f)
		}
		shortest := strconv.AppendFloat(nil, f, 'e', -1, r.Type().Bits())
		return ValueOf(parseNumber(shortest).append(nil)), nil
	}
	return Value{}, fmt.Errorf("%w: %v", ErrValue, r.Type())
}

// canonical returns v in memory of its own and in canonical form, which all equal
// values share. Numbers beyond MaxExponent keep their notation, since their
// canonical form would be that of another number.
func canonical(v Value) Value {
	switch v.kind {
	case KindNumber:
		if n := parseNumber(v.raw); !n.beyond {
			return ValueOf(n.append(nil))
		}
	case KindText:
		if !v.plain {
			return TextValue(v.Text())
		}
	}
	return v.Clone()
}
