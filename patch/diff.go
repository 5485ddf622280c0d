package patch

import (
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/internal/jsonpath"
)

// ChangeKind is the kind of a Change.
type ChangeKind uint8

const (
	Added   ChangeKind = iota + 1 // only the second document has the value
	Removed                       // only the first document has the value
	Changed                       // the values differ
)

// String returns the name of the kind, such as "added".
func (k ChangeKind) String() string {
	switch k {
	case Added:
		return "added"
	case Removed:
		return "removed"
	case Changed:
		return "changed"
	}
	return "unknown"
}

// MarshalText returns the name of the kind, which JSON has in place of its number.
func (k ChangeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name of a kind.
func (k *ChangeKind) UnmarshalText(text []byte) error {
	for one := Added; one <= Changed; one++ {
		if string(text) == one.String() {
			*k = one
			return nil
		}
	}
	return fmt.Errorf("the kind of a change is added, removed or changed, not %.100q", text)
}

// Change is one difference between two documents. Path has the syntax of the paths of edits, but
// may be longer than these. Old is nil if the value was added, New if it was removed. Both share
// memory with the documents. In JSON a change is {"path":"Total","kind":"changed","old":1,"new":2}.
type Change struct {
	Path string          `json:"path"`
	Kind ChangeKind      `json:"kind"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// Diff returns the differences between two documents, which must be objects that
// Apply accepts; an empty slice stands for an empty object. Objects are compared
// member by member and arrays element by element, so that inserting an element
// changes all that follow it. A value of another kind is one change. Changed and
// removed members come in the order of the first document, added ones after them
// in the order of the second. There are no changes if the documents are the same
// JSON: see Equality in the package documentation.
func Diff(before, after []byte) []Change {
	d := diff{}
	d.object(before, after)
	return d.changes
}

// diff is the state of Diff.
type diff struct {
	path    []byte // of the values under comparison
	changes []Change
}

// note records a change at the current path.
func (d *diff) note(kind ChangeKind, before, after []byte) {
	d.changes = append(d.changes, Change{string(d.path), kind, before, after})
}

func (d *diff) value(before, after []byte) {
	if string(before) == string(after) {
		return
	}
	kind := jsonpath.KindOf(before)
	switch {
	case kind == jsonpath.KindOf(after) && kind == jsonpath.Object:
		d.object(before, after)
	case kind == jsonpath.KindOf(after) && kind == jsonpath.Array:
		d.array(before, after)
	default:
		if same, _ := sameValue(unlimited(), before, after); !same { // unlimited work cannot fail
			d.note(Changed, before, after)
		}
	}
}

func (d *diff) object(before, after []byte) {
	olds, news := byName(before), byName(after)
	length := len(d.path)
	for key, old := range jsonpath.Members(before) {
		name := jsonpath.Unquoted(key)
		d.path = jsonpath.AppendMember(d.path[:length], name)
		if value, found := news[name]; found {
			d.value(old, value)
		} else {
			d.note(Removed, old, nil)
		}
	}
	for key, value := range jsonpath.Members(after) {
		name := jsonpath.Unquoted(key)
		if _, found := olds[name]; !found {
			d.path = jsonpath.AppendMember(d.path[:length], name)
			d.note(Added, nil, value)
		}
	}
	d.path = d.path[:length]
}

func (d *diff) array(before, after []byte) {
	olds, news := values(before), values(after)
	length := len(d.path)
	for i := range max(len(olds), len(news)) {
		d.path = jsonpath.AppendIndex(d.path[:length], i)
		switch {
		case i >= len(news):
			d.note(Removed, olds[i], nil)
		case i >= len(olds):
			d.note(Added, nil, news[i])
		default:
			d.value(olds[i], news[i])
		}
	}
	d.path = d.path[:length]
}
