package codec

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"
)

// TypeInfo is what the types in a struct tell about its JSON before there is a
// value: see docs/decisions/0009-trusted-encoding.md.
type TypeInfo struct {
	// quiet says that no code of the user's runs while a value is encoded or
	// decoded, so that values can be encoded by two goroutines.
	Quiet bool

	// view is the struct as it is stored, without the members for the ID and
	// the version, if what encoding/json makes of it is a sound body whatever
	// the value: valid, without repeated keys, without @metadata, at most
	// depth levels deep. It is nil if that is not known. It differs from the
	// struct in nothing but tags.
	View     reflect.Type
	Depth    int
	textKeys bool // but keys of maps may repeat: see repeatsKeys

	// quoted says that a field has the option string, which encoding/json reads
	// in its own way: see decodeJSON.
	Quoted bool
}

// typeKey is what a shape depends on.
type typeKey struct {
	typ         reflect.Type
	id, version int  // the fields that are left out, or -1 for none
	own         bool // no others are
}

// infos holds a shape for each shapeKey. Types are never forgotten, as in
// encoding/json.
var infos sync.Map

// Inspect fills in the mapping's shape, once the fields are known.
func (m *Mapping) Inspect() {
	key := typeKey{typ: m.Type, id: m.leftOut(m.id), version: m.leftOut(m.Version)}
	key.own = len(m.Drop) == 0 || len(m.id) == 1 && len(m.Version) <= 1
	if known, ok := infos.Load(key); ok {
		m.Info = known.(TypeInfo)
		return
	}
	m.Info = key.inspect()
	infos.Store(key, m.Info)
}

// leftOut returns the field of the struct itself that the JSON has and the
// stored body has not, or -1.
func (m *Mapping) leftOut(index []int) int {
	if len(index) != 1 || m.Type.Field(index[0]).Tag.Get("json") == "-" {
		return -1
	}
	return index[0]
}

func (k typeKey) inspect() TypeInfo {
	w := typeWalk{sound: k.own, quiet: true, depths: make(map[reflect.Type]int)}
	depth := w.value(k.typ)
	s := TypeInfo{Quiet: w.quiet, Depth: depth, textKeys: w.textKeys, Quoted: w.quoted}
	if !w.sound || !w.quiet {
		return s
	}
	if s.View = k.typ; k.id >= 0 || k.version >= 0 {
		s.View = k.withoutFields()
	}
	return s
}

// withoutFields returns the struct type with tags that keep the fields out of
// JSON, or nil if they cannot be told from others.
func (k typeKey) withoutFields() reflect.Type {
	fields := make([]reflect.StructField, k.typ.NumField())
	names := make(map[string]bool)
	for i := range fields {
		f := k.typ.Field(i)
		name := jsonName(f)
		if f.Anonymous || names[name] {
			return nil // a name that two fields want is left out of the JSON, and so may both be
		}
		names[name] = name != ""
		if i == k.id || i == k.version {
			f.Tag = `json:"-"`
		}
		fields[i] = f
	}
	view := reflect.StructOf(fields)
	if !reflect.PointerTo(k.typ).ConvertibleTo(reflect.PointerTo(view)) {
		return nil // cannot happen: but encode relies on it
	}
	return view
}

// jsonName returns the name that a field asks for in JSON, "" if it has none.
func jsonName(f reflect.StructField) string {
	tag := f.Tag.Get("json")
	if !f.IsExported() || tag == "-" {
		return ""
	}
	if name, _, _ := strings.Cut(tag, ","); name != "" {
		return name
	}
	return f.Name
}

// typeWalk goes over the types that a type holds.
type typeWalk struct {
	sound    bool
	quiet    bool
	textKeys bool
	quoted   bool
	depths   map[reflect.Type]int // of types that were seen; unbounded while they are looked at
}

// unbounded is the depth of a type that holds itself.
const unbounded = math.MaxInt32

// value notes what t tells, and returns how deep its JSON can be.
func (w *typeWalk) value(t reflect.Type) int {
	if depth, seen := w.depths[t]; seen {
		w.sound = w.sound && depth < unbounded
		return depth
	}
	w.depths[t] = unbounded
	depth := w.look(t)
	w.depths[t] = depth
	return depth
}

var TimeType = reflect.TypeFor[time.Time]()

func (w *typeWalk) look(t reflect.Type) int {
	if t == TimeType {
		return 0 // its methods write and read one string
	}
	if t.Kind() != reflect.Pointer && runsCode(t) { // a pointer's methods are looked for with its element
		w.quiet = false
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		w.sound = w.sound && t != reflect.TypeFor[json.Number]()
		return 0
	case reflect.Pointer:
		return w.value(t.Elem())
	case reflect.Slice, reflect.Array:
		return deeper(w.value(t.Elem()))
	case reflect.Map:
		switch t.Key().Kind() {
		case reflect.String:
			w.textKeys = true
		case reflect.Struct, reflect.Pointer:
			w.sound = false // two times can have one text
		}
		w.value(t.Key())
		return deeper(w.value(t.Elem()))
	case reflect.Struct:
		return w.fields(t)
	case reflect.Interface:
		w.quiet = false // it can hold anything
	}
	w.sound = false
	return 0
}

func (w *typeWalk) fields(t reflect.Type) int {
	depth := 0
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		w.sound = w.sound && isPlainName(name) && arePlainOptions(options)
		w.quoted = w.quoted || strings.Contains(options, "string")
		depth = max(depth, w.value(f.Type))
	}
	return deeper(depth)
}

func deeper(depth int) int { return min(depth+1, unbounded) }

// isPlainName tells whether a name in a tag is one that JSON, encoding/json and
// Jay write and read alike, and that means nothing to Jay.
func isPlainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.", c) >= 0) {
			return false
		}
	}
	return true
}

// arePlainOptions tells whether all options of a tag are known. Others may mean
// something: under GOEXPERIMENT=jsonv2, "inline" makes members of a map or a
// struct those of the struct around it.
func arePlainOptions(options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "", "omitempty", "omitzero", "string":
		default:
			return false
		}
	}
	return true
}

// codeTypes are the interfaces by which encoding/json calls a type's methods,
// and IsZero, which the option omitzero calls.
var codeTypes = []reflect.Type{
	reflect.TypeFor[json.Marshaler](),
	reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](),
	reflect.TypeFor[encoding.TextUnmarshaler](),
	reflect.TypeFor[interface{ IsZero() bool }](),
}

// runsCode tells whether encoding/json may call methods of t.
func runsCode(t reflect.Type) bool {
	for _, i := range codeTypes {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	// What encoding/json calls too under GOEXPERIMENT=jsonv2.
	_, marshals := reflect.PointerTo(t).MethodByName("MarshalJSONTo")
	_, unmarshals := reflect.PointerTo(t).MethodByName("UnmarshalJSONFrom")
	return marshals || unmarshals
}
