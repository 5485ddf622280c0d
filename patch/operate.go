package patch

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
)

// runOperations applies JSONPatch.
func (e *Edit) runOperations(t *tree) error {
	copied := 0
	for i := range e.ops {
		o := &e.ops[i]
		if err := t.operate(o, &copied); err != nil {
			e, ok := err.(*Error)
			if !ok {
				return err
			}
			numbered := *e
			numbered.Detail = strings.TrimPrefix(fmt.Sprintf("%s (operation %d, %s)", numbered.Detail, i, o.kind), " ")
			return &numbered
		}
	}
	return nil
}

// operate applies one operation: RFC 6902, section 4. Copied is the number of
// bytes that the copy operations have copied so far.
func (t *tree) operate(o *operation, copied *int) error {
	if err := t.work.spend(workPerCall); err != nil {
		return err
	}
	switch o.kind {
	case "add":
		return t.addAt(o.path, node{raw: o.value}, o.depth)
	case "remove":
		_, err := t.detach(o.path)
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

// addAt adds a value of some depth at p: it replaces a member, or goes in front of
// an element.
func (t *tree) addAt(p pointer, value node, depth int) error {
	if len(p.tokens) == 0 {
		return t.replace(&t.root, p, value, depth)
	}
	parent, err := t.follow(p, len(p.tokens)-1)
	if err != nil {
		return err
	}
	token := p.tokens[len(p.tokens)-1]
	switch parent.kind() {
	case jsonpath.Object:
		object, err := t.object(parent)
		if err != nil {
			return err
		}
		n, err := t.member(object, token)
		if err == nil && n == nil {
			n, err = t.add(object, token)
		}
		if err != nil {
			return err
		}
		return t.replace(n, p, value, depth)
	case jsonpath.Array:
		array := t.array(parent)
		if err := t.readArray(array); err != nil {
			return err
		}
		i, err := p.index(token, array.length, true)
		if err != nil {
			return err
		}
		if err := t.checkReplace(p, depth); err != nil {
			return err
		}
		return t.insert(array, i, &value)
	}
	return &Error{Rule: "a value can only be added to an object or an array", Path: p.text, Detail: "the parent is " + kindText(parent.kind())}
}

// replace replaces n, the node at p, by a value of some depth.
func (t *tree) replace(n *node, p pointer, value node, depth int) error {
	if err := t.checkReplace(p, depth); err != nil {
		return err
	}
	if n == &t.root { // the document must stay an object without @metadata
		if kind := value.kind(); kind != jsonpath.Object {
			return &Error{Rule: "a document must stay an object", Path: p.text, Detail: "it would become " + kindText(kind)}
		}
		object, err := t.object(&value)
		if err != nil {
			return err
		}
		found, err := t.has(object, metadataName)
		if err != nil {
			return err
		}
		if found {
			return &Error{Rule: ruleMetadata, Path: p.text}
		}
	}
	if value.open() {
		*n = value
		return nil
	}
	return t.set(n, value)
}

// checkReplace checks the depth of the document with a value of some depth at p.
func (t *tree) checkReplace(p pointer, depth int) error {
	return t.limits.checkDepth(p.text, len(p.tokens)+depth)
}

// detach removes the value at p and returns it.
func (t *tree) detach(p pointer) (node, error) {
	n, err := t.target(p)
	if err != nil {
		return node{}, err
	}
	if n == &t.root {
		return node{}, &Error{Rule: "a document cannot be removed by an edit of it", Path: p.text}
	}
	taken := *n // removing it clears its node
	parent, err := t.follow(p, len(p.tokens)-1)
	if err != nil {
		return node{}, err
	}
	token := p.tokens[len(p.tokens)-1]
	if parent.kind() == jsonpath.Object {
		return taken, t.remove(parent.obj, token)
	}
	i, err := p.index(token, parent.arr.length, false)
	if err != nil {
		return node{}, err
	}
	return taken, t.cut(parent.arr, i)
}

// move moves a value without copying it.
func (t *tree) move(o *operation) error {
	n, err := t.target(o.from)
	if err != nil {
		return err
	}
	if o.from.text == o.path.text {
		return nil
	}
	depth, err := t.depthOf(n)
	if err != nil {
		return err
	}
	value, err := t.detach(o.from)
	if err != nil {
		return err
	}
	return t.addAt(o.path, value, depth)
}

// copy copies a value. The sum of all copies is bounded, as each could double the
// document.
func (t *tree) copy(o *operation, copied *int) error {
	n, err := t.target(o.from)
	if err != nil {
		return err
	}
	size, err := t.size(n)
	if err != nil {
		return err
	}
	if *copied += size; *copied > t.limits.MaxBytes {
		return &Error{Rule: fmt.Sprintf("at most %d bytes may be copied", t.limits.MaxBytes), Path: o.path.text, Detail: fmt.Sprintf("these would be %d", *copied)}
	}
	raw, err := t.json(n)
	if err != nil {
		return err
	}
	value := node{raw: raw}
	depth, err := t.depthOf(&value)
	if err != nil {
		return err
	}
	return t.addAt(o.path, value, depth)
}

// test returns an error that is ErrTestFailed unless the value at o.path is the
// same as o.value.
func (t *tree) test(o *operation) error {
	n, err := t.target(o.path)
	if err != nil {
		if e, ok := err.(*Error); !ok || e.work {
			return err
		}
		return &Error{Rule: ruleTest, Path: o.path.text, Detail: "there is no value"}
	}
	actual, err := t.json(n)
	if err != nil {
		return err
	}
	same, err := sameValue(&t.work, actual, o.value)
	if err != nil {
		return err
	}
	if !same {
		return &Error{Rule: ruleTest, Path: o.path.text, Detail: fmt.Sprintf("it is %.60s", bytes.ToValidUTF8(actual[:min(len(actual), 1000)], nil))}
	}
	return nil
}
