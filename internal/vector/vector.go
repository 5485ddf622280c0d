// Package vector reads the vectors that documents have, such as embeddings of texts, and says how far they are from one another.
//
// A vector is an array of numbers, a text with the base64 of its numbers as float32, little-endian, or an object whose member
// "@vector" is such an array, as RavenDB's clients write it. Its numbers are float32, and all that is computed of them is
// computed in float64, in an order that does not depend on the processor: products of two float32 are exact there, so all processors
// have the same distances, to the last bit.
//
// The functions of this package are safe for concurrent use.
package vector

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/jaydb/jay/internal/jsonpath"
)

// MaxDimensions is how many numbers a vector has at most.
const MaxDimensions = 8192

// member is the member of an object that is a vector.
const member = "@vector"

// Error says why a value is no vector.
type Error struct {
	Rule  string // such as "a vector has at least one number"
	Value string // what breaks it
}

func (e *Error) Error() string { return e.Rule + ": " + e.Value }

// Read appends the numbers of the vector that a JSON value is to dst, which may be nil. The value must be valid and compact. Errors are *Error.
func Read(dst []float32, raw []byte) ([]float32, error) {
	start := len(dst)
	var err error
	switch {
	case len(raw) > 0 && raw[0] == '[':
		dst, err = readArray(dst, raw)
	case len(raw) > 0 && raw[0] == '"':
		if bytes.IndexByte(raw, '\\') >= 0 {
			return dst, &Error{"a vector in base64 has letters, digits, + and /", shorten(raw)}
		}
		dst, err = readBase64(dst, raw[1:len(raw)-1])
	case len(raw) > 0 && raw[0] == '{':
		inner, bad := arrayIn(raw)
		if bad != nil {
			return dst, bad
		}
		dst, err = readArray(dst, inner)
	default:
		err = &Error{"a vector is an array of numbers, or its base64", shorten(raw)}
	}
	if err == nil && len(dst) == start {
		err = &Error{"a vector has at least one number", shorten(raw)}
	}
	if err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// arrayIn returns the array of an object that is a vector.
func arrayIn(raw []byte) ([]byte, error) {
	inner, there := jsonpath.FindMember(raw, member)
	if !there || len(inner) == 0 || inner[0] != '[' {
		return nil, &Error{"an object that is a vector has its numbers in " + member, shorten(raw)}
	}
	return inner, nil
}

// readArray reads a JSON array.
func readArray(dst []float32, raw []byte) ([]float32, error) {
	rest, n := raw[1:len(raw)-1], 0
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, ',')
		if end < 0 {
			end = len(rest)
		}
		if n++; n > MaxDimensions {
			return dst, tooMany(1 + bytes.Count(raw, []byte(",")))
		}
		f, err := strconv.ParseFloat(string(rest[:end]), 32)
		if err != nil {
			return dst, &Error{"a vector is of numbers that float32 can hold", fmt.Sprintf("number %d is %s", n, shorten(rest[:end]))}
		}
		dst = append(dst, float32(f))
		rest = rest[min(end+1, len(rest)):]
	}
	return dst, nil
}

// readBase64 reads the base64 of float32, little-endian, with padding or without.
func readBase64(dst []float32, text []byte) ([]float32, error) {
	text = bytes.TrimRight(text, "=")
	size := base64.RawStdEncoding.DecodedLen(len(text))
	switch {
	case size > 4*MaxDimensions:
		return dst, tooMany(size / 4)
	case size%4 != 0:
		return dst, &Error{"a vector in base64 has four bytes for each number", fmt.Sprintf("there are %d", size)}
	}
	var memory [4096]byte
	decoded := memory[:0]
	if size > len(memory) {
		decoded = make([]byte, 0, size)
	}
	decoded, err := base64.RawStdEncoding.AppendDecode(decoded, text)
	if err != nil {
		return dst, &Error{"a vector in base64 has letters, digits, + and /", shorten(text)}
	}
	dst = slices.Grow(dst, size/4)
	for rest := decoded; len(rest) >= 4; rest = rest[4:] {
		bits := binary.LittleEndian.Uint32(rest)
		f := math.Float32frombits(bits)
		if bits&infinite == infinite {
			return dst, &Error{"a vector is of numbers that float32 can hold", fmt.Sprintf("number %d is %v", 1+(len(decoded)-len(rest))/4, f)}
		}
		dst = append(dst, f)
	}
	return dst, nil
}

// infinite is the exponent of float32 that only infinite numbers and NaN have.
const infinite = 0xff << 23

// Check returns an *Error for numbers that are no vector.
func Check(v []float32) error {
	switch {
	case len(v) == 0:
		return &Error{"a vector has at least one number", "[]"}
	case len(v) > MaxDimensions:
		return tooMany(len(v))
	}
	for i, f := range v {
		if !isFinite(float64(f)) {
			return &Error{"a vector is of numbers that float32 can hold", fmt.Sprintf("number %d is %v", i+1, f)}
		}
	}
	return nil
}

// Each calls fn with each vector of a JSON value: with the value, or with the elements of an array of such, until fn returns false. What is no vector
// fn finds out.
func Each(raw []byte, fn func(raw []byte) bool) {
	if len(raw) < 2 || raw[0] != '[' || raw[1] != '[' && raw[1] != '{' && raw[1] != '"' {
		fn(raw)
		return
	}
	for _, element := range jsonpath.Elements(raw) {
		if !fn(element) {
			return
		}
	}
}

// AppendBase64 appends a vector as Read reads it from a text.
func AppendBase64(dst []byte, v []float32) []byte {
	bytes := make([]byte, 0, 4*len(v))
	for _, f := range v {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(f))
	}
	return base64.StdEncoding.AppendEncode(dst, bytes)
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func tooMany(n int) error {
	return &Error{fmt.Sprintf("a vector has at most %d numbers", MaxDimensions), fmt.Sprintf("there are %d", n)}
}

// shorten returns the beginning of a value, for an Error.
func shorten(raw []byte) string {
	if len(raw) > 40 {
		return fmt.Sprintf("%.40s…", raw)
	}
	return string(raw)
}
