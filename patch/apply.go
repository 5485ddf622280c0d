package patch

import (
	"fmt"

	"github.com/jaydb/jay/internal/jsonpath"
)

// walk calls fn with every node at the first end steps of the edit's path. The
// steps from i on start at n. It does not use a node after fn has seen it, so that
// fn may replace it. If writes is set, walk makes missing members, passing the
// last one to fn as an absent node, and fails where it cannot. Null on the way
// counts as missing. If writes is not set, walk ignores paths that lead nowhere.
func (e *Edit) walk(t *tree, n *node, i, end int, writes bool, fn func(*node) error) error {
	if err := t.work.spend(workPerValue); err != nil {
		return err
	}
	if i == end {
		return fn(n)
	}
	s := e.path.At(i)
	if s.Kind == jsonpath.Member {
		return e.walkMember(t, n, i, end, writes, fn)
	}
	if n.kind() == jsonpath.Null && writes {
		_, err := e.checkMissing(i)
		return err
	}
	if n.kind() != jsonpath.Array {
		return e.wrongKind(n, i, writes, jsonpath.Array)
	}
	if s.Kind == jsonpath.Every {
		return e.walkEvery(t, n, i+1, end, writes, fn)
	}
	array := t.array(n)
	if err := t.readArray(array); err != nil {
		return err
	}
	if s.Index >= array.length {
		if !writes {
			return nil
		}
		return e.error("an element must be there to be changed", fmt.Sprintf("the array has %d; Append adds more", array.length))
	}
	element, err := t.element(array, s.Index)
	if err != nil {
		return err
	}
	return e.walk(t, element, i+1, end, writes, fn)
}

// walkMember is walk for a path whose step i is a member.
func (e *Edit) walkMember(t *tree, n *node, i, end int, writes bool, fn func(*node) error) error {
	if n.kind() == jsonpath.Null && writes {
		if nothing, err := e.checkMissing(i); nothing || err != nil {
			return err
		}
		*n = node{} // opened below, as an object
	}
	if n.kind() != jsonpath.Object && !n.absent() {
		return e.wrongKind(n, i, writes, jsonpath.Object)
	}
	name := e.path.At(i).Name
	object, err := t.object(n)
	if err != nil {
		return err
	}
	child, err := t.member(object, name)
	if err != nil {
		return err
	}
	if child == nil {
		if !writes {
			return nil
		}
		if nothing, err := e.checkMissing(i + 1); nothing || err != nil {
			return err
		}
		if child, err = t.add(object, name); err != nil {
			return err
		}
	}
	return e.walk(t, child, i+1, end, writes, fn)
}

// checkMissing checks the steps from i on, at which a value is missing or null. A
// member that is made there must get a value, and would not if elements follow in
// the path: they are missing, too. Nothing is true if the edit then changes
// nothing, since it is of every element.
func (e *Edit) checkMissing(i int) (nothing bool, err error) {
	for ; i < e.path.Len(); i++ {
		switch e.path.At(i).Kind {
		case jsonpath.Every:
			return true, nil
		case jsonpath.Index:
			return false, e.error("an element must be there to be changed", fmt.Sprintf("%.80q is missing or null", e.path.Prefix(i)))
		}
	}
	return false, nil
}

// wrongKind handles a node n that is not of the kind that step i needs: that is an
// error if the edit writes, and otherwise the path leads nowhere.
func (e *Edit) wrongKind(n *node, i int, writes bool, wanted jsonpath.Kind) error {
	if !writes {
		return nil
	}
	rule := "a member can only be set in an object"
	if wanted == jsonpath.Array {
		rule = "only an array has elements"
	}
	return e.error(rule, fmt.Sprintf("%.80q is %s", e.path.Prefix(i), kindText(n.kind())))
}

// error returns an *Error at the path of the edit.
func (e *Edit) error(rule, detail string) error {
	return &Error{Rule: rule, Path: e.path.String(), Detail: detail}
}

// replaceBySet is the replacement of Set.
func (e *Edit) replaceBySet(w *work, _, old []byte) ([]byte, error) {
	if len(old) == 0 || jsonpath.KindOf(old) != jsonpath.KindOf(e.values[0]) {
		return e.values[0], nil
	}
	same, err := sameText(w, old, e.values[0])
	if same {
		return old, err
	}
	return e.values[0], err
}

// replaceByIncrement is the replacement of Increment.
func (e *Edit) replaceByIncrement(w *work, dst, old []byte) ([]byte, error) {
	if jsonpath.KindOf(old) == jsonpath.Null {
		old = e.missing
		if e.amount.zero {
			return old, nil
		}
	}
	if jsonpath.KindOf(old) != jsonpath.Number {
		return nil, e.error("only a number can be incremented", fmt.Sprintf("it is %.60s", old))
	}
	if e.amount.zero {
		return old, nil
	}
	text, detail, err := e.amount.appendSum(w, dst, old)
	if err != nil {
		return nil, err
	}
	if detail != "" {
		return nil, e.error("a sum must be a number that fits", detail)
	}
	return text, nil
}

// runReplacement applies Set or Increment.
func (e *Edit) runReplacement(t *tree) error {
	return e.walk(t, &t.root, 0, e.path.Len(), true, func(n *node) error {
		if err := t.limits.checkDepth(e.path.String(), e.path.Len()+e.depth); err != nil {
			return err
		}
		old, err := t.json(n)
		if err != nil {
			return err
		}
		if n.absent() {
			old = e.missing
		}
		// A value that does not change keeps its node, and so its bytes.
		value, err := e.replacement(e, &t.work, nil, old)
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
	return e.walk(t, &t.root, 0, e.path.Len(), true, func(n *node) error {
		if n.kind() == jsonpath.Null {
			*n = node{}
		}
		if n.kind() != jsonpath.Array && !n.absent() {
			return e.error("values can only be appended to an array", "it is "+kindText(n.kind()))
		}
		if err := t.limits.checkDepth(e.path.String(), e.path.Len()+1+e.depth); err != nil {
			return err
		}
		return t.appendRun(t.array(n), &run{raw: e.joined})
	})
}

func (e *Edit) runUnset(t *tree) error {
	last := e.path.Len() - 1 // walk to the object or array that has the value
	s := e.path.At(last)
	return e.walk(t, &t.root, 0, last, false, func(n *node) error {
		switch kind := n.kind(); {
		case s.Kind == jsonpath.Member && kind == jsonpath.Object:
			object, err := t.object(n)
			if err != nil {
				return err
			}
			return t.remove(object, s.Name)
		case s.Kind == jsonpath.Every && kind == jsonpath.Array:
			*n = node{raw: []byte("[]")}
		case s.Kind == jsonpath.Index && kind == jsonpath.Array:
			array := t.array(n)
			if err := t.readArray(array); err != nil {
				return err
			}
			if s.Index < array.length {
				return t.cut(array, s.Index)
			}
		}
		return nil
	})
}

func (e *Edit) runRename(t *tree) error {
	last := e.path.Len() - 1 // walk to the object that has the member
	from := e.path.At(last).Name
	return e.walk(t, &t.root, 0, last, false, func(n *node) error {
		if n.kind() != jsonpath.Object || from == e.name {
			return nil
		}
		object, err := t.object(n)
		if err != nil {
			return err
		}
		if found, err := t.has(object, from); err != nil || !found {
			return err
		}
		taken, err := t.has(object, e.name)
		if err != nil {
			return err
		}
		if taken {
			return e.error("a member must not take the name of another", fmt.Sprintf("%.60q is there", e.name))
		}
		return t.rename(object, from, e.name)
	})
}

func (e *Edit) runMerge(t *tree) error { return e.merge(t, &t.root, e.values[0], 0) }

// merge merges an object into n, which is nested in depth objects: function
// MergePatch of RFC 7386, section 2.
func (e *Edit) merge(t *tree, n *node, patch []byte, depth int) error {
	if err := t.limits.checkDepth("", depth+1); err != nil {
		return err
	}
	if err := t.work.spend(len(patch)); err != nil {
		return err
	}
	if n.kind() != jsonpath.Object {
		raw, err := e.appendMerged(t, nil, patch, depth)
		*n = node{raw: raw}
		return err
	}
	// Member by member: null removes, an object merges, any other value replaces.
	object, err := t.object(n)
	if err != nil {
		return err
	}
	for key, value := range jsonpath.Members(patch) {
		name := jsonpath.Unquoted(key)
		kind := jsonpath.KindOf(value)
		if kind == jsonpath.Null {
			if err := t.remove(object, name); err != nil {
				return err
			}
			continue
		}
		child, err := t.member(object, name)
		if err != nil {
			return err
		}
		if child == nil {
			if child, err = t.add(object, name); err != nil {
				return err
			}
		}
		if kind == jsonpath.Object {
			if err := e.merge(t, child, value, depth+1); err != nil {
				return err
			}
			continue
		}
		if err := t.work.spend(len(value)); err != nil {
			return err
		}
		if err := t.limits.checkDepth("", depth+1+depthOf(value)); err != nil {
			return err
		}
		if err := t.set(child, node{raw: value}); err != nil {
			return err
		}
	}
	return nil
}

// appendMerged appends the result of merging an object into nothing: the object
// without members that are null, at any depth.
func (e *Edit) appendMerged(t *tree, dst, patch []byte, depth int) ([]byte, error) {
	if err := t.limits.checkDepth("", depth+1); err != nil {
		return nil, err
	}
	if err := t.work.spend(2 * len(patch)); err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	first := true
	for key, value := range jsonpath.Members(patch) {
		kind := jsonpath.KindOf(value)
		if kind == jsonpath.Null {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if hasEscapes(key) { // write it as tree.add does
			dst = jsonpath.AppendQuoted(dst, jsonpath.Unquoted(key))
		} else {
			dst = append(dst, key...)
		}
		dst = append(dst, ':')
		if kind == jsonpath.Object {
			var err error
			if dst, err = e.appendMerged(t, dst, value, depth+1); err != nil {
				return nil, err
			}
			continue
		}
		if err := t.limits.checkDepth("", depth+1+depthOf(value)); err != nil {
			return nil, err
		}
		dst = append(dst, value...)
	}
	return append(dst, '}'), nil
}
