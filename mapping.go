package jay

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/jaydb/jay/internal/format"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/metadata"
)

// mapping says how the values of one struct type become documents of one
// collection. It is immutable.
type mapping struct {
	typ     reflect.Type
	name    string // of the collection
	prefix  string // of HiLo IDs
	idField string // the struct field for the ID, if it was named
	makeID  func(ctx context.Context, v any) (string, error)

	id      []int    // index path of the ID field
	version []int    // index path of the version field, nil if there is none
	drop    []string // the names of both in JSON, where encoding/json writes them
	exact   bool     // holds interfaces: decode numbers as json.Number
	shape   shape
}

// mappingOf returns the mapping of t. It returns ErrType if t cannot be
// stored.
func (db *DB) mappingOf(t reflect.Type, opts []CollectionOption) (*mapping, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %s is not a struct", ErrType, t)
	}
	m := &mapping{typ: t}
	for _, option := range opts {
		option(m)
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
	if err := m.findID(); err != nil {
		return nil, err
	}
	if err := m.findVersion(); err != nil {
		return nil, err
	}
	m.exact = holdsInterface(t, nil)
	m.findShape()
	return m, nil
}

// findID finds the ID field: the one that was named, or else the one that is
// tagged or named as one.
func (m *mapping) findID() error {
	t := m.typ
	var field *reflect.StructField
	rank := 0
	for _, f := range reflect.VisibleFields(t) {
		r := idRank(f, m.idField)
		if r == 0 || !reachable(t, f.Index) {
			continue
		}
		if r == rank && len(f.Index) == len(field.Index) {
			return fmt.Errorf("%w: %s has two id fields, %s and %s", ErrType, t, field.Name, f.Name)
		}
		if r > rank {
			rank, field = r, &f
		}
	}
	if field == nil && m.idField != "" {
		return fmt.Errorf("%w: %s has no field %s to be the id", ErrType, t, m.idField)
	}
	if field == nil {
		return fmt.Errorf("%w: %s has no id field: name a string field ID or tag it `jay:\"id\"`", ErrType, t)
	}
	if field.Type.Kind() != reflect.String || !field.IsExported() {
		return fmt.Errorf("%w: the id field %s.%s must be an exported string", ErrType, t, field.Name)
	}
	m.id = field.Index
	m.dropField(field)
	return nil
}

// findVersion finds the field that is tagged `jay:"version"`, if any.
func (m *mapping) findVersion() error {
	for _, f := range reflect.VisibleFields(m.typ) {
		if f.Tag.Get("jay") != "version" {
			continue
		}
		if f.Type.Kind() != reflect.String || !f.IsExported() || !reachable(m.typ, f.Index) {
			return fmt.Errorf("%w: the version field %s.%s must be an exported string", ErrType, m.typ, f.Name)
		}
		if m.version != nil {
			return fmt.Errorf("%w: %s has two version fields", ErrType, m.typ)
		}
		m.version = f.Index
		m.dropField(&f)
	}
	return nil
}

// dropField keeps a field out of the stored JSON.
func (m *mapping) dropField(f *reflect.StructField) {
	tag := f.Tag.Get("json")
	member, _, _ := strings.Cut(tag, ",")
	if tag != "-" {
		m.drop = append(m.drop, cmp.Or(member, f.Name))
	}
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

func (m *mapping) getID(v any) string {
	return reflect.ValueOf(v).Elem().FieldByIndex(m.id).String()
}

// getVersion returns the change vector that v holds, "" if its type has no
// field for it.
func (m *mapping) getVersion(v any) string {
	if m.version == nil {
		return ""
	}
	return reflect.ValueOf(v).Elem().FieldByIndex(m.version).String()
}

// setIdentity writes the ID, and the version if v has a field for it, into v.
func (m *mapping) setIdentity(v any, id, version string) {
	value := reflect.ValueOf(v).Elem()
	value.FieldByIndex(m.id).SetString(id)
	if m.version != nil {
		value.FieldByIndex(m.version).SetString(version)
	}
}

// decode stores a document in the struct that v points to.
func (m *mapping) decode(doc *Document, v any) error {
	if m.exact {
		if err := doc.Decode(v); err != nil {
			return err
		}
	} else if err := m.decodeJSON(doc.body, v); err != nil {
		return fmt.Errorf("decode %q: %w", doc.ID(), err)
	}
	version := ""
	if m.version != nil {
		version = doc.ChangeVector()
	}
	m.setIdentity(v, doc.ID(), version)
	return nil
}

// decodeMember is decode for a document that must be in the mapping's
// collection: one of another is a *CollectionError.
func (m *mapping) decodeMember(doc *Document, v any) error {
	if !m.owns(doc) {
		return &CollectionError{ID: doc.ID(), Current: doc.Collection(), Given: m.name}
	}
	return m.decode(doc, v)
}

// owns tells whether a document is in the mapping's collection.
func (m *mapping) owns(doc *Document) bool {
	if string(doc.header.Collection) == m.name {
		return true
	}
	return sameCollection(doc.header.Collection, format.FoldName(m.name))
}

// newOp returns the write of a value, which is still to be encoded.
func (m *mapping) newOp(ctx context.Context, verb verb, v any, opts []WriteOption) (*op, error) {
	id := m.getID(v)
	made := id == "" && m.makeID != nil
	if made {
		var err error
		if id, err = m.makeID(ctx, v); err != nil {
			return nil, fmt.Errorf("make an id for %s: %w", m.name, err)
		}
	}
	if id == "" && verb == verbReplace {
		return nil, fmt.Errorf("%w: Replace of a %s without an id", ErrUsage, m.typ)
	}
	o := newOp(verb, id, nil, opts)
	o.hilo = id == "" && !made
	o.prefix = m.prefix
	if o.expected == nil && m.version != nil && verb != verbInsert && id != "" && !made {
		version := m.getVersion(v)
		o.expected = &version
	}
	if o.collection != "" && format.FoldName(o.collection) != format.FoldName(m.name) {
		o.misuse = fmt.Errorf("%w: InCollection(%q) on the collection %q", ErrUsage, o.collection, m.name)
	}
	o.collection = m.name
	return o, nil
}
