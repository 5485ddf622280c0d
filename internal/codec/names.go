package codec

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// KnownPaths remembers paths, a bounded number of them. It is safe for concurrent use.
type KnownPaths struct {
	mu    sync.RWMutex
	paths map[string]bool
}

// maxKnownPaths is how many paths are remembered.
const maxKnownPaths = 1000

// Has reports whether the path is remembered.
func (k *KnownPaths) Has(path string) bool {
	if k == nil {
		return false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.paths[path]
}

// Add remembers a path.
func (k *KnownPaths) Add(path string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.paths == nil {
		k.paths = make(map[string]bool)
	}
	if len(k.paths) < maxKnownPaths {
		k.paths[path] = true
	}
}

// UnknownMember is a member that the JSON of a type never has.
type UnknownMember struct {
	Type    reflect.Type
	Name    string
	Names   []string          // the members that it may have
	ByField map[string]string // the same, by the names of their struct fields
	Dropped bool              // it is the ID, the version or other metadata, which is not part of the JSON
	Instead string            // of Dropped: the path of metadata to ask for; "" for the ID and the version
}

// FindMember follows the names of a path from the type of the mapping, and returns the
// first that the JSON of its type never has, nil if all may be there. Maps, interfaces
// and types with code of their own for JSON may have any.
func (m *Mapping) FindMember(path []string) *UnknownMember {
	t := m.Type
	for i, name := range path {
		t = Element(t, marshalsItself)
		switch {
		case marshalsItself(t) || t.Kind() == reflect.Interface:
			return nil
		case t.Kind() == reflect.Map:
			t = t.Elem()
			continue
		case t.Kind() != reflect.Struct:
			return &UnknownMember{Type: t, Name: name}
		}
		members := jsonMembers{types: make(map[string]reflect.Type), byField: make(map[string]string)}
		members.collect(t, nil)
		if members.any {
			return nil
		}
		dropped := i == 0 && slices.Contains(m.Drop, name)
		inner, found := members.types[name]
		if !found || dropped {
			u := &UnknownMember{Type: t, Name: name, ByField: members.byField, Dropped: dropped}
			if dropped {
				u.Instead = m.instead[name]
			}
			for name := range members.types {
				if i > 0 || !slices.Contains(m.Drop, name) {
					u.Names = append(u.Names, name)
				}
			}
			slices.Sort(u.Names)
			return u
		}
		t = inner
	}
	return nil
}

// LacksMember reports whether decoding an object into t, which is a struct or a pointer
// to one, drops a member of this name.
func LacksMember(t reflect.Type, name string) bool {
	t = Pointed(t)
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return false
	}
	members := jsonMembers{types: make(map[string]reflect.Type), byField: make(map[string]string)}
	members.collect(t, nil)
	if _, found := members.types[name]; found || members.any {
		return false
	}
	for member := range members.types {
		if strings.EqualFold(member, name) { // as encoding/json has it
			return false
		}
	}
	return true
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// marshalsItself reports whether a type decides itself what its JSON is.
func marshalsItself(t reflect.Type) bool {
	for _, marshaler := range []reflect.Type{jsonMarshaler, textMarshaler} {
		if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
			return true
		}
	}
	return false
}

// jsonMembers are the members of a struct in JSON.
type jsonMembers struct {
	types   map[string]reflect.Type
	byField map[string]string // JSON names by names of struct fields
	any     bool              // a field takes all other members
}

// collect adds the members of t, which is embedded in within.
func (m *jsonMembers) collect(t reflect.Type, within []reflect.Type) {
	if slices.Contains(within, t) {
		return
	}
	within = append(within, t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if strings.Contains(options, "unknown") || strings.Contains(options, "inline") {
			m.any = true
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct && !marshalsItself(inner) {
			m.collect(inner, within)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if m.types[name] == nil {
			m.types[name] = f.Type
		}
		m.byField[f.Name] = name
	}
}

// IDName returns the JSON name of the field of a struct type that takes an ID: the one
// tagged `jay:"id"` or else named ID or Id. It is "" if there is none, or JSON leaves it
// out.
func IDName(t reflect.Type) string {
	name, best := "", 0
	for _, f := range reflect.VisibleFields(t) {
		rank := idRank(f, "")
		if rank <= best || !f.IsExported() || f.Type.Kind() != reflect.String || !reachable(t, f.Index) {
			continue
		}
		tag := f.Tag.Get("json")
		member, _, _ := strings.Cut(tag, ",")
		switch best = rank; {
		case tag == "-":
			name = ""
		case member == "":
			name = f.Name
		default:
			name = member
		}
	}
	return name
}
