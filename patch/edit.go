package patch

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Edit is one change of a document. It is made by Set, Unset, Increment,
// Append, Remove, Rename, Merge or JSONPatch, which keep no memory of their
// arguments. What is wrong with those is kept in the edit and returned by Err
// and by Apply.
type Edit struct {
	verb   string
	path   jsonpath.Path
	values [][]byte    // of Set and Merge: one
	joined []byte      // of Append: values as an array
	depth  int         // of the deepest of values
	amount addend      // of Increment
	name   string      // of Rename
	ops    []operation // of JSONPatch
	err    *Error

	// replacement returns what takes the place of a value that is there, or
	// that value itself; nil for edits that do not replace single values. It may
	// use dst for what it makes.
	replacement func(e *Edit, w *work, dst, old []byte) ([]byte, error)
	missing     []byte // what a missing member counts as for replacement
	run         func(e *Edit, t *tree) error
}

// metadataName is the top-level member that no edit may name.
const metadataName = "@metadata"

// Set puts a value at the path, in the place of any that is there. The value
// is encoded with encoding/json, once, without escapes for HTML; a
// json.RawMessage stands for itself.
//
// Missing objects on the way are made: Set("a.b", 1) makes {} into
// {"a":{"b":1}}. It is an error if the path goes through anything that is not
// an object, null included, or to an element beyond the end of an array. With
// [] the value is put at every element that is there, if any.
func Set(path string, value any) Edit {
	e := newEdit("set", path)
	e.addValue(value)
	e.replacement, e.run = (*Edit).replaceBySet, (*Edit).runReplacement
	return e
}

// Unset takes the value at the path away: a member, or an element, behind
// which the others move up. With [] at the end it empties the array. Where the
// path leads nowhere it changes nothing.
func Unset(path string) Edit {
	e := newEdit("unset", path)
	e.run = (*Edit).runUnset
	return e
}

// Increment adds a number, which may be negative, to the number at the path.
// The number by is of any of Go's integer or floating-point types or a
// json.Number. A missing member counts as 0, and objects on the way to it are
// made as by Set; null and anything else that is not a number is an error.
//
// Numbers without point and exponent are integers and stay so: a number, an
// amount or a sum that does not fit in an int64 is an error. Other numbers are
// added exactly, as decimals, with as many decimals as the longer of the two:
// 1.1 + 0.1 is 1.2, and 1.50 + 0.5 is 2.00. A sum beyond the range of a
// float64 and numbers of more than 1,000 digits are errors. Adding zero to a
// number leaves its text alone. With [] every element is incremented.
func Increment(path string, by any) Edit {
	e := newEdit("increment", path)
	if text, detail := amount(by); detail != "" {
		e.fail("an amount must be a number that can be added", detail)
	} else {
		e.amount = newAddend(text)
	}
	e.replacement, e.missing, e.run = (*Edit).replaceByIncrement, []byte("0"), (*Edit).runReplacement
	return e
}

// Append puts values, encoded as by Set, at the end of the array at the path.
// A missing member becomes an array, and objects on the way to it are made as
// by Set; anything else that is not an array is an error. Without values it
// does nothing.
func Append(path string, values ...any) Edit {
	e := newEdit("append", path)
	for _, v := range values {
		e.addValue(v)
	}
	e.joined = append(append([]byte{'['}, bytes.Join(e.values, []byte{','})...), ']')
	e.run = (*Edit).runAppend
	return e
}

// Remove takes every element that equals one of the values, which are encoded
// as by Set, out of the array at the path. Numbers are equal if their values
// are. It is an error if something else than an array is at the path; where
// the path leads nowhere it changes nothing.
func Remove(path string, values ...any) Edit {
	e := newEdit("remove", path)
	for _, v := range values {
		e.addValue(v)
	}
	e.run = (*Edit).runRemove
	return e
}

// Rename gives the member at the path another name, not a path, in the same
// object and at the same place. It is an error if the object has a member of
// that name already. Where the path leads nowhere it changes nothing.
func Rename(path, newName string) Edit {
	e := newEdit("rename", path)
	switch n := e.path.Len(); {
	case e.err != nil:
	case e.path.At(n-1).Kind != jsonpath.Member:
		e.fail("only a member has a name", "the path ends with an element")
	case !utf8.ValidString(newName):
		e.fail("a name must be valid UTF-8", fmt.Sprintf("%.60q", newName))
	case n == 1 && newName == metadataName:
		e.fail(ruleMetadata, "the new name")
	}
	e.name, e.run = newName, (*Edit).runRename
	return e
}

// Merge merges a JSON object into the document as RFC 7386 says: its members
// replace those of the document, its objects are merged into objects there,
// and null takes members away. New members are added in the order of doc.
func Merge(doc []byte) Edit {
	e := Edit{verb: "merge", run: (*Edit).runMerge}
	raw, depth, detail := compacted(doc)
	switch {
	case detail != "":
		e.fail(ruleJSON, detail)
	case jsonpath.KindOf(raw) != jsonpath.Object:
		e.fail("a merge patch must be an object", "it is "+kindText(jsonpath.KindOf(raw)))
	case hasMetadata(raw):
		e.fail(ruleMetadata, "")
	}
	e.values, e.depth = [][]byte{raw}, depth
	return e
}

// JSONPatch applies the operations of a JSON array as RFC 6902 says: add,
// remove, replace, move, copy and test. The document may be replaced as a
// whole by an object, by nothing else. Indexes are not negative. A patch has
// at most 10,000 operations. The error of a test that fails is ErrTestFailed.
func JSONPatch(doc []byte) Edit {
	e := Edit{verb: "JSON Patch", run: (*Edit).runOperations}
	e.ops, e.err = parseOperations(doc)
	return e
}

// Err returns what is wrong with the arguments of the edit, as an *Error whose
// Edit is 0, or nil.
func (e Edit) Err() error {
	if e.run == nil {
		return &Error{Rule: "an edit must be made by a function of package patch"}
	}
	if e.err != nil {
		return e.err
	}
	return nil
}

// String names what the edit does and where, such as "set Address.City".
func (e Edit) String() string {
	if e.path.IsZero() {
		return e.verb
	}
	return e.verb + " " + e.path.String()
}

const (
	ruleJSON     = "it must be well-formed JSON without repeated keys"
	ruleMetadata = "the member @metadata is not part of a document's body"
	ruleTest     = "the test must succeed"
)

func newEdit(verb, path string) Edit {
	e := Edit{verb: verb}
	p, err := jsonpath.Parse(path)
	if err != nil {
		e.err = &Error{Rule: "its path must be one", Path: path, Detail: err.Error()}
		return e
	}
	if e.path = p; p.Root() == metadataName {
		e.fail(ruleMetadata, "")
	}
	return e
}

// fail keeps the first thing that is wrong.
func (e *Edit) fail(rule, detail string) {
	if e.err == nil {
		e.err = &Error{Rule: rule, Path: e.path.String(), Detail: detail}
	}
}

func (e *Edit) addValue(value any) {
	raw, depth, detail := encoded(value)
	if detail != "" {
		e.fail("a value must be JSON without repeated keys", detail)
		return
	}
	e.values, e.depth = append(e.values, raw), max(e.depth, depth)
}

// hasMetadata tells whether an object has a member that it may not have.
func hasMetadata(object []byte) bool {
	_, found := jsonpath.FindMember(object, metadataName)
	return found
}

func (e *Edit) apply(t *tree) error { return e.run(e, t) }
