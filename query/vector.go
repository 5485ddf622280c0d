package query

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/vector"
)

// MaxDimensions is how many numbers a vector has at most.
const MaxDimensions = vector.MaxDimensions

// VectorError says why numbers or a value are not a vector.
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

// Vector is a vector that queries compare with the vectors of documents. Make one with NewVector.
// It is immutable.
type Vector struct {
	target     *vector.Target
	candidates int         // of a distance: see VectorDistance
	form       vector.Form // of the documents' vectors, and of this one
	packed     []byte      // of a form in bytes
}

// sources are functions that say what form the vectors of documents have. RavenDB names behind _
// how it keeps them: Jay compares those of f32_i8 as they are.
var sources = map[string]vector.Form{
	"f32": vector.Singles, "f32_i8": vector.Singles, "f32_i1": vector.Signs, "i8": vector.Int8, "i1": vector.Bits,
}

// formOf returns the form of the vectors of a field as builders take it, such as embedding.i8(Embedding).
func formOf(field string) vector.Form {
	name, _, called := strings.Cut(field, "(")
	name, embedding := strings.CutPrefix(strings.ToLower(name), "embedding.")
	if !called || !embedding {
		return vector.Singles
	}
	return sources[name]
}

// NewVector returns the vector with these numbers, which it copies. The metric is "cosine", "dot"
// or "euclidean"; "" is cosine. Errors are *VectorError.
func NewVector(numbers []float32, metric string) (Vector, error) {
	m, err := metricOf(vector.Singles, metric)
	if err != nil {
		return Vector{}, err
	}
	t, err := vector.NewTarget(m, append([]float32(nil), numbers...))
	return Vector{target: t}, vectorError(err)
}

// newVectorOf returns the vector of a value that has it in a form. The metric is that of NewVector;
// of bits it is "" or "hamming".
func newVectorOf(form vector.Form, raw []byte, metric string) (v Vector, err error) {
	var numbers []float32
	if v.form = form; form.IsPacked() {
		if v.packed, err = form.ReadPacked(raw); err == nil {
			numbers = form.Unpack(nil, v.packed)
		}
	} else {
		numbers, err = vector.Read(nil, raw)
	}
	if err != nil {
		return Vector{}, vectorError(err)
	}
	m, err := metricOf(form, metric)
	if err != nil {
		return Vector{}, err
	}
	v.target, err = vector.NewTarget(m, numbers)
	return v, vectorError(err)
}

// Target returns the vector for package vector.
func (v Vector) Target() *vector.Target { return v.target }

// metricOf returns the metric of a name, "" for the one that vectors of a form have otherwise.
// Those of bits have no other.
func metricOf(form vector.Form, name string) (vector.Metric, error) {
	if form.IsOfBits() {
		if name == "" || name == vector.Hamming.String() {
			return vector.Hamming, nil
		}
		return 0, &VectorError{Rule: "the metric of bits is hamming", Value: name}
	}
	if name == "" {
		return vector.Cosine, nil
	}
	if m, known := vector.ParseMetric(name); known {
		return m, nil
	}
	return 0, &VectorError{Rule: "a metric is " + strings.Join(vector.Metrics(), ", "), Value: name}
}

// In converts a vector of numbers to the named form, such as "i8". Then the numbers of v are the
// bytes. Errors are *VectorError.
func (v Vector) In(form string) (Vector, error) {
	f, known := sources[form]
	if !known || v.form != vector.Singles || v.target == nil {
		return v, &VectorError{Rule: "a vector of numbers has the form f32, f32_i8, f32_i1, i8 or i1", Value: form}
	}
	raw := append(vector.AppendBase64([]byte{'"'}, v.target.Vector), '"')
	if f.IsPacked() {
		var err error
		if raw, err = json.Marshal(v.target.Vector); err != nil {
			return v, err
		}
	}
	return newVectorOf(f, raw, "")
}

// Form returns the form that the vectors of documents are read in, for package vector.
func (v Vector) Form() vector.Form { return v.form }

// opening returns what is in front of the field with the vectors of documents, and opens a
// parenthesis, in a form of its own.
func (v Vector) opening() string {
	if v.form == vector.Singles {
		return ""
	}
	return "embedding." + v.form.String() + "("
}

// source returns the RQL of a field with the vectors of documents.
func (v Vector) source(field string) string {
	if opening := v.opening(); opening != "" {
		return opening + field + ")"
	}
	return field
}

// String returns the vector as RQL has it: numbers in brackets, or the base64 of many.
func (v Vector) String() string {
	if v.target == nil {
		return "[]"
	}
	if v.form.IsPacked() {
		return "'" + base64.StdEncoding.EncodeToString(v.packed) + "'"
	}
	return VectorText(v.target.Vector)
}

// GoString is the vector as fmt prints it with %#v: by its text, as a hash that is kept with the
// result of a call is made of it.
//
// Part of the on-disk format. Must not change.
func (v Vector) GoString() string { return "query.Vector(" + v.source(v.String()) + ")" }

// maxShown is how many numbers of a vector are written in brackets.
const maxShown = 16

// VectorText returns the RQL of a vector. The parser of the text refuses an invalid vector.
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
	if v.target.Metric != vector.Cosine && v.target.Metric != vector.Hamming || v.candidates > 0 {
		text += ", " + quote(v.target.Metric.String())
	}
	if v.candidates > 0 {
		text += ", " + strconv.Itoa(v.candidates)
	}
	return text
}

// textIn returns a vector as RQL has it beside a field with vectors in a form.
func textIn(form vector.Form, v []float32) string {
	if !form.IsPacked() {
		return VectorText(v)
	}
	if vector.Check(v) != nil {
		return fmt.Sprint(v) // who parses it says what is wrong
	}
	return "'" + base64.StdEncoding.EncodeToString(form.Pack(v)) + "'"
}

// PackVector returns a vector in one of RavenDB's forms of bytes: "i8" or "i1". It returns nil for
// another form, and for numbers that are not a vector.
func PackVector(form string, v []float32) []byte {
	f := sources[form]
	if !f.IsPacked() || vector.Check(v) != nil {
		return nil
	}
	return f.Pack(v)
}

// SimilarText returns the RQL of a [Similar] of a field in a form of RavenDB's, such as
// embedding.i8(Embedding), to a vector of numbers.
func SimilarText(field string, v []float32, minimum float64) string {
	return "vector.search(" + field + ", " + textIn(formOf(field), v) + ", " + numberText(minimum) + ")"
}

// VectorDistanceText returns the RQL of the distance from the vector of a document to v: an order,
// a column, or an operand of a condition. The parser of the text refuses an invalid vector. The
// metric "" means cosine.
func VectorDistanceText(field string, v []float32, metric string) string {
	text := "vector.distance(" + field + ", " + textIn(formOf(field), v)
	if metric != "" {
		text += ", " + quote(metric)
	}
	return text + ")"
}
