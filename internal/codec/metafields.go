package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/instant"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/metadata"
)

// MetaFields are the fields of a type that hold metadata of its documents, beside the ID
// and the version: those tagged `jay:"lastModified"`, `jay:"collection"`, `jay:"expires"`,
// `jay:"metadata"` and `jay:"metadata=Key"`. It is immutable.
type MetaFields struct {
	modified   []int // index paths; nil for none
	collection []int
	custom     []int // all custom metadata
	keys       []metaKey
	expires    bool // one of keys is metadata.Expires
}

// metaKey is a field that holds one key of the custom metadata. One that holds
// metadata.Expires is a time.Time or a pointer to one, and holds only what is an instant.
type metaKey struct {
	name  string
	index []int
}

// IsMetaTag reports whether a jay tag makes its field one of metadata.
func IsMetaTag(tag string) bool {
	return tag == "lastModified" || tag == "collection" || tag == "expires" || tag == "metadata" || strings.HasPrefix(tag, "metadata=")
}

// FindMeta finds the fields that hold metadata, if any.
func (m *Mapping) FindMeta() error {
	var found MetaFields
	has := false
	for _, f := range reflect.VisibleFields(m.Type) {
		tag := f.Tag.Get("jay")
		if !IsMetaTag(tag) {
			continue
		}
		if !f.IsExported() || !reachable(m.Type, f.Index) {
			return fmt.Errorf("%w: the field %s.%s, tagged %q, must be exported and of the struct itself", errs.ErrType, m.Type, f.Name, tag)
		}
		path, err := found.add(f, tag)
		if err != nil {
			return fmt.Errorf("%w: the field %s.%s, tagged %q: %w", errs.ErrType, m.Type, f.Name, tag, err)
		}
		has = true
		m.dropField(&f)
		if m.instead == nil {
			m.instead = make(map[string]string)
		}
		m.instead[jsonName(f)] = path // unused for "", which no path has
	}
	if found.custom != nil && len(found.keys) > 0 {
		return fmt.Errorf("%w: %s has a field for all custom metadata, and others for keys of it", errs.ErrType, m.Type)
	}
	if has {
		m.Meta = &found
	}
	return nil
}

// add takes in a field, and returns the path by which queries ask for what it holds.
func (mf *MetaFields) add(f reflect.StructField, tag string) (path string, err error) {
	once := func(to *[]int) error {
		if *to != nil {
			return fmt.Errorf("there are two")
		}
		*to = f.Index
		return nil
	}
	switch tag {
	case "lastModified":
		if f.Type != TimeType {
			return "", fmt.Errorf("it must be a time.Time")
		}
		return "@metadata.@last-modified", once(&mf.modified)
	case "collection":
		if f.Type.Kind() != reflect.String {
			return "", fmt.Errorf("it must be a string")
		}
		return "@metadata.@collection", once(&mf.collection)
	case "expires":
		if f.Type != TimeType && f.Type != reflect.PointerTo(TimeType) {
			return "", fmt.Errorf("it must be a time.Time or a *time.Time")
		}
		if mf.expires {
			return "", fmt.Errorf("there are two")
		}
		mf.expires = true
		mf.keys = append(mf.keys, metaKey{metadata.Expires, f.Index})
		return "@metadata." + metadata.Expires, nil
	case "metadata":
		if !holdsObject(f.Type) {
			return "", fmt.Errorf("it must be a map with keys of text, a struct, a pointer to one, or json.RawMessage")
		}
		return "@metadata.KEY", once(&mf.custom)
	}
	name := strings.TrimPrefix(tag, "metadata=")
	given, err := metadata.Parse(append(jsonpath.AppendQuoted([]byte("{"), name), ":1}"...))
	if err != nil || name == "" || given.Custom == nil || string(given.Custom) != string(jsonpath.AppendQuoted([]byte("{"), name))+":1}" {
		return "", fmt.Errorf("%.100q is no key of custom metadata", name)
	}
	if slices.ContainsFunc(mf.keys, func(k metaKey) bool { return k.name == name }) {
		return "", fmt.Errorf("there are two of this key")
	}
	mf.keys = append(mf.keys, metaKey{name, f.Index})
	return "@metadata" + "." + string(jsonpath.AppendMember(nil, name)), nil
}

// holdsObject reports whether the JSON of a type is an object or null.
func holdsObject(t reflect.Type) bool {
	if t == reflect.TypeFor[json.RawMessage]() {
		return true
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return !ownJSON(t) && t != TimeType && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map && t.Key().Kind() == reflect.String)
}

// WritesCustom reports whether values have custom metadata to be written.
func (mf *MetaFields) WritesCustom() bool { return mf != nil && (mf.custom != nil || len(mf.keys) > 0) }

// memberName returns the name of a member of which raw is the key, with its quotes.
func memberName(raw []byte) string { return string(jsonpath.AppendUnquoted(nil, raw)) }

// indexes returns the index paths of all fields.
func (mf *MetaFields) indexes() [][]int {
	if mf == nil {
		return nil
	}
	all := [][]int{}
	for _, index := range [][]int{mf.modified, mf.collection, mf.custom} {
		if index != nil {
			all = append(all, index)
		}
	}
	for _, k := range mf.keys {
		all = append(all, k.index)
	}
	return all
}

// SetMeta sets the fields of v to the metadata of its document: what is custom only if
// decode is true.
func (m *Mapping) SetMeta(v any, modified time.Time, collection string, custom []byte, decode bool) error {
	mf := m.Meta
	if mf == nil {
		return nil
	}
	value := reflect.ValueOf(v).Elem()
	if mf.modified != nil {
		value.FieldByIndex(mf.modified).Set(reflect.ValueOf(modified))
	}
	if mf.collection != nil {
		value.FieldByIndex(mf.collection).SetString(collection)
	}
	if !decode {
		return nil
	}
	return m.SetCustom(v, custom)
}

// SetRepeated gives v the ID and the metadata of what an earlier call with the same request ID has written, of which the
// custom metadata is not known.
func (m *Mapping) SetRepeated(v any, written metadata.Metadata) {
	m.SetIdentity(v, written.ID, written.ChangeVector)
	_ = m.SetMeta(v, written.LastModified, written.Collection, nil, false) // only decoding can fail
}

// SetCustom sets the fields of v to custom metadata, a JSON object or nothing. What is not
// there is zero.
func (m *Mapping) SetCustom(v any, custom []byte) error {
	mf := m.Meta
	if !mf.WritesCustom() {
		return nil
	}
	value := reflect.ValueOf(v).Elem()
	if mf.custom != nil {
		f := value.FieldByIndex(mf.custom)
		f.SetZero()
		if len(custom) == 0 {
			return nil
		}
		return decodeMeta(custom, f, "@metadata")
	}
	members := make(map[string][]byte)
	if len(custom) > 0 {
		for name, raw := range jsonpath.Members(custom) {
			members[memberName(name)] = raw
		}
	}
	for _, k := range mf.keys {
		f := value.FieldByIndex(k.index)
		f.SetZero()
		if k.name == metadata.Expires {
			setExpiry(f, custom)
			continue
		}
		if raw, found := members[k.name]; found {
			if err := decodeMeta(raw, f, "@metadata."+k.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// setExpiry sets a field to the expiry in custom metadata. It stays as it is if there is none, or
// text of an older Jay that is no instant.
func setExpiry(f reflect.Value, custom []byte) {
	at := metadata.ReadTimes(custom).Expires
	switch {
	case at.IsZero():
	case f.Kind() == reflect.Pointer:
		f.Set(reflect.ValueOf(&at))
	default:
		f.Set(reflect.ValueOf(at))
	}
}

// SetExpiry sets the field of v that holds the expiry, if there is one, to the expiry that was
// written: an option of the write may have decided it.
func (m *Mapping) SetExpiry(v any, custom []byte) {
	if m.Meta == nil || !m.Meta.expires {
		return
	}
	for _, k := range m.Meta.keys {
		if k.name == metadata.Expires {
			f := reflect.ValueOf(v).Elem().FieldByIndex(k.index)
			f.SetZero()
			setExpiry(f, custom)
		}
	}
}

// KeepsDue reports which instants of a document a put of a value leaves as they are, as the value
// says nothing of them.
func (m *Mapping) KeepsDue() (expires, refresh bool) {
	if m.Meta == nil {
		return true, true
	}
	return m.Meta.custom == nil && !m.Meta.expires, m.Meta.custom == nil
}

// decodeMeta decodes JSON into a field. Numbers in interfaces keep their digits.
func decodeMeta(raw []byte, f reflect.Value, what string) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(f.Addr().Interface()); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Custom returns the custom metadata that v asks for, as a JSON object: {} for none. If
// the type has fields for single keys, the others are those of base, an object or nothing.
func (m *Mapping) Custom(v any, base []byte) ([]byte, error) {
	value := reflect.ValueOf(v).Elem()
	if m.Meta.custom != nil {
		raw, err := encodeMeta(value.FieldByIndex(m.Meta.custom))
		if err != nil || string(raw) == "null" || len(raw) == 0 {
			return []byte("{}"), err
		}
		return raw, nil
	}
	out := []byte{'{'}
	put := func(name string, raw []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonpath.AppendQuoted(out, name), ':'), raw...)
	}
	if len(base) > 0 {
		for quoted, raw := range jsonpath.Members(base) {
			name := memberName(quoted)
			if !slices.ContainsFunc(m.Meta.keys, func(k metaKey) bool { return k.name == name }) {
				put(name, raw)
			}
		}
	}
	for _, k := range m.Meta.keys {
		f := value.FieldByIndex(k.index)
		if f.IsZero() || k.name == metadata.Expires && isNever(f) {
			continue
		}
		raw, err := encodeMeta(f)
		if err != nil {
			return nil, err
		}
		put(k.name, raw)
	}
	return append(out, '}'), nil
}

// isNever reports whether a field for an expiry holds the zero time.
func isNever(f reflect.Value) bool { return reflect.Indirect(f).Interface().(time.Time).IsZero() }

func encodeMeta(f reflect.Value) ([]byte, error) {
	raw, err := instant.Marshal(f.Addr().Interface())
	if err != nil {
		return nil, fmt.Errorf("%w: metadata: %w", errs.ErrType, err)
	}
	return raw, nil
}

// SameCustom reports whether v asks for the custom metadata that it would have if it had
// been read from custom.
func (m *Mapping) SameCustom(v any, custom []byte) (bool, error) {
	fresh := reflect.New(m.Type).Interface()
	if err := m.SetCustom(fresh, custom); err != nil {
		return false, err
	}
	was, err := m.Custom(fresh, nil)
	if err != nil {
		return false, err
	}
	now, err := m.Custom(v, nil)
	return bytes.Equal(was, now), err
}

// leftOutMeta returns the fields of metadata that are in the JSON of a value and not in
// the stored body, as a key, and whether all of them are fields of the struct itself.
func (m *Mapping) leftOutMeta() (key string, own bool) {
	own = true
	for _, index := range m.Meta.indexes() {
		if len(index) > 1 {
			own = own && m.Type.FieldByIndex(index).Tag.Get("json") == "-"
			continue
		}
		key += "," + strconv.Itoa(index[0])
	}
	return key, own
}
