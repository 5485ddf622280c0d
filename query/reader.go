package query

import (
	"slices"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Doc is a document for queries. It does not own the memory of its fields.
type Doc struct {
	Body []byte   // a JSON object, valid and compact
	Meta Metadata // nil for a document without metadata

	Element []byte // of a fan-out: an object whose only member is the element; nil for none
	version uint64 // of the document, the same for all of its elements; 0 for none: see Elements
}

// Metadata supplies the metadata of a document on demand. An implementation that reuses a pointer
// for many documents costs no allocation.
type Metadata interface {
	// AppendMeta appends a part of the metadata to dst: MetaEtag in digits, MetaScore as a number, MetaCustom as
	// a JSON object, valid and compact, and every other as text without quotes. It
	// appends nothing if the document lacks that part.
	AppendMeta(dst []byte, part Meta) []byte
}

// Reader finds the values that fields reach in one document after another, in one
// pass over each body. Conditions, orders, groups and index entries all use it,
// so that a field means the same to all of them.
//
// A Reader is not safe for concurrent use; Clone makes another one cheaply.
type Reader struct {
	body, custom source // the fields in the body, and those in the custom metadata
	element      source // those in the element of a fan-out
	fields       []reached
	limit        int // greatest number of values kept for a field; 0 for all

	dates []byte // spellings of instants that are not those of the body, and texts that expressions compute

	doc       Doc
	spent     int  // bytes that expressions have computed of the document: see maxComputed
	apart     bool // each expression has that bound for itself
	inherited int  // what spent begins with

	most  int // number of values to hold, at the most
	held  int // number of values held, of all fields
	pace  *Pace
	spend func(work int) bool // pace.Spend, bound once; nil for no pace
}

// source is a JSON object of a document, and the fields that have paths into it.
type source struct {
	extractor *jsonpath.Extractor // nil if no field has
	fields    []int               // for each path of the extractor, the index of its field
	collect   func(path int, raw []byte, through bool)
	read      bool   // the object has been read
	json      []byte // the object, once it has been read
}

// newSource returns the source of some of the fields.
func newSource(fields []Field, meta Meta) source {
	var s source
	var paths []jsonpath.Path
	for i, f := range fields {
		if f.Meta == meta {
			paths, s.fields = append(paths, f.Path), append(s.fields, i)
		}
	}
	if len(paths) > 0 {
		s.extractor = jsonpath.NewExtractor(paths)
	}
	return s
}

// reached is what one field reaches in the document.
type reached struct {
	field  Field
	values []Value
	count  int    // of values, including those that the limit leaves out
	many   bool   // too many values to hold: Each finds them by another walk
	found  bool   // the path leads to a value
	array  bool   // the path goes through an array or ends at one
	other  bool   // the values are not those at the path, as the document has them: the field is read as a date
	read   bool   // the metadata has been read, if the field is metadata; or the expression has been computed
	text   []byte // the metadata

	computed *computation // if the field is an expression
	failed   error        // why it has no value, though what it needs is there
}

// maxHeldValues is the number of values of one document that a Reader holds, in
// 16 MiB. In a document of 32 MiB each field may reach 16 million values.
const maxHeldValues = 1 << 19

// maxHeldOfElement is the same for the elements of an ElemMatch, of which there may be
// MaxElemMatches, one in the other.
const maxHeldOfElement = 1 << 14

// maxIdleColumn is the size in bytes up to which a Projector keeps the memory of
// a column for the next document.
const maxIdleColumn = 64 << 10

// maxIdleValues is the number of values of a field up to which a Reader keeps its
// memory for the next document.
const maxIdleValues = 4096

// maxIdleDates is the same for the spellings of instants, in bytes.
const maxIdleDates = 32 * maxIdleValues

// NewReader returns a Reader of the fields, which the methods refer to by index.
// A field may occur twice.
func NewReader(fields []Field) *Reader {
	fields = slices.Clip(fields)
	computed := make(map[int]*computation)
	for i, f := range fields {
		if f.Expression != nil { // its fields follow those that the methods refer to
			computed[i] = newComputation(f.Expression, len(fields))
			fields = append(fields, f.Expression.fields...)
		}
	}
	r := &Reader{fields: make([]reached, len(fields)), most: maxHeldValues, body: newSource(fields, MetaNone), custom: newSource(fields, MetaCustom), element: newSource(fields, MetaElement)}
	for i, f := range fields {
		r.fields[i].field, r.fields[i].computed = f, computed[i]
	}
	r.bind()
	return r
}

// bind makes the functions that receive what the extractors find.
func (r *Reader) bind() {
	r.body.collect = func(path int, raw []byte, through bool) { r.add(r.body.fields[path], raw, through) }
	r.custom.collect = func(path int, raw []byte, through bool) { r.add(r.custom.fields[path], raw, through) }
	r.element.collect = func(path int, raw []byte, through bool) { r.add(r.element.fields[path], raw, through) }
}

// sourceOf returns where a field with a path is found.
func (r *Reader) sourceOf(f Field) *source {
	switch f.Meta {
	case MetaCustom:
		return &r.custom
	case MetaElement:
		return &r.element
	}
	return &r.body
}

// Clone returns another Reader of the same fields.
func (r *Reader) Clone() *Reader {
	c := &Reader{fields: make([]reached, len(r.fields)), limit: r.limit, most: r.most, apart: r.apart}
	c.body.extractor, c.body.fields = r.body.extractor, r.body.fields
	c.custom.extractor, c.custom.fields = r.custom.extractor, r.custom.fields
	c.element.extractor, c.element.fields = r.element.extractor, r.element.fields
	for i := range c.fields {
		c.fields[i].field = r.fields[i].field
		if computed := r.fields[i].computed; computed != nil {
			c.fields[i].computed = computed.clone()
		}
	}
	c.bind()
	return c
}

// Reset makes doc the document to read. It is cheap: the body is read at the first
// call that needs a field in it. Values of the last document become invalid.
func (r *Reader) Reset(doc Doc) {
	spent := r.inherited
	if doc.version != 0 && doc.version == r.doc.version {
		if len(r.dates) <= maxIdleDates {
			r.next(doc)
			return
		}
		spent = r.spent
	}
	r.doc, r.held, r.spent = doc, 0, spent
	r.body.read, r.body.json, r.custom.read = false, doc.Body, false
	r.element.read, r.element.json = false, doc.Element
	if r.dates = r.dates[:0]; cap(r.dates) > maxIdleDates {
		r.dates = nil
	}
	for i := range r.fields {
		r.fields[i].reset()
	}
}

// next is Reset to another element of the same document: what has been read of the document stays.
func (r *Reader) next(doc Doc) {
	r.doc = doc
	r.element.read, r.element.json = false, doc.Element
	for i := range r.fields {
		f := &r.fields[i]
		switch {
		case f.field.Meta == MetaElement:
			r.held -= len(f.values)
		case f.computed == nil:
			continue
		}
		f.reset()
	}
}

// reset makes f reach nothing.
func (f *reached) reset() {
	if cap(f.values) > maxIdleValues {
		f.values = nil
	}
	clear(f.values) // they would keep the last document in memory
	f.values, f.count, f.many, f.found, f.array, f.other, f.read, f.failed = f.values[:0], 0, false, false, false, false, false, nil
}

// SetPace makes the methods that read the body stop when p stops. Their results
// then have no meaning: see Pace.Err.
func (r *Reader) SetPace(p *Pace) {
	if r.pace, r.spend = p, nil; p != nil {
		r.spend = p.Spend
	}
}

// Limit bounds the memory for documents with huge arrays: if a field reaches more
// than n values, Values returns the first n, and Reached the number of all. The
// default, 0, is no limit. A new limit takes effect at the next Reset.
func (r *Reader) Limit(n int) { r.limit = n }

// Apart gives each expression a bound of its own on what it computes for a document. Without Apart,
// all expressions share the bound, so that the value of one depends on which others are read. That
// must not happen in an index.
func (r *Reader) Apart() { r.apart = true }

// Failed returns why the expression of a field fails for the document, and so has no value: an
// operand of a wrong kind, a field that reaches several values, a division by zero, a result beyond
// the bounds. See Reason and ComputesTooMuch. Failed returns nil for an expression that has a
// value, for an expression without a value because an operand is missing, and for a field that is
// not an expression.
func (r *Reader) Failed(field int) error {
	if r.fields[field].computed == nil {
		return nil
	}
	return r.reach(field).failed
}

// Reached returns how many values a field reaches.
func (r *Reader) Reached(field int) int { return r.reach(field).count }

// Values returns the values that a field reaches, in document order; none if the
// field is missing. They are valid until the next Reset and as long as the
// document is. All of them are in memory at once, which may take 16 times the
// size of the document: where there may be many, prefer Each.
func (r *Reader) Values(field int) []Value {
	if f := r.reach(field); !f.many {
		return f.values
	}
	var all []Value
	r.Each(field, func(v Value) bool {
		all = append(all, v)
		return true
	})
	return all
}

// Many reports whether a field reaches too many values to be held in memory. Then Values collects
// them again at each call.
func (r *Reader) Many(field int) bool { return r.reach(field).many }

// Each calls fn with the values that a field reaches, in document order, until fn
// returns false. It needs no memory for them: if there are too many to be held,
// it walks over the body again.
func (r *Reader) Each(field int, fn func(Value) bool) {
	f := r.reach(field)
	if !f.many {
		for _, v := range f.values {
			if !fn(v) {
				return
			}
		}
		return
	}
	object := r.sourceOf(f.field).json
	each := func(raw []byte) bool {
		v := ValueOf(raw)
		if f.field.Date != DateNone {
			v, _, _ = f.field.dated(nil, v) // in memory of its own, as fn may keep it
			if v.IsMissing() {
				return r.pace.Spend(len(raw))
			}
		}
		return r.pace.Spend(len(raw)) && fn(v)
	}
	jsonpath.EachLoose(object, f.field.Path, func(raw []byte) bool {
		if len(raw) == 0 || raw[0] != '[' || f.field.ends {
			return each(raw)
		}
		for _, element := range jsonpath.Elements(raw) {
			if !each(element) {
				return false
			}
		}
		return true
	})
}

// Found reports whether a field's path leads to a value, null and the empty array included. The
// path of a field that is read as a date must lead to an instant or null.
func (r *Reader) Found(field int) bool { return r.reach(field).found }

// Single reports whether a field's path neither goes through an array nor ends at one, not even an
// empty one, and the field reaches the stored value as it is: for a field that is read as a date,
// an instant in its canonical spelling, null or nothing. Then the field reaches at most one value.
func (r *Reader) Single(field int) bool {
	f := r.reach(field)
	return !f.array && !f.other
}

// reach returns what a field reaches. It reads metadata, or the body with all its
// fields, at the first call for the document.
func (r *Reader) reach(field int) *reached {
	f := &r.fields[field]
	switch {
	case f.field.Meta == MetaNone:
		if !r.body.read {
			r.body.read = true
			r.body.extractor.ExtractPaced(r.doc.Body, r.body.collect, r.spend)
		}
	case f.field.Meta == MetaCustom:
		if !r.custom.read {
			r.readCustom()
		}
	case f.field.Meta == MetaElement:
		if !r.element.read && r.doc.Element != nil {
			r.element.read = true
			r.element.extractor.ExtractPaced(r.doc.Element, r.element.collect, r.spend)
		}
	case f.read:
	case f.computed != nil:
		r.compute(f)
	default:
		r.readMeta(f)
	}
	return f
}

// compute computes an expression. A document for which it cannot be computed has no value.
func (r *Reader) compute(f *reached) {
	f.read, f.other = true, true
	start := len(r.dates)
	if r.apart {
		r.spent = 0
	}
	v, err := f.computed.compute(r)
	if r.apart && len(r.dates)-start > maxIdleDates { // the memory of one expression, not of all
		v, r.dates = v.Clone(), r.dates[:start:start]
	}
	if f.failed = err; err == nil && !v.IsMissing() {
		f.found, f.values, f.count = true, append(f.values, v), 1
	}
}

// readMeta reads the metadata of a field. Empty metadata counts as missing.
func (r *Reader) readMeta(f *reached) {
	f.read = true
	if r.doc.Meta == nil {
		return
	}
	f.text = r.doc.Meta.AppendMeta(f.text[:0], f.field.Meta)
	if len(f.text) == 0 {
		return
	}
	v := plainText(f.text)
	if f.field.Meta == MetaEtag || f.field.Meta == MetaScore {
		v = ValueOf(f.text)
	}
	if f.field.Date != DateNone {
		if v, f.other, r.dates = f.field.dated(r.dates, v); v.IsMissing() {
			return
		}
	}
	f.found, f.values, f.count = true, append(f.values, v), 1
}

// readCustom reads the fields in the custom metadata.
func (r *Reader) readCustom() {
	r.custom.read, r.custom.json = true, r.custom.json[:0]
	if r.doc.Meta == nil {
		return
	}
	if r.custom.json = r.doc.Meta.AppendMeta(r.custom.json, MetaCustom); len(r.custom.json) > 0 {
		r.custom.extractor.ExtractPaced(r.custom.json, r.custom.collect, r.spend)
	}
}

// add receives a value from the extractor. An array stands for its elements.
func (r *Reader) add(field int, raw []byte, through bool) {
	f := &r.fields[field]
	f.found = f.found || f.field.Date == DateNone
	if len(raw) == 0 || raw[0] != '[' || f.field.ends {
		r.hold(f, raw)
		f.array = f.array || through
		return
	}
	f.array = true
	for _, element := range jsonpath.Elements(raw) {
		if !r.hold(f, element) || !r.pace.Spend(len(element)) {
			return
		}
	}
}

// hold keeps a value of f, unless there are too many. It returns false if no more
// values of f need to be counted.
func (r *Reader) hold(f *reached, raw []byte) bool {
	v := ValueOf(raw)
	if f.field.Date != DateNone && !f.many {
		var altered bool
		v, altered, r.dates = f.field.dated(r.dates, v)
		if f.other = f.other || altered; v.IsMissing() {
			return true
		}
		f.found = true
	}
	f.count++
	if r.limit > 0 {
		if f.count <= r.limit {
			f.values = append(f.values, v)
		}
		return true
	}
	if f.many || r.held >= r.most {
		// Drop the values of this field, and keep those of the others.
		r.held -= len(f.values)
		f.values, f.many = nil, true
		return false
	}
	r.held++
	f.values = append(f.values, v)
	return true
}
