package query

import (
	"errors"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/vector"
)

// MaxDimensions is how many numbers a vector has at most.
const MaxDimensions = vector.MaxDimensions

// VectorError says why numbers or a value are no vector.
type VectorError struct {
	Rule  string // such as "a vector has at least one number"
	Value string // what breaks it
}

func (e *VectorError) Error() string { return e.Rule + ": " + e.Value }

// vectorError returns an error of package vector as a VectorError.
func vectorError(err error) error {
	var e *vector.Error
	if errors.As(err, &e) {
		return &VectorError{e.Rule, e.Value}
	}
	return err
}

// Vector is what vectors of documents are compared with. NewVector makes it. It is immutable.
type Vector struct {
	target     *vector.Target
	candidates int // of a distance: see VectorDistance
}

// NewVector returns the vector with these numbers, which it copies. The metric is "cosine", "dot" or "euclidean"; "" is cosine. Errors are *VectorError.
func NewVector(numbers []float32, metric string) (Vector, error) {
	m, found := vector.Cosine, true
	if metric != "" {
		m, found = vector.ParseMetric(metric)
	}
	if !found {
		return Vector{}, &VectorError{Rule: "a metric is " + strings.Join(vector.Metrics(), ", "), Value: metric}
	}
	t, err := vector.NewTarget(m, append([]float32(nil), numbers...))
	return Vector{target: t}, vectorError(err)
}

// Target returns the vector for package vector.
func (v Vector) Target() *vector.Target { return v.target }

// String returns the vector as RQL has it: numbers in brackets, or the base64 of many.
func (v Vector) String() string {
	if v.target == nil {
		return "[]"
	}
	return VectorText(v.target.Vector)
}

// GoString is the vector as fmt prints it with %#v: by its text, as a hash that is kept with the result of a call is made of it.
//
// Part of the on-disk format. Must not change.
func (v Vector) GoString() string { return "query.Vector(" + v.String() + ")" }

// maxShown is how many numbers of a vector are written in brackets.
const maxShown = 16

// VectorText returns a vector as RQL has it. One that is none is refused where the text is parsed.
func VectorText(v []float32) string {
	if len(v) > maxShown || vector.Check(v) != nil {
		return "'" + string(vector.AppendBase64(nil, v)) + "'"
	}
	text := []byte{'['}
	for i, f := range v {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = strconv.AppendFloat(text, float64(f), 'f', -1, 32)
	}
	return string(append(text, ']'))
}

// suffix returns what follows the field in the text of a distance.
func (v Vector) suffix() string {
	text := ", " + v.String()
	if v.target.Metric != vector.Cosine || v.candidates > 0 {
		text += ", " + quote(v.target.Metric.String())
	}
	if v.candidates > 0 {
		text += ", " + strconv.Itoa(v.candidates)
	}
	return text
}

// VectorDistanceText returns the RQL of how far the vector of a document is from one: an order, a column, or an operand of a condition. Who parses the text
// refuses a vector that is none. The metric "" is cosine.
func VectorDistanceText(field string, v []float32, metric string) string {
	text := "vector.distance(" + field + ", " + VectorText(v)
	if metric != "" {
		text += ", " + quote(metric)
	}
	return text + ")"
}
