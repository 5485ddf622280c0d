// Package patch edits JSON documents: it turns one JSON object and some edits
// into another object, and knows nothing of databases.
//
//	out, changed, err := patch.Apply(body, []patch.Edit{
//		patch.Increment("Stock.Count", -1),
//		patch.Append("Log[0].Lines", "sold"),
//	}, patch.Limits{})
//
// Edits are applied in order, each to what those before it left, and all or
// none. Members keep their order and what no edit touches keeps its bytes:
// 9007199254740993 and 1.10 stay as they are written. A single [Set] or
// [Increment] of a value that is there is cut into the bytes; for anything
// else the document becomes a tree once, which is only opened where edits go.
// An edit of every element of an array passes over its bytes.
//
// # Paths
//
// Paths are those of the whole of Jay: Address.City, Lines[0].Qty, Lines[].Qty
// for every element, and 'x.y' in quotes for names with dots. They are strict:
// an array has no members. What each edit does where a path leads nowhere is
// told at its constructor; in general those that put something there make
// missing objects on the way, and those that take something away change
// nothing. The member @metadata of a document is not part of its body, and no
// edit may name it.
//
// # Equality
//
// Two values are the same JSON whatever the order of members and whatever
// escapes strings are written with. Numbers are the same if their exact values
// are, so 1 is 1.0, for [Remove], [Diff] and the test of [JSONPatch]. A write
// of a value that is already there changes nothing; it is there only if its
// numbers have the same text, so that 1.1 can be made 1.10.
//
// # The RFCs
//
// [Merge] is RFC 7386 and [JSONPatch] is RFC 6902. evanphx/json-patch decodes
// the operations; they are applied here, on the same tree as all other edits.
// Its own Apply, in v5.9.11, panics where an array with null is tested,
// compares numbers by their text, cannot reach a member whose name is empty
// and takes a missing member for null; its MergePatch escapes <, > and &
// everywhere, adds members in random order and drops null from objects in
// arrays.
//
// # Work
//
// A small patch can ask for much: to move 32 MB ten thousand times, or to take
// ten thousand values out of a million. The work of a patch is counted, in
// bytes looked at and written and in values touched, and a patch that takes
// more than Limits.MaxWork is refused with ErrTooMuchWork. The count depends on
// the document and the edits only, never on the time that they take.
//
// Edits are immutable and safe for concurrent use, and so are the functions.
package patch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/jsonpath"
)

// ErrInvalid is what every *Error is: errors.Is(err, ErrInvalid).
var ErrInvalid = errors.New("invalid patch")

// ErrTestFailed is what the *Error of a failed test operation of a JSON Patch
// is, beside ErrInvalid.
var ErrTestFailed = errors.New("patch test failed")

// Error says which rule an edit breaks, and where.
type Error struct {
	Rule   string // such as "only a number can be incremented"
	Path   string // as given to the edit, a JSON Pointer for RFC 6902; may be empty
	Detail string // what was found; may be empty
	Edit   int    // index of the edit, counted from 0; -1 if it is about the document

	work bool // it is ErrTooMuchWork
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

// Limits bound what Apply makes. A document that exceeds them already can
// still be edited into one that does not.
type Limits struct {
	// MaxBytes is the most bytes of the result, of an array whose elements an
	// edit changes, and of what the copy operations of one JSON Patch copy. The
	// default is 32 MiB.
	MaxBytes int
	// MaxDepth is how deep objects and arrays may lie inside each other, the
	// document itself being 1. The default is 256.
	MaxDepth int
	// MaxWork is the most units of work that a patch may take: bytes looked at,
	// compared or written, and a few units more for each value. The default is
	// 16 for each byte of MaxBytes, and at least 536,870,912 (512 Mi): about half
	// a second on a processor of 2023, and 200 MB of memory at the most.
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

// Apply returns body as the edits leave it, and whether that differs from
// body. If it does not, out is body itself; otherwise out is new memory. The
// body must be an object that metadata.Scan accepted and compacted, and is not
// changed. Every error is an *Error, with nothing done: an edit that could not
// be made is reported before any is applied.
func Apply(body []byte, edits []Edit, limits Limits) (out []byte, changed bool, err error) {
	return ApplyContext(context.Background(), body, edits, limits)
}

// ApplyContext is Apply until ctx ends, which is looked at every millisecond or
// so. Then the error is that of ctx.
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

// at returns err as the error of edit i, unless it is about the document.
func at(i int, err error) error {
	e, ok := err.(*Error)
	if !ok || e.Edit < 0 {
		return err
	}
	numbered := *e
	numbered.Edit = i
	return &numbered
}

// spliced applies one edit that replaces a value that is there, without
// looking at anything behind it. It returns body itself if nothing changes,
// and done is false if the edit is of another kind.
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

// appendSpliced appends whole with value in the place of old, which is a part
// of whole that reaches to its capacity.
func appendSpliced(dst, whole, old, value []byte) []byte {
	start := cap(whole) - cap(old)
	dst = append(dst, whole[:start]...)
	dst = append(dst, value...)
	return append(dst, whole[start+len(old):]...)
}

// reach returns the value that the steps of a path from i on lead to, none of
// which is into every element.
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

func findElement(array []byte, index int) (element []byte, found bool) {
	for i, element := range jsonpath.Elements(array) {
		if i == index {
			return element, true
		}
	}
	return nil, false
}

// sharesStart tells whether two values that are not empty are one in memory.
func sharesStart(a, b []byte) bool { return &a[0] == &b[0] }

func (l Limits) checkBytes(size int) error {
	if size <= l.MaxBytes {
		return nil
	}
	return &Error{Rule: fmt.Sprintf("the result may have at most %d bytes", l.MaxBytes), Detail: fmt.Sprintf("it has %d", size), Edit: -1}
}

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
