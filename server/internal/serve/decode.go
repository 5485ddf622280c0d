package serve

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// AnyBytes returns what it takes to decode JSON into an any with DecodeNumbers.
func AnyBytes(text []byte) (int64, error) {
	n, err := SizeOf(text, &plan{kind: planAny})
	return n + 3*int64(len(text)), err // the decoder buffers the text
}

// SizeOf returns the bytes that decoding takes.
func SizeOf(text []byte, p *plan) (int64, error) {
	m := meter{text: text}
	if err := m.value(p); err != nil && err != ErrElement {
		return 0, err
	} else if err == nil {
		if m.space(); m.at == len(text) {
			return m.bytes, nil
		}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return 0, BadRequest("the body is not the JSON of this request: %v", err)
	}
	return 0, BadRequest("the body is not the JSON of this request")
}

// planKind says how a type is decoded.
type planKind int

const (
	planScalar planKind = iota // takes no memory beside the value itself
	planText                   // a string
	planRaw                    // raw JSON
	planStruct
	planList
	planMap
	planAny
)

// plan says how JSON is decoded into a type. It is immutable.
type plan struct {
	kind   planKind
	size   int64 // of the value itself
	extra  int64 // of what a pointer to it allocates
	elem   *plan // of a list or a map
	names  []string
	fields []*plan // of names
	most   int     // elements of a list; 0 for any number
	status int     // of the error for more
	empty  bool    // a struct takes unknown members that are empty
}

var plans sync.Map // of *plan, by reflect.Type

var (
	rawType         = reflect.TypeFor[json.RawMessage]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// Object is an object of JSON whose members a client names. It may also be an empty list:
// RavenDB's client for PHP writes an object without members so, as PHP has one type for both.
type Object[V any] map[string]V

// UnmarshalJSON implements json.Unmarshaler.
func (o *Object[V]) UnmarshalJSON(text []byte) error {
	if IsEmptyList(text) {
		*o = nil
		return nil
	}
	return json.Unmarshal(text, (*map[string]V)(o))
}

// IsEmptyList reports whether JSON is a list without elements.
func IsEmptyList(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 1 && text[0] == '[' && len(bytes.TrimSpace(text[1:])) == 1
}

// PlanOf returns the plan of a type.
func PlanOf(t reflect.Type) *plan {
	if p, found := plans.Load(t); found {
		return p.(*plan)
	}
	p := newPlan(t)
	plans.Store(t, p)
	return p
}

func newPlan(t reflect.Type) *plan {
	if t.Kind() == reflect.Pointer {
		p := *newPlan(t.Elem())
		p.extra += p.size
		p.size = int64(t.Size())
		return &p
	}
	p := &plan{size: int64(t.Size())}
	switch {
	case t == rawType:
		p.kind = planRaw
	case t.Kind() == reflect.Map: // an Object, too
		p.kind, p.elem = planMap, newPlan(t.Elem())
	case reflect.PointerTo(t).Implements(unmarshalerType):
		p.kind = planAny // more than its own decoding takes
	case t.Kind() == reflect.String:
		p.kind = planText
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		p.kind, p.elem = planList, newPlan(t.Elem())
	case t.Kind() == reflect.Interface:
		p.kind = planAny
	case t.Kind() == reflect.Struct:
		p.kind = planStruct
		for _, f := range reflect.VisibleFields(t) {
			p.empty = p.empty || f.Tag.Get("unknown") == "empty"
			if f.Anonymous || !f.IsExported() {
				continue // the fields of an embedded one are listed, too
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			field := newPlan(f.Type)
			if bound := f.Tag.Get("most"); bound != "" {
				number, status, _ := strings.Cut(bound, " ")
				field.most, _ = strconv.Atoi(number)
				field.status, _ = strconv.Atoi(status)
			}
			p.names, p.fields = append(p.names, name), append(p.fields, field)
		}
	}
	return p
}

// field returns the index of a member, or -1 if the type does not have it. As in
// encoding/json, case does not matter.
func (p *plan) field(name []byte) int {
	for i, one := range p.names {
		if one == string(name) {
			return i
		}
	}
	text, err := plainName(name)
	if err != nil {
		return -1
	}
	return slices.IndexFunc(p.names, func(one string) bool { return strings.EqualFold(one, text) })
}

// unknown is the error for a member that the type does not have.
func (p *plan) unknown(name []byte) error {
	return BadRequest("the member %.100q is not known here: there are %s", name, strings.Join(p.names, ", "))
}

// IsEmpty reports whether JSON is a value that asks for nothing.
func IsEmpty(text []byte) bool {
	var plain [8]byte // without white space
	n := 0
	for _, c := range text {
		if strings.IndexByte(" \t\r\n", c) >= 0 {
			continue
		}
		if n == len(plain) {
			return false
		}
		plain[n] = c
		n++
	}
	switch string(plain[:n]) {
	case "", "null", "false", "0", `""`, "{}", "[]":
		return true
	}
	return false
}

// anyValue is the plan of the value of a member that is not known.
var anyValue = &plan{}

// ofMember names the member that a map is, for an error.
func ofMember(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// plainName returns the name of a member, which may have escapes, without them.
func plainName(name []byte) (string, error) {
	text := string(name)
	if bytes.IndexByte(name, '\\') >= 0 && json.Unmarshal([]byte(`"`+text+`"`), &text) != nil {
		return "", ErrElement
	}
	return text, nil
}

// What a map takes for a member beside its name and value, and what one with members
// takes at least. A map has room for up to twice its members, and twice that while it
// grows.
const (
	mapMemberFactor = 4
	mapBytes        = 48
	mapGroupBytes   = 8 * 40
)

// meter adds up what the decoding of a text takes.
type meter struct {
	text  []byte
	at    int
	bytes int64
	name  string // of the member that is being read, for errors
	nest  []byte // the open brackets of an any
}

func (m *meter) space() {
	for m.at < len(m.text) {
		switch m.text[m.at] {
		case ' ', '\t', '\r', '\n':
			m.at++
		default:
			return
		}
	}
}

// next returns the next byte that is no white space, 0 at the end.
func (m *meter) next() byte {
	if m.space(); m.at == len(m.text) {
		return 0
	}
	return m.text[m.at]
}

// value reads a value. It returns ErrElement if the text is not JSON.
func (m *meter) value(p *plan) error {
	first := m.next()
	if first != 'n' { // null makes no pointer
		m.bytes += p.extra
	}
	switch {
	case p.kind == planAny:
		return m.any()
	case p.kind == planStruct && first == '{':
		return m.object(p)
	case p.kind == planMap && first == '{':
		return m.object(p)
	case p.kind == planList && first == '[':
		return m.list(p)
	}
	start := m.at
	if err := m.skip(); err != nil {
		return err
	}
	if p.kind == planText || p.kind == planRaw {
		m.bytes += int64(m.at - start)
	}
	return nil
}

// object reads an object into a struct or a map.
func (m *meter) object(p *plan) error {
	m.at++
	if m.next() == '}' {
		m.at++
		return nil
	}
	if p.kind == planMap {
		m.bytes += mapBytes + mapGroupBytes
	}
	var seen [4]uint64 // the members of a struct that were there
	var names map[string]bool
	if p.kind == planMap {
		names = make(map[string]bool)
	}
	for {
		if m.next() != '"' {
			return ErrElement
		}
		start := m.at
		if err := m.skip(); err != nil {
			return err
		}
		name := m.text[start+1 : m.at-1]
		if m.next() != ':' {
			return ErrElement
		}
		m.at++
		member, outer, known := p.elem, m.name, true
		if p.kind == planMap {
			plain, err := plainName(name)
			if err != nil {
				return err
			}
			if names[plain] {
				return BadRequest("the member %.100q%s is there twice", plain, ofMember(outer))
			}
			names[plain] = true
			m.bytes += mapMemberFactor*(16+p.elem.size+17) + 2*int64(len(name)) // in the map, and in names
		} else {
			i := p.field(name)
			if i < 0 && !p.empty {
				return p.unknown(name)
			}
			if known = i >= 0; !known {
				member = anyValue
			} else if m.name, member = p.names[i], p.fields[i]; seen[i/64]&(1<<(i%64)) != 0 {
				return BadRequest("the member %s is there twice", m.name)
			} else {
				seen[i/64] |= 1 << (i % 64)
			}
		}
		m.next()
		value := m.at
		if err := m.value(member); err != nil {
			return err
		}
		if !known && !IsEmpty(m.text[value:m.at]) {
			return p.unknown(name)
		}
		m.name = outer
		switch m.next() {
		case ',':
			m.at++
		case '}':
			m.at++
			return nil
		default:
			return ErrElement
		}
	}
}

// list reads an array into a slice.
func (m *meter) list(p *plan) error {
	m.at++
	if m.next() == ']' {
		m.at++
		return nil
	}
	name := m.name
	for n := 1; ; n++ {
		if p.most > 0 && n > p.most {
			err := TooLarge("%s has more than %d elements, which is the most", name, p.most)
			if p.status != 0 {
				err = BadRequest("%s has more than %d elements, which is the most", name, p.most)
			}
			return err
		}
		switch first := m.next(); {
		case first == 0:
		case first != '{' && p.elem.kind == planStruct:
			return BadRequest("element %d of %s is no object", n-1, name)
		case first != '"' && first != 'n' && p.elem.kind == planText:
			return BadRequest("element %d of %s is no text", n-1, name)
		}
		m.bytes += 2 * p.elem.size // it grows by copying
		if err := m.value(p.elem); err != nil {
			return err
		}
		switch m.next() {
		case ',':
			m.at++
		case ']':
			m.at++
			return nil
		default:
			return ErrElement
		}
	}
}

// any reads a value of any type, without recursion.
func (m *meter) any() error {
	m.nest = m.nest[:0]
	for {
		first := m.next()
		start := m.at
		switch first {
		case '{':
			m.bytes += mapBytes + mapGroupBytes + 16
			m.nest = append(m.nest, first)
			m.at++
		case '[':
			m.bytes += 24 + 16
			m.nest = append(m.nest, first)
			m.at++
		case ',':
			m.at++
			if len(m.nest) == 0 {
				return ErrElement
			}
		case ':':
			m.at++
		case '}', ']':
			m.at++
			if len(m.nest) == 0 || m.nest[len(m.nest)-1] != first-2 { // '[' and ']', '{' and '}' differ by two
				return ErrElement
			}
			m.nest = m.nest[:len(m.nest)-1]
		default:
			if err := m.skip(); err != nil {
				return err
			}
			m.bytes += 16 + int64(max(8, m.at-start)) // boxed, and its bytes
		}
		switch n := len(m.nest); {
		case n == 0:
			return nil
		case n > maxAnyDepth:
			return BadRequest("the JSON is nested deeper than %d levels", maxAnyDepth)
		case first == ',' && m.nest[n-1] == '{':
			m.bytes += mapMemberFactor * 32
		case first == ',':
			m.bytes += 2 * 16
		}
	}
}

// maxAnyDepth bounds the levels of a value of any type. encoding/json has the same bound.
const maxAnyDepth = 10_000

// skip goes behind a value.
func (m *meter) skip() error {
	if m.at == len(m.text) {
		return ErrElement
	}
	rest := m.text[m.at:]
	switch rest[0] {
	case '"':
		for i := 1; ; i += 2 {
			if i += plainRun(rest[min(i, len(rest)):]); i >= len(rest) {
				return ErrElement
			}
			if rest[i] == '"' {
				m.at += i + 1
				return nil
			}
		}
	case '{', '[':
		s := scanner{}
		n, done := s.scan(rest)
		if !done {
			return ErrElement
		}
		m.at += n
		return nil
	}
	n := 0
	for n < len(rest) && strings.IndexByte(",:]} \t\r\n", rest[n]) < 0 {
		n++
	}
	if n == 0 {
		return ErrElement
	}
	m.at += n
	return nil
}

// DecodeNumbers decodes JSON whose numbers keep their digits.
func DecodeNumbers(text []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(v)
}
