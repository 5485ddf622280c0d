package txn

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// Patched is the result of a patch.
type Patched struct {
	Status   string // write.StatusPatched and its like
	Metadata metadata.Metadata
	Body     []byte
}

// Patch turns a patch into a write of its result. The transaction does nothing else
// between reading the document and writing it.
func (t *Tx) Patch(ctx context.Context, p *write.Op) (Patched, error) {
	if err := t.enter(ctx); err != nil {
		return Patched{}, err
	}
	defer t.exit()
	if !t.writable {
		return Patched{}, fmt.Errorf("%w: a transaction of View only reads", ids.ErrUsage)
	}
	if err := t.prepareOne(p); err != nil {
		return Patched{}, write.OpError([]*write.Op{p}, p, err)
	}
	o, result, err := t.resolvePatch(ctx, p)
	if err == nil && o != nil {
		if err = t.prepareOne(o); err == nil {
			_, err = t.add(ctx, o)
		}
	}
	if err != nil {
		return Patched{}, write.OpError([]*write.Op{p}, p, err)
	}
	if o == nil {
		t.db.Writer.Publish([]*write.Op{p})
		return result, nil
	}
	result.Metadata, result.Body = t.db.Writer.ResultOf(o), bytes.Clone(o.JSON) // see Tx.pending
	return result, nil
}

// resolvePatch returns the write that is the result of a prepared patch, or nil if
// it changes nothing.
func (t *Tx) resolvePatch(ctx context.Context, p *write.Op) (*write.Op, Patched, error) {
	doc, err := t.lookup(p.FoldedID)
	if err != nil && err != errs.ErrNotFound {
		return nil, Patched{}, err
	}
	o := &write.Op{Request: write.Request{Verb: write.Put, RequestID: p.ID, Expected: p.Expected, Returning: p.Returning}}
	if doc == nil {
		return t.resolveMissing(ctx, p, o)
	}
	if p.InCollection != "" && !doc.IsIn(p.InCollection) {
		return nil, Patched{}, &metadata.CollectionError{ID: p.ID, Current: doc.Collection(), Given: p.Collection}
	}
	out, changed, err := t.db.Writer.ApplyEdits(ctx, p, doc.JSON(), 0)
	if err != nil {
		return nil, Patched{}, err
	}
	header := doc.Header()
	retimed, err := p.Retime(&header)
	if err != nil {
		return nil, Patched{}, err
	}
	if !changed && !retimed {
		p.Outcome, p.ID, p.Header, p.JSON = write.Present, doc.ID(), doc.Header(), doc.JSON()
		p.Patching.Status = write.StatusNotModified
		return nil, Patched{Status: string(write.StatusNotModified), Metadata: t.db.Writer.ResultOf(p), Body: doc.JSON()}, t.expectVersion(p)
	}
	o.RequestID, o.Body, o.Kept, o.KeptTimed = doc.ID(), out, header.Custom, header.Timed
	o.Collection = doc.Collection()
	if i, found := t.staged[p.FoldedID]; found {
		o.KeepsAfter(t.ops[i], p)
	}
	p.Patching.Status = write.StatusPatched
	o.Committed = p.CommittedAs(o)
	return o, Patched{Status: string(write.StatusPatched)}, nil
}

// resolveMissing is resolvePatch for a document that is not there; o is the write to
// fill in.
func (t *Tx) resolveMissing(ctx context.Context, p, o *write.Op) (*write.Op, Patched, error) {
	insert := p.Patching.Insert
	if insert == nil {
		p.Outcome, p.Patching.Status = write.Absent, write.StatusNotFound
		return nil, Patched{Status: string(write.StatusNotFound), Metadata: t.db.Writer.ResultOf(p)}, t.expectVersion(p)
	}
	p.Patching.Status = write.StatusCreated
	o.Committed = p.CommittedAs(o)
	o.Verb, o.Body, o.Collection, o.Custom, o.LeaveOut = write.Insert, p.Body, p.Collection, p.Custom, p.LeaveOut
	o.Timing = p.Timing
	if p.Patching.PatchInsert {
		if err := t.db.Writer.PatchInsert(ctx, p, 0); err != nil {
			return nil, Patched{}, err
		}
		// Its @metadata has been taken out.
		o.Body, o.Collection, o.Named, o.Custom = insert.JSON, insert.Collection, insert.Named, insert.Header.Custom
	}
	return o, Patched{Status: string(write.StatusCreated)}, nil
}
