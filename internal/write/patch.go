package write

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/patch"
)

// Patching is the part of an op that only patches have.
type Patching struct {
	Edits    []patch.Edit
	OrInsert bool // if nothing is there, insert the op's body

	// Set by prepare.
	modified uint64      // in ticks
	Insert   *Op         // if orInsert
	Guess    speculation // the result of the patch on the document as it was
	stale    bool        // the transaction found another version than the one speculated on

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

// preparePatch checks everything that does not need the document.
func (w *Writer) preparePatch(o *Op, modified uint64, last *CollectionNaming) error {
	p := o.Patching
	if len(p.Edits) == 0 {
		return fmt.Errorf("%w: a patch without edits", ids.ErrUsage)
	}
	for i, e := range p.Edits {
		if err := e.Err(); err != nil {
			var wrong *patch.Error
			if errors.As(err, &wrong) {
				numbered := *wrong // other patches may share the edit
				numbered.Edit = i
				return &numbered
			}
			return err
		}
	}
	o.FoldedID, p.modified = w.Env.Rules.Fold(o.ID), modified
	if !p.OrInsert {
		return nil
	}
	p.Insert = &Op{Request: Request{Verb: Insert, RequestID: o.RequestID, Collection: o.Collection, Custom: o.Custom, Body: o.Body, LeaveOut: o.LeaveOut}}
	return w.Prepare(p.Insert, modified, last)
}

// stageMissing stages a patch of a document that does not exist.
func (t *Txn) stageMissing(o *Op) error {
	if err := t.checkVersion(o, OldDocument{}, false); err != nil {
		return err
	}
	p := o.Patching
	if p.Insert == nil {
		p.Status, o.Outcome = StatusNotFound, Absent
		return nil
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
