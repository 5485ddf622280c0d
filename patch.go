package jay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
)

// PatchOption is one part of a patch: an edit, such as Set or Increment, or a
// condition: IfMatch, OrInsert or another WriteOption. Edits are applied in their
// order, each to the result of those before it, all or none. Values that no edit
// touches keep their bytes.
//
// Paths are written "Address.City", "Lines[0].Qty", "Lines[].Qty" for every
// element, and with quotes for names that hold dots: "Rates.'a.b'". An edit
// that cannot be made is a *PatchError, and nothing is changed: one whose path
// or value is wrong, that finds another kind of value than it can work on, or
// whose number is out of range. One that takes too much work is ErrPatchWork.
type PatchOption interface{ patch(o *op) }

func (w WriteOption) patch(o *op) { w(o) }

type edit patch.Edit

func (e edit) patch(o *op) {
	p := o.patched()
	p.edits = append(p.edits, patch.Edit(e))
}

// patching is the part of an op that only patches have.
type patching struct {
	edits    []patch.Edit
	orInsert bool // if nothing is there, insert the op's body

	// Set by prepare.
	modified uint64      // in ticks
	insert   *op         // if orInsert
	guess    speculation // the result of the patch on the document as it was
	stale    bool        // the transaction found another version than the one speculated on

	status PatchStatus // decided by the transaction
}

// patched returns the patching of o, which makes o a patch.
func (o *op) patched() *patching {
	if o.patching == nil {
		o.patching = new(patching)
	}
	return o.patching
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

// Remove removes every element that equals one of values from the array at the
// path. There is none to remove from null.
func Remove(path string, values ...any) PatchOption { return edit(patch.Remove(path, values...)) }

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
// named as in Put.
func OrInsert(body any) PatchOption {
	return WriteOption(func(o *op) {
		o.patched().orInsert = true
		if raw, ok := body.(json.RawMessage); ok {
			o.body = raw
			return
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(body); err != nil {
			o.usageError = fmt.Errorf("%w: %w", ErrType, err)
		}
		o.body = text.Bytes()
	})
}

// PatchStatus is the outcome of a patch. The words are RavenDB's.
type PatchStatus string

const (
	// PatchPatched: the document was changed.
	PatchPatched PatchStatus = "Patched"

	// PatchCreated: it was not there, and OrInsert has inserted it.
	PatchCreated PatchStatus = "Created"

	// PatchNotModified: it is already as the edits would leave it. Nothing was
	// written; its version is the same.
	PatchNotModified PatchStatus = "NotModified"

	// PatchNotFound: it is not there, and nothing was written.
	PatchNotFound PatchStatus = "DocumentDoesNotExist"
)

// PatchResult is the outcome of a patch and the document after it.
type PatchResult struct {
	Status   PatchStatus     `json:"status"`
	Metadata Metadata        `json:"metadata"`       // of the document now; only an ID if it is not there
	Body     json.RawMessage `json:"body,omitempty"` // of the document now; the caller must not change it
}

// PatchError says which edit of a patch cannot be made, and why.
// errors.Is(err, ErrInvalidPatch).
type PatchError = patch.Error

// ErrPatchWork is the *PatchError of a patch that takes too much work: more than
// 16 units for each byte of Options.MaxDocumentBytes, and than 512 Mi units. A
// unit is a byte that is looked at or written; a value that is touched counts
// for more. The same patch of the same document always takes the same work.
// Make fewer edits at a time, or split the document.
var ErrPatchWork = patch.ErrTooMuchWork

// Patch edits a document in place: no concurrent change is lost, and the caller
// need neither read nor write the whole document.
//
//	db.Patch(ctx, "products/1-A", jay.Increment("Stock", -1), jay.Append("Log", "sold"))
//
// A missing document is no error: see PatchResult.Status, and OrInsert. The ID is
// that of a document; requests such as "users|" are an *IDError. The document stays
// in its collection and keeps its metadata.
func (db *DB) Patch(ctx context.Context, id string, opts ...PatchOption) (PatchResult, error) {
	o := newPatch(id, opts)
	if err := db.write(ctx, []*op{o}); err != nil {
		return PatchResult{}, err
	}
	return patchResult(db, o), nil
}

// Patch is DB.Patch for a document of the collection: one of another is a
// *CollectionError.
func (c *Collection[T]) Patch(ctx context.Context, id string, opts ...PatchOption) (PatchResult, error) {
	o := newPatch(id, opts)
	if o.collection != "" && format.FoldName(o.collection) != format.FoldName(c.m.Collection) {
		o.usageError = fmt.Errorf("%w: InCollection(%.100q) on the collection %.100q", ErrUsage, o.collection, c.m.Collection)
	}
	o.collection, o.inCollection, o.leaveOut = c.m.Collection, format.FoldName(c.m.Collection), c.m.Drop
	if t, ok := c.via.(*Tx); ok {
		return t.patch(ctx, o)
	}
	if err := c.via.write(ctx, []*op{o}); err != nil {
		return PatchResult{}, err
	}
	return patchResult(c.via, o), nil
}

// Patch adds DB.Patch.
func (b *Batch) Patch(id string, opts ...PatchOption) {
	b.add().initPatch(id, opts)
}

func newPatch(id string, opts []PatchOption) *op {
	o := new(op)
	o.initPatch(id, opts)
	return o
}

func (o *op) initPatch(id string, opts []PatchOption) {
	o.verb, o.request, o.patching = verbPatch, id, new(patching)
	for _, option := range opts {
		option.patch(o)
	}
}

func patchResult(a access, o *op) PatchResult {
	r := PatchResult{Status: o.patching.status, Metadata: a.result(o)}
	if r.Status != PatchNotFound {
		r.Body = o.json
	}
	return r
}

// preparePatch checks everything that does not need the document.
func (db *DB) preparePatch(o *op, modified uint64, last *collectionNaming) error {
	p := o.patching
	if len(p.edits) == 0 {
		return fmt.Errorf("%w: a patch without edits", ErrUsage)
	}
	for i, e := range p.edits {
		if err := e.Err(); err != nil {
			var wrong *PatchError
			if errors.As(err, &wrong) {
				numbered := *wrong // other patches may share the edit
				numbered.Edit = i
				return &numbered
			}
			return err
		}
	}
	o.foldedID, p.modified = db.env.Rules.Fold(o.id), modified
	if !p.orInsert {
		return nil
	}
	p.insert = &op{opRequest: opRequest{verb: verbInsert, request: o.request, collection: o.collection, custom: o.custom, body: o.body, leaveOut: o.leaveOut}}
	return db.prepare(p.insert, modified, last)
}

// stageMissing stages a patch of a document that does not exist.
func (t *transaction) stageMissing(o *op) error {
	if err := t.checkVersion(o, oldDocument{}, false); err != nil {
		return err
	}
	p := o.patching
	if p.insert == nil {
		p.status, o.outcome = PatchNotFound, absent
		return nil
	}
	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	if err := t.stagePut(p.insert, etag); err != nil {
		return err
	}
	p.status, o.outcome = PatchCreated, present
	o.id, o.header = p.insert.id, p.insert.header
	o.json = bytes.Clone(p.insert.json) // it may be the caller's own memory
	return nil
}

// record returns a copy of a document's record, or storage.ErrNotFound unwrapped.
func (t *transaction) record(folded string) ([]byte, error) {
	t.key = format.DocumentKey(t.key[:0], folded)
	value, closer, err := t.tx.Get(t.key)
	if err != nil {
		return nil, err
	}
	record := bytes.Clone(value)
	return record, closer.Close()
}

// Patch is DB.Patch. The transaction must then still find the document as it
// was.
func (t *Tx) Patch(ctx context.Context, id string, opts ...PatchOption) (PatchResult, error) {
	return t.patch(ctx, newPatch(id, opts))
}

// patch turns a patch into a write of its result. The transaction does nothing else
// between reading the document and writing it.
func (t *Tx) patch(ctx context.Context, p *op) (PatchResult, error) {
	if err := t.enter(ctx); err != nil {
		return PatchResult{}, err
	}
	defer t.exit()
	if !t.writable {
		return PatchResult{}, fmt.Errorf("%w: a transaction of View only reads", ErrUsage)
	}
	if err := t.prepareOne(p); err != nil {
		return PatchResult{}, opError([]*op{p}, p, err)
	}
	o, result, err := t.resolvePatch(ctx, p)
	if err == nil && o != nil {
		if err = t.prepareOne(o); err == nil {
			_, err = t.add(ctx, o)
		}
	}
	if err != nil {
		return PatchResult{}, opError([]*op{p}, p, err)
	}
	if o == nil {
		if p.returning != nil {
			*p.returning = result.Metadata
		}
		return result, nil
	}
	result.Metadata, result.Body = t.result(o), bytes.Clone(o.json) // see Tx.pending
	return result, nil
}

// prepareOne prepares an op whose name is not to be in the error.
func (t *Tx) prepareOne(o *op) error {
	var last collectionNaming
	return t.db.prepare(o, metadata.Ticks(t.db.env.Now()), &last)
}

// resolvePatch returns the write that is the result of a prepared patch, or nil if
// it changes nothing.
func (t *Tx) resolvePatch(ctx context.Context, p *op) (*op, PatchResult, error) {
	doc, err := t.lookup(p.foldedID)
	if err != nil && err != ErrNotFound {
		return nil, PatchResult{}, err
	}
	o := &op{opRequest: opRequest{verb: verbPut, request: p.id, expected: p.expected, returning: p.returning}}
	if doc == nil {
		if p.patching.insert == nil {
			p.outcome = absent
			return nil, PatchResult{Status: PatchNotFound, Metadata: t.result(p)}, t.expectVersion(p)
		}
		o.verb, o.body, o.collection, o.custom, o.leaveOut = verbInsert, p.body, p.collection, p.custom, p.leaveOut
		return o, PatchResult{Status: PatchCreated}, nil
	}
	if p.inCollection != "" && !docs.SameCollection(doc.Header().Collection, p.inCollection) {
		return nil, PatchResult{}, &CollectionError{ID: p.id, Current: doc.Collection(), Given: p.collection}
	}
	out, changed, err := t.db.applyEdits(ctx, p, doc.JSON(), 0)
	if err != nil {
		return nil, PatchResult{}, err
	}
	if !changed {
		p.outcome, p.id, p.header = present, doc.ID(), *doc.Header()
		return nil, PatchResult{Status: PatchNotModified, Metadata: t.result(p), Body: doc.JSON()}, t.expectVersion(p)
	}
	o.request, o.body, o.custom = doc.ID(), out, doc.Header().Custom
	o.collection = doc.Collection()
	return o, PatchResult{Status: PatchPatched}, nil
}
