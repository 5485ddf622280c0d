package query

import (
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Projector makes the JSON object of the selected columns of a document. Make one
// with NewProjector.
//
// A column is the value at its path; an array at the end of the path stays an
// array. A path through an array gives an array of the values that it reaches,
// however few, and a path that leads nowhere gives null, as in RavenDB. A column
// of the zero Field is the whole document.
//
// A Projector is not safe for concurrent use; Clone makes another one cheaply.
type Projector struct {
	columns      []Column
	heads        [][]byte  // `"Name":`, parallel to columns
	body, custom source    // the columns in the body, and those in the custom metadata
	element      source    // those in the element of a fan-out
	reached      []reaches // parallel to columns
	computed     *Reader   // of the columns that are expressions; nil for none
	slots        []int     // parallel to columns: that of an expression in computed
	text         []byte    // scratch
	left         int       // bytes that the row may still grow; below 0, it is too large

	pace  *Pace
	spend func(work int) bool // pace.Spend, bound once; nil for no pace
}

// reaches is what a column's path reaches in one document.
type reaches struct {
	raw     []byte // the value, unless through
	through bool   // the path goes through an array: the values are in array
	array   []byte // a JSON array without its closing bracket
}

// NewProjector returns a Projector of the columns. It returns ErrColumn for a
// column with a function, without a name, or with the name of another column.
func NewProjector(columns []Column) (*Projector, error) {
	if err := checkNames(columns); err != nil {
		return nil, err
	}
	p := &Projector{columns: columns}
	fields := make([]Field, len(columns))
	var expressions []Field
	for i, c := range columns {
		if p.slots = append(p.slots, len(expressions)); c.Field.Expression != nil {
			expressions = append(expressions, c.Field)
		}
		if c.Func != FuncNone {
			return nil, fmt.Errorf("%w: %q is a function of groups", ErrColumn, c.Name)
		}
		p.heads = append(p.heads, append(jsonpath.AppendQuoted(nil, c.Name), ':'))
		fields[i] = c.Field
	}
	p.body, p.custom, p.element = newSource(fields, MetaNone), newSource(fields, MetaCustom), newSource(fields, MetaElement)
	if len(expressions) > 0 {
		p.computed = NewReader(expressions)
	}
	return p.Clone(), nil
}

// Clone returns a Projector of the same columns, for another goroutine.
func (p *Projector) Clone() *Projector {
	c := &Projector{columns: p.columns, heads: p.heads, slots: p.slots, reached: make([]reaches, len(p.columns))}
	if p.computed != nil {
		c.computed = p.computed.Clone()
	}
	c.body.extractor, c.body.fields = p.body.extractor, p.body.fields
	c.custom.extractor, c.custom.fields = p.custom.extractor, p.custom.fields
	c.element.extractor, c.element.fields = p.element.extractor, p.element.fields
	c.body.collect = func(path int, raw []byte, through bool) { c.add(c.body.fields[path], raw, through) }
	c.custom.collect = func(path int, raw []byte, through bool) { c.add(c.custom.fields[path], raw, through) }
	c.element.collect = func(path int, raw []byte, through bool) { c.add(c.element.fields[path], raw, through) }
	return c
}

// SetPace makes Append and AppendWithin stop when pace stops. Their results then
// have no meaning: see Pace.Err.
func (p *Projector) SetPace(pace *Pace) {
	if p.pace, p.spend = pace, nil; pace != nil {
		p.spend = pace.Spend
	}
	if p.computed != nil {
		p.computed.SetPace(pace)
	}
}

// Append appends the columns of doc to dst as a JSON object. It allocates nothing
// once its buffers have grown to the size that documents need.
func (p *Projector) Append(dst []byte, doc Doc) []byte {
	dst, _ = p.AppendWithin(dst, doc, math.MaxInt) // never exceeded
	return dst
}

// AppendWithin is Append, but returns a *LimitError if the values of the row have
// more than maxBytes together: many columns may show the same large value. It
// uses about maxBytes of memory at most.
func (p *Projector) AppendWithin(dst []byte, doc Doc, maxBytes int) ([]byte, error) {
	p.left = maxBytes
	for i := range p.reached {
		r := &p.reached[i]
		if r.raw, r.through, r.array = nil, false, r.array[:0]; cap(r.array) > maxIdleColumn {
			r.array = nil
		}
	}
	if p.body.extractor != nil {
		p.body.extractor.ExtractPaced(doc.Body, p.body.collect, p.spend)
	}
	if p.element.extractor != nil && doc.Element != nil {
		p.element.extractor.ExtractPaced(doc.Element, p.element.collect, p.spend)
	}
	if p.custom.extractor != nil && doc.Meta != nil {
		if p.custom.json = doc.Meta.AppendMeta(p.custom.json[:0], MetaCustom); len(p.custom.json) > 0 {
			p.custom.extractor.ExtractPaced(p.custom.json, p.custom.collect, p.spend)
		}
	}
	if p.computed != nil {
		p.computed.Reset(doc)
		for i, c := range p.columns {
			if c.Field.Expression != nil && p.left >= 0 {
				for _, v := range p.computed.Values(p.slots[i]) {
					p.left -= len(v.raw)
				}
			}
		}
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
		switch {
		case c.Field.Expression != nil:
			dst = p.appendComputed(dst, p.slots[i])
		case c.Field.Date != DateNone:
			dst = p.appendDate(dst, doc, i)
		case c.Field.Meta == MetaNone || c.Field.Meta == MetaCustom || c.Field.Meta == MetaElement:
			dst = p.reached[i].append(dst)
		default:
			dst = p.appendMeta(dst, doc, c.Field.Meta)
		}
	}
	return append(dst, '}'), nil
}

// add receives a value from the extractor, unless the row is too large.
func (p *Projector) add(column int, raw []byte, through bool) {
	if p.left < 0 {
		return
	}
	if p.left -= len(raw) + 1; p.left < 0 || !p.pace.Spend(len(raw)) {
		return
	}
	r := &p.reached[column]
	if !through {
		r.raw = raw
		return
	}
	separator := byte(',')
	if !r.through { // the first value begins the array
		r.through, separator = true, '['
	}
	r.array = append(append(r.array, separator), raw...)
}

// appendComputed appends an expression: null, if it has no value.
func (p *Projector) appendComputed(dst []byte, slot int) []byte {
	for _, v := range p.computed.Values(slot) {
		return v.AppendJSON(dst)
	}
	return append(dst, "null"...)
}

// appendDate appends a column that is read as a date: what is no date is null in it.
func (p *Projector) appendDate(dst []byte, doc Doc, column int) []byte {
	f := p.columns[column].Field
	var raw []byte
	if f.Meta != MetaNone && f.Meta != MetaElement {
		raw = p.appendMeta(nil, doc, f.Meta)
	} else {
		raw = p.reached[column].append(nil)
	}
	one := func(dst, raw []byte) []byte {
		v, _, _ := f.dated(nil, ValueOf(raw))
		if v.IsMissing() {
			return append(dst, "null"...)
		}
		return v.AppendJSON(dst)
	}
	if raw[0] != '[' {
		return one(dst, raw)
	}
	dst = append(dst, '[')
	for i, element := range jsonpath.Elements(raw) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst = one(dst, element); !p.pace.Spend(len(element)) {
			break
		}
	}
	return append(dst, ']')
}

// appendMeta appends a part of the metadata as a JSON string or number, or null.
func (p *Projector) appendMeta(dst []byte, doc Doc, part Meta) []byte {
	p.text = p.text[:0]
	if doc.Meta != nil {
		p.text = doc.Meta.AppendMeta(p.text, part)
	}
	if len(p.text) == 0 {
		return append(dst, "null"...)
	}
	if part == MetaEtag || part == MetaScore {
		return append(dst, p.text...)
	}
	return plainText(p.text).AppendJSON(dst)
}

// append appends the column: one value, an array of values, or null.
func (r *reaches) append(dst []byte) []byte {
	switch {
	case r.through:
		return append(append(dst, r.array...), ']')
	case len(r.raw) > 0:
		return append(dst, r.raw...)
	}
	return append(dst, "null"...)
}
