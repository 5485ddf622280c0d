package query

import (
	"slices"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/vector"
)

// Numbers is a vector whose JSON is the base64 of its numbers. The base64 of 768 numbers takes 4
// KB. An array of them takes about 8 KB, and several times as long to read.
type Numbers []float32

// MarshalJSON returns the vector in base64, and null for nil. It returns a *VectorError for numbers
// that are not a vector.
func (n Numbers) MarshalJSON() ([]byte, error) {
	if n == nil {
		return []byte("null"), nil
	}
	if err := vector.Check(n); err != nil {
		return nil, vectorError(err)
	}
	return append(vector.AppendBase64([]byte{'"'}, n), '"'), nil
}

// UnmarshalJSON reads a vector in any of its forms: base64, an array of numbers, or an object with
// "@vector". null becomes nil. Errors are *VectorError.
func (n *Numbers) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*n = nil
		return nil
	}
	if raw[0] == '"' { // base64 may have been written with escapes
		raw = jsonpath.AppendQuoted(nil, jsonpath.Unquoted(raw))
	}
	v, err := vector.Read(nil, compact(raw))
	if err != nil {
		return vectorError(err)
	}
	*n = v
	return nil
}

// compact returns JSON without spaces between its values. There are none to keep in the texts of a vector.
func compact(raw []byte) []byte {
	return slices.DeleteFunc(slices.Clone(raw), func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' })
}
