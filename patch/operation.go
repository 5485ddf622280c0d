package patch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/jaydb/jay/internal/jsonpath"
)

const (
	// maxOperations is the greatest number of operations in one JSON Patch.
	maxOperations = 10_000

	// maxTokens is the greatest number of tokens in a JSON Pointer. No document of
	// Jay is deeper.
	maxTokens = 10_000
)

// operation is one operation of a JSON Patch.
type operation struct {
	kind       string
	path, from pointer // from is set for move and copy
	value      []byte  // of add, replace and test
	depth      int     // of value
}

// pointer is a JSON Pointer: RFC 6901.
type pointer struct {
	text   string
	tokens []string
}

// parseOperations parses a JSON Patch.
func parseOperations(doc []byte) ([]operation, *Error) {
	raw, _, detail := compacted(doc)
	if detail != "" {
		return nil, &Error{Rule: ruleJSON, Detail: detail}
	}
	if kind := jsonpath.KindOf(raw); kind != jsonpath.Array {
		return nil, &Error{Rule: "a JSON Patch must be an array", Detail: "it is " + kindText(kind)}
	}
	if count := countElements(raw); count > maxOperations {
		return nil, &Error{Rule: fmt.Sprintf("at most %d operations", maxOperations), Detail: fmt.Sprintf("there are %d", count)}
	}
	decoded, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, &Error{Rule: "a JSON Patch must have operations of RFC 6902", Detail: fmt.Sprintf("%.200s", err)}
	}
	ops := make([]operation, len(decoded))
	for i, d := range decoded {
		if err := ops[i].decode(d); err != nil {
			return nil, err
		}
	}
	return ops, nil
}

func countElements(array []byte) (n int) {
	for range jsonpath.Elements(array) {
		n++
	}
	return n
}

// decode fills o from an operation that the library has decoded and validated.
func (o *operation) decode(d jsonpatch.Operation) *Error {
	o.kind = d.Kind()
	var err *Error
	path, _ := d.Path()
	if o.path, err = parsePointer(path); err != nil {
		return err
	}
	switch o.kind {
	case "move", "copy":
		from, _ := d.From()
		if o.from, err = parsePointer(from); err != nil {
			return err
		}
		if o.kind == "move" && o.from.above(o.path) {
			return &Error{Rule: "a value cannot be moved into itself", Path: from, Detail: fmt.Sprintf("to %.80q", path)}
		}
	case "add", "replace", "test":
		value, found := d["value"]
		switch {
		case !found:
			return &Error{Rule: "it must have a value", Path: path, Detail: o.kind}
		case value == nil:
			o.value = []byte("null")
		default:
			o.value = *value
		}
		o.depth = depthOf(o.value)
	}
	return nil
}

// parsePointer parses a JSON Pointer.
func parsePointer(text string) (pointer, *Error) {
	p := pointer{text: text}
	if text == "" {
		return p, nil
	}
	if text[0] != '/' {
		return p, &Error{Rule: "it must be a JSON Pointer", Path: text, Detail: "it does not begin with a slash"}
	}
	if n := strings.Count(text, "/"); n > maxTokens {
		return p, &Error{Rule: fmt.Sprintf("a JSON Pointer has at most %d tokens", maxTokens), Path: text, Detail: fmt.Sprintf("it has %d", n)}
	}
	for token := range strings.SplitSeq(text[1:], "/") {
		// Without its escapes a valid token has no ~.
		rest := strings.ReplaceAll(strings.ReplaceAll(token, "~0", ""), "~1", "")
		if strings.Contains(rest, "~") {
			return p, &Error{Rule: "it must be a JSON Pointer", Path: text, Detail: "~ is neither ~0 nor ~1"}
		}
		p.tokens = append(p.tokens, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
	}
	if p.tokens[0] == metadataName {
		return p, &Error{Rule: ruleMetadata, Path: text}
	}
	return p, nil
}

// above reports whether p is a proper prefix of other.
func (p pointer) above(other pointer) bool {
	return len(p.tokens) < len(other.tokens) && slices.Equal(p.tokens, other.tokens[:len(p.tokens)])
}

// index returns the index that token means in an array of length elements. With
// end set, the index after the last element, and - for it, are valid.
func (p pointer) index(token string, length int, end bool) (int, error) {
	if end && token == "-" {
		return length, nil
	}
	i, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(i) != token || i < 0 { // such as +1 and 01
		return 0, &Error{Rule: "an index must be a number without sign and leading zeros", Path: p.text, Detail: fmt.Sprintf("%.60q", token)}
	}
	if i > length || i == length && !end {
		return 0, &Error{Rule: "an index must be within the array", Path: p.text, Detail: fmt.Sprintf("the array has %d elements", length)}
	}
	return i, nil
}

// missing returns the error for a pointer that leads nowhere.
func (p pointer) missing() error {
	return &Error{Rule: "a value must be there", Path: p.text, Detail: "there is none"}
}

// follow returns the node at the first n tokens of p. It opens all nodes on the
// way to it.
func (t *tree) follow(p pointer, n int) (*node, error) {
	at := &t.root
	for _, token := range p.tokens[:n] {
		switch at.kind() {
		case jsonpath.Object:
			object, err := t.object(at)
			if err != nil {
				return nil, err
			}
			if at, err = t.member(object, token); err != nil {
				return nil, err
			}
			if at == nil {
				return nil, p.missing()
			}
		case jsonpath.Array:
			array := t.array(at)
			if err := t.readArray(array); err != nil {
				return nil, err
			}
			i, err := p.index(token, array.length, false)
			if err != nil {
				return nil, err
			}
			if at, err = t.element(array, i); err != nil {
				return nil, err
			}
		default:
			return nil, p.missing()
		}
	}
	return at, nil
}

// target returns the node at p.
func (t *tree) target(p pointer) (*node, error) { return t.follow(p, len(p.tokens)) }
