package txn

import (
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// showDue gives a document that o will write the instants that it keeps. Those of a document that
// o replaces without having read it are read now, and it joins the read set if it has any. The
// commit keeps what the document has then.
func (t *Tx) showDue(o *write.Op) error {
	if o.DueShown || !o.KeepsDue() || o.Strategy.Made() {
		return nil
	}
	record, closer, err := docs.ReadRecord(t.snapshot, format.NewDocumentKey(o.FoldedID))
	if err == errs.ErrNotFound {
		o.DueShown = true
		return nil
	}
	if err != nil {
		return err
	}
	h, _, err := metadata.Decode(record)
	if err == nil && h.Timed && !docs.IsGone(&h, t.moment.At) {
		times := h.Times()
		if err = t.db.Writer.KeepDue(o, &times); err == nil {
			t.saw(o.FoldedID, write.Version{Node: h.Node, Etag: h.Etag})
		}
	}
	o.DueShown = err == nil
	return errs.First(err, closer.Close())
}

// keepDueAfter gives the document of o the instants that it keeps of the one that before, an op of the same
// transaction, has written.
func (t *Tx) keepDueAfter(o, before *write.Op) error {
	if !o.KeepsDue() {
		return nil
	}
	if o.DueShown = true; before.Verb.Deletes() {
		return nil
	}
	if err := t.showDue(before); err != nil {
		return err
	}
	if !before.Header.Timed {
		return nil
	}
	times := before.Header.Times()
	return t.db.Writer.KeepDue(o, &times)
}
