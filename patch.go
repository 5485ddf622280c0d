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

// PatchOption is one part of a patch: an edit, such as Set or Increment, or a condition: IfMatch, OrInsert,
// OrInsertPatched or another WriteOption. A patch applies its edits atomically and in their order, each to the
// result of the edits before it. Values that no edit touches keep their bytes.
//
// A path is "Address.City", "Lines[0].Qty", or "Lines[].Qty" for every element. Names with dots need quotes:
// "Rates.'a.b'". If an edit cannot be made, the patch returns a *PatchError and changes nothing: the path or
// value is invalid, the present value has the wrong kind, or a number is out of range. A patch that takes too
// much work returns ErrPatchWork.
type PatchOption interface{ patch(o *op) }

type edit patch.Edit

func (e edit) patch(o *op) {
	p := o.Patched()
	p.Edits = append(p.Edits, patch.Edit(e))
}

// Set puts a value at the path, replacing an existing value. It creates missing objects on the path, also in
// place of null. The value is encoded as encoding/json does; a json.RawMessage is used unchanged.
func Set(path string, value any) PatchOption { return edit(patch.Set(path, value)) }

// Unset removes the value at the path, if it exists.
func Unset(path string) PatchOption { return edit(patch.Unset(path)) }

// Increment adds by, which may be negative, to the number at the path. A missing number and null count as 0.
// Integers are exact, and must stay within an int64. Decimals are added as decimals, so 1.1 + 0.1 is 1.2.
func Increment(path string, by any) PatchOption { return edit(patch.Increment(path, by)) }

// Append adds values to the end of the array at the path. Append creates a missing array. null, the JSON of a
// nil slice, becomes an array.
func Append(path string, values ...any) PatchOption { return edit(patch.Append(path, values...)) }

// AddToSet appends the values that the array does not contain yet. Values are equal as in conditions: 1 equals
// 1.0, and the order of members does not matter. A value that is passed twice is added once.
func AddToSet(path string, values ...any) PatchOption { return edit(patch.AddToSet(path, values...)) }

// Remove removes every element that equals one of values from the array at the path. null counts as an empty
// array.
func Remove(path string, values ...any) PatchOption { return edit(patch.Remove(path, values...)) }

// PopFirst removes the first element of the array at the path. null counts as an empty array.
func PopFirst(path string) PatchOption { return edit(patch.PopFirst(path)) }

// PopLast removes the last element of the array at the path. null counts as an empty array.
func PopLast(path string) PatchOption { return edit(patch.PopLast(path)) }

// Rename renames the member at the path, and keeps its position.
func Rename(path, name string) PatchOption { return edit(patch.Rename(path, name)) }

// MergePatch merges a JSON object into the document, as RFC 7386 defines it: null
// removes a member.
func MergePatch(doc json.RawMessage) PatchOption { return edit(patch.Merge(doc)) }

// JSONPatch applies the operations of a JSON array, as RFC 6902 defines them. If one of its tests fails, the
// error is ErrPatchTest.
func JSONPatch(doc json.RawMessage) PatchOption { return edit(patch.JSONPatch(doc)) }

// OrInsert inserts body, without the edits, if the document does not exist. body is JSON as json.RawMessage, or
// a value that encoding/json encodes. The collection is named as in Put. OrInsertPatched applies the edits to
// body first.
func OrInsert(body any) PatchOption { return orInsert(body, false) }

// OrInsertPatched applies the edits to body and inserts the result, if the document does not exist. So body
// need not repeat the edits: with struct{}{}, Increment counts from 0 and Append creates its array. body has
// the same types as in OrInsert. An edit that cannot be made on body is an error only if body is to be
// inserted.
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

// ReturningPatch stores the result of the patch in *r when the patch is committed, as Returning does with the
// metadata. So the caller of a batch or a transaction gets the result of each patch, and knows which documents
// were missing.
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

// PatchStatus is the outcome of a patch. Its values are those of RavenDB.
type PatchStatus string

const (
	// PatchPatched means that the document was changed.
	PatchPatched PatchStatus = PatchStatus(write.StatusPatched)

	// PatchCreated means that the document did not exist, and OrInsert or OrInsertPatched has inserted it.
	PatchCreated PatchStatus = PatchStatus(write.StatusCreated)

	// PatchNotModified means that the edits would not change the document. Nothing was written, and its version
	// is the same.
	PatchNotModified PatchStatus = PatchStatus(write.StatusNotModified)

	// PatchNotFound means that the document does not exist, and nothing was written.
	PatchNotFound PatchStatus = PatchStatus(write.StatusNotFound)
)

// PatchResult is the outcome of a patch and the document after it.
type PatchResult struct {
	Status   PatchStatus     `json:"status"`
	Metadata Metadata        `json:"metadata"`       // of the document after the patch; only an ID if it does not exist
	Body     json.RawMessage `json:"body,omitempty"` // of the document after the patch; the caller must not change it
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

// ErrPatchWork is the *PatchError of a patch that takes too much work: more than 16 units for each byte of
// Options.MaxDocumentBytes, and more than 512 Mi units. A unit is a byte that is read, compared or written; an
// edited value counts for more. The same patch of the same document always takes the same work. Make fewer
// edits at a time, or split the document.
var ErrPatchWork = patch.ErrTooMuchWork

// Patch edits a document in place: no concurrent change is lost, and the caller need not read or write the
// whole document.
//
//	db.Patch(ctx, "products/1-A", jay.Increment("Stock", -1), jay.Append("Log", "sold"))
//
// A missing document is not an error: see PatchResult.Status, and OrInsertPatched. id must be the ID of a
// document; Patch returns an *IDError for requests such as "users|". The document stays in its collection and
// keeps its metadata.
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
	o.Once = &write.Once{Request: r, Keeps: write.KeepsPatch, Of: ops}
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

// Patch adds a patch as by DB.Patch. ReturningPatch stores its result.
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

// Patch edits a document, as DB.Patch does. The document joins the read set of the transaction.
func (t *Tx) Patch(ctx context.Context, id string, opts ...PatchOption) (PatchResult, error) {
	return t.patch(ctx, newPatch(id, opts))
}

// patch turns a patch into a write of its result.
func (t *Tx) patch(ctx context.Context, p *op) (PatchResult, error) {
	r, err := t.inner().Patch(ctx, p)
	return PatchResult{Status: PatchStatus(r.Status), Metadata: r.Metadata, Body: r.Body}, err
}

// RemoveWhere removes the elements that satisfy a condition from the array at the path. The fields of the
// condition are fields of an element: with the path "Lines", Lt("Qty", 1) tests the member Qty of each line.
// "@value" is the element itself if it is not an object, such as the texts in RemoveWhere("Tags",
// StartsWith("@value", "old-")). Elements have no metadata. An element whose field is missing satisfies Ne and
// Not, as documents do. null counts as an empty array.
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
