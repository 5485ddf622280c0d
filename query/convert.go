package query

import (
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
