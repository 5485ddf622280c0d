package txn

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Write stages ops, all of them or none. The results
// are what is known before the commit.
func (t *Tx) Write(ctx context.Context, ops []*write.Op) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.exit()
	if !t.writable {
		return fmt.Errorf("%w: a transaction of View only reads", ids.ErrUsage)
	}
	if err := t.db.Writer.PrepareAll(ops); err != nil {
		return err
	}
	count, bytes := len(t.ops), t.bytes
	replaced := make([]int, 0, len(ops))
	whole := false
	defer func() {
		if !whole { // an error, or a clock that panics
			t.undo(count, bytes, replaced)
		}
	}()
	var unchanged []*write.Op // patches that change nothing
	for _, o := range ops {
		staged, before, err := t.stage(ctx, o)
		if err != nil {
			return write.OpError(ops, o, err)
		}
		if staged {
			replaced = append(replaced, before)
		} else {
			unchanged = append(unchanged, o)
		}
	}
	whole = true
	t.db.Writer.Publish(unchanged)
	return nil
}

// stage stages a prepared op, or reports that it changes nothing. before is the op
// of the same document that it replaces, or -1.
func (t *Tx) stage(ctx context.Context, o *write.Op) (staged bool, before int, err error) {
	if !o.Verb.Edits() {
		before, err = t.add(ctx, o)
		return true, before, err
	}
	w, _, err := t.resolvePatch(ctx, o)
	if w == nil || err != nil {
		return false, 0, err
	}
	if err := t.prepareOne(w); err != nil {
		return false, 0, err
	}
	before, err = t.add(ctx, w)
	o.Outcome, o.ID, o.Header = w.Outcome, w.ID, w.Header
	return true, before, err
}

// undo removes the ops from count on; replaced are the ops that they replaced, or
// -1.
func (t *Tx) undo(count, bytes int, replaced []int) {
	for i := len(replaced) - 1; i >= 0; i-- {
		o := t.ops[count+i]
		switch {
		case o.FoldedID == "":
		case replaced[i] < 0:
			delete(t.staged, o.FoldedID)
		default:
			t.staged[o.FoldedID] = replaced[i]
		}
	}
	t.ops, t.bytes = t.ops[:count], bytes
	t.undoExchanges()
}

// opBytes is what an op counts beside its document.
const opBytes = 512

// checkRoom returns storage.ErrTooLarge unless the transaction may stage size bytes more.
func (t *Tx) checkRoom(size int) error {
	if t.bytes+size > storage.MaxTxBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", storage.ErrTooLarge, t.bytes+size, storage.MaxTxBytes)
	}
	return nil
}

// add stages one prepared op, and returns the previous newest op of its document,
// or -1.
func (t *Tx) add(ctx context.Context, o *write.Op) (before int, err error) {
	size := len(o.JSON) + len(o.Header.Custom) + 2*len(o.ID) + opBytes
	if err := t.checkRoom(size); err != nil {
		return 0, err
	}
	if err := t.drawID(ctx, o); err != nil {
		return 0, err
	}
	if !o.Strategy.Made() {
		if err := t.checkHeld(o.FoldedID); err != nil {
			return 0, err
		}
	}
	if err := t.expect(o); err != nil {
		return 0, err
	}
	if o.Exchanging != nil || o.Guard != nil {
		if err := t.expectIndex(ctx, o); err != nil {
			return 0, err
		}
	}
	if err := t.adopt(o); err != nil {
		return 0, err
	}

	o.Own()
	if o.Outcome = write.Provisional; o.Verb.Deletes() {
		o.Outcome = write.Absent
	}
	staged := *o // the commit writes its results here, and the caller reads those in o
	t.ops, t.bytes = append(t.ops, &staged), t.bytes+size
	if o.Exchanging != nil {
		t.addExchange(o.Exchanging.Folded, len(t.ops)-1)
	}
	if o.FoldedID == "" {
		return -1, nil // the commit makes its ID, or it is no document
	}
	before, found := t.staged[o.FoldedID]
	if found {
		t.list(&staged, t.ops[before])
		if err := t.keepDueAfter(&staged, t.ops[before]); err != nil {
			t.ops, t.bytes = t.ops[:len(t.ops)-1], t.bytes-size
			return 0, err
		}
	} else {
		t.list(&staged, nil)
		before = -1
	}
	if t.staged == nil {
		t.staged = make(map[string]int)
	}
	t.staged[o.FoldedID] = len(t.ops) - 1
	return before, nil
}

// drawID makes HiLo IDs and GUIDs that no document has, in the database or in this
// transaction.
func (t *Tx) drawID(ctx context.Context, o *write.Op) error {
	if !o.Strategy.Drawn() {
		return nil
	}
	if o.ID = t.reissue(o); o.ID != "" {
		t.db.Writer.EncodeTail(o)
	} else if err := t.db.Writer.DrawID(ctx, o); err != nil {
		return err
	}
	given := o.ID
	taken, err := docs.Exists(t.db.Env.Engine, format.DocumentKey(nil, o.FoldedID))
	for err == nil && (taken || t.wrote(o.FoldedID)) {
		err, taken = t.db.Writer.RedrawID(ctx, o), false
	}
	if err != nil {
		return err
	}
	o.Exposed = true
	if o.Strategy.FromRange() && (given != o.ID || !t.reissued[o.FoldedID]) {
		t.issued.all[o.Tag] = append(t.issued.all[o.Tag], o.ID)
	}
	return nil
}

// reissue returns the next HiLo ID that an earlier run was given, or "".
func (t *Tx) reissue(o *write.Op) string {
	if !o.Strategy.FromRange() || t.issued.held {
		return ""
	}
	for free := t.issued.free[o.Tag]; len(free) > 0; {
		id := free[0]
		free = free[1:]
		t.issued.free[o.Tag] = free
		if folded := t.db.Env.Rules.Fold(id); !t.wrote(folded) {
			if t.reissued == nil {
				t.reissued = make(map[string]bool)
			}
			t.reissued[folded] = true
			return id
		}
	}
	return ""
}

// wrote reports whether the transaction has written a document.
func (t *Tx) wrote(folded string) bool { _, found := t.staged[folded]; return found }

// expect checks the condition of o on the document, as the transaction sees it, and
// adds the document to the read set.
func (t *Tx) expect(o *write.Op) error {
	if o.Strategy.Made() || (!o.Verb.MustBeNew() && !o.Verb.MustExist() && o.Expected == nil && o.InCollection == "") {
		return nil
	}
	doc, err := t.lookup(o.FoldedID)
	if err != nil && err != errs.ErrNotFound {
		return err
	}
	if o.InCollection != "" && doc != nil && !doc.IsIn(o.InCollection) {
		return &metadata.CollectionError{ID: o.ID, Current: doc.Collection(), Given: o.Collection}
	}
	switch {
	case o.Verb.MustBeNew() && doc != nil:
		return errs.ErrExists
	case o.Verb.MustExist() && doc == nil:
		return errs.ErrNotFound
	}
	return t.expectVersion(o)
}

// expectVersion compares the version that o expects with the one before the
// transaction: its own writes have none yet. The commit need not compare again: it
// checks the read set.
func (t *Tx) expectVersion(o *write.Op) error {
	if o.Expected == nil {
		return nil
	}
	actual, err := t.actualVersion(o)
	if err != nil {
		return err
	}
	if actual != *o.Expected || (o.Verb.Deletes() && actual == "") {
		return &metadata.ConflictError{ID: o.ID, Expected: *o.Expected, Actual: actual}
	}
	o.Expected = nil
	return nil
}

// actualVersion returns the version to compare with. It is "" for a document that
// the transaction has deleted, and for one that it wrote blindly, if that write
// reported "".
func (t *Tx) actualVersion(o *write.Op) (string, error) {
	if i, found := t.staged[o.FoldedID]; found {
		_, looked := t.reads.versions[o.FoldedID]
		if t.ops[i].Verb.Deletes() || !looked && *o.Expected == "" {
			return "", nil
		}
	}
	doc, err := t.base(o.FoldedID)
	if err == errs.ErrNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return doc.ChangeVector(), nil
}

// adopt puts o into the collection that its document has for the transaction. That
// is no read of the document: the commit only checks that the collection is the
// same, which takes a deletion to change.
func (t *Tx) adopt(o *write.Op) error {
	if !o.Adopts() {
		return nil
	}
	collection := o.Suggested
	if i, found := t.staged[o.FoldedID]; found {
		if before := t.ops[i]; !before.Verb.Deletes() {
			collection = string(before.Header.Collection)
		}
	} else {
		seen, _, err := t.db.Writer.CollectionAt(t.snapshot, o, &collection)
		if err != nil {
			return err
		}
		o.Seen = &seen
	}
	o.TakeCollection(t.db.Writer, collection)
	return t.db.Writer.RefusalNow(o)
}

// prepareOne prepares an op whose name is not to be in the error.
func (t *Tx) prepareOne(o *write.Op) error {
	var last write.CollectionNaming
	return t.db.Writer.Prepare(o, metadata.Ticks(t.db.Env.Now()), &last)
}
