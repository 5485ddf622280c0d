package query

import (
	"math"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/vector"
)

// Similar is true if the field reaches a vector whose similarity to Vector is at least Minimum. The
// similarity is 1 minus the distance of the two: for the metric cosine it is the cosine of the
// angle between them, and for vectors of bits the share of equal bits. A value that is not a
// vector, a vector with another number of dimensions, and a vector of zeros are ignored.
type Similar struct {
	Field   Field
	Vector  Vector
	Minimum float64 // 1 is the same direction, -1 the opposite one
}

// UsualSimilarity is the Minimum of a vector.search() without one.
const UsualSimilarity = 0.75

func (Similar) expr() {}

// on returns the field as it ends at an array, whose elements are no values of their own.
func (e Similar) on() (Field, bool) {
	return e.Field.Whole(), true
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
	b.WriteString("vector.search(" + e.Vector.source(e.Field.String()) + ", " + e.Vector.String() + ", " + numberText(e.Minimum) + ")")
}

func (Similar) looksAtValues() bool { return true }

func (e Similar) refold(func(Field, bool) bool) Expr { return e }

func (e Similar) complete(_ *compiler, to condition, _ bool) (condition, error) {
	if e.Vector.target == nil || math.IsNaN(e.Minimum) {
		return to, errNoVector
	}
	to.op, to.similar = opSimilar, &e
	return to, nil
}

// isSimilar reports whether a value satisfies an opSimilar.
func (m *Matcher) isSimilar(c *condition, v Value) bool {
	e := c.similar
	d, is := nearest(&e.Vector, v, &m.vector, m.pace)
	return is && 1-d >= e.Minimum
}

// nearest returns how far the nearest vector of a value is. It reads vectors into scratch.
func nearest(to *Vector, v Value, scratch *[]float32, pace *Pace) (distance float64, is bool) {
	distance = math.Inf(1)
	raw := v.raw
	if v.plain {
		raw = jsonpath.AppendQuoted(nil, string(raw))
	}
	vector.Each(raw, func(raw []byte) bool {
		var err error
		if *scratch, err = to.form.Read((*scratch)[:0], raw); err == nil {
			if d, comparable := to.target.Distance(*scratch); comparable {
				distance, is = min(distance, d), true
			}
		}
		return pace.Spend(1 + len(raw))
	})
	return distance, is
}

// vectorFunction is how far the vectors of a document are from one: vector.distance(Embedding, $v, 'euclidean').
var vectorFunction = &function{name: "vector.distance", least: 1, most: 1, choose: vectorDistance, last: ValueOf([]byte("1e100"))} // no distance of float32 is so great

// exactVectorFunction is the same where no neighbour may be missed:
// exact(vector.distance(Embedding, $v)). An order by it is not answered by what is likely to be
// near.
var exactVectorFunction = &function{name: "vector.distance", least: 1, most: 1, choose: vectorDistance, last: vectorFunction.last, exact: true}

// VectorDistance is the distance from the vectors of a document to Vector. If there are several
// vectors, the nearest counts. A document without a vector has no distance, and is further away
// than all others in an order.
type VectorDistance struct {
	Field  Field
	Vector Vector
	Exact  bool // exact(vector.distance(...)): an order by it misses no neighbour

	// Candidates is the least number of vectors that an index examines. 0 leaves the number to the
	// index. A larger number misses fewer neighbours.
	Candidates int
}

// VectorDistance returns the VectorDistance of f. is reports whether f is a distance of vectors.
func (f Field) VectorDistance() (d VectorDistance, is bool) {
	if f.Expression == nil || f.Func != FuncNone || f.Expression.root.function != vectorFunction && f.Expression.root.function != exactVectorFunction {
		return d, false
	}
	root := f.Expression.root
	v := root.rest.(Vector)
	return VectorDistance{f.Expression.fields[root.operands[0].field], v, root.function.exact, v.candidates}, true
}

// vectorDistance computes vector.distance.
func vectorDistance(c *computation, o *operation) (Value, error) {
	to, least, found := o.rest.(Vector), math.Inf(1), false
	c.reader.Each(c.slots[o.operands[0].field], func(v Value) bool {
		d, is := nearest(&to, v, &c.vector, c.reader.pace)
		least, found = min(least, d), found || is
		return true
	})
	if !found {
		return Value{}, nil
	}
	return c.float(least), nil
}
