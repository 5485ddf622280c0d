package patch

import (
	"hash/maphash"
	"math/bits"

	"github.com/jaydb/jay/internal/jsonpath"
)

func (e *Edit) runRemove(t *tree) error {
	set, err := newValueSet(&t.work, e.values)
	if err != nil {
		return err
	}
	return e.removeFrom(t, set.has)
}

func (e *Edit) runRemoveWhere(t *tree) error { return e.removeFrom(t, e.where.Begin(t.work.spend)) }

// removeFrom removes the elements that leave reports from the arrays at the path.
func (e *Edit) removeFrom(t *tree, leave func(element []byte) (bool, error)) error {
	return e.walkArrays(t, func(n *node) error {
		raw, err := t.json(n)
		if err != nil {
			return err
		}
		kept, err := without(&t.work, raw, leave)
		if err == nil {
			*n = node{raw: kept}
		}
		return err
	})
}

// walkArrays calls fn with the arrays at the path that elements are to be removed
// from.
func (e *Edit) walkArrays(t *tree, fn func(*node) error) error {
	return e.walk(t, &t.root, 0, e.path.Len(), false, func(n *node) error {
		switch n.kind() {
		case jsonpath.Null: // a nil slice
			return nil
		case jsonpath.Array:
			return fn(n)
		}
		return e.error("values can only be removed from an array", "it is "+kindText(n.kind()))
	})
}

func (e *Edit) runPopFirst(t *tree) error { return e.pop(t, func(int) int { return 0 }) }

func (e *Edit) runPopLast(t *tree) error { return e.pop(t, func(length int) int { return length - 1 }) }

// pop removes one element from the arrays at the path: which one depends on the
// length.
func (e *Edit) pop(t *tree, which func(length int) int) error {
	return e.walkArrays(t, func(n *node) error {
		array := t.array(n)
		if err := t.readArray(array); err != nil || array.length == 0 {
			return err
		}
		return t.cut(array, which(array.length))
	})
}

// without returns an array without the elements that leave reports.
func without(w *work, array []byte, leave func(element []byte) (bool, error)) ([]byte, error) {
	var kept []byte // nil until the first element is left out
	for _, element := range jsonpath.Elements(array) {
		if err := w.spend(workPerValue + len(element)); err != nil {
			return nil, err
		}
		leaves, err := leave(element)
		switch {
		case err != nil:
			return nil, err
		case leaves && kept == nil:
			if err := w.spend(len(array)); err != nil {
				return nil, err
			}
			// Copy what precedes the element: its offset is the difference of the
			// capacities, as it is a slice of array.
			kept = append(make([]byte, 0, len(array)), array[:cap(array)-cap(element)]...)
		case !leaves && kept != nil:
			kept = append(append(kept, element...), ',')
		}
	}
	if kept == nil {
		return array, nil
	}
	if last := len(kept) - 1; kept[last] == ',' {
		kept[last] = ']'
		return kept, nil
	}
	return append(kept, ']'), nil
}

// valueSet is a set of JSON values. Two values are the same if sameValue says so.
type valueSet struct {
	work   *work
	values [][]byte
	byHash map[uint64][]int // indexes in values; nil if there are few
}

// fewValues is the number of values up to which all are compared one by one:
// comparisons that end at an early difference are cheaper than a hash.
const fewValues = 8

func newValueSet(w *work, values [][]byte) (*valueSet, error) {
	s := &valueSet{work: w, values: values}
	if len(values) <= fewValues {
		return s, nil
	}
	s.byHash = make(map[uint64][]int)
	for i, value := range values {
		hash, err := s.hash(value)
		if err != nil {
			return nil, err
		}
		first, err := s.among(s.byHash[hash], value)
		if err != nil {
			return nil, err
		}
		if first < 0 {
			s.byHash[hash] = append(s.byHash[hash], i)
		}
	}
	return s, nil
}

// has reports whether a value is in the set.
func (s *valueSet) has(value []byte) (bool, error) {
	i, err := s.find(value)
	return i >= 0, err
}

// find returns the index of the first of the values that is the same as value, or -1.
func (s *valueSet) find(value []byte) (int, error) {
	if s.byHash == nil {
		for i := range s.values {
			if same, err := sameValue(s.work, value, s.values[i]); same || err != nil {
				return i, err
			}
		}
		return -1, nil
	}
	hash, err := s.hash(value)
	if err != nil {
		return -1, err
	}
	return s.among(s.byHash[hash], value)
}

// among is find among the values at these indexes.
func (s *valueSet) among(places []int, value []byte) (int, error) {
	for _, i := range places {
		if same, err := sameValue(s.work, value, s.values[i]); same || err != nil {
			return i, err
		}
	}
	return -1, nil
}

func (s *valueSet) hash(value []byte) (uint64, error) {
	if err := s.work.spend(workPerHash + len(value)); err != nil {
		return 0, err
	}
	hash, _ := hashAt(value, 0)
	return hash, nil
}

// kindHashes are the initial hashes of the kinds, so that values of different kinds
// have different hashes.
var kindHashes = func() (hashes [jsonpath.Object + 1]uint64) {
	for kind := range hashes {
		hashes[kind] = maphash.Comparable(nameSeed, kind)
	}
	return hashes
}()

// hashAt returns a hash of the value at i, and the offset after it. Values that are
// the same for sameValue have the same hash, however they are written.
func hashAt(raw []byte, i int) (hash uint64, end int) {
	kind := jsonpath.KindOf(raw[i:])
	hash = kindHashes[kind]
	switch kind {
	case jsonpath.Array:
		for i++; raw[i] != ']'; {
			var element uint64
			if element, i = hashAt(raw, i); raw[i] == ',' {
				i++
			}
			hash = mixed(hash, element)
		}
		return hash, i + 1
	case jsonpath.Object:
		sum := uint64(0) // a sum does not depend on the order of the members
		for i++; raw[i] != '}'; {
			var name, value uint64
			name, i = hashAt(raw, i)
			if value, i = hashAt(raw, i+1); raw[i] == ',' {
				i++
			}
			sum += mixed(name, value)
		}
		return mixed(hash, sum), i + 1
	}
	end = jsonpath.Skip(raw, i)
	switch text := raw[i:end]; kind {
	case jsonpath.String:
		return mixed(hash, hashString(text)), end
	case jsonpath.Number:
		return mixed(hash, hashNumber(text)), end
	default:
		return mixed(hash, maphash.Bytes(nameSeed, text)), end
	}
}

func hashString(raw []byte) uint64 {
	if !hasEscapes(raw) {
		return maphash.Bytes(nameSeed, raw[1:len(raw)-1])
	}
	var buf [64]byte
	return maphash.Bytes(nameSeed, jsonpath.AppendUnquoted(buf[:0], raw))
}

// hashNumber hashes the exact value of a number, as sameNumber compares it.
func hashNumber(number []byte) uint64 {
	if isZero(number) {
		return 0
	}
	digits, exponent, ok := normalized(number)
	if !ok {
		return maphash.Bytes(nameSeed, number)
	}
	hash := mixed(maphash.Bytes(nameSeed, digits), uint64(exponent))
	if number[0] == '-' {
		hash = ^hash
	}
	return hash
}

// mixed combines two hashes. Their order matters.
func mixed(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd1342543de82ef95)
	return hi ^ lo ^ bits.RotateLeft64(a, 23)
}
