package query

import (
	"fmt"

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
	ofPath    []int      // the column that a path of the extractor is
	values    [][][]byte // parallel to columns
	through   []bool     // parallel to columns: an array was gone through
	collect   func(path int, raw []byte, through bool)
	text      []byte
}

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
	c.values, c.through = make([][][]byte, len(p.columns)), make([]bool, len(p.columns))
	c.collect = func(path int, raw []byte, through bool) {
		column := c.ofPath[path]
		c.values[column] = append(c.values[column], raw)
		c.through[column] = through
	}
	return c
}

// Append appends the columns of doc to dst, as one JSON object. It allocates
// nothing once its memory has grown to what documents need.
func (p *Projector) Append(dst []byte, doc Doc) []byte {
	for i := range p.values {
		p.values[i] = p.values[i][:0]
	}
	if len(p.ofPath) > 0 {
		p.extractor.Extract(doc.Body, p.collect)
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
			dst = appendReached(dst, p.values[i], p.through[i])
		}
	}
	return append(dst, '}')
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

// appendReached appends what a path leads to. It is one value, or as many as
// there are if all elements of an array were gone through.
func appendReached(dst []byte, values [][]byte, through bool) []byte {
	switch {
	case len(values) == 0:
		return append(dst, "null"...)
	case !through:
		return append(dst, values[0]...)
	}
	dst = append(dst, '[')
	for i, raw := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, raw...)
	}
	return append(dst, ']')
}
