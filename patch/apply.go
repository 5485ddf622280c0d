package patch

import (
	"fmt"

	"github.com/jaydb/jay/internal/jsonpath"
)

// walk calls fn with every node that the first end steps of the edit's path
// lead to, from step i at n on. An edit that writes makes missing members, the
// last of which fn gets absent, and fails where it cannot; others go as far as
// there is something.
func (e *Edit) walk(n *node, i, end int, writes bool, fn func(*node) error) error {
	if i == end {
		return fn(n)
	}
	s := e.path.At(i)
	if s.Kind == jsonpath.Member {
		return e.walkMember(n, i, end, writes, fn)
	}
	if n.kind() != jsonpath.Array {
		return e.leadsAway(n, i, writes, jsonpath.Array)
	}
	elements := n.array().elements
	if s.Kind == jsonpath.Every {
		for _, element := range elements {
			if err := e.walk(element, i+1, end, writes, fn); err != nil {
				return err
			}
		}
		return nil
	}
	if s.Index >= len(elements) {
		if !writes {
			return nil
		}
		return e.error("an element must be there to be changed", fmt.Sprintf("the array has %d; Append adds more", len(elements)))
	}
	return e.walk(elements[s.Index], i+1, end, writes, fn)
}

// walkMember is walk where the next step is into a member.
func (e *Edit) walkMember(n *node, i, end int, writes bool, fn func(*node) error) error {
	if n.kind() != jsonpath.Object && !n.absent() {
		return e.leadsAway(n, i, writes, jsonpath.Object)
	}
	name := e.path.At(i).Name
	child := n.object().member(name)
	if child == nil {
		if !writes {
			return nil
		}
		// What is made must get a value: nothing is, on the way to elements.
		for j := i + 1; j < e.path.Len(); j++ {
			switch e.path.At(j).Kind {
			case jsonpath.Every:
				return nil
			case jsonpath.Index:
				return e.error("an element must be there to be changed", fmt.Sprintf("%.80q is missing", e.path.Prefix(j)))
			}
		}
		child = n.open.add(name)
	}
	return e.walk(child, i+1, end, writes, fn)
}

// leadsAway is what happens where step i cannot be taken from n, as it is not
// of the kind that is wanted.
func (e *Edit) leadsAway(n *node, i int, writes bool, wanted jsonpath.Kind) error {
	if !writes {
		return nil
	}
	rule := "a member can only be set in an object"
	if wanted == jsonpath.Array {
		rule = "only an array has elements"
	}
	return e.error(rule, fmt.Sprintf("%.80q is %s", e.path.Prefix(i), kindText(n.kind())))
}

func (e *Edit) error(rule, detail string) error {
	return &Error{Rule: rule, Path: e.path.String(), Detail: detail}
}

// replaceBySet is the replacement of Set.
func (e *Edit) replaceBySet(old []byte) ([]byte, error) {
	if len(old) > 0 && sameText(old, e.values[0]) {
		return old, nil
	}
	return e.values[0], nil
}

// replaceByIncrement is the replacement of Increment.
func (e *Edit) replaceByIncrement(old []byte) ([]byte, error) {
	if jsonpath.KindOf(old) != jsonpath.Number {
		return nil, e.error("only a number can be incremented", fmt.Sprintf("it is %.60s", old))
	}
	if isZero(e.values[0]) {
		return old, nil
	}
	text, detail := sum(old, e.values[0])
	if detail != "" {
		return nil, e.error("a sum must be a number that fits", detail)
	}
	return text, nil
}

// runReplacement applies Set or Increment.
func (e *Edit) runReplacement(t *tree) error {
	return e.walk(&t.root, 0, e.path.Len(), true, func(n *node) error {
		if err := t.limits.checkDepth(e.path.String(), e.path.Len()+e.depth); err != nil {
			return err
		}
		old := n.json()
		if n.absent() {
			old = e.missing
		}
		value, err := e.replacement(e, old)
		if err == nil && (n.absent() || !sharesStart(value, old)) {
			*n = node{raw: value}
		}
		return err
	})
}

func (e *Edit) runAppend(t *tree) error {
	if len(e.values) == 0 {
		return nil
	}
	return e.walk(&t.root, 0, e.path.Len(), true, func(n *node) error {
		if n.kind() != jsonpath.Array && !n.absent() {
			return e.error("values can only be appended to an array", "it is "+kindText(n.kind()))
		}
		if err := t.limits.checkDepth(e.path.String(), e.path.Len()+1+e.depth); err != nil {
			return err
		}
		array := n.array()
		for _, value := range e.values {
			array.elements = append(array.elements, &node{raw: value})
		}
		return nil
	})
}

func (e *Edit) runRemove(t *tree) error {
	return e.walk(&t.root, 0, e.path.Len(), false, func(n *node) error {
		if n.kind() != jsonpath.Array {
			return e.error("values can only be removed from an array", "it is "+kindText(n.kind()))
		}
		array := n.array()
		kept := array.elements[:0]
		for _, element := range array.elements {
			if !e.removes(element.json()) {
				kept = append(kept, element)
			}
		}
		array.elements = kept
		return nil
	})
}

// removes tells whether Remove takes an element away.
func (e *Edit) removes(element []byte) bool {
	for _, value := range e.values {
		if sameValue(element, value) {
			return true
		}
	}
	return false
}

func (e *Edit) runUnset(t *tree) error {
	last := e.path.Len() - 1
	s := e.path.At(last)
	return e.walk(&t.root, 0, last, false, func(n *node) error {
		switch kind := n.kind(); {
		case s.Kind == jsonpath.Member && kind == jsonpath.Object:
			n.object().remove(s.Name)
		case s.Kind == jsonpath.Every && kind == jsonpath.Array:
			n.array().elements = nil
		case s.Kind == jsonpath.Index && kind == jsonpath.Array:
			if array := n.array(); s.Index < len(array.elements) {
				array.cut(s.Index)
			}
		}
		return nil
	})
}

// cut takes an element away.
func (c *container) cut(i int) { c.elements = append(c.elements[:i], c.elements[i+1:]...) }

func (e *Edit) runRename(t *tree) error {
	last := e.path.Len() - 1
	from := e.path.At(last).Name
	return e.walk(&t.root, 0, last, false, func(n *node) error {
		if n.kind() != jsonpath.Object || from == e.name {
			return nil
		}
		object := n.object()
		i := object.position(from)
		if i < 0 {
			return nil
		}
		if object.position(e.name) >= 0 {
			return e.error("a member must not take the name of another", fmt.Sprintf("%.60q is there", e.name))
		}
		object.rename(i, from, e.name)
		return nil
	})
}

func (e *Edit) runMerge(t *tree) error { return e.merge(t, &t.root, e.values[0], 0) }

// merge merges an object into n, which lies inside depth others: function
// MergePatch of RFC 7386, section 2.
func (e *Edit) merge(t *tree, n *node, patch []byte, depth int) error {
	if err := t.limits.checkDepth("", depth+1); err != nil {
		return err
	}
	if n.kind() != jsonpath.Object {
		*n = node{}
	}
	object := n.object()
	for key, value := range jsonpath.Members(patch) {
		name := jsonpath.Unquoted(key)
		kind := jsonpath.KindOf(value)
		if kind == jsonpath.Null {
			object.remove(name)
			continue
		}
		child := object.member(name)
		if child == nil {
			child = object.add(name)
		}
		if kind == jsonpath.Object {
			if err := e.merge(t, child, value, depth+1); err != nil {
				return err
			}
			continue
		}
		if err := t.limits.checkDepth("", depth+1+depthOf(value)); err != nil {
			return err
		}
		child.set(value)
	}
	return nil
}
