package patch

import "github.com/jaydb/jay/internal/jsonpath"

// walkEvery is walk for every element of n, an array, from step i at each of
// them on. The array is closed first, and the elements that change are written
// anew, one behind the other: there is one node at a time.
func (e *Edit) walkEvery(t *tree, n *node, i, end int, writes bool, fn func(*node) error) error {
	raw, err := t.json(n)
	if err != nil {
		return err
	}
	*n = node{raw: raw}

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

// fansOut tells whether the path goes into every element from step i on.
func (e *Edit) fansOut(i int) bool {
	for ; i < e.path.Len(); i++ {
		if e.path.At(i).Kind == jsonpath.Every {
			return true
		}
	}
	return false
}

// replaceIn replaces the value that the steps from i on lead to in an element.
// Done is false if there is none.
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

// rewriting writes a value anew, of which some parts change. It allocates
// nothing before the first.
type rewriting struct {
	t     *tree
	whole []byte // the value as it is
	done  int    // so much of it is in bytes, or stands for what is
	bytes []byte
}

// skip writes what stands before old, a part of whole, and leaves old out. The
// caller appends size bytes in its place.
func (r *rewriting) skip(old []byte, size int) error {
	start := cap(r.whole) - cap(old) // old reaches to the capacity of whole
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

// finish returns the value, or whole if nothing was skipped.
func (r *rewriting) finish() []byte {
	if r.bytes == nil {
		return r.whole
	}
	return append(r.bytes, r.whole[r.done:]...)
}
