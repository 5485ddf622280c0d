package patch

import (
	"bytes"

	"github.com/jaydb/jay/internal/jsonpath"
)

// tree is a document that edits are applied to.
type tree struct {
	root   node
	limits Limits
}

// node is a JSON value. It is closed, and raw is its JSON, until an edit goes
// into it; then it is open, and raw means nothing. A node that is neither is
// absent: a member that is about to get a value. Nodes that are open are never
// shared; raw always may be, and is not written to.
type node struct {
	raw  []byte
	open *container
}

// container is what is in an object or an array that is open.
type container struct {
	kind     jsonpath.Kind
	members  []member // of an object
	live     int      // of members
	byName   map[string]int
	elements []*node // of an array
}

// member is a member of an object. Members that were taken away stay in the
// slice, so that the positions of the others stay.
type member struct {
	key   []byte // raw, with its quotes
	value node
	gone  bool
}

// manyMembers is the number of members from which an object keeps a map of
// their names.
const manyMembers = 32

func (n *node) absent() bool { return n.raw == nil && n.open == nil }

func (n *node) kind() jsonpath.Kind {
	if n.open != nil {
		return n.open.kind
	}
	return jsonpath.KindOf(n.raw)
}

// object opens n, which must be an object or absent.
func (n *node) object() *container {
	if n.open != nil {
		return n.open
	}
	n.open = &container{kind: jsonpath.Object}
	if n.raw == nil {
		return n.open
	}
	n.open.members = make([]member, 0, 16)
	for key, value := range jsonpath.Members(n.raw) {
		n.open.members = append(n.open.members, member{key: key, value: node{raw: value}})
	}
	n.open.live = len(n.open.members)
	return n.open
}

// array opens n, which must be an array or absent.
func (n *node) array() *container {
	if n.open != nil {
		return n.open
	}
	n.open = &container{kind: jsonpath.Array}
	var elements []node
	for _, element := range jsonpath.Elements(n.raw) {
		elements = append(elements, node{raw: element})
	}
	n.open.elements = make([]*node, len(elements))
	for i := range elements {
		n.open.elements[i] = &elements[i]
	}
	return n.open
}

// position returns the place of a member, or -1.
func (c *container) position(name string) int {
	if len(c.members) < manyMembers {
		for i := range c.members {
			if m := &c.members[i]; !m.gone && jsonpath.KeyIs(m.key, name) {
				return i
			}
		}
		return -1
	}
	if c.byName == nil {
		c.byName = make(map[string]int, 2*len(c.members))
		for i := range c.members {
			if m := &c.members[i]; !m.gone {
				c.byName[jsonpath.Unquoted(m.key)] = i
			}
		}
	}
	if i, found := c.byName[name]; found {
		return i
	}
	return -1
}

// member returns the value of a member, or nil. It is valid until a member is
// added.
func (c *container) member(name string) *node {
	if i := c.position(name); i >= 0 {
		return &c.members[i].value
	}
	return nil
}

// add adds a member at the end, with an absent value, and returns that. The
// object must not have a member of that name.
func (c *container) add(name string) *node {
	c.members = append(c.members, member{key: jsonpath.AppendQuoted(nil, name)})
	c.live++
	if c.byName != nil {
		c.byName[name] = len(c.members) - 1
	}
	return &c.members[len(c.members)-1].value
}

// remove takes a member away, if there is one.
func (c *container) remove(name string) {
	if i := c.position(name); i >= 0 {
		c.members[i] = member{gone: true}
		c.live--
		delete(c.byName, name)
	}
}

// rename gives a member another name, which no other has.
func (c *container) rename(i int, from, to string) {
	c.members[i].key = jsonpath.AppendQuoted(nil, to)
	if c.byName != nil {
		delete(c.byName, from)
		c.byName[to] = i
	}
}

// set replaces what n is, unless it is that already.
func (n *node) set(raw []byte) {
	if n.absent() || !sameText(n.json(), raw) {
		*n = node{raw: raw}
	}
}

// json returns n as JSON: the old bytes if it is closed.
func (n *node) json() []byte {
	if n.open == nil {
		return n.raw
	}
	return n.append(make([]byte, 0, n.size()))
}

// size returns the length of n as JSON.
func (n *node) size() int {
	if n.open == nil {
		return len(n.raw)
	}
	c := n.open
	size := len("{}") + max(0, c.live-1) + max(0, len(c.elements)-1)
	for i := range c.members {
		if m := &c.members[i]; !m.gone {
			size += len(m.key) + len(":") + m.value.size()
		}
	}
	for _, element := range c.elements {
		size += element.size()
	}
	return size
}

// append appends n as JSON.
func (n *node) append(dst []byte) []byte {
	if n.open == nil {
		return append(dst, n.raw...)
	}
	if n.open.kind == jsonpath.Array {
		dst = append(dst, '[')
		for i, element := range n.open.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = element.append(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	first := true
	for i := range n.open.members {
		m := &n.open.members[i]
		if m.gone {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, m.key...)
		dst = append(dst, ':')
		dst = m.value.append(dst)
	}
	return append(dst, '}')
}

// render returns the document, or body if that is what it is.
func (t *tree) render(body []byte) (out []byte, changed bool, err error) {
	if t.root.open == nil && sharesStart(t.root.raw, body) {
		return body, false, nil
	}
	size := t.root.size()
	out = t.root.append(make([]byte, 0, min(size, t.limits.MaxBytes)))
	if bytes.Equal(out, body) {
		return body, false, nil
	}
	if err := t.limits.checkBytes(size); err != nil {
		return nil, false, err
	}
	return out, true, nil
}
