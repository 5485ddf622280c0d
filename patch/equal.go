package patch

import (
	"bytes"

	"github.com/jaydb/jay/internal/jsonpath"
)

// sameValue tells whether two values are the same JSON, numbers being the same
// if their exact values are.
func sameValue(a, b []byte) bool { return same(a, b, sameNumber) }

// sameText is sameValue, but numbers must have the same text.
func sameText(a, b []byte) bool { return same(a, b, bytes.Equal) }

func same(a, b []byte, number func(a, b []byte) bool) bool {
	if bytes.Equal(a, b) {
		return true
	}
	kind := jsonpath.KindOf(a)
	if kind != jsonpath.KindOf(b) {
		return false
	}
	switch kind {
	case jsonpath.Number:
		return number(a, b)
	case jsonpath.String:
		return sameString(a, b)
	case jsonpath.Array:
		return sameArray(a, b, number)
	case jsonpath.Object:
		return sameObject(a, b, number)
	}
	return false
}

func sameString(a, b []byte) bool {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return bytes.Equal(a, b)
	}
	return jsonpath.Unquoted(a) == jsonpath.Unquoted(b)
}

func sameArray(a, b []byte, number func(a, b []byte) bool) bool {
	rest := values(b)
	count := 0
	for i, element := range jsonpath.Elements(a) {
		if i >= len(rest) || !same(element, rest[i], number) {
			return false
		}
		count++
	}
	return count == len(rest)
}

func sameObject(a, b []byte, number func(a, b []byte) bool) bool {
	others := byName(b)
	count := 0
	for key, value := range jsonpath.Members(a) {
		other, found := others[jsonpath.Unquoted(key)]
		if !found || !same(value, other, number) {
			return false
		}
		count++
	}
	return count == len(others)
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

// depthOf returns how deep objects and arrays lie inside each other in a
// value: 0 for one that is neither.
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
