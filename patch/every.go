package patch

import "github.com/jaydb/jay/internal/jsonpath"

// walkEvery is walk for every element of the array n; step i is the first in each
// element. It closes the array and rewrites it in one pass over its bytes, so that
// only one element at a time is a tree.
func (e *Edit) walkEvery(t *tree, n *node, i, end int, writes bool, fn func(*node) error) error {
	raw, err := t.json(n)
	if err != nil {
		return err
	}
	*n = node{raw: raw}

	// Values that are replaced at a path without another [] need no tree at all.
	direct := e.replacement != nil && !e.fansOut(i)
	if t.scratch == nil {
		t.scratch = make([]byte, 64)
	}
	out := rewriting{t: t, whole: raw}
	var at node
	for _, element := range jsonpath.Elements(raw) {
		if err := t.work.spend(workPerValue + len(element)); err != nil {
			return err
		}
		if direct {
			done, err := e.replaceIn(&out, element, i)
			if err != nil {
				return err
			}
			if done {
				continue
			}
		}
		if err := t.work.spend(workPerElement); err != nil {
			return err
		}
		at = node{raw: element}
		if err := e.walk(t, &at, i, end, writes, fn); err != nil {
			return err
		}
		if at.open() || !sharesStart(at.raw, element) {
			size, err := t.size(&at)
			if err == nil {
				err = out.skip(element, size)
			}
			if err != nil {
				return err
			}
			out.bytes = at.append(out.bytes)
		}
		t.discard(&at)
	}
	n.raw = out.finish()
	return nil
}

// fansOut reports whether the path has a [] step from step i on.
func (e *Edit) fansOut(i int) bool {
	for ; i < e.path.Len(); i++ {
		if e.path.At(i).Kind == jsonpath.Every {
			return true
		}
	}
	return false
}

// replaceIn replaces the value at the steps from i on in an element. Done is false
// if there is no such value.
func (e *Edit) replaceIn(out *rewriting, element []byte, i int) (done bool, err error) {
	old, found, err := out.t.reach(element, e.path, i)
	if err != nil || !found {
		return false, err
	}
	if err := out.t.limits.checkDepth(e.path.String(), e.path.Len()+e.depth); err != nil {
		return false, err
	}
	value, err := e.replacement(e, &out.t.work, out.t.scratch[:0], old)
	if err != nil || sharesStart(value, old) {
		return err == nil, err
	}
	if err := out.skip(old, len(value)); err != nil {
		return false, err
	}
	out.bytes = append(out.bytes, value...)
	return true, nil
}

// rewriting copies a value while some of its parts are replaced. It allocates
// nothing before the first replacement.
type rewriting struct {
	t     *tree
	whole []byte // the original value
	done  int    // number of bytes of whole that are copied or replaced
	bytes []byte // the new value so far; nil before the first replacement
}

// skip copies the bytes of whole before old, which must be a slice of whole, and
// skips old. The caller appends a replacement of size bytes.
func (r *rewriting) skip(old []byte, size int) error {
	start := cap(r.whole) - cap(old) // the offset of old in whole
	if r.bytes == nil {
		if err := r.t.work.spend(len(r.whole)); err != nil {
			return err
		}
		r.bytes = make([]byte, 0, len(r.whole)+len(r.whole)/8+size)
	}
	if n := len(r.bytes) + start - r.done + size; n > len(r.whole) {
		if err := r.t.limits.checkBytes(n); err != nil {
			return err
		}
	}
	if err := r.t.work.spend(workPerValue + size); err != nil {
		return err
	}
	r.bytes = append(r.bytes, r.whole[r.done:start]...)
	r.done = start + len(old)
	return nil
}

// finish returns the new value, or whole if nothing was replaced.
func (r *rewriting) finish() []byte {
	if r.bytes == nil {
		return r.whole
	}
	return append(r.bytes, r.whole[r.done:]...)
}
