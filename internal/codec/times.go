package codec

import (
	"reflect"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
)

// IsTime reports whether a path leads to a time.Time in the JSON of the mapping's type:
// to a field of that type, of a pointer to it, or of a slice, an array or a map of it.
// Types that marshal themselves are not looked into, as their JSON is theirs.
func (m *Mapping) IsTime(path jsonpath.Path) bool {
	t := m.Type
	for i := range path.Len() {
		if t = element(t); ownJSON(t) {
			return false
		}
		step := path.At(i)
		if step.Kind != jsonpath.Member {
			continue // element has gone through the list
		}
		switch t.Kind() {
		case reflect.Struct:
			f, found := member(t, step.Name, nil)
			if !found {
				return false
			}
			t = f
		case reflect.Map:
			t = t.Elem()
		default:
			return false
		}
	}
	return element(t) == TimeType
}

// IsTimeType reports whether a field of type t holds instants.
func IsTimeType(t reflect.Type) bool { return element(t) == TimeType }

// element returns what a value of t holds behind pointers and lists, up to a type that marshals itself.
func element(t reflect.Type) reflect.Type {
	return Element(t, func(t reflect.Type) bool { return t == TimeType || ownJSON(t) })
}

// ownJSON reports whether values of t marshal themselves.
func ownJSON(t reflect.Type) bool {
	if t == TimeType || t.Kind() == reflect.Pointer { // the methods of a pointer are checked with its element
		return false
	}
	for _, i := range codeTypes[:4] {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// member returns the type of the member that a struct has under a name in JSON. Of
// several the one that is embedded least deep counts, as in encoding/json.
func member(t reflect.Type, name string, within []reflect.Type) (reflect.Type, bool) {
	for _, outer := range within {
		if outer == t {
			return nil, false
		}
	}
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && tag == "" && inner.Kind() == reflect.Struct:
			if inner != TimeType && !ownJSON(inner) {
				embedded = append(embedded, inner)
			}
		case f.IsExported() && (tag == name || tag == "" && f.Name == name):
			return f.Type, true
		}
	}
	for _, inner := range embedded {
		if found, ok := member(inner, name, append(within, t)); ok {
			return found, true
		}
	}
	return nil, false
}
