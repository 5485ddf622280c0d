package codec

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// TypeInfo is what the types in a struct guarantee about the JSON of every value:
// see docs/decisions/0009-trusted-encoding.md.
type TypeInfo struct {
	// Quiet means that encoding and decoding a value run no user code, so that
	// several goroutines may do it at once.
	Quiet bool

	// View is the struct as it is stored, without the members for the ID and the
	// version. It is set if encoding/json makes a valid body of every value: valid
	// JSON, without repeated keys, without @metadata, at most Depth levels deep.
	// Otherwise it is nil. It differs from the struct in its tags only.
	View     reflect.Type
	Depth    int
	textKeys bool // View holds, but keys of maps may repeat: see repeatsKeys

	// Times means that a value may hold a time.Time, in an interface for instance, so
	// that instant.Marshal must encode it. It is not set if a tag has a name or an option
	// that encoding/json ignores, or a map has keys that it refuses: there the two differ,
	// and times stay as encoding/json spells them.
	Times bool

	// Quoted means that a field has the option string, which encoding/json reads in
	// its own way: see DecodeJSON.
	Quoted bool
}

// typeKey is what a TypeInfo depends on.
type typeKey struct {
	typ         reflect.Type
	id, version int    // the fields that are left out; -1 for none
	own         bool   // no other fields are left out
	meta        string // the fields for other metadata: their positions, each behind a comma
}

// infos holds a TypeInfo for each typeKey. Types are never forgotten, as in
// encoding/json.
var infos sync.Map

// Inspect sets the mapping's TypeInfo, once the fields are known.
func (m *Mapping) Inspect() {
	key := typeKey{typ: m.Type, id: m.leftOut(m.id), version: m.leftOut(m.Version)}
	key.own = len(m.Drop) == 0 || len(m.id) == 1 && len(m.Version) <= 1
	if m.Meta != nil {
		var own bool
		key.meta, own = m.leftOutMeta()
		key.own = key.own && own
	}
	if known, ok := infos.Load(key); ok {
		m.Info = known.(TypeInfo)
		return
	}
	m.Info = key.inspect()
	infos.Store(key, m.Info)
}

// leftOut returns the field of the struct itself that is in the JSON and not in the
// stored body, or -1.
func (m *Mapping) leftOut(index []int) int {
	if len(index) != 1 || m.Type.Field(index[0]).Tag.Get("json") == "-" {
		return -1
	}
	return index[0]
}

func (k typeKey) inspect() TypeInfo {
	w := typeWalk{sound: k.own, quiet: k.quietMeta(), depths: make(map[reflect.Type]int), root: k}
	depth := w.value(k.typ)
	s := TypeInfo{Quiet: w.quiet, Depth: depth, textKeys: w.textKeys, Quoted: w.quoted, Times: w.times && !w.odd}
	if !w.sound || !w.quiet {
		return s
	}
	if s.View = k.typ; k.id >= 0 || k.version >= 0 || k.meta != "" {
		s.View = k.withoutFields()
	}
	return s
}

// withoutFields returns the struct type with tags that keep the fields out of the
// JSON, or nil if their names are ambiguous.
func (k typeKey) withoutFields() reflect.Type {
	fields := make([]reflect.StructField, k.typ.NumField())
	names := make(map[string]bool)
	for i := range fields {
		f := k.typ.Field(i)
		name := jsonName(f)
		if f.Anonymous || names[name] {
			return nil // encoding/json leaves out a name that two fields claim, and so might drop both
		}
		names[name] = name != ""
		if i == k.id || i == k.version || k.isMeta(i) {
			f.Tag = `json:"-"`
		}
		fields[i] = f
	}
	view := reflect.StructOf(fields)
	if !reflect.PointerTo(k.typ).ConvertibleTo(reflect.PointerTo(view)) {
		return nil // cannot happen, but encodeStored relies on it
	}
	return view
}

// isMeta reports whether the i-th field of the struct holds other metadata.
func (k typeKey) isMeta(i int) bool {
	return k.meta != "" && strings.Contains(k.meta+",", ","+strconv.Itoa(i)+",")
}

// quietMeta reports whether encoding and decoding the fields for other metadata runs no
// user code.
func (k typeKey) quietMeta() bool {
	w := typeWalk{quiet: true, depths: make(map[reflect.Type]int)}
	for i := range k.typ.NumField() {
		if f := k.typ.Field(i); k.isMeta(i) && f.Type.Kind() != reflect.String {
			w.value(f.Type)
		}
	}
	return w.quiet
}

// jsonName returns the name that a field's tag gives it in JSON, or "".
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

// typeWalk visits the types that a type holds.
type typeWalk struct {
	sound    bool
	quiet    bool
	textKeys bool
	quoted   bool
	times    bool
	odd      bool                 // a tag or a key of a map has no meaning to encoding/json
	depths   map[reflect.Type]int // of types that were seen; unbounded while a type is being visited
	root     typeKey              // the struct itself
}

// unbounded is the depth of a recursive type.
const unbounded = math.MaxInt32

// value records what t guarantees, and returns how deep its JSON can be.
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
		w.times = true
		return 0 // its methods read and write one string
	}
	if t.Kind() != reflect.Pointer && runsCode(t) { // the methods of a pointer are checked with its element
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
			w.sound = false // two times can have the same text, and so two keys can become one
		}
		switch k := t.Key(); {
		case k.Kind() == reflect.String, k.Kind() >= reflect.Int && k.Kind() <= reflect.Uintptr, k.Implements(codeTypes[2]):
		default:
			w.odd = true
		}
		w.value(t.Key())
		return deeper(w.value(t.Elem()))
	case reflect.Struct:
		return w.fields(t)
	case reflect.Interface:
		w.quiet = false // it can hold a value of any type
		w.times = true
	}
	w.sound = false
	return 0
}

func (w *typeWalk) fields(t reflect.Type) int {
	depth := 0
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() && !f.Anonymous || t == w.root.typ && w.root.isMeta(i) {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		w.sound = w.sound && isPlainName(name) && arePlainOptions(options)
		w.odd = w.odd || strings.ContainsAny(name, "\"'`\\") || !arePlainOptions(options)
		w.quoted = w.quoted || strings.Contains(options, "string")
		depth = max(depth, w.value(f.Type))
	}
	return deeper(depth)
}

func deeper(depth int) int { return min(depth+1, unbounded) }

// isPlainName reports whether a name in a tag is read and written alike by JSON,
// encoding/json and Jay, and has no meaning of its own to Jay.
func isPlainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.", c) >= 0) {
			return false
		}
	}
	return true
}

// arePlainOptions reports whether all options of a tag are known. Unknown ones may
// have a meaning: under GOEXPERIMENT=jsonv2, "inline" turns the members of a map or
// a struct into those of the struct around it.
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

// codeTypes are the interfaces whose methods encoding/json calls, and IsZero, which
// the option omitzero calls.
var codeTypes = []reflect.Type{
	reflect.TypeFor[json.Marshaler](),
	reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](),
	reflect.TypeFor[encoding.TextUnmarshaler](),
	reflect.TypeFor[interface{ IsZero() bool }](),
}

// runsCode reports whether encoding/json may call methods of t.
func runsCode(t reflect.Type) bool {
	for _, i := range codeTypes {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	// These too, under GOEXPERIMENT=jsonv2.
	_, marshals := reflect.PointerTo(t).MethodByName("MarshalJSONTo")
	_, unmarshals := reflect.PointerTo(t).MethodByName("UnmarshalJSONFrom")
	return marshals || unmarshals
}
