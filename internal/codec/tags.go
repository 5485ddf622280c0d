package codec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/errs"
)

// CheckTags refuses a tag for the ID, the version or metadata on a field that does not hold it: one of a nested
// struct, of the elements of a list or a map, behind an embedded pointer, or hidden by a field of the same
// name. It is called when these fields are known. A type that was met as the struct itself, or as one that is embedded
// in it, may be met again below: there its tags say what they say for the struct.
func (m *Mapping) CheckTags() error {
	w := tagWalk{mapping: m, held: append(m.Meta.indexes(), m.id, m.Version), seen: make(map[reflect.Type]bool)}
	if err := w.own(m.Type, nil); err != nil {
		return err
	}
	for _, t := range w.nested {
		if err := w.below(t); err != nil {
			return err
		}
	}
	return nil
}

// tagWalk visits the fields of a type for CheckTags.
type tagWalk struct {
	mapping *Mapping
	held    [][]int // index paths of the fields that hold the ID, the version and metadata
	seen    map[reflect.Type]bool
	nested  []reflect.Type // types of fields of the struct itself
}

// own visits the struct itself, or one that is embedded in it, at an index path.
func (w *tagWalk) own(t reflect.Type, path []int) error {
	w.seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(path[:len(path):len(path)], i)
		overridden := f.Tag.Get("jay") == "id" && w.mapping.IDField != ""
		if !overridden && !slices.ContainsFunc(w.held, func(held []int) bool { return slices.Equal(held, at) }) {
			if err := w.refuse(t, f); err != nil {
				return err
			}
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct && name == "":
			if err := w.own(f.Type, at); err != nil {
				return err
			}
		case isStored(f):
			w.nested = append(w.nested, f.Type)
		}
	}
	return nil
}

// below visits a type whose values are part of a document.
func (w *tagWalk) below(t reflect.Type) error {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		if t.Name() != "" { // it may be one of itself
			if w.seen[t] {
				return nil
			}
			w.seen[t] = true
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || w.seen[t] {
		return nil
	}
	w.seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		if err := w.refuse(t, f); err != nil {
			return err
		}
		if isStored(f) {
			if err := w.below(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuse returns ErrType for a field that has one of the tags.
func (w *tagWalk) refuse(t reflect.Type, f reflect.StructField) error {
	if tag := f.Tag.Get("jay"); tag == "id" || tag == "version" || IsMetaTag(tag) {
		return fmt.Errorf("%w: the field %s.%s, tagged %q, must be one of %s itself, or of a struct that is embedded in it: a document has one ID, one version and one @metadata", errs.ErrType, t, f.Name, tag, w.mapping.Type)
	}
	return nil
}

// isStored reports whether a field can be part of the JSON of its struct.
func isStored(f reflect.StructField) bool {
	return f.Tag.Get("json") != "-" && (f.IsExported() || f.Anonymous)
}
