package patch

import "github.com/jaydb/jay/internal/jsonpath"

func (e *Edit) runAddToSet(t *tree) error {
	if len(e.values) == 0 {
		return nil
	}
	a, err := newAdditions(&t.work, e.values)
	if err != nil {
		return err
	}
	return e.walk(t, &t.root, 0, e.path.Len(), true, func(n *node) error {
		if n.kind() == jsonpath.Null {
			*n = node{}
		}
		if n.kind() != jsonpath.Array && !n.absent() {
			return e.error("values can only be added to an array", "it is "+kindText(n.kind()))
		}
		if err := t.limits.checkDepth(e.path.String(), e.path.Len()+1+e.depth); err != nil {
			return err
		}
		added, err := a.to(t, n)
		if err != nil || added == nil {
			return err
		}
		return t.appendRun(t.array(n), &run{raw: added})
	})
}

// additions are the values of an AddToSet.
type additions struct {
	*valueSet
	repeated []bool // of each value: one before it is the same
	has      []bool // of each value: the array has it, or it is repeated; scratch
}

func newAdditions(w *work, values [][]byte) (*additions, error) {
	set, err := newValueSet(w, values)
	if err != nil {
		return nil, err
	}
	a := &additions{valueSet: set, repeated: make([]bool, len(values))}
	for i, value := range values {
		first, err := set.find(value)
		if err != nil {
			return nil, err
		}
		a.repeated[i] = first != i
	}
	return a, nil
}

// to returns those of the values that the array n does not have, as an array, and nil
// if it has all. All are missing from an absent n.
func (a *additions) to(t *tree, n *node) ([]byte, error) {
	if err := t.work.spend(workPerValue * len(a.values)); err != nil {
		return nil, err
	}
	a.has = append(a.has[:0], a.repeated...)
	if !n.absent() {
		raw, err := t.json(n)
		if err != nil {
			return nil, err
		}
		if err := a.mark(raw); err != nil {
			return nil, err
		}
	}
	var added []byte
	for i, value := range a.values {
		if a.has[i] {
			continue
		}
		if err := t.work.spend(len(value)); err != nil {
			return nil, err
		}
		added = append(append(added, ','), value...)
	}
	if added == nil {
		return nil, nil
	}
	added[0] = '['
	return append(added, ']'), nil
}

// mark marks the values that an array has.
func (a *additions) mark(array []byte) error {
	for _, element := range jsonpath.Elements(array) {
		if err := a.work.spend(workPerValue + len(element)); err != nil {
			return err
		}
		i, err := a.find(element)
		if err != nil {
			return err
		}
		if i >= 0 {
			a.has[i] = true
		}
	}
	return nil
}
