package query

import (
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Projector makes of a document the JSON object of the columns that were
// selected. Make one with NewProjector.
//
// A column is what its path leads to, an array as it stands. A path that goes
// through an array gives an array of what it leads to, however many that is,
// and one that leads nowhere gives null, as with RavenDB. A column of the zero
// field is the whole document.
//
// A Projector is not safe for concurrent use; Clone gives another one cheaply.
type Projector struct {
	columns   []Column
	heads     [][]byte // `"Name":`, parallel to columns
	extractor *jsonpath.Extractor
	ofPath    []int     // the column that a path of the extractor is
	reached   []reaches // parallel to columns
	collect   func(path int, raw []byte, through bool)
	text      []byte
	left      int // bytes that the columns may still have

	pace  *Pace
	spend func(work int) bool // of pace; nil for none
}

// reaches is what a column's path leads to in one document.
type reaches struct {
	raw     []byte // the value, if through is not set
	through bool   // an array was gone through: all that was reached is in array
	array   []byte // a JSON array without its end
}

// maxIdleColumn is the size of a column for which a Projector keeps memory from
// one document to the next, in bytes.
const maxIdleColumn = 64 << 10

// NewProjector returns a Projector of the columns. It returns ErrColumn for a
// column with a function, without a name, or with the name of another.
func NewProjector(columns []Column) (*Projector, error) {
	if err := checkNames(columns); err != nil {
		return nil, err
	}
	p := &Projector{columns: columns}
	var paths []jsonpath.Path
	for i, c := range columns {
		if c.Func != FuncNone {
			return nil, fmt.Errorf("%w: %q is a function of groups", ErrColumn, c.Name)
		}
		p.heads = append(p.heads, append(jsonpath.AppendQuoted(nil, c.Name), ':'))
		if c.Field.Meta == MetaNone {
			paths, p.ofPath = append(paths, c.Field.Path), append(p.ofPath, i)
		}
	}
	p.extractor = jsonpath.NewExtractor(paths)
	return p.Clone(), nil
}

// Clone returns a Projector of the same columns, for another goroutine.
func (p *Projector) Clone() *Projector {
	c := &Projector{columns: p.columns, heads: p.heads, extractor: p.extractor, ofPath: p.ofPath}
	c.reached = make([]reaches, len(p.columns))
	c.collect = c.add
	return c
}

// SetPace makes Append end with a Pace. What it returns then has no meaning: see
// Pace.Err.
func (p *Projector) SetPace(pace *Pace) {
	if p.pace, p.spend = pace, nil; pace != nil {
		p.spend = pace.Spend
	}
}

// Append appends the columns of doc to dst, as one JSON object. It allocates
// nothing once its memory has grown to what documents need.
func (p *Projector) Append(dst []byte, doc Doc) []byte {
	dst, _ = p.AppendWithin(dst, doc, math.MaxInt) // no row is beyond that
	return dst
}

// AppendWithin is Append, but returns a *LimitError for values that have more
// than maxBytes together, as many columns may show one large value. No more than
// about that is in memory then.
func (p *Projector) AppendWithin(dst []byte, doc Doc, maxBytes int) ([]byte, error) {
	p.left = maxBytes
	for i := range p.reached {
		r := &p.reached[i]
		if r.raw, r.through, r.array = nil, false, r.array[:0]; cap(r.array) > maxIdleColumn {
			r.array = nil
		}
	}
	if len(p.ofPath) > 0 {
		p.extractor.ExtractPaced(doc.Body, p.collect, p.spend)
	}
	if p.left < 0 {
		return dst, &LimitError{"bytes of one row", maxBytes, maxBytes - p.left}
	}

	dst = append(dst, '{')
	for i, c := range p.columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, p.heads[i]...)
		if c.Field.Meta != MetaNone {
			dst = p.appendMeta(dst, doc, c.Field.Meta)
		} else {
			dst = p.reached[i].append(dst)
		}
	}
	return append(dst, '}'), nil
}

// add takes a value from the extractor, if there is room for it.
func (p *Projector) add(path int, raw []byte, through bool) {
	if p.left < 0 {
		return
	}
	if p.left -= len(raw) + 1; p.left < 0 || !p.pace.Spend(len(raw)) {
		return
	}
	r := &p.reached[p.ofPath[path]]
	if !through {
		r.raw = raw
		return
	}
	separator := byte(',')
	if !r.through {
		r.through, separator = true, '['
	}
	r.array = append(append(r.array, separator), raw...)
}

func (p *Projector) appendMeta(dst []byte, doc Doc, part Meta) []byte {
	p.text = p.text[:0]
	if doc.Meta != nil {
		p.text = doc.Meta.AppendMeta(p.text, part)
	}
	if len(p.text) == 0 {
		return append(dst, "null"...)
	}
	return plainText(p.text).AppendJSON(dst)
}

// append appends what the path leads to. It is one value, or as many as there
// are if all elements of an array were gone through.
func (r *reaches) append(dst []byte) []byte {
	switch {
	case r.through:
		return append(append(dst, r.array...), ']')
	case len(r.raw) > 0:
		return append(dst, r.raw...)
	}
	return append(dst, "null"...)
}
