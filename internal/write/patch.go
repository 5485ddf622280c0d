package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
)

// Patching is the part of an op that only patches have.
type Patching struct {
	Edits    []patch.Edit
	OrInsert bool // if nothing is there, insert the op's body
	// PatchInsert applies the edits to the body that is inserted.
	PatchInsert bool
	// Returning gets the result after the commit, or is nil. The body is nil if the
	// document is not there.
	Returning func(status string, m metadata.Metadata, body []byte)

	// Set by prepare.
	modified uint64 // in ticks
	Insert   *Op    // if OrInsert; see PatchInsert
	inserted bool   // the edits have been applied to Insert, or insertErr says why not
	// insertErr is an error only if there is something to insert.
	insertErr error

	Guess speculation // the result of the patch on the document as it was
	stale bool        // the transaction found another version than the one speculated on

	Status patchStatus // decided by the transaction
}

// patchStatus is the outcome of a patch. The words are RavenDB's.
type patchStatus string

const (
	StatusPatched     patchStatus = "Patched"
	StatusCreated     patchStatus = "Created"
	StatusNotModified patchStatus = "NotModified"
	StatusNotFound    patchStatus = "DocumentDoesNotExist"
)

// Patched returns the patching of o, which makes o a patch.
func (o *Op) Patched() *Patching {
	if o.Patching == nil {
		o.Patching = new(Patching)
	}
	return o.Patching
}

// CheckPatch refuses edits that no document could be patched with: wrong ones, and none
// if the patch does not change when something is due either.
func (o *Op) CheckPatch() error {
	p := o.Patching
	if len(p.Edits) == 0 && o.Timing == nil {
		return fmt.Errorf("%w: a patch without edits", ids.ErrUsage)
	}
	for i, e := range p.Edits {
		var wrong *patch.Error
		if err := e.Err(); errors.As(err, &wrong) {
			numbered := *wrong // other patches may share the edit
			numbered.Edit = i
			return &numbered
		} else if err != nil {
			return err
		}
	}
	return nil
}

// preparePatch checks everything that does not need the document.
func (w *Writer) preparePatch(o *Op, modified uint64, last *CollectionNaming) error {
	p := o.Patching
	if err := o.CheckPatch(); err != nil {
		return err
	}
	o.FoldedID, p.modified = w.Env.Rules.Fold(o.ID), modified
	p.Insert, p.inserted, p.insertErr = nil, false, nil
	if o.Timing != nil {
		if _, _, err := o.Timing.apply(nil, modified); err != nil {
			return err
		}
	}
	if !p.OrInsert {
		return nil
	}
	p.Insert = &Op{Request: Request{Verb: Insert, RequestID: o.RequestID, Collection: o.Collection, Custom: o.Custom, Timing: o.Timing, Body: o.Body, LeaveOut: o.LeaveOut}}
	return w.Prepare(p.Insert, modified, last)
}

// PatchInsert applies the edits of o to the document that it will insert, once. They
// take at most maxWork units of work, or as many as the database allows if that is 0.
// The error may depend on maxWork and ctx, and is then not kept.
func (w *Writer) PatchInsert(ctx context.Context, o *Op, maxWork int64) error {
	p := o.Patching
	if !p.PatchInsert || p.inserted {
		return p.insertErr
	}
	out, _, err := w.ApplyEdits(ctx, o, p.Insert.JSON, maxWork)
	if ctx.Err() != nil || maxWork > 0 && errors.Is(err, patch.ErrTooMuchWork) {
		return err
	}
	if p.inserted, p.insertErr = true, err; err != nil {
		return err
	}
	p.Insert.JSON = out
	p.Insert.extract(w.Indexes.Load().Of(p.Insert.FoldedCollection))
	p.Insert.fit(w)
	if p.Insert.Named {
		p.insertErr = w.RefusalNow(p.Insert)
	}
	return p.insertErr
}

// patchInsertHere is PatchInsert in the transaction, where it must be little work.
// Otherwise it returns ErrStale.
func (t *Txn) patchInsertHere(o *Op) error {
	p := o.Patching
	if !p.PatchInsert || p.inserted {
		return p.insertErr
	}
	if t.here++; t.schemas().Of(p.Insert.FoldedCollection) == nil && t.here <= MaxPatchesHere && len(p.Insert.JSON) <= MaxWorkHere {
		if err := t.Writer.PatchInsert(context.Background(), o, MaxWorkHere); p.inserted {
			return err
		}
	}
	p.stale = true
	return ErrStale
}

// PatchedBody returns the body of the document after the patch o, or nil if it is not
// there.
func (o *Op) PatchedBody() []byte {
	if o.Patching.Status == StatusNotFound {
		return nil
	}
	return o.JSON
}

// CommittedAs returns what the write by, which is the result of the patch o, calls
// after its commit, or nil.
func (o *Op) CommittedAs(by *Op) func(metadata.Metadata) {
	returning, status := o.Patching.Returning, o.Patching.Status // a Batch may be used again before
	if returning == nil {
		return nil
	}
	return func(m metadata.Metadata) { returning(string(status), m, by.JSON) }
}

// stageMissing stages a patch of a document that does not exist.
func (t *Txn) stageMissing(o *Op) error {
	if err := t.checkVersion(o, &OldDocument{}, false); err != nil {
		return err
	}
	p := o.Patching
	if p.Insert == nil {
		p.Status, o.Outcome = StatusNotFound, Absent
		return nil
	}
	if err := t.patchInsertHere(o); err != nil {
		return err
	}
	if p.PatchInsert {
		if t.patched += len(p.Insert.JSON); t.patched > MaxPatchedBytes {
			return errPatchedBytes()
		}
	}
	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	if err := t.StagePut(p.Insert, etag); err != nil {
		return err
	}
	p.Status, o.Outcome = StatusCreated, Present
	o.ID, o.Header = p.Insert.ID, p.Insert.Header
	o.JSON = bytes.Clone(p.Insert.JSON) // it may be the caller's own memory
	return nil
}
