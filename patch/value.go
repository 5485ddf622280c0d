package patch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/instant"
	"github.com/jaydb/jay/internal/jsonpath"
)

// encoded returns the JSON of a Go value, compact and valid inside a document,
// with its depth: 0 for a value that is neither object nor array. If there is none,
// detail says why.
func encoded(value any) (raw []byte, depth int, detail string) {
	raw, err := instant.Marshal(value)
	if err != nil {
		return nil, 0, err.Error()
	}
	depth, detail = checked(raw)
	return raw, depth, detail
}

// compacted is encoded for JSON.
func compacted(doc []byte) (raw []byte, depth int, detail string) {
	var buf bytes.Buffer
	if err := json.Compact(&buf, doc); err != nil {
		return nil, 0, err.Error()
	}
	depth, detail = checked(buf.Bytes())
	return buf.Bytes(), depth, detail
}

// checked returns the depth of compact JSON. Detail says why metadata.Scan would
// refuse it inside a document, and is empty if it would not.
func checked(raw []byte) (depth int, detail string) {
	if !utf8.Valid(raw) {
		return 0, "it is not valid UTF-8"
	}
	if i := jsonpath.LoneSurrogate(raw); i >= 0 {
		return 0, fmt.Sprintf("surrogates must come in pairs: %s at byte %d is half of a character", raw[i:i+6], i)
	}
	c := checker{src: raw}
	c.value(0, 0)
	return c.depth, c.detail
}

// checker finds the depth of well-formed JSON, repeated keys, and exponents that no document may hold.
type checker struct {
	src    []byte
	depth  int
	detail string
}

// value checks the value at i, which is nested in depth others, and returns the
// offset after it.
func (c *checker) value(i, depth int) int {
	opening := c.src[i]
	if opening != '{' && opening != '[' {
		end := jsonpath.Skip(c.src, i)
		if opening != '"' && end-i > jsonpath.SafeDigits && jsonpath.IsBeyond(c.src[i:end]) {
			c.detail = fmt.Sprintf("numbers must have exponents from -10^15 to 10^15: %.60s", c.src[i:end])
		}
		return end
	}
	c.depth = max(c.depth, depth+1)
	if i++; c.src[i] == '}' || c.src[i] == ']' {
		return i + 1
	}
	var keys map[string]struct{}
	if opening == '{' {
		keys = make(map[string]struct{})
	}
	for ; ; i++ {
		if opening == '{' {
			end := jsonpath.Skip(c.src, i)
			key := jsonpath.Unquoted(c.src[i:end])
			if _, repeated := keys[key]; repeated {
				c.detail = fmt.Sprintf("the key %.60q is there twice", key)
			}
			keys[key] = struct{}{}
			i = end + 1
		}
		if i = c.value(i, depth+1); c.src[i] != ',' {
			return i + 1
		}
	}
}

// amount returns the number of an Increment as JSON. If by is not one, detail says
// why.
func amount(by any) (text []byte, detail string) {
	if n, ok := by.(json.Number); ok {
		text = []byte(n)
	} else {
		switch v := reflect.ValueOf(by); v.Kind() {
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			text = strconv.AppendInt(nil, v.Int(), 10)
		case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
			text = strconv.AppendUint(nil, v.Uint(), 10)
		case reflect.Float32, reflect.Float64:
			if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
				return nil, fmt.Sprint(v.Float())
			}
			text = appendFloat(nil, v.Float(), v.Type().Bits())
		default:
			return nil, fmt.Sprintf("a value of type %T", by)
		}
	}
	if !isNumber(text) {
		return nil, fmt.Sprintf("%.60q", text)
	}
	// Refuse a number that cannot even be added to 0.
	if _, detail := sum([]byte("0"), text); detail != "" {
		return nil, detail
	}
	return text, ""
}

// appendFloat appends the shortest text that parses as f, with an exponent only
// where encoding/json writes one.
func appendFloat(dst []byte, f float64, bits int) []byte {
	format := byte('f')
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, bits)
}

// isNumber reports whether text is a JSON number without white space around it.
func isNumber(text []byte) bool {
	return jsonpath.KindOf(text) == jsonpath.Number && text[len(text)-1] > ' ' && json.Valid(text)
}
