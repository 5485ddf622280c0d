// Package patch applies edits to a JSON object, and compares two objects. It is
// independent of databases.
//
//	out, changed, err := patch.Apply(body, []patch.Edit{
//		patch.Increment("Stock.Count", -1),
//		patch.Append("Log[0].Lines", "sold"),
//	}, patch.Limits{})
//
// Edits are applied in order, each to the result of those before it: all of them
// or none. Members keep their order, and values that no edit touches keep their
// bytes: 9007199254740993 and 1.10 stay as written. A single [Set] or [Increment]
// of an existing value is spliced into the bytes. For all other patches the
// document becomes a tree whose nodes are parsed only where edits go. An edit of
// every element of an array is one pass over its bytes.
//
// # Paths
//
// Paths have the same syntax in all of Jay: Address.City, Lines[0].Qty, Lines[].Qty for every
// element, and 'x.y' in quotes for names with dots. They are strict: an array has no members. The
// constructors document what each edit does where a path leads nowhere. In general, edits that put
// a value make the missing objects of the path, and edits that remove one change nothing. The
// member @metadata of a document is not part of its body, and no edit may name it.
//
// # Equality
//
// The order of members and the escapes in strings do not matter to whether two
// values are the same. For [AddToSet], [Remove], [Diff] and the test of [JSONPatch], numbers
// are the same if their exact values are: 1 is 1.0. Writing a value over the same
// value changes nothing; there, numbers are the same only if their texts are, so
// that 1.1 can be changed to 1.10.
//
// # The RFCs
//
// [Merge] is RFC 7386 and [JSONPatch] is RFC 6902. evanphx/json-patch decodes
// the operations; this package applies them, on the same tree as all other edits.
// The Apply of that library, in v5.9.11, panics where an array with null is
// tested, compares numbers by their text, cannot reach a member with an empty
// name and takes a missing member for null. Its MergePatch escapes <, > and &
// everywhere, adds members in random order and drops null from objects in arrays.
//
// # Work
//
// A small patch can cause much work: move 32 MB ten thousand times, or remove ten thousand values
// from a million. Apply refuses a patch that takes more units of work than Limits.MaxWork, with
// ErrTooMuchWork. Units count bytes read and written, and values touched. They depend on the
// document and the edits only, never on time.
//
// # Concurrency and stability
//
// Edits are immutable and safe for concurrent use, and so are the functions.
//
// The package is public and follows the module's version: until 1.0 its API may
// change.
package patch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/jsonpath"
)

// ErrInvalid matches every *Error: errors.Is(err, ErrInvalid).
var ErrInvalid = errors.New("invalid patch")

// ErrTestFailed matches the *Error of a failed test operation of a JSON Patch, as
// ErrInvalid does.
var ErrTestFailed = errors.New("patch test failed")

// Error says which rule an edit breaks, and where.
type Error struct {
	Rule   string // such as "only a number can be incremented"
	Path   string // of the edit, a JSON Pointer for JSONPatch; may be empty
	Detail string // what was found; may be empty
	Edit   int    // index of the edit, counted from 0; -1 for an error of the document

	work bool // matches ErrTooMuchWork
}

// Error names the edit, the path, the rule and what was found.
func (e *Error) Error() string {
	text := "invalid patch"
	if e.Edit >= 0 {
		text += fmt.Sprintf(": edit %d", e.Edit)
	}
	if e.Path != "" {
		text += fmt.Sprintf(": %.80q", e.Path)
	}
	text += ": " + e.Rule
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Is makes errors.Is(err, ErrInvalid) true, errors.Is(err, ErrTestFailed) for a
// failed test, and errors.Is(err, ErrTooMuchWork) for too much work.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrInvalid:
		return true
	case ErrTestFailed:
		return e.Rule == ruleTest
	case ErrTooMuchWork:
		return e.work
	}
	return false
}

// Limits bound the result and the work of Apply. Zero fields mean the defaults. A
// document that exceeds the limits can still be edited into one that does not.
type Limits struct {
	// MaxBytes is the greatest size in bytes of the result, of an array whose
	// elements an edit changes, and of all that the copy operations of one JSON
	// Patch copy. The default is 32 MiB.
	MaxBytes int
	// MaxDepth is the greatest depth of nested objects and arrays in the result;
	// the document itself is at depth 1. The default is 256.
	MaxDepth int
	// MaxWork is the greatest number of units of work of a patch: bytes read,
	// compared or written, and a few more units for each value. The default is 16
	// for each byte of MaxBytes, and at least 536,870,912 (512 Mi). That takes
	// about half a second on a processor of 2023, and at most 200 MB of memory.
	MaxWork int64
}

func (l Limits) withDefaults() Limits {
	if l.MaxBytes == 0 {
		l.MaxBytes = 32 << 20
	}
	if l.MaxDepth == 0 {
		l.MaxDepth = 256
	}
	if l.MaxWork == 0 {
		l.MaxWork = max(minDefaultWork, defaultWorkPerByte*int64(l.MaxBytes))
	}
	return l
}

// Apply applies edits to body. It returns the result, and whether the result differs from body. If
// it does not, out is body itself. Otherwise out is new memory. The body must be an object that
// metadata.Scan accepted and compacted; Apply does not change it. Every error is an *Error. The
// errors of constructors are reported before any edit is applied.
func Apply(body []byte, edits []Edit, limits Limits) (out []byte, changed bool, err error) {
	return ApplyContext(context.Background(), body, edits, limits)
}

// ApplyContext is Apply, but returns the error of ctx when ctx ends. It checks ctx
// about once a millisecond.
func ApplyContext(ctx context.Context, body []byte, edits []Edit, limits Limits) (out []byte, changed bool, err error) {
	if jsonpath.KindOf(body) != jsonpath.Object {
		return nil, false, &Error{Rule: "only an object can be edited", Detail: "the document is " + kindText(jsonpath.KindOf(body)), Edit: -1}
	}
	if int64(len(body)) > math.MaxUint32 { // offsets have 32 bits
		return nil, false, &Error{Rule: "only a document of less than 4 GiB can be edited", Detail: fmt.Sprintf("it has %d bytes", len(body)), Edit: -1}
	}
	for i := range edits {
		if err := edits[i].Err(); err != nil {
			return nil, false, at(i, err)
		}
	}
	limits = limits.withDefaults()
	t := tree{root: node{raw: body}, limits: limits, work: newWork(ctx, limits.MaxWork)}

	if len(edits) == 1 {
		out, done, err := t.spliced(body, &edits[0])
		if err != nil {
			return nil, false, at(0, err)
		}
		if done {
			return out, !sharesStart(out, body), nil
		}
	}
	for i := range edits {
		if err := edits[i].apply(&t); err != nil {
			return nil, false, at(i, err)
		}
	}
	return t.render(body)
}

// at returns err as the error of edit i, unless it is an error of the document.
func at(i int, err error) error {
	e, ok := err.(*Error)
	if !ok || e.Edit < 0 {
		return err
	}
	numbered := *e
	numbered.Edit = i
	return &numbered
}

// spliced applies an edit that replaces one existing value, without parsing what
// follows the value. It returns body itself if nothing changes. Done is false if
// the edit is of another kind or the value is missing.
func (t *tree) spliced(body []byte, e *Edit) (out []byte, done bool, err error) {
	if e.replacement == nil || e.path.FansOut() {
		return nil, false, nil
	}
	old, found, err := t.reach(body, e.path, 0)
	if err != nil || !found {
		return nil, false, err
	}
	value, err := e.replacement(e, &t.work, nil, old)
	if err != nil {
		return nil, false, err
	}
	if sharesStart(value, old) {
		return body, true, nil
	}
	if err := t.limits.checkDepth(e.path.String(), e.path.Len()+e.depth); err != nil {
		return nil, false, err
	}
	size := len(body) - len(old) + len(value)
	if err := t.limits.checkBytes(size); err != nil {
		return nil, false, err
	}
	if err := t.work.spend(size); err != nil {
		return nil, false, err
	}
	return appendSpliced(make([]byte, 0, size), body, old, value), true, nil
}

// appendSpliced appends whole with value in place of old. Old must be a slice of
// whole with the remaining capacity: the difference of their capacities is the
// offset of old in whole.
func appendSpliced(dst, whole, old, value []byte) []byte {
	start := cap(whole) - cap(old)
	dst = append(dst, whole[:start]...)
	dst = append(dst, value...)
	return append(dst, whole[start+len(old):]...)
}

// reach returns the value that the steps of a path from step i on lead to. None of
// these steps may be [].
func (t *tree) reach(value []byte, p jsonpath.Path, i int) (_ []byte, found bool, err error) {
	for ; i < p.Len(); i++ {
		if err := t.work.spend(workPerValue + len(value)); err != nil {
			return nil, false, err
		}
		s := p.At(i)
		if s.Kind == jsonpath.Member {
			value, found = jsonpath.FindMember(value, s.Name)
		} else {
			value, found = findElement(value, s.Index)
		}
		if !found {
			return nil, false, nil
		}
	}
	return value, true, nil
}

// findElement returns an element of an array by its index.
func findElement(array []byte, index int) (element []byte, found bool) {
	for i, element := range jsonpath.Elements(array) {
		if i == index {
			return element, true
		}
	}
	return nil, false
}

// sharesStart reports whether two values, which must not be empty, begin at the
// same address: the edits use it to see whether a value was replaced.
func sharesStart(a, b []byte) bool { return &a[0] == &b[0] }

// checkBytes returns an error if a result of size bytes is too large.
func (l Limits) checkBytes(size int) error {
	if size <= l.MaxBytes {
		return nil
	}
	return &Error{Rule: fmt.Sprintf("the result may have at most %d bytes", l.MaxBytes), Detail: fmt.Sprintf("it has %d", size), Edit: -1}
}

// checkDepth returns an error if a result of this depth is too deep. The path is
// for the error.
func (l Limits) checkDepth(path string, depth int) error {
	if depth <= l.MaxDepth {
		return nil
	}
	return &Error{Rule: fmt.Sprintf("the result may be at most %d levels deep", l.MaxDepth), Path: path, Detail: fmt.Sprintf("it has %d", depth)}
}

// kindText returns a kind with its article, for errors.
func kindText(k jsonpath.Kind) string {
	switch k {
	case jsonpath.Invalid, jsonpath.Null:
		return k.String()
	case jsonpath.Array, jsonpath.Object:
		return "an " + k.String()
	}
	return "a " + k.String()
}
