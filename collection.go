package jay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/metadata"
)

// Collection is the documents of one collection as values of the struct type
// T. It is made by CollectionOf, holds no documents itself, and is safe for
// concurrent use.
//
// T needs a string field for the ID: tagged `jay:"id"`, or else named ID or
// Id. The ID is not part of the stored JSON; everything else is stored as
// encoding/json has it.
type Collection[T any] struct {
	db     *DB
	name   string
	prefix string
	shape  shape
	makeID func(ctx context.Context, v any) (string, error)
}

// shape is what Jay needs to know about a struct type.
type shape struct {
	id     []int  // index path of the ID field
	member string // its name in JSON, "" if encoding/json leaves it out
	exact  bool   // holds interfaces: decode numbers as json.Number
}

// CollectionOption changes how one collection is mapped.
type CollectionOption func(*mapping)

// mapping is what the options of CollectionOf decide.
type mapping struct {
	name    string
	prefix  string
	idField string
	makeID  func(ctx context.Context, v any) (string, error)
}

// Named gives the collection this name instead of the type's plural.
func Named(collection string) CollectionOption {
	return func(m *mapping) { m.name = collection }
}

// WithPrefix begins HiLo IDs with this prefix, given without the separator,
// instead of the one that follows from the collection's name.
func WithPrefix(prefix string) CollectionOption {
	return func(m *mapping) { m.prefix = prefix }
}

// WithIDField names the struct field that holds the ID.
func WithIDField(name string) CollectionOption {
	return func(m *mapping) { m.idField = name }
}

// WithIDs replaces HiLo: fn is asked for the ID of a value whose ID field is
// empty. It may return any request ("users|" for an identity); "" makes a
// GUID. It is called before the write begins, and must be safe for concurrent
// use.
func WithIDs[T any](fn func(ctx context.Context, v *T) (string, error)) CollectionOption {
	return func(m *mapping) {
		m.makeID = func(ctx context.Context, v any) (string, error) {
			value, ok := v.(*T)
			if !ok {
				return "", fmt.Errorf("%w: WithIDs is for %T, the collection holds %T", ErrUsage, value, v)
			}
			return fn(ctx, value)
		}
	}
}

// CollectionOf returns the collection for the struct type T. Its name is the
// plural of the type's (Order → Orders, Person → People), its IDs begin with
// that name in lower case (orders/1-A), unless it has more than one upper-case
// letter (OrderLines/1-A). Options.Conventions and the options given here
// change that.
//
// CollectionOf returns ErrType if T is no struct, has no name and no Named
// option, or has no usable ID field. Nothing is written: a collection exists
// when it has a document.
func CollectionOf[T any](db *DB, opts ...CollectionOption) (*Collection[T], error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %s is not a struct", ErrType, t)
	}
	var m mapping
	for _, option := range opts {
		option(&m)
	}
	conventions := db.opts.Conventions
	if m.name == "" && conventions.CollectionName != nil {
		m.name = conventions.CollectionName(t)
	}
	if m.name == "" {
		m.name = ids.CollectionName(t)
	}
	if m.name == "" {
		return nil, fmt.Errorf("%w: %s has no name: use jay.Named", ErrType, t)
	}
	if m.prefix == "" {
		m.prefix = conventions.Prefix(m.name)
	}
	if err := cmp.Or(metadata.CheckCollection(m.name), db.checkTag(m.prefix)); err != nil {
		return nil, fmt.Errorf("collection %q: %w", m.name, err)
	}
	if m.makeID == nil && conventions.ID != nil {
		m.makeID = func(ctx context.Context, v any) (string, error) { return conventions.ID(ctx, m.name, v) }
	}
	if m.idField == "" && conventions.IDField != nil {
		m.idField = conventions.IDField(t)
	}
	s, err := shapeOf(t, m.idField)
	if err != nil {
		return nil, err
	}
	return &Collection[T]{db: db, name: m.name, prefix: m.prefix, shape: s, makeID: m.makeID}, nil
}

// shapeOf finds the ID field of t: the one called name, or, if name is empty,
// the one that is tagged or named as one.
func shapeOf(t reflect.Type, name string) (shape, error) {
	var field *reflect.StructField
	rank := 0
	for _, f := range reflect.VisibleFields(t) {
		r := idRank(f, name)
		if r == 0 || !reachable(t, f.Index) {
			continue
		}
		if r == rank && len(f.Index) == len(field.Index) {
			return shape{}, fmt.Errorf("%w: %s has two id fields, %s and %s", ErrType, t, field.Name, f.Name)
		}
		if r > rank {
			rank, field = r, &f
		}
	}
	if field == nil && name != "" {
		return shape{}, fmt.Errorf("%w: %s has no field %s to be the id", ErrType, t, name)
	}
	if field == nil {
		return shape{}, fmt.Errorf("%w: %s has no id field: name a string field ID or tag it `jay:\"id\"`", ErrType, t)
	}
	if field.Type.Kind() != reflect.String || !field.IsExported() {
		return shape{}, fmt.Errorf("%w: the id field %s.%s must be an exported string", ErrType, t, field.Name)
	}

	member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case field.Tag.Get("json") == "-":
		member = ""
	case member == "":
		member = field.Name
	}
	return shape{id: field.Index, member: member, exact: holdsInterface(t, nil)}, nil
}

// idRank tells how much f is the ID field: 0 not at all.
func idRank(f reflect.StructField, name string) int {
	switch {
	case name != "" && f.Name == name:
		return 3
	case name != "":
		return 0
	case f.Tag.Get("jay") == "id":
		return 3
	case f.Name == "ID":
		return 2
	case f.Name == "Id":
		return 1
	}
	return 0
}

// reachable tells whether a field is one of t's own members in JSON: no
// pointer lies on the way to it, and no embedded struct with a JSON name.
func reachable(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" || f.Type.Kind() != reflect.Struct {
			return false
		}
		t = f.Type
	}
	return true
}

// holdsInterface tells whether a value of t can hold a number in an
// interface, where float64 would lose digits.
func holdsInterface(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	if seen == nil {
		seen = make(map[reflect.Type]bool)
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsInterface(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsInterface(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// Name returns the collection's name.
func (c *Collection[T]) Name() string { return c.name }

// Insert stores v as a new document and writes its final ID into v's ID
// field. An empty field asks for a HiLo ID; else the field says what is
// wanted, as in DB.Put, and a document that is there already is ErrExists. On
// an error v is unchanged.
func (c *Collection[T]) Insert(ctx context.Context, v *T, opts ...WriteOption) (Metadata, error) {
	return c.writeOne(ctx, verbInsert, v, opts)
}

// InsertMany inserts all of vs, or none of them, in one write.
func (c *Collection[T]) InsertMany(ctx context.Context, vs []*T, opts ...WriteOption) ([]Metadata, error) {
	return c.write(ctx, verbInsert, vs, opts)
}

// Put stores v over the document that may have its ID, and writes the final
// ID into v's ID field. An empty field asks for a HiLo ID.
func (c *Collection[T]) Put(ctx context.Context, v *T, opts ...WriteOption) (Metadata, error) {
	return c.writeOne(ctx, verbPut, v, opts)
}

// PutMany puts all of vs, or none of them, in one write.
func (c *Collection[T]) PutMany(ctx context.Context, vs []*T, opts ...WriteOption) ([]Metadata, error) {
	return c.write(ctx, verbPut, vs, opts)
}

// Replace stores v over the document with its ID, which must be there: if it
// is not, Replace returns ErrNotFound.
func (c *Collection[T]) Replace(ctx context.Context, v *T, opts ...WriteOption) (Metadata, error) {
	return c.writeOne(ctx, verbReplace, v, opts)
}

// Get returns the value with this ID. It returns ErrNotFound if there is none,
// and a *CollectionError if the document belongs to another collection.
func (c *Collection[T]) Get(ctx context.Context, id string) (*T, error) {
	doc, err := c.db.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.decode(doc)
}

// GetMany returns the values with these IDs, in their order, all as they were
// at one moment. A missing one is nil.
func (c *Collection[T]) GetMany(ctx context.Context, ids ...string) ([]*T, error) {
	docs, err := c.db.GetMany(ctx, ids...)
	if err != nil {
		return nil, err
	}
	vs := make([]*T, len(docs))
	for i, doc := range docs {
		if doc == nil {
			continue
		}
		if vs[i], err = c.decode(doc); err != nil {
			return nil, err
		}
	}
	return vs, nil
}

// Exists tells whether the collection has a document with this ID.
func (c *Collection[T]) Exists(ctx context.Context, id string) (bool, error) {
	docs, err := c.db.GetMany(ctx, id)
	if err != nil || docs[0] == nil {
		return false, err
	}
	return c.owns(docs[0]), nil
}

// Delete removes the document with this ID. A missing one is no error, unless
// IfMatch asks for a version; one of another collection is a *CollectionError.
func (c *Collection[T]) Delete(ctx context.Context, id string, opts ...WriteOption) error {
	o := newOp(verbDelete, id, nil, opts)
	o.collection, o.only = c.name, foldName(c.name)
	_, err := c.db.writeOne(ctx, o)
	return err
}

// All walks over the collection in the byte order of folded IDs (users/10-A
// before users/2-A), as it is when the walk begins. Each value belongs to the
// caller. The error of a failed walk comes with a nil value, as its last pair.
func (c *Collection[T]) All(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for doc, err := range c.db.Documents(ctx, Scan{Collection: c.name}) {
			if err != nil {
				yield(nil, err)
				return
			}
			v, err := c.decode(doc)
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

func (c *Collection[T]) owns(doc *Document) bool {
	return sameCollection(doc.header.Collection, foldName(c.name))
}

// decode makes a value of a document.
func (c *Collection[T]) decode(doc *Document) (*T, error) {
	if !c.owns(doc) {
		return nil, &CollectionError{ID: doc.ID(), Current: doc.Collection(), Given: c.name}
	}
	v := new(T)
	if c.shape.exact {
		if err := doc.Decode(v); err != nil {
			return nil, err
		}
	} else if err := json.Unmarshal(doc.body, v); err != nil {
		return nil, fmt.Errorf("decode %q: %w", doc.ID(), err)
	}
	c.shape.setID(v, doc.ID())
	return v, nil
}

func (s *shape) setID(v any, id string) {
	reflect.ValueOf(v).Elem().FieldByIndex(s.id).SetString(id)
}

func (s *shape) getID(v any) string {
	return reflect.ValueOf(v).Elem().FieldByIndex(s.id).String()
}

func (c *Collection[T]) writeOne(ctx context.Context, verb verb, v *T, opts []WriteOption) (Metadata, error) {
	out, err := c.write(ctx, verb, []*T{v}, opts)
	if err != nil {
		return Metadata{}, err
	}
	return out[0], nil
}

func (c *Collection[T]) write(ctx context.Context, verb verb, vs []*T, opts []WriteOption) ([]Metadata, error) {
	ops := make([]*op, len(vs))
	for i, v := range vs {
		var err error
		if ops[i], err = c.newOp(ctx, verb, v, opts); err != nil {
			return nil, err
		}
	}
	if err := c.db.write(ctx, ops); err != nil {
		return nil, err
	}
	out := make([]Metadata, len(ops))
	for i, o := range ops {
		out[i] = o.result
		c.shape.setID(vs[i], o.result.ID)
	}
	return out, nil
}

// newOp encodes a value.
func (c *Collection[T]) newOp(ctx context.Context, verb verb, v *T, opts []WriteOption) (*op, error) {
	if v == nil {
		return nil, fmt.Errorf("%w: nil %T", ErrUsage, v)
	}
	id := c.shape.getID(v)
	made := id == "" && c.makeID != nil
	if made {
		var err error
		if id, err = c.makeID(ctx, v); err != nil {
			return nil, fmt.Errorf("make an id for %s: %w", c.name, err)
		}
	}
	if id == "" && verb == verbReplace {
		return nil, fmt.Errorf("%w: Replace of a %T without an id", ErrUsage, v)
	}

	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrType, err)
	}
	o := newOp(verb, id, body.Bytes(), opts)
	o.hilo = id == "" && !made
	o.prefix = c.prefix
	o.dropMember = c.shape.member
	if o.collection != "" && foldName(o.collection) != foldName(c.name) {
		o.misuse = fmt.Errorf("%w: InCollection(%q) on the collection %q", ErrUsage, o.collection, c.name)
	}
	o.collection = c.name
	return o, nil
}
