package vector

import (
	"fmt"
	"math"
	"strings"
)

// Metric is how far two vectors are from one another. Less is nearer.
type Metric uint8

const (
	Cosine    Metric = iota // 1 - the cosine of the angle between them: 0 for the same direction, 2 for the opposite one
	Dot                     // the product, with its sign changed
	Euclidean               // the length of their difference
	Hamming                 // the share of their bits that differ, of whole bytes: of vectors in a Form of bits only
)

var metricNames = [...]string{Cosine: "cosine", Dot: "dot", Euclidean: "euclidean", Hamming: "hamming"}

// Metrics returns the names of the metrics that vectors of numbers have.
func Metrics() []string { return metricNames[:Hamming] }

// String returns the name, such as "cosine".
func (m Metric) String() string { return metricNames[m] }

// ParseMetric returns the metric of a name, whose case does not matter; false if there is none.
func ParseMetric(name string) (Metric, bool) {
	for m, n := range Metrics() {
		if strings.EqualFold(n, name) {
			return Metric(m), true
		}
	}
	return 0, false
}

// Target is a vector from which distances are measured. It is immutable.
type Target struct {
	Metric Metric
	Vector []float32

	length float64
}

// NewTarget returns the target of a vector, which it keeps. Errors are *Error: for what Check refuses, and for a vector of zeros, which has
// no direction, if the metric is Cosine.
func NewTarget(m Metric, v []float32) (*Target, error) {
	if err := Check(v); err != nil {
		return nil, err
	}
	t := &Target{Metric: m, Vector: v, length: math.Sqrt(product(v, v))}
	if m == Cosine && t.length == 0 {
		return nil, &Error{"a vector has a direction, if its cosine is asked for", fmt.Sprintf("all of its %d numbers are 0", len(v))}
	}
	return t, nil
}

// Distance returns how far a vector is. A vector of another number of dimensions has no distance, and one of zeros has none if the metric
// is Cosine.
func (t *Target) Distance(v []float32) (distance float64, is bool) {
	if len(v) != len(t.Vector) {
		return 0, false
	}
	switch t.Metric {
	case Dot:
		return 0 - product(t.Vector, v), true // 0 in place of -0
	case Euclidean:
		return math.Sqrt(squares(t.Vector, v)), true
	case Hamming:
		return float64(signs(t.Vector, v)) / float64((len(v)+7)&^7), true
	}
	dot, square := products(t.Vector, v)
	if square == 0 {
		return 0, false
	}
	return 1 - max(-1, min(1, dot/(t.length*math.Sqrt(square)))), true
}

// product returns the sum of the products of the numbers of two vectors of one size.
func product(a, b []float32) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	for ; len(a) >= 4; a, b = a[4:], b[4:] {
		s0 += float64(a[0]) * float64(b[0])
		s1 += float64(a[1]) * float64(b[1])
		s2 += float64(a[2]) * float64(b[2])
		s3 += float64(a[3]) * float64(b[3])
	}
	for i := range a {
		s0 += float64(a[i]) * float64(b[i])
	}
	return s0 + s1 + (s2 + s3)
}

// products returns the product of two vectors, and that of the second one with itself.
func products(a, b []float32) (dot, square float64) {
	b = b[:len(a)]
	var s0, s1, q0, q1 float64
	for ; len(a) >= 2; a, b = a[2:], b[2:] {
		x, y := float64(b[0]), float64(b[1])
		s0 += float64(a[0]) * x
		s1 += float64(a[1]) * y
		q0 += x * x
		q1 += y * y
	}
	for i := range a {
		x := float64(b[i])
		s0 += float64(a[i]) * x
		q0 += x * x
	}
	return s0 + s1, q0 + q1
}

// squares returns the square of the length of the difference of two vectors of one size. The differences are rounded before they are squared: a
// processor that multiplies and adds in one step would not round their squares.
func squares(a, b []float32) float64 {
	b = b[:len(a)]
	var s0, s1 float64
	for ; len(a) >= 2; a, b = a[2:], b[2:] {
		d0, d1 := float64(a[0])-float64(b[0]), float64(a[1])-float64(b[1])
		s0 += float64(d0 * d0)
		s1 += float64(d1 * d1)
	}
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		s0 += float64(d * d)
	}
	return s0 + s1
}

// signs returns how many numbers of two vectors of one size have another sign. 0 has that of a positive number.
func signs(a, b []float32) (n int) {
	b = b[:len(a)]
	for i, f := range a {
		if (f >= 0) != (b[i] >= 0) {
			n++
		}
	}
	return n
}
