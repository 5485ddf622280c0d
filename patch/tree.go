package patch

import (
	"bytes"

	"github.com/jaydb/jay/internal/jsonpath"
)

// tree is a document that edits are applied to.
type tree struct {
	root    node
	limits  Limits
	work    work
	spare   []*object // closed ones, whose memory can be used again
	scratch []byte    // for what is copied at once
}

// node is a JSON value. It is closed, and raw is its JSON, until an edit goes
// into it; then it is open, and raw means nothing. A node that is neither is
// absent: a member that is about to get a value. Nodes that are open are never
// shared; raw always may be, and is not written to.
type node struct {
	raw   []byte
	obj   *object // if it is open and an object
	arr   *array  // if it is open and an array
	depth int     // that depthOf(raw) has found, +1; 0 if it was not asked
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

// set replaces what n is, unless it is that already.
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

// json returns n as JSON: the old bytes if it is closed.
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

// size returns the length of n as JSON, and spends the work to append it.
func (t *tree) size(n *node) (int, error) {
	size, nodes := n.measure()
	return size, t.work.spend(size + workPerValue*nodes)
}

// depthOf returns how deep objects and arrays lie inside each other in n.
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

// measure returns the length of n as JSON, and the number of nodes and spans
// that it consists of.
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
	return append(dst, n.raw...)
}

// maxSpares and maxSpareMembers bound the memory that a tree keeps to use it
// again.
const (
	maxSpares       = 64
	maxSpareMembers = 1000
)

// discard gives up what is in n, which must not be used any more.
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

// render returns the document, or body if that is what it is.
func (t *tree) render(body []byte) (out []byte, changed bool, err error) {
	if !t.root.open() && sharesStart(t.root.raw, body) {
		return body, false, nil
	}
	size, err := t.size(&t.root)
	if err != nil {
		return nil, false, err
	}
	if size != len(body) {
		if err := t.limits.checkBytes(size); err != nil {
			return nil, false, err
		}
	}
	out = t.root.append(make([]byte, 0, size))
	if bytes.Equal(out, body) {
		return body, false, nil
	}
	if err := t.limits.checkBytes(size); err != nil {
		return nil, false, err
	}
	return out, true, nil
}
