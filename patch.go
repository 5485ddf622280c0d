package jay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/instant"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/query"
)

// PatchOption is one part of a patch: an edit, such as Set or Increment, or a
// condition: IfMatch, OrInsert, OrInsertPatched or another WriteOption. Edits are applied in their
// order, each to the result of those before it, all or none. Values that no edit
// touches keep their bytes.
//
// Paths are written "Address.City", "Lines[0].Qty", "Lines[].Qty" for every
// element, and with quotes for names that hold dots: "Rates.'a.b'". An edit
// that cannot be made is a *PatchError, and nothing is changed: one whose path
// or value is wrong, that finds another kind of value than it can work on, or
// whose number is out of range. One that takes too much work is ErrPatchWork.
type PatchOption interface{ patch(o *op) }

type edit patch.Edit

func (e edit) patch(o *op) {
	p := o.Patched()
	p.Edits = append(p.Edits, patch.Edit(e))
}

// Set puts a value at the path, replacing an existing one. Missing objects on the
// path are created, also in place of null. The value is encoded as encoding/json does; a json.RawMessage
// is taken as it is.
func Set(path string, value any) PatchOption { return edit(patch.Set(path, value)) }

// Unset removes the value at the path, if there is one.
func Unset(path string) PatchOption { return edit(patch.Unset(path)) }

// Increment adds by, which may be negative, to the number at the path. A
// missing one, and null, count as 0. Integers are exact, and must stay within an int64;
// decimals are added as decimals, so that 1.1 + 0.1 is 1.2.
func Increment(path string, by any) PatchOption { return edit(patch.Increment(path, by)) }

// Append adds values to the end of the array at the path. A missing array is
// created, and null, which is how a nil slice is stored, becomes an array.
func Append(path string, values ...any) PatchOption { return edit(patch.Append(path, values...)) }

// AddToSet is Append of those values that the array does not have yet. Values are equal
// as in conditions: 1 is 1.0, and the order of members does not matter. One that is
// given twice is added once.
func AddToSet(path string, values ...any) PatchOption { return edit(patch.AddToSet(path, values...)) }

// Remove removes every element that equals one of values from the array at the
// path. There is none to remove from null.
func Remove(path string, values ...any) PatchOption { return edit(patch.Remove(path, values...)) }

// PopFirst removes the first element of the array at the path. There is none to remove
// from null.
func PopFirst(path string) PatchOption { return edit(patch.PopFirst(path)) }

// PopLast removes the last element of the array at the path. There is none to remove
// from null.
func PopLast(path string) PatchOption { return edit(patch.PopLast(path)) }

// Rename renames the member at the path, in its place.
func Rename(path, name string) PatchOption { return edit(patch.Rename(path, name)) }

// MergePatch merges a JSON object into the document, as RFC 7386 defines it: null
// removes a member.
func MergePatch(doc json.RawMessage) PatchOption { return edit(patch.Merge(doc)) }

// JSONPatch applies the operations of a JSON array, as RFC 6902 says. If one of
// its tests fails, the error is ErrPatchTest.
func JSONPatch(doc json.RawMessage) PatchOption { return edit(patch.JSONPatch(doc)) }

// OrInsert inserts body, without the edits, if the document is not there: JSON
// as json.RawMessage, or a value that encoding/json encodes. Collections are
// named as in Put. OrInsertPatched applies the edits to body first.
func OrInsert(body any) PatchOption { return orInsert(body, false) }

// OrInsertPatched applies the edits to body and inserts the result, if the document is
// not there, so that body need not repeat what they do: with struct{}{}, Increment
// counts from 0 and Append makes its array. body is given as to OrInsert. An edit that
// cannot be made of body is an error only if it is to be inserted.
func OrInsertPatched(body any) PatchOption { return orInsert(body, true) }

// orInsert inserts body if the document is not there. The last such option counts.
func orInsert(body any, patched bool) PatchOption {
	return writeOption(func(o *op) {
		p := o.Patched()
		p.OrInsert, p.PatchInsert = true, patched
		if raw, ok := body.(json.RawMessage); ok {
			o.Body = raw
			return
		}
		text, err := instant.Marshal(body)
		if err != nil {
			o.UsageError = fmt.Errorf("%w: %w", ErrType, err)
		}
		o.Body = text
	})
}

// ReturningPatch stores the result of the patch in *r when it is committed, as
// Returning does with the metadata: so a batch or a transaction learns what became of
// each of its patches, and which documents were missing.
func ReturningPatch(r *PatchResult) PatchOption {
	return patchOptionFunc(func(o *op) {
		if r == nil {
			return
		}
		o.Patched().Returning = func(status string, m Metadata, body []byte) {
			*r = PatchResult{Status: PatchStatus(status), Metadata: m, Body: body}
		}
	})
}

// patchOptionFunc is a PatchOption that is no edit and that other writes do not have.
type patchOptionFunc func(o *op)

func (f patchOptionFunc) patch(o *op) { f(o) }

// PatchStatus is the outcome of a patch. The words are RavenDB's.
type PatchStatus string

const (
	// PatchPatched: the document was changed.
	PatchPatched PatchStatus = PatchStatus(write.StatusPatched)

	// PatchCreated: it was not there, and OrInsert or OrInsertPatched has inserted it.
	PatchCreated PatchStatus = PatchStatus(write.StatusCreated)

	// PatchNotModified: it is already as the edits would leave it. Nothing was
	// written; its version is the same.
	PatchNotModified PatchStatus = PatchStatus(write.StatusNotModified)

	// PatchNotFound: it is not there, and nothing was written.
	PatchNotFound PatchStatus = PatchStatus(write.StatusNotFound)
)

// PatchResult is the outcome of a patch and the document after it.
type PatchResult struct {
	Status   PatchStatus     `json:"status"`
	Metadata Metadata        `json:"metadata"`       // of the document now; only an ID if it is not there
	Body     json.RawMessage `json:"body,omitempty"` // of the document now; the caller must not change it
}

// PatchError names the edit of a patch that cannot be made, and the reason. Nothing
// was changed. errors.Is(err, ErrInvalidPatch) is true. Its fields (see package
// patch):
//
//	Rule    string  such as "only a number can be incremented"
//	Path    string  the path of the edit, a JSON Pointer for JSONPatch; may be empty
//	Detail  string  what was found; may be empty
//	Edit    int     the position of the edit, counted from 0; -1 for an error of the document
type PatchError = patch.Error

// ErrPatchWork is the *PatchError of a patch that takes too much work: more than
// 16 units for each byte of Options.MaxDocumentBytes, and than 512 Mi units. A
// unit is a byte that is read, compared or written; a value that is edited counts
// for more. The same patch of the same document always takes the same work.
// Make fewer edits at a time, or split the document.
var ErrPatchWork = patch.ErrTooMuchWork

// Patch edits a document in place: no concurrent change is lost, and the caller
// need neither read nor write the whole document.
//
//	db.Patch(ctx, "products/1-A", jay.Increment("Stock", -1), jay.Append("Log", "sold"))
//
// A missing document is no error: see PatchResult.Status, and OrInsertPatched. The ID is
// that of a document; requests such as "users|" are an *IDError. The document stays
// in its collection and keeps its metadata.
func (db *DB) Patch(ctx context.Context, id string, opts ...PatchOption) (PatchResult, error) {
	return patchThrough(ctx, db, newPatch(id, opts))
}

// patchThrough makes a patch, once if it has a request ID.
func patchThrough(ctx context.Context, a access, o *op) (PatchResult, error) {
	if o.Once == nil {
		if err := a.write(ctx, []*op{o}); err != nil {
			return PatchResult{}, err
		}
		return patchResult(a, o), nil
	}
	ops := []*op{o}
	r, err := takeRequest(a, ops)
	if err != nil {
		return PatchResult{}, err
	}
	o.Once = &write.Once{Request: r, Result: func() any {
		kept := requests.WrittenOf(a.result(o))
		kept.Patch = string(o.Patching.Status)
		return kept
	}}
	var kept requests.Written
	again, err := requests.Decode(a.write(ctx, ops), &kept)
	if err != nil {
		return PatchResult{}, err
	}
	if again {
		return PatchResult{Status: PatchStatus(kept.Patch), Metadata: kept.Metadata()}, nil
	}
	return patchResult(a, o), nil
}

// Patch adds DB.Patch. What became of it is in the result of ReturningPatch.
func (b *Batch) Patch(id string, opts ...PatchOption) {
	initPatch(b.add(), id, opts)
}

func newPatch(id string, opts []PatchOption) *op {
	o := new(op)
	initPatch(o, id, opts)
	return o
}

func initPatch(o *op, id string, opts []PatchOption) {
	o.Verb, o.RequestID, o.Patching = write.Patch, id, new(write.Patching)
	for _, option := range opts {
		option.patch(o)
	}
}

func patchResult(a access, o *op) PatchResult {
	return PatchResult{Status: PatchStatus(o.Patching.Status), Metadata: a.result(o), Body: o.PatchedBody()}
}

// Patch is DB.Patch. The transaction must then still find the document as it
// was.
func (t *Tx) Patch(ctx context.Context, id string, opts ...PatchOption) (PatchResult, error) {
	return t.patch(ctx, newPatch(id, opts))
}

// patch turns a patch into a write of its result.
func (t *Tx) patch(ctx context.Context, p *op) (PatchResult, error) {
	r, err := t.inner().Patch(ctx, p)
	return PatchResult{Status: PatchStatus(r.Status), Metadata: r.Metadata, Body: r.Body}, err
}

// RemoveWhere removes the elements that meet a condition from the array at the path.
// Its fields are those of one element: with the path "Lines", Lt("Qty", 1) is about
// the member Qty of each line. "@value" is the element itself where that is no object,
// such as the texts of RemoveWhere("Tags", StartsWith("@value", "old-")). Elements have
// no metadata. An element whose field is missing meets Ne and Not, as documents do.
// There is none to remove from null.
func RemoveWhere(path string, c Condition) PatchOption {
	return edit(patch.RemoveWhere(path, newElementCondition(c)))
}

// elementCondition is a Condition on the elements of an array. It implements
// patch.Condition.
type elementCondition struct {
	expr    query.Expr
	matcher *query.Matcher // cloned for each patch
	work    int            // units for each element, beside those that the matcher counts
	err     error
}

// Work of an element, in units of patch.Limits.MaxWork.
const (
	workPerMatch     = 64
	workPerCondition = 32
)

var errElementMetadata = errors.New("an element has no id and no metadata")

func newElementCondition(c Condition) *elementCondition {
	if c.inner().Err() != nil {
		return &elementCondition{err: c.inner().Err()}
	}
	expr := c.inner().Expr()
	for _, f := range query.Fields(expr) {
		if f.Meta != query.MetaNone {
			return &elementCondition{err: fmt.Errorf("%w: %s", errElementMetadata, f)}
		}
	}
	m, err := query.Compile(expr)
	return &elementCondition{expr: expr, matcher: m, work: workPerMatch + workPerCondition*c.inner().Size().Conditions, err: err}
}

// Err implements patch.Condition.
func (c *elementCondition) Err() error { return c.err }

// String returns what is asked of elements: see patch.Edit.AppendArguments.
func (c *elementCondition) String() string { return fmt.Sprintf("%#v", c.expr) }

// Begin implements patch.Condition.
func (c *elementCondition) Begin(spend func(n int) error) func(element []byte) (bool, error) {
	m, pace := c.matcher.Clone(), new(query.Pace)
	pace.Charge(spend)
	m.SetPace(pace)
	var wrapped []byte
	return func(element []byte) (bool, error) {
		if err := spend(c.work); err != nil {
			return false, err
		}
		if element[0] != '{' {
			if err := spend(len(element)); err != nil {
				return false, err
			}
			wrapped = append(append(append(wrapped[:0], `{"@value":`...), element...), '}')
			element = wrapped
		}
		meets := m.Match(query.Doc{Body: element})
		return meets, pace.Settle()
	}
}
