// Package loads expands documents by others to which they refer: what load(CustomerId).Name needs stands in the body, in a member
// beside CustomerId, whose name no document has (package jsonpath). So what reads bodies, such as conditions, groups and
// entries of indexes, reads those of other documents, too, and knows nothing of it.
package loads

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// maxID is how many bytes an ID may have. A longer text refers to nothing.
const maxID = ids.MaxBytes

// Bounds of one document. docs/limits.md has them.
const (
	MaxDocuments = 256      // that are loaded for it, each counted once
	MaxBytes     = 32 << 20 // that are added to its body
)

// Spec says which references of a body are followed. It is immutable.
type Spec struct {
	root  *node
	paths []jsonpath.Path
}

// node is an object of a body, or of a loaded document: the members to look into, and those that are references.
type node struct {
	members, references map[string]*node
}

// NewSpec returns the Spec of paths, of which those that load nothing are left out; nil if none is left.
func NewSpec(paths []jsonpath.Path) *Spec {
	if len(paths) == 0 {
		return nil // as of most queries, without an allocation
	}
	s := &Spec{root: new(node)}
	for _, p := range paths {
		last := -1
		for i := range p.Len() {
			if p.At(i).IsLoad() {
				last = i
			}
		}
		if last < 0 || slices.ContainsFunc(s.paths, func(q jsonpath.Path) bool { return q.String() == p.String() }) {
			continue
		}
		s.paths = append(s.paths, p)
		n := s.root
		for i := range last + 1 {
			n = n.child(p.At(i))
		}
	}
	if s.paths == nil {
		return nil
	}
	return s
}

// child returns the child of n by a step, which it makes if there is none. Each element of an array is looked into.
func (n *node) child(s jsonpath.Step) *node {
	of, name := &n.members, s.Name
	switch {
	case s.IsLoad():
		of, name = &n.references, s.Reference()
	case s.Kind != jsonpath.Member:
		return n
	}
	if *of == nil {
		*of = make(map[string]*node)
	}
	if (*of)[name] == nil {
		(*of)[name] = new(node)
	}
	return (*of)[name]
}

// Differs reports whether two bodies of a document differ in what is read of it where it is loaded: nil is no document. A path to the document itself asks only
// whether there is one.
func (s *Spec) Differs(a, b []byte) bool {
	if a == nil || b == nil {
		return a != nil || b != nil
	}
	for _, p := range s.paths {
		for i := range p.Len() {
			if p.At(i).IsLoad() && i+1 < p.Len() && !slices.EqualFunc(valuesAt(a, p.Suffix(i+1)), valuesAt(b, p.Suffix(i+1)), bytes.Equal) {
				return true
			}
		}
	}
	return false
}

// valuesAt returns what is at a path of a loaded document, or at the first reference of it.
func valuesAt(body []byte, p jsonpath.Path) (all [][]byte) {
	for i := range p.Len() {
		if s := p.At(i); s.IsLoad() {
			p = p.Prefix(i).Join(reference(s.Reference()))
			break
		}
	}
	jsonpath.EachLoose(body, p, func(raw []byte) bool {
		all = append(all, raw)
		return true
	})
	return all
}

// Load returns the body of the document with a folded ID, or nil if there is none. The body is valid until the expansion ends.
type Load func(folded string) ([]byte, error)

// Expanded is a body with what it loads.
type Expanded struct {
	Body       []byte
	References []string // the folded IDs that it refers to, sorted, whether there are such documents or not
}

// Expand expands a body. Where a document is not there, null stands in its place. It returns a *query.LimitError for a body that loads too much.
func (s *Spec) Expand(body []byte, fold func(string) string, load Load) (Expanded, error) {
	x := &expansion{fold: fold, load: load, bodies: make(map[string][]byte), least: len(body)}
	if err := x.value(body, s.root); err != nil {
		return Expanded{}, err
	}
	e := Expanded{Body: x.out}
	for folded := range x.bodies {
		e.References = append(e.References, folded)
	}
	slices.Sort(e.References)
	return e, nil
}

// expansion expands one body.
type expansion struct {
	fold   func(string) string
	load   Load
	bodies map[string][]byte // of what was loaded, by folded ID
	least  int               // how many bytes the body has
	out    []byte
}

// value appends a value, expanded.
func (x *expansion) value(raw []byte, n *node) error {
	if len(n.members) == 0 && len(n.references) == 0 || len(raw) == 0 {
		return x.append(raw)
	}
	switch raw[0] {
	case '[':
		return x.elements(raw, func(element []byte) error { return x.value(element, n) })
	case '{':
		return x.object(raw, n)
	}
	return x.append(raw)
}

func (x *expansion) append(raw []byte) error {
	if x.out = append(x.out, raw...); len(x.out) > x.least+MaxBytes {
		return &query.LimitError{What: "bytes of what a document loads", Limit: MaxBytes, Actual: len(x.out) - x.least}
	}
	return nil
}

// elements appends an array of what fn appends for each element.
func (x *expansion) elements(array []byte, fn func([]byte) error) error {
	x.out = append(x.out, '[')
	for i, element := range jsonpath.Elements(array) {
		if i > 0 {
			x.out = append(x.out, ',')
		}
		if err := fn(element); err != nil {
			return err
		}
	}
	return x.append([]byte{']'})
}

// object appends an object, and behind its members what they refer to.
func (x *expansion) object(raw []byte, n *node) error {
	type reference struct {
		name  string
		value []byte
	}
	var references []reference
	x.out = append(x.out, '{')
	first := true
	for key, value := range jsonpath.Members(raw) {
		if !first {
			x.out = append(x.out, ',')
		}
		first = false
		x.out = append(append(x.out, key...), ':')
		name := jsonpath.Unquoted(key)
		child := n.members[name]
		if child == nil {
			child = new(node)
		}
		if err := x.value(value, child); err != nil {
			return err
		}
		if n.references[name] != nil {
			references = append(references, reference{name, value})
		}
	}
	for _, r := range references {
		x.out = append(jsonpath.AppendQuoted(append(x.out, ','), jsonpath.LoadedName(r.name)), ':')
		if err := x.loaded(r.value, n.references[r.name]); err != nil {
			return err
		}
	}
	return x.append([]byte{'}'})
}

// loaded appends what a reference names, which is an array for an array of references.
func (x *expansion) loaded(raw []byte, n *node) error {
	if len(raw) > 0 && raw[0] == '[' {
		return x.elements(raw, func(element []byte) error { return x.loaded(element, n) })
	}
	if len(raw) < 3 || raw[0] != '"' {
		return x.append(null)
	}
	id := jsonpath.Unquoted(raw)
	if len(id) > maxID || strings.IndexByte(id, 0) >= 0 {
		return x.append(null)
	}
	folded := x.fold(id)
	if len(folded) > maxID {
		return x.append(null)
	}
	body, known := x.bodies[folded]
	if !known {
		if len(x.bodies) >= MaxDocuments {
			return &query.LimitError{What: "documents that one document loads", Limit: MaxDocuments, Actual: MaxDocuments + 1}
		}
		var err error
		if body, err = x.load(folded); err != nil {
			return fmt.Errorf("load document %.100q: %w", folded, err)
		}
		x.bodies[folded] = body
	}
	if body == nil {
		return x.append(null)
	}
	return x.value(body, n)
}

var null = []byte("null")

// Contract returns a body as it was before Expand, in memory of its own.
func (s *Spec) Contract(body []byte) []byte {
	return contract(make([]byte, 0, len(body)), body, s.root)
}

// contract appends a value without what was loaded.
func contract(dst, raw []byte, n *node) []byte {
	if len(n.members) == 0 && len(n.references) == 0 || len(raw) == 0 || raw[0] != '[' && raw[0] != '{' {
		return append(dst, raw...)
	}
	if raw[0] == '[' {
		dst = append(dst, '[')
		for i, element := range jsonpath.Elements(raw) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = contract(dst, element, n)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	first := true
	for key, value := range jsonpath.Members(raw) {
		name := jsonpath.Unquoted(key)
		if jsonpath.IsLoadedName(name) { // they are behind all others
			break
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(dst, key...), ':')
		if child := n.members[name]; child != nil {
			dst = contract(dst, value, child)
		} else {
			dst = append(dst, value...)
		}
	}
	return append(dst, '}')
}

// reference returns the path of a member of a name.
func reference(name string) jsonpath.Path {
	p, err := jsonpath.Parse(string(jsonpath.AppendMember(nil, name)))
	if err != nil {
		panic(err) // a member of a path is one
	}
	return p
}

// Refusal makes the error of Expand that of a document that cannot be written because of an index: a *metadata.Error.
func Refusal(index string, err error) error {
	large := (*query.LimitError)(nil)
	if !errors.As(err, &large) {
		return err
	}
	return &metadata.Error{Rule: fmt.Sprintf("at most %d %s, for index %q", large.Limit, large.What, index), Limit: large.Limit, Actual: large.Actual}
}
