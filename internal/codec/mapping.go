// Package codec converts values of Go types to JSON and back: it finds the ID and
// version fields of a type, derives what the type guarantees about its JSON, and
// has the encoders and decoders that rely on it. It knows nothing of databases.
package codec

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/jaydb/jay/internal/errs"
)

// Mapping describes how the values of one struct type become documents of one
// collection. It is immutable, but for Members.
type Mapping struct {
	Members *KnownPaths // of the type, of which queries have asked; nil remembers none

	Type       reflect.Type
	Collection string // its name
	Prefix     string // of HiLo IDs
	IDField    string // name of the struct field for the ID; "" for the default
	MakeID     func(ctx context.Context, v any) (string, error)
	Requests   bool  // MakeID returns a request of the program's, not an ID made of a value
	Err        error // of an option

	id       []int             // index path of the ID field
	Version  []int             // index path of the version field, nil if there is none
	Meta     *MetaFields       // the fields for other metadata, nil if there are none
	Drop     []string          // JSON names of all of these, where encoding/json writes them
	instead  map[string]string // of fields for other metadata: the paths of queries, by JSON name
	AnyField bool              // queries may name members that the type lacks
	Exact    bool              // holds interfaces: decode numbers as json.Number
	Info     TypeInfo
}

// FindID finds the ID field: the one named by IDField, otherwise the one that is
// tagged or named as the ID.
func (m *Mapping) FindID() error {
	t := m.Type
	var field *reflect.StructField
	rank := 0
	for _, f := range reflect.VisibleFields(t) {
		r := idRank(f, m.IDField)
		if r == 0 || !reachable(t, f.Index) {
			continue
		}
		if r == rank && (r == idTagged || len(f.Index) == len(field.Index)) {
			return fmt.Errorf("%w: %s has two id fields, %s and %s", errs.ErrType, t, field.Name, f.Name)
		}
		if r > rank {
			rank, field = r, &f
		}
	}
	if field == nil && m.IDField != "" {
		return fmt.Errorf("%w: %s has no field %s to be the id", errs.ErrType, t, m.IDField)
	}
	if field == nil {
		return fmt.Errorf("%w: %s has no id field: name a string field ID or tag it `jay:\"id\"`", errs.ErrType, t)
	}
	if field.Type.Kind() != reflect.String || !field.IsExported() {
		return fmt.Errorf("%w: the id field %s.%s must be an exported string", errs.ErrType, t, field.Name)
	}
	m.id = field.Index
	m.dropField(field)
	return nil
}

// FindVersion finds the field that is tagged `jay:"version"`, if any.
func (m *Mapping) FindVersion() error {
	for _, f := range reflect.VisibleFields(m.Type) {
		if f.Tag.Get("jay") != "version" {
			continue
		}
		if f.Type.Kind() != reflect.String || !f.IsExported() || !reachable(m.Type, f.Index) {
			return fmt.Errorf("%w: the version field %s.%s must be an exported string", errs.ErrType, m.Type, f.Name)
		}
		if m.Version != nil {
			return fmt.Errorf("%w: %s has two version fields", errs.ErrType, m.Type)
		}
		m.Version = f.Index
		m.dropField(&f)
	}
	return nil
}

// dropField leaves a field out of the stored JSON.
func (m *Mapping) dropField(f *reflect.StructField) {
	tag := f.Tag.Get("json")
	member, _, _ := strings.Cut(tag, ",")
	if tag != "-" {
		m.Drop = append(m.Drop, cmp.Or(member, f.Name))
	}
}

// idTagged is the rank of a field that is named by an option, or tagged as the ID.
const idTagged = 3

// idRank returns how strongly f qualifies as the ID field; 0 means not at all.
func idRank(f reflect.StructField, name string) int {
	switch {
	case name != "" && f.Name == name:
		return idTagged
	case name != "":
		return 0
	case f.Tag.Get("jay") == "id":
		return idTagged
	case f.Name == "ID":
		return 2
	case f.Name == "Id":
		return 1
	}
	return 0
}

// reachable reports whether a field is one of t's own members in JSON: the path to
// it has no pointer and no embedded struct with a JSON name.
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

// HoldsInterface reports whether a value of t can hold a number in an interface,
// where float64 would lose digits.
func HoldsInterface(t reflect.Type, seen map[reflect.Type]bool) bool {
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
		return HoldsInterface(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if HoldsInterface(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// GetID returns the ID that v holds.
func (m *Mapping) GetID(v any) string {
	return reflect.ValueOf(v).Elem().FieldByIndex(m.id).String()
}

// GetVersion returns the change vector that v holds, or "" if its type has no
// version field.
func (m *Mapping) GetVersion(v any) string {
	if m.Version == nil {
		return ""
	}
	return reflect.ValueOf(v).Elem().FieldByIndex(m.Version).String()
}

// SetIdentity sets the ID of v, and its version if v has a field for it.
func (m *Mapping) SetIdentity(v any, id, version string) {
	value := reflect.ValueOf(v).Elem()
	value.FieldByIndex(m.id).SetString(id)
	if m.Version != nil {
		value.FieldByIndex(m.Version).SetString(version)
	}
}
