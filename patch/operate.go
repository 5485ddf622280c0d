package patch

import (
	"bytes"
	"fmt"

	"github.com/jaydb/jay/internal/jsonpath"
)

// runOperations applies JSONPatch.
func (e *Edit) runOperations(t *tree) error {
	copied := 0
	for i := range e.ops {
		if err := t.operate(&e.ops[i], &copied); err != nil {
			numbered := *err.(*Error)
			numbered.Detail = fmt.Sprintf("%s (operation %d, %s)", numbered.Detail, i, e.ops[i].kind)
			return &numbered
		}
	}
	return nil
}

// operate applies one operation: RFC 6902, section 4. Copied counts the bytes
// that were copied.
func (t *tree) operate(o *operation, copied *int) error {
	switch o.kind {
	case "add":
		return t.add(o.path, node{raw: o.value}, o.depth)
	case "remove":
		_, err := t.take(o.path)
		return err
	case "replace":
		n, err := t.target(o.path)
		if err != nil {
			return err
		}
		return t.replace(n, o.path, node{raw: o.value}, o.depth)
	case "move":
		return t.move(o)
	case "copy":
		return t.copy(o, copied)
	}
	return t.test(o)
}

// add puts a value where p points to, in the place of a member or in front of
// an element.
func (t *tree) add(p pointer, value node, depth int) error {
	if len(p.tokens) == 0 {
		return t.replace(&t.root, p, value, depth)
	}
	parent, err := t.find(p, len(p.tokens)-1)
	if err != nil {
		return err
	}
	token := p.tokens[len(p.tokens)-1]
	switch parent.kind() {
	case jsonpath.Object:
		n := parent.object().member(token)
		if n == nil {
			n = parent.object().add(token)
		}
		return t.replace(n, p, value, depth)
	case jsonpath.Array:
		array := parent.array()
		i, err := p.index(token, len(array.elements), true)
		if err != nil {
			return err
		}
		array.elements = append(array.elements, nil)
		copy(array.elements[i+1:], array.elements[i:])
		array.elements[i] = new(node)
		return t.replace(array.elements[i], p, value, depth)
	}
	return &Error{Rule: "a value can only be added to an object or an array", Path: p.text, Detail: "the parent is " + kindText(parent.kind())}
}

// replace makes n, which p points to, what value is.
func (t *tree) replace(n *node, p pointer, value node, depth int) error {
	if err := t.limits.checkDepth(p.text, len(p.tokens)+depth); err != nil {
		return err
	}
	if n == &t.root {
		if kind := value.kind(); kind != jsonpath.Object {
			return &Error{Rule: "a document must stay an object", Path: p.text, Detail: "it would become " + kindText(kind)}
		}
		if value.object().member(metadataName) != nil {
			return &Error{Rule: ruleMetadata, Path: p.text}
		}
	}
	if value.open != nil {
		*n = value
		return nil
	}
	n.set(value.raw)
	return nil
}

// take takes away what p points to and returns it.
func (t *tree) take(p pointer) (node, error) {
	n, err := t.target(p)
	if err != nil {
		return node{}, err
	}
	if n == &t.root {
		return node{}, &Error{Rule: "a document cannot be removed by an edit of it", Path: p.text}
	}
	taken := *n
	parent, err := t.find(p, len(p.tokens)-1)
	if err != nil {
		return node{}, err
	}
	token := p.tokens[len(p.tokens)-1]
	if parent.kind() == jsonpath.Object {
		parent.object().remove(token)
		return taken, nil
	}
	i, err := p.index(token, len(parent.array().elements), false)
	if err != nil {
		return node{}, err
	}
	parent.array().cut(i)
	return taken, nil
}

func (t *tree) move(o *operation) error {
	n, err := t.target(o.from)
	if err != nil {
		return err
	}
	if o.from.text == o.path.text {
		return nil
	}
	depth := depthOf(n.json())
	value, err := t.take(o.from)
	if err != nil {
		return err
	}
	return t.add(o.path, value, depth)
}

func (t *tree) copy(o *operation, copied *int) error {
	n, err := t.target(o.from)
	if err != nil {
		return err
	}
	if *copied += n.size(); *copied > t.limits.MaxBytes {
		return &Error{Rule: fmt.Sprintf("at most %d bytes may be copied", t.limits.MaxBytes), Path: o.path.text, Detail: fmt.Sprintf("these would be %d", *copied)}
	}
	raw := n.json()
	return t.add(o.path, node{raw: raw}, depthOf(raw))
}

func (t *tree) test(o *operation) error {
	n, err := t.target(o.path)
	if err != nil {
		return &Error{Rule: ruleTest, Path: o.path.text, Detail: "there is no value"}
	}
	if actual := n.json(); !sameValue(actual, o.value) {
		return &Error{Rule: ruleTest, Path: o.path.text, Detail: fmt.Sprintf("it is %.60s", bytes.ToValidUTF8(actual, nil))}
	}
	return nil
}
