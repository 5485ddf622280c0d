package query

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
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
type Vector struct{ target *vector.Target }

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
	return Vector{t}, vectorError(err)
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

// Similar is true if a vector that the field reaches is at least so similar to a vector: 1 less their distance, which is the cosine of the angle
// between them for the metric cosine. What is no vector, has another number of dimensions, or only zeros, is passed over.
type Similar struct {
	Field   Field
	Vector  Vector
	Minimum float64 // 1 is the same direction, -1 the opposite one
}

// UsualSimilarity is the Minimum of RavenDB's vector.search().
const UsualSimilarity = 0.75

func (Similar) expr() {}

// on returns the field as it ends at an array, whose elements are no values of their own.
func (e Similar) on() (Field, bool) {
	e.Field.ends = true
	return e.Field, true
}

func (e Similar) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e Similar) measure(s Size) Size {
	s.Similars++
	if e.Vector.target != nil {
		s.Bytes += 4 * len(e.Vector.target.Vector)
	}
	return s
}

func (e Similar) write(b *strings.Builder) {
	b.WriteString("vector.search(" + e.Field.String() + ", " + e.Vector.String() + ", " + numberText(e.Minimum) + ")")
}

func (Similar) looksAtValues() bool { return true }

func (e Similar) complete(_ *compiler, to condition, _ bool) (condition, error) {
	if e.Vector.target == nil || math.IsNaN(e.Minimum) {
		return to, errNoVector
	}
	to.op, to.near = opSimilar, &e
	return to, nil
}

// isNear reports whether a value satisfies an opSimilar.
func (m *Matcher) isNear(c *condition, v Value) bool {
	e := c.near
	d, is := nearest(e.Vector.target, v, &m.vector, m.pace)
	return is && 1-d >= e.Minimum
}

// nearest returns how far the nearest vector of a value is. It reads vectors into scratch.
func nearest(t *vector.Target, v Value, scratch *[]float32, pace *Pace) (distance float64, is bool) {
	distance = math.Inf(1)
	raw := v.raw
	if v.plain {
		raw = jsonpath.AppendQuoted(nil, string(raw))
	}
	vector.Each(raw, func(raw []byte) bool {
		var err error
		if *scratch, err = vector.Read((*scratch)[:0], raw); err == nil {
			if d, comparable := t.Distance(*scratch); comparable {
				distance, is = min(distance, d), true
			}
		}
		return pace.Spend(1 + len(raw))
	})
	return distance, is
}

// vectorFunction is how far the vectors of a document are from one: vector.distance(Embedding, $v, 'euclidean').
var vectorFunction = &function{name: "vector.distance", least: 1, most: 1, choose: vectorDistance}

// VectorDistance is how far the vectors of a document are from one. Of several vectors the nearest counts. A document without one has no distance,
// and is further away than all others in an order.
type VectorDistance struct {
	Field  Field
	Vector Vector
}

// VectorDistance returns the distance that a field is, if it is one.
func (f Field) VectorDistance() (d VectorDistance, is bool) {
	if f.Expression == nil || f.Func != FuncNone || f.Expression.root.function != vectorFunction {
		return d, false
	}
	root := f.Expression.root
	return VectorDistance{f.Expression.fields[root.operands[0].field], root.vector}, true
}

// suffix returns what follows the field in the text of a distance.
func (v Vector) suffix() string {
	text := ", " + v.String()
	if v.target.Metric != vector.Cosine {
		text += ", " + quote(v.target.Metric.String())
	}
	return text + ")"
}

// vectorDistance computes vector.distance.
func vectorDistance(c *computation, o *operation) (Value, error) {
	least, found := math.Inf(1), false
	c.reader.Each(c.slots[o.operands[0].field], func(v Value) bool {
		d, is := nearest(o.vector.target, v, &c.vector, c.reader.pace)
		least, found = min(least, d), found || is
		return true
	})
	if !found {
		return Value{}, nil
	}
	start := len(c.memory)
	c.memory = strconv.AppendFloat(c.memory, least, 'f', -1, 64)
	return ValueOf(c.memory[start:len(c.memory):len(c.memory)]), nil
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
