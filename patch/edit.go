package patch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Edit is one change of a document. Make one with Set, Unset, Increment, Append,
// AddToSet, Remove, RemoveWhere, PopFirst, PopLast, Rename, Merge or JSONPatch, which
// share no memory with their arguments. Err and Apply return the errors of these
// arguments.
type Edit struct {
	verb   string
	path   jsonpath.Path
	values [][]byte    // JSON values; one for Set and Merge
	joined []byte      // for Append: the values as an array
	depth  int         // of the deepest of values
	amount addend      // for Increment
	name   string      // for Rename
	where  Condition   // for RemoveWhere
	ops    []operation // for JSONPatch
	strict bool        // made by Strict
	err    *Error      // the first error of the arguments

	// replacement returns the value that replaces old, which may be old itself.
	// It may make the value in dst. It is nil for edits that do not replace single
	// values.
	replacement func(e *Edit, w *work, dst, old []byte) ([]byte, error)
	missing     []byte // the old value of a missing member, for replacement
	run         func(e *Edit, t *tree) error
}

// metadataName is the top-level member that no edit may name.
const metadataName = "@metadata"

// Set puts a value at the path and replaces an existing one. The value is encoded
// once, by encoding/json without escapes for HTML; a json.RawMessage is used as
// it is.
//
// Set makes missing objects of the path: Set("a.b", 1) makes {} into
// {"a":{"b":1}}, and {"a":null} as well. It is an error if the path goes through
// any other value that is not an object, or to an element beyond the end of an
// array. With [] Set puts the value at every existing element.
func Set(path string, value any) Edit {
	e := newEdit(verbSet, path)
	e.addValue(value)
	e.replacement, e.run = (*Edit).replaceBySet, (*Edit).runReplacement
	return e
}

// Unset removes the value at the path: a member, or an element, which moves the
// later elements up. With [] at the end of the path it empties the array. If the
// path leads nowhere it changes nothing.
func Unset(path string) Edit {
	e := newEdit(verbUnset, path)
	e.run = (*Edit).runUnset
	return e
}

// Increment adds a number, which may be negative, to the number at the path. By
// is of one of Go's integer or floating-point types, or a json.Number. A missing
// member and null count as 0, and missing objects of the path are made as by Set.
// All other values that are not numbers are errors.
//
// Numbers without point and exponent are integers, and so is the sum of two. An
// integer, as number, amount or sum, that does not fit in an int64 is an error.
// Other numbers are added exactly, with as many decimals as the number that has
// more: 1.1 + 0.1 is 1.2, and 1.50 + 0.5 is 2.00. A sum beyond the range of a
// float64 and numbers of more than 1,000 digits are errors. Adding zero does not
// change the text of a number. With [] every element is incremented.
func Increment(path string, by any) Edit {
	e := newEdit(verbIncrement, path)
	if text, detail := amount(by); detail != "" {
		e.fail("an amount must be a number that can be added", detail)
	} else {
		e.amount = newAddend(text)
	}
	e.replacement, e.missing, e.run = (*Edit).replaceByIncrement, []byte("0"), (*Edit).runReplacement
	return e
}

// Append adds values, encoded as by Set, at the end of the array at the path. A
// missing member and null become an array, and missing objects of the path are made
// as by Set. Any other value that is not an array is an error. Without values
// Append changes nothing.
func Append(path string, values ...any) Edit {
	e := newEdit(verbAppend, path)
	for _, v := range values {
		e.addValue(v)
	}
	e.joined = append(append([]byte{'['}, bytes.Join(e.values, []byte{','})...), ']')
	e.run = (*Edit).runAppend
	return e
}

// AddToSet is Append of the values that no element of the array equals. Values are equal as for
// Remove. A value that is given twice is added once. Elements that the array has twice stay.
// Without values AddToSet changes nothing.
func AddToSet(path string, values ...any) Edit {
	e := newEdit(verbAddToSet, path)
	for _, v := range values {
		e.addValue(v)
	}
	e.run = (*Edit).runAddToSet
	return e
}

// Remove removes every element that equals one of the values, encoded as by Set,
// from the array at the path. Numbers are equal if their exact values are. If the
// path leads nowhere, or to null, Remove changes nothing. Any other value that is
// not an array is an error.
func Remove(path string, values ...any) Edit {
	e := newEdit(verbRemove, path)
	for _, v := range values {
		e.addValue(v)
	}
	e.run = (*Edit).runRemove
	return e
}

// Condition decides which elements RemoveWhere removes. It must be safe for concurrent use, and
// give the same answer for the same element.
type Condition interface {
	// Err returns why the condition is invalid, or nil.
	Err() error

	// Begin returns a function that reports whether an element meets the condition.
	// One goroutine calls it, for the elements of one Apply. It gets compact JSON,
	// which it must neither keep nor change.
	//
	// The function calls spend before it does n units of work (see Limits.MaxWork), and
	// returns the error of spend. The number must depend on nothing but the element.
	Begin(spend func(n int) error) func(element []byte) (bool, error)
}

// RemoveWhere removes every element that meets the condition from the array at the path. It treats
// paths that lead nowhere, null and other values as Remove does.
func RemoveWhere(path string, where Condition) Edit {
	e := newEdit("remove where", path)
	if where == nil {
		e.fail(ruleCondition, "there is none")
	} else if err := where.Err(); err != nil {
		e.fail(ruleCondition, err.Error())
	}
	e.where, e.run = where, (*Edit).runRemoveWhere
	return e
}

// PopFirst removes the first element of the array at the path. If the path leads
// nowhere, to null or to an empty array, PopFirst changes nothing. Any other value that
// is not an array is an error.
func PopFirst(path string) Edit {
	e := newEdit(verbPopFirst, path)
	e.run = (*Edit).runPopFirst
	return e
}

// PopLast is PopFirst for the last element.
func PopLast(path string) Edit {
	e := newEdit(verbPopLast, path)
	e.run = (*Edit).runPopLast
	return e
}

// Rename changes the name of the member at the path to newName, which is a name
// and not a path. The member keeps its position in its object. It is an error if
// the object has a member of that name already. If the path leads nowhere Rename
// changes nothing.
func Rename(path, newName string) Edit {
	e := newEdit(verbRename, path)
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

// Merge merges the JSON object doc into the document, by RFC 7386: members of doc
// replace those of the document, objects are merged into objects, and null removes
// a member. New members are added in the order of doc.
func Merge(doc []byte) Edit {
	e := Edit{verb: verbMerge, run: (*Edit).runMerge}
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

// JSONPatch applies the operations in the JSON array doc, by RFC 6902: add,
// remove, replace, move, copy and test. The document as a whole can be replaced by
// an object only. Negative indexes are errors. A patch has at most 10,000
// operations. The error of a failed test is ErrTestFailed.
func JSONPatch(doc []byte) Edit {
	e := Edit{verb: verbOperations, run: (*Edit).runOperations}
	e.ops, e.err = parseOperations(doc)
	return e
}

// Err returns the error of the arguments of the edit, an *Error whose Edit is 0,
// or nil.
func (e Edit) Err() error {
	if e.run == nil {
		return &Error{Rule: "an edit must be made by a function of package patch"}
	}
	if e.err != nil {
		return e.err
	}
	return nil
}

// String returns the operation of the edit and its path, such as "set Address.City".
func (e Edit) String() string {
	if e.path.IsZero() {
		return e.verb
	}
	return e.verb + " " + e.path.String()
}

// AppendArguments appends the arguments of the edit to dst. Two edits with the same bytes do the
// same, so the bytes tell whether a call repeats an earlier one. A Condition is represented by its
// String method. A call of Strict is not represented.
//
// Jay stores a hash of the bytes: they must not change.
func (e Edit) AppendArguments(dst []byte) []byte {
	text := func(texts ...string) {
		for _, s := range texts {
			dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...)
		}
	}
	text(e.verb, e.path.String(), e.name, string(e.amount.text))
	dst = binary.AppendUvarint(dst, uint64(len(e.values)))
	for _, value := range e.values {
		text(string(value))
	}
	if where, is := e.where.(fmt.Stringer); is {
		text(where.String())
	}
	for _, op := range e.ops {
		text(op.kind, op.path.text, op.from.text, string(op.value))
	}
	return dst
}

const (
	ruleJSON     = "it must be well-formed JSON without repeated keys"
	ruleMetadata = "the member @metadata is not part of a document's body"
	ruleTest     = "the test must succeed"

	ruleCondition = "a condition on elements must be valid"
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

// fail sets the error of the arguments, unless there is one already.
func (e *Edit) fail(rule, detail string) {
	if e.err == nil {
		e.err = &Error{Rule: rule, Path: e.path.String(), Detail: detail}
	}
}

// addValue encodes a value and appends it to values.
func (e *Edit) addValue(value any) {
	raw, depth, detail := encoded(value)
	if detail != "" {
		e.fail("a value must be JSON without repeated keys", detail)
		return
	}
	e.values, e.depth = append(e.values, raw), max(e.depth, depth)
}

// hasMetadata reports whether an object has a member @metadata.
func hasMetadata(object []byte) bool {
	_, found := jsonpath.FindMember(object, metadataName)
	return found
}

func (e *Edit) apply(t *tree) error { return e.run(e, t) }
