package patch

import (
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/pieces"
)

// tree is a document that edits are applied to.
type tree struct {
	root    node
	limits  Limits
	work    work
	spare   []*object // unused objects, whose memory is reused
	scratch []byte    // for values that are copied at once
}

// node is a JSON value. It is closed, and raw is its JSON, until an edit goes
// into it. Then it is open: obj or arr is set, and raw has no meaning. A node
// without any of them is absent: a member that is about to get a value. An open
// node has one owner. Raw may be shared and is never written to.
type node struct {
	raw   []byte
	obj   *object // of an open object
	arr   *array  // of an open array
	depth int     // cached depthOf(raw) + 1; 0 for none
}

func (n *node) open() bool   { return n.obj != nil || n.arr != nil }
func (n *node) absent() bool { return n.raw == nil && !n.open() }

func (n *node) kind() jsonpath.Kind {
	switch {
	case n.obj != nil:
		return jsonpath.Object
	case n.arr != nil:
		return jsonpath.Array
	}
	return jsonpath.KindOf(n.raw)
}

// object opens n, which must be an object or absent.
func (t *tree) object(n *node) (*object, error) {
	if n.obj != nil {
		return n.obj, nil
	}
	if err := t.work.spend(workPerValue + len(n.raw)); err != nil {
		return nil, err
	}
	o := new(object)
	if last := len(t.spare) - 1; last >= 0 {
		o, t.spare = t.spare[last], t.spare[:last]
	}
	o.read(n.raw)
	if err := t.work.spend(workPerValue * o.live); err != nil {
		return nil, err
	}
	*n = node{obj: o}
	return o, nil
}

// array opens n, which must be an array or absent.
func (t *tree) array(n *node) *array {
	if n.arr == nil {
		a := new(array)
		if n.raw != nil {
			a.unread = append(a.unread, &run{raw: n.raw})
		}
		*n = node{arr: a}
	}
	return n.arr
}

// set replaces n by value, unless both have the same text, apart from the order
// of members and escapes: then n keeps its bytes.
func (t *tree) set(n *node, value node) error {
	if n.absent() || n.kind() != value.kind() {
		*n = value
		return nil
	}
	old, err := t.json(n)
	if err != nil {
		return err
	}
	same, err := sameText(&t.work, old, value.raw)
	if err == nil && !same {
		*n = value
	}
	return err
}

// json returns n as JSON: its bytes without a copy if it is closed.
func (t *tree) json(n *node) ([]byte, error) {
	if !n.open() {
		return n.raw, nil
	}
	size, err := t.size(n)
	if err != nil {
		return nil, err
	}
	return n.append(make([]byte, 0, size)), nil
}

// size returns the length of n as JSON, and spends the work of appending it.
func (t *tree) size(n *node) (int, error) {
	size, nodes := n.measure()
	return size, t.work.spend(size + workPerValue*nodes)
}

// depthOf returns the depth of nested objects and arrays in n.
func (t *tree) depthOf(n *node) (int, error) {
	if n.depth > 0 {
		return n.depth - 1, nil
	}
	raw, err := t.json(n)
	if err != nil {
		return 0, err
	}
	if err := t.work.spend(len(raw)); err != nil {
		return 0, err
	}
	depth := depthOf(raw)
	if !n.open() {
		n.depth = depth + 1
	}
	return depth, nil
}

// measure returns the length of n as JSON, and the number of its nodes and spans.
func (n *node) measure() (size, nodes int) {
	switch {
	case n.obj != nil:
		return n.obj.measure()
	case n.arr != nil:
		return n.arr.measure()
	}
	return len(n.raw), 1
}

// append appends n as JSON.
func (n *node) append(dst []byte) []byte {
	switch {
	case n.obj != nil:
		return n.obj.append(dst)
	case n.arr != nil:
		return n.arr.append(dst)
	}
	return pieces.Append(dst, n.raw)
}

// maxSpares and maxSpareMembers bound the memory that a tree keeps for reuse.
const (
	maxSpares       = 64
	maxSpareMembers = 1000
)

// discard recycles the objects in n, which must not be used any more.
func (t *tree) discard(n *node) {
	o := n.obj
	if o == nil {
		return
	}
	for i := range o.members {
		t.discard(&o.members[i].value)
	}
	if len(t.spare) < maxSpares && cap(o.starts) <= maxSpareMembers && cap(o.members) <= maxSpareMembers {
		t.spare = append(t.spare, o)
	}
}

// render returns the edited document, or body if it is the same.
func (t *tree) render(body []byte) (out []byte, changed bool, err error) {
	if !t.root.open() && sharesStart(t.root.raw, body) {
		return body, false, nil
	}
	size, err := t.size(&t.root)
	if err != nil {
		return nil, false, err
	}
	// A result of the same size may be body itself, which may exceed the limit: it
	// is checked below.
	if size != len(body) {
		if err := t.limits.checkBytes(size); err != nil {
			return nil, false, err
		}
	}
	out = t.root.append(make([]byte, 0, size))
	if pieces.Equal(out, body) {
		return body, false, nil
	}
	if err := t.limits.checkBytes(size); err != nil {
		return nil, false, err
	}
	return out, true, nil
}
