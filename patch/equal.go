package patch

import (
	"bytes"
	"context"
	"math"

	"github.com/jaydb/jay/internal/jsonpath"
)

// sameValue reports whether two values are the same JSON. Numbers are the same if
// their exact values are.
func sameValue(w *work, a, b []byte) (bool, error) { return same(w, a, b, sameNumber) }

// sameText is sameValue, but numbers are the same only if their texts are.
func sameText(w *work, a, b []byte) (bool, error) { return same(w, a, b, bytes.Equal) }

// same compares two values; number compares two numbers.
func same(w *work, a, b []byte, number func(a, b []byte) bool) (bool, error) {
	if len(a) == len(b) { // most values that are the same have the same bytes
		if err := w.spend(len(a)); err != nil {
			return false, err
		}
		if bytes.Equal(a, b) {
			return true, nil
		}
	}
	c := comparison{work: w, a: a, b: b, number: number}
	return c.values()
}

// comparison compares two values in one pass over both, up to the first difference.
type comparison struct {
	work   *work
	a, b   []byte
	i, j   int // offsets in a and b
	number func(a, b []byte) bool
}

// values compares the values at i and j. If they are the same it moves i and j
// after them.
func (c *comparison) values() (bool, error) {
	kind := jsonpath.KindOf(c.a[c.i:])
	if kind != jsonpath.KindOf(c.b[c.j:]) {
		return false, nil
	}
	switch kind {
	case jsonpath.Array:
		return c.arrays()
	case jsonpath.Object:
		return c.objects()
	}
	a, b, err := c.scalars()
	if err != nil || bytes.Equal(a, b) {
		return err == nil, err
	}
	switch kind {
	case jsonpath.Number:
		return c.number(a, b), nil
	case jsonpath.String:
		return sameString(a, b), nil
	}
	return false, nil
}

// scalars returns the scalars or keys at i and j, and moves i and j after them.
func (c *comparison) scalars() (a, b []byte, err error) {
	i, j := c.i, c.j
	c.i, c.j = jsonpath.Skip(c.a, i), jsonpath.Skip(c.b, j)
	return c.a[i:c.i], c.b[j:c.j], c.work.spend(workPerValue + c.i - i + c.j - j)
}

func sameString(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	return (hasEscapes(a) || hasEscapes(b)) && jsonpath.Unquoted(a) == jsonpath.Unquoted(b)
}

func hasEscapes(raw []byte) bool { return bytes.IndexByte(raw, '\\') >= 0 }

// step moves i and j after the opening bracket or comma at which they are. End
// reports that both are at the closing bracket then, after which step moves them;
// differs reports that only one of them is.
func (c *comparison) step(closing byte) (end, differs bool) {
	if c.a[c.i] != closing {
		c.i++
	}
	if c.b[c.j] != closing {
		c.j++
	}
	endA, endB := c.a[c.i] == closing, c.b[c.j] == closing
	if endA && endB {
		c.i++
		c.j++
	}
	return endA && endB, endA != endB
}

func (c *comparison) arrays() (bool, error) {
	for {
		if end, differs := c.step(']'); end || differs {
			return end, nil
		}
		if same, err := c.values(); !same {
			return false, err
		}
	}
}

// objects compares two objects. It compares their members pairwise as long as they
// are in the same order, and calls unordered for the rest.
func (c *comparison) objects() (bool, error) {
	for {
		if end, differs := c.step('}'); end || differs {
			return end, nil
		}
		i, j := c.i, c.j
		a, b, err := c.scalars()
		if err != nil {
			return false, err
		}
		if !sameString(a, b) {
			c.i, c.j = i, j
			return c.unordered()
		}
		c.i++ // the colons
		c.j++
		if same, err := c.values(); !same {
			return false, err
		}
	}
}

// unordered compares the members from i and j on, in any order, by a hash table of
// those of b.
func (c *comparison) unordered() (bool, error) {
	var starts []uint32
	end := c.j - 1 // offset of the comma or brace around a member
	for end == c.j-1 || c.b[end] == ',' {
		starts = append(starts, uint32(end+1))
		end = jsonpath.Skip(c.b, jsonpath.Skip(c.b, end+1)+1)
	}
	starts = append(starts, uint32(end+1))
	if err := c.work.spend(end - c.j + workPerName*len(starts)); err != nil {
		return false, err
	}
	others := newNames(c.b, starts)

	// Keys do not repeat: if each member of a is in b and the numbers of members
	// are the same, the objects are.
	count := 0
	for ; c.a[c.i] != '}'; count++ {
		if c.a[c.i] == ',' {
			c.i++
		}
		key := c.a[c.i:jsonpath.Skip(c.a, c.i)]
		if err := c.work.spend(workPerLookup + len(key)); err != nil {
			return false, err
		}
		place := others.find(jsonpath.Unquoted(key))
		if place < 0 {
			return false, nil
		}
		c.i += len(key) + 1
		c.j = int(starts[place]) + len(others.key(place)) + 1
		if same, err := c.values(); !same {
			return false, err
		}
	}
	c.i, c.j = c.i+1, end+1
	return count == len(starts)-1, nil
}

// unlimited returns work without limit and context, for Diff.
func unlimited() *work {
	w := newWork(context.Background(), math.MaxInt64)
	return &w
}

// values returns the elements of an array.
func values(array []byte) (elements [][]byte) {
	for _, element := range jsonpath.Elements(array) {
		elements = append(elements, element)
	}
	return elements
}

// byName returns the members of an object by their names.
func byName(object []byte) map[string][]byte {
	members := make(map[string][]byte)
	for key, value := range jsonpath.Members(object) {
		members[jsonpath.Unquoted(key)] = value
	}
	return members
}

// depthOf returns the depth of nested objects and arrays in a value: 0 for a
// scalar.
func depthOf(raw []byte) int {
	deepest, depth := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case '"':
			i = jsonpath.Skip(raw, i) - 1
		}
	}
	return deepest
}
