package jsonschema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/schema"
)

// For returns a schema that every value of T fits, in the form in which a collection of T stores it
// (docs/json.md). The schema uses the JSON names of fields. It leaves out fields for the ID, the
// version and other metadata. A member is required unless its field has omitempty or omitzero, or
// is embedded by a pointer. A pointer, slice or map that can be nil may be null. A time.Time is a
// string with the format "date-time". An interface, and a type with a MarshalJSON of its own, may
// be any value. Members that T lacks are allowed, at each level. The text is indented, ends with a
// line break, and has the types of struct fields in $defs.
//
// For returns jay.ErrType for a type that jay.CollectionOf refuses, for a type that encoding/json
// cannot encode, for a type with more than 16 levels without a named struct, and for a schema of
// more than schema.MaxBytes.
func For[T any]() ([]byte, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct || marshals(t) {
		return nil, fmt.Errorf("%w: %s is not a struct whose fields are its JSON", errs.ErrType, t)
	}
	m := codec.Mapping{Type: t}
	for _, find := range []func() error{m.FindID, m.FindVersion, m.FindMeta, m.CheckTags} {
		if err := find(); err != nil {
			return nil, err
		}
	}
	g := generator{defs: make(map[string]any), names: make(map[reflect.Type]string)}
	described, err := g.object(t, m.Drop, 1)
	if err != nil {
		return nil, err
	}
	described["$schema"] = Dialect
	if len(g.defs) > 0 {
		described["$defs"] = g.defs
	}
	text := indented(described)
	if len(text) > schema.MaxBytes {
		return nil, fmt.Errorf("%w: the schema of %s has %d bytes, and a schema has at most %d", errs.ErrType, t, len(text), schema.MaxBytes)
	}
	return text, nil
}

// indented returns a schema as text.
func indented(described map[string]any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(described) // of maps, slices, numbers and texts: it cannot fail
	return out.Bytes()
}

// generator makes a schema of a type. Struct types with a name are described once each, in defs, so
// that types may refer to themselves.
type generator struct {
	defs  map[string]any
	names map[reflect.Type]string // of what is in defs, or is being described
}

var (
	timeType   = reflect.TypeFor[time.Time]()
	numberType = reflect.TypeFor[json.Number]()
	rawType    = reflect.TypeFor[json.RawMessage]()
	jsonCode   = reflect.TypeFor[json.Marshaler]()
	textCode   = reflect.TypeFor[encoding.TextMarshaler]()
)

// maxTypeDepth bounds the levels of a type that have no $defs of their own. docs/limits.md has it.
const maxTypeDepth = 16

// marshals reports whether values of t, or pointers to them, decide themselves what their JSON is.
func marshals(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonCode) || p.Implements(textCode)
}

// value describes what the JSON of a value of t is like.
func (g *generator) value(t reflect.Type, depth int) (map[string]any, error) {
	if depth > maxTypeDepth {
		return nil, fmt.Errorf("%w: %s is nested too deeply for a schema", errs.ErrType, t)
	}
	switch {
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}, nil
	case t == numberType:
		return map[string]any{"type": "number"}, nil
	case t.Kind() == reflect.Pointer: // its methods are checked with its element
		described, err := g.value(t.Elem(), depth+1)
		return orNull(described), err
	case t == rawType || t.Kind() == reflect.Interface || reflect.PointerTo(t).Implements(jsonCode):
		return map[string]any{}, nil
	case t.Implements(textCode):
		return map[string]any{"type": "string"}, nil
	case reflect.PointerTo(t).Implements(textCode): // elements of maps are encoded without the method
		return map[string]any{}, nil
	}
	switch kind := t.Kind(); kind {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}, nil
	case reflect.Int8, reflect.Int16, reflect.Int32:
		most := int64(1)<<(t.Bits()-1) - 1
		return map[string]any{"type": "integer", "minimum": -most - 1, "maximum": most}, nil
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return map[string]any{"type": "integer", "minimum": 0}, nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return map[string]any{"type": "integer", "minimum": 0, "maximum": int64(1)<<t.Bits() - 1}, nil
	case reflect.Slice, reflect.Array:
		if kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !marshals(t.Elem()) {
			return map[string]any{"type": []string{"string", "null"}, "contentEncoding": "base64"}, nil
		}
		items, err := g.value(t.Elem(), depth+1)
		if err != nil {
			return nil, err
		}
		if kind == reflect.Array {
			return map[string]any{"type": "array", "items": items, "minItems": t.Len(), "maxItems": t.Len()}, nil
		}
		return map[string]any{"type": []string{"array", "null"}, "items": items}, nil
	case reflect.Map:
		if key := t.Key(); key.Kind() != reflect.String && !(key.Kind() >= reflect.Int && key.Kind() <= reflect.Uintptr) && !key.Implements(textCode) {
			break
		}
		values, err := g.value(t.Elem(), depth+1)
		if err != nil {
			return nil, err
		}
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": values}, nil
	case reflect.Struct:
		if t.Name() == "" {
			return g.object(t, nil, depth+1)
		}
		return g.named(t)
	}
	return nil, fmt.Errorf("%w: encoding/json does not encode %s", errs.ErrType, t)
}

// orNull allows null as well.
func orNull(described map[string]any) map[string]any {
	switch of := described["type"].(type) {
	case string:
		described["type"] = []string{of, "null"}
	case nil:
		if len(described) > 0 && described["anyOf"] == nil { // $ref
			return map[string]any{"anyOf": []any{described, map[string]any{"type": "null"}}}
		}
	}
	return described
}

// notNull is for a field that JSON leaves out where it would be null.
func notNull(described map[string]any) map[string]any {
	if types, is := described["type"].([]string); is {
		if types = slices.DeleteFunc(slices.Clone(types), func(name string) bool { return name == "null" }); len(types) == 1 {
			described["type"] = types[0]
		}
	}
	if either, is := described["anyOf"].([]any); is {
		return either[0].(map[string]any)
	}
	return described
}

// named refers to the description of a struct type, which it makes if there is none yet.
func (g *generator) named(t reflect.Type) (map[string]any, error) {
	name, found := g.names[t]
	if !found {
		plain := strings.Map(func(c rune) rune {
			if c == '.' || c == '-' || c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
				return c
			}
			return '_'
		}, t.Name())
		name = plain
		for n := 2; g.defs[name] != nil; n++ { // of another package
			name = fmt.Sprint(plain, "_", n)
		}
		g.names[t], g.defs[name] = name, true
		described, err := g.object(t, nil, 1)
		if err != nil {
			return nil, err
		}
		g.defs[name] = described
	}
	return map[string]any{"$ref": "#/$defs/" + name}, nil
}

// object describes a struct, without the members in drop.
func (g *generator) object(t reflect.Type, drop []string, depth int) (map[string]any, error) {
	properties, required := make(map[string]any), []string{}
	for _, f := range fieldsOf(t) {
		if slices.Contains(drop, f.name) {
			continue
		}
		described, err := g.value(f.typ, depth+1)
		if err != nil {
			return nil, fmt.Errorf("field %s of %s: %w", f.name, t, err)
		}
		if f.quoted && !marshals(deref(f.typ)) && isScalar(deref(f.typ)) {
			if described = map[string]any{"type": "string"}; f.typ.Kind() == reflect.Pointer {
				described = orNull(described)
			}
		}
		if f.omits {
			described = notNull(described)
		}
		properties[f.name] = described
		if !f.omits && !f.optional {
			required = append(required, f.name)
		}
	}
	described := map[string]any{"type": "object"}
	if len(properties) > 0 {
		described["properties"] = properties
	}
	if len(required) > 0 {
		slices.Sort(required)
		described["required"] = required
	}
	return described, nil
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// isScalar reports whether the option string has an effect on values of t.
func isScalar(t reflect.Type) bool {
	kind := t.Kind()
	return kind == reflect.String || kind >= reflect.Bool && kind <= reflect.Float64
}

// member is a field of a struct as encoding/json sees it.
type member struct {
	name     string
	typ      reflect.Type
	tagged   bool // the tag gives the name
	omits    bool // it is left out if it is empty
	optional bool // it is in a struct that is embedded by a pointer
	quoted   bool // the option string
}

// level is a struct type at one level of embedding.
type level struct {
	t        reflect.Type
	optional bool
}

// fieldsOf returns the members that encoding/json makes of a struct, by its rules: of several with
// a name, the one that is embedded least deep counts; among these the only one whose tag gives the
// name; and else none.
func fieldsOf(t reflect.Type) (all []member) {
	decided := make(map[string]bool)
	visited := make(map[reflect.Type]bool)
	for levels := []level{{t: t}}; len(levels) > 0; {
		var next []level
		times := make(map[reflect.Type]int)
		for _, l := range levels {
			times[l.t]++
		}
		byName := make(map[string][]member)
		var order []string
		for _, l := range levels {
			if visited[l.t] {
				continue
			}
			visited[l.t] = true
			for i := range l.t.NumField() {
				m, inner := memberOf(l.t.Field(i))
				if inner != nil {
					next = append(next, level{inner, l.optional || l.t.Field(i).Type.Kind() == reflect.Pointer})
					if times[l.t] > 1 { // its members have no place either
						next = append(next, next[len(next)-1])
					}
				}
				if m.name == "" {
					continue
				}
				m.optional = l.optional
				if byName[m.name] == nil {
					order = append(order, m.name)
				}
				for range min(times[l.t], 2) {
					byName[m.name] = append(byName[m.name], m)
				}
			}
		}
		for _, name := range order {
			if decided[name] {
				continue
			}
			decided[name] = true
			found := byName[name]
			if tagged := slices.DeleteFunc(slices.Clone(found), func(m member) bool { return !m.tagged }); len(tagged) > 0 {
				found = tagged
			}
			if len(found) == 1 {
				all = append(all, found[0])
			}
		}
		levels = next
	}
	return all
}

// memberOf returns the member that a field makes, whose name is "" for none, or the struct whose
// members take its place.
func memberOf(f reflect.StructField) (m member, inner reflect.Type) {
	of := f.Type
	if of.Name() == "" && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && !(f.Anonymous && of.Kind() == reflect.Struct) {
		return m, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	if !isName(name) {
		name = ""
	}
	if name == "" && f.Anonymous && of.Kind() == reflect.Struct {
		return m, of
	}
	m = member{name: name, typ: f.Type, tagged: name != ""}
	if name == "" {
		m.name = f.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			m.omits = m.omits || canBeEmpty(f.Type)
		case "omitzero":
			m.omits = true
		case "string":
			m.quoted = true
		}
	}
	return m, nil
}

// canBeEmpty reports whether omitempty has an effect on a field.
func canBeEmpty(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		return false
	case reflect.Array:
		return t.Len() == 0
	}
	return true
}

// isName reports whether encoding/json takes the name of a tag.
func isName(name string) bool {
	return name != "" && strings.IndexFunc(name, func(c rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}) < 0
}
