package query

import "github.com/jaydb/jay/internal/jsonpath"

// Doc is a document as queries see it. It shares the memory that it is made
// of.
type Doc struct {
	Body []byte   // valid compact JSON, an object
	Meta Metadata // may be nil: the document has no metadata then
}

// Metadata gives a document's metadata to those queries that look at it. A
// pointer to something that is used for one document after the other costs no
// allocation.
type Metadata interface {
	// AppendMeta appends a part of the metadata to dst, as text without
	// quotes; nothing if the document lacks it.
	AppendMeta(dst []byte, part Meta) []byte
}

// Reader finds what fields reach in one document after the other, in one pass
// over each body. It is what conditions, orders, groups and the entries of
// indexes have in common, so that all mean the same.
//
// A Reader is not safe for concurrent use; Clone gives another one cheaply.
type Reader struct {
	extractor *jsonpath.Extractor // nil if no field is in the body
	ofPath    []int               // the field that a path of the extractor is
	fields    []reached
	collect   func(path int, raw []byte, through bool)
	limit     int // how many values of a field are kept; 0 for all

	doc   Doc
	read  bool // the body was
	held  int  // values of all fields
	pace  *Pace
	spend func(work int) bool // of pace; nil for none
}

// reached is what one field reaches.
type reached struct {
	field  Field
	values []Value
	count  int    // of the values that are reached, with Limit those that are not held included
	many   bool   // there are too many to hold: Each finds them anew
	found  bool   // the path leads to something
	array  bool   // an array was gone through, or stands at the end of the path
	read   bool   // if the field is metadata: it was
	text   []byte // the metadata
}

// maxHeldValues is the number of values that a Reader holds of one document, in
// 16 MiB. A document of 32 MiB may reach 16 million of them with each field.
const maxHeldValues = 1 << 19

// maxIdleValues is the number of values for which a Reader keeps memory from
// one document to the next.
const maxIdleValues = 4096

// NewReader returns a Reader of the fields, which are known by their index.
// The same field may be there twice.
func NewReader(fields []Field) *Reader {
	r := &Reader{fields: make([]reached, len(fields))}
	var paths []jsonpath.Path
	for i, f := range fields {
		r.fields[i].field = f
		if f.Meta == MetaNone {
			paths, r.ofPath = append(paths, f.Path), append(r.ofPath, i)
		}
	}
	if len(paths) > 0 {
		r.extractor = jsonpath.NewExtractor(paths)
	}
	r.collect = r.add
	return r
}

// Clone returns another Reader of the same fields.
func (r *Reader) Clone() *Reader {
	c := &Reader{extractor: r.extractor, ofPath: r.ofPath, fields: make([]reached, len(r.fields)), limit: r.limit}
	for i := range c.fields {
		c.fields[i].field = r.fields[i].field
	}
	c.collect = c.add
	return c
}

// Reset makes doc the document that is looked at. It costs little: the body is
// read when the first field in it is asked for.
func (r *Reader) Reset(doc Doc) {
	r.doc, r.read, r.held = doc, false, 0
	for i := range r.fields {
		f := &r.fields[i]
		if cap(f.values) > maxIdleValues {
			f.values = nil
		}
		clear(f.values) // they are part of the last document
		f.values, f.count, f.many, f.found, f.array, f.read = f.values[:0], 0, false, false, false, false
	}
}

// SetPace makes the walks over bodies, and Each, end with a Pace: what is found
// then has no meaning.
func (r *Reader) SetPace(p *Pace) {
	if r.pace, r.spend = p, nil; p != nil {
		r.spend = p.Spend
	}
}

// Limit bounds the memory for documents with huge arrays: of a field that
// reaches more than n values, Values returns the first n, and Reached how many
// there are. 0 is no limit, and the default. It holds from the next Reset on.
func (r *Reader) Limit(n int) { r.limit = n }

// Reached returns how many values a field reaches.
func (r *Reader) Reached(field int) int { return r.reach(field).count }

// Values returns the values that a field reaches, in the order of the
// document; none if the field is missing. They are valid until the next Reset
// and as long as the document is. All of them are in memory at once, which may
// be 16 times the document's size: Each is better where there may be many.
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

// Many tells whether a field reaches so many values that they are not held in
// memory. Values makes them anew at each call then.
func (r *Reader) Many(field int) bool { return r.reach(field).many }

// Each calls fn with the values that a field reaches, in the order of the
// document, until fn returns false. It needs no memory, however many they are;
// of more than are held it walks over the body anew.
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
	jsonpath.EachLoose(r.doc.Body, f.field.Path, func(raw []byte) bool {
		if len(raw) == 0 || raw[0] != '[' {
			return r.pace.Spend(len(raw)) && fn(ValueOf(raw))
		}
		for _, element := range jsonpath.Elements(raw) {
			if !r.pace.Spend(len(element)) || !fn(ValueOf(element)) {
				return false
			}
		}
		return true
	})
}

// Found tells whether a field's path leads to something, be it null or an
// empty array.
func (r *Reader) Found(field int) bool { return r.reach(field).found }

// Single tells whether a field reaches one value or none by itself: no array
// was gone through and none stands at the end of its path, not even an empty
// one.
func (r *Reader) Single(field int) bool { return !r.reach(field).array }

func (r *Reader) reach(field int) *reached {
	f := &r.fields[field]
	switch {
	case f.field.Meta != MetaNone:
		if !f.read {
			r.readMeta(f)
		}
	case !r.read:
		r.read = true
		r.extractor.ExtractPaced(r.doc.Body, r.collect, r.spend)
	}
	return f
}

func (r *Reader) readMeta(f *reached) {
	f.read = true
	if r.doc.Meta == nil {
		return
	}
	f.text = r.doc.Meta.AppendMeta(f.text[:0], f.field.Meta)
	if f.found = len(f.text) > 0; f.found {
		f.values, f.count = append(f.values, plainText(f.text)), 1
	}
}

// add takes a value from the extractor. An array stands for its elements.
func (r *Reader) add(path int, raw []byte, through bool) {
	f := &r.fields[r.ofPath[path]]
	f.found = true
	if len(raw) == 0 || raw[0] != '[' {
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

// hold notes a value, unless there are too many.
func (r *Reader) hold(f *reached, raw []byte) bool {
	f.count++
	if r.limit > 0 {
		if f.count <= r.limit {
			f.values = append(f.values, ValueOf(raw))
		}
		return true
	}
	if f.many || r.held == maxHeldValues {
		r.held -= len(f.values) // what is held of others stays
		f.values, f.many = nil, true
		return false
	}
	r.held++
	f.values = append(f.values, ValueOf(raw))
	return true
}
