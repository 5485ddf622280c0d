package write

import (
	"bytes"
	"fmt"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// rules returns the rules of revisions that this run of the transaction follows.
func (t *Txn) rules() *revisions.Rules {
	if !t.rulesRead {
		t.rulesRead, t.rulesOf = true, t.Writer.Revisions.Load()
	}
	return t.rulesOf
}

// keeps reports whether a document that o finds is to be kept as a revision when o
// replaces or deletes it.
func (o *Op) keeps(rules *revisions.Rules, h *metadata.Header) bool {
	if h.Revision != 0 || o.KeepRevision || o.KeepReplaced {
		return true
	}
	return rules != nil && rules.Of(format.CollectionKey(string(h.Collection))) != nil
}

// past is the record of a document that becomes a revision, in two parts.
type past struct{ head, body []byte }

// keepVersion makes the version with this header and body what old becomes a revision
// of. The memory must stay as it is until the transaction ends.
func (old *OldDocument) keepVersion(h *metadata.Header, body []byte) {
	old.past = past{h.AppendTail(h.AppendHead(nil)), body}
}

// stageRevision numbers the version that o writes, if it is to be a revision, and
// keeps the one that it replaces.
func (t *Txn) stageRevision(o *Op, old *OldDocument, found bool) error {
	o.Header.Revision = 0
	if t.rules() == nil && old.Revision == 0 && !o.KeepRevision && !o.KeepReplaced {
		return nil
	}
	rule := t.rules().Of(o.FoldedCollection)
	on := rule != nil || o.KeepRevision
	if !found {
		if on {
			return t.numberFirst(o)
		}
		return nil
	}
	if !on && old.Revision == 0 && !o.KeepReplaced {
		return nil
	}
	history, _, err := revisions.HistoryOf(t.Tx, o.FoldedID)
	if err != nil {
		return err
	}
	number := old.number(history)
	if on {
		o.Header.Revision = number + 1
	}
	span := revisions.Span{First: history.First, Last: number - 1, Replaced: old.Modified, Newest: number + 1}
	first, drop, err := t.trim(o, rule, span)
	if err != nil {
		return err
	}
	if first == number && drop.Drops(number, span, o.Header.Modified) {
		first++ // it would go at once
	} else if err := t.stageVersion(o, old, number); err != nil {
		return err
	}
	if first != history.First || !on {
		t.stageHistory(o.FoldedID, format.History{First: first, Last: number})
	}
	return nil
}

// number returns the number of a version that is found in the transaction.
func (old *OldDocument) number(h format.History) uint64 {
	if old.Revision != 0 {
		return old.Revision
	}
	return h.Last + 1 // it was written before a rule was there
}

// numberFirst numbers the first version of a document. It goes on where a document of
// the same ID, which was deleted, has ended: also that of a made ID, which somebody may
// have put by hand before, or which a source of GUIDs may make again.
func (t *Txn) numberFirst(o *Op) error {
	o.Header.Revision = 1
	history, had, err := revisions.HistoryOf(t.Tx, o.FoldedID)
	if err != nil || !had {
		return err
	}
	o.Header.Revision = history.Last + 1
	t.key = format.DeletedKey(t.key[:0], o.FoldedID)
	t.Tx.Delete(t.key)
	return nil
}

// trim removes what a rule keeps no longer of the revisions in s, and returns the first
// that stays. Nothing satisfies the criterion if the rule keeps everything.
func (t *Txn) trim(o *Op, rule *revisions.Rule, s revisions.Span) (first uint64, c revisions.Criterion, err error) {
	c, some := rule.Expired(o.Header.Modified)
	if !some {
		return s.First, c, nil
	}
	removed, err := revisions.Trim(t.Tx, o.FoldedID, s, revisions.MaxTrimmed, c)
	for collection, n := range removed.ByFolded {
		t.countRevisions(collection, -n)
	}
	return removed.First, c, err
}

// stageVersion stages the version that was found as a revision.
func (t *Txn) stageVersion(o *Op, old *OldDocument, number uint64) error {
	if old.past.head == nil {
		if err := t.readPast(o, old); err != nil {
			return err
		}
	}
	if t.kept += len(old.past.head) + len(old.past.body); t.kept > storage.MaxTxBytes {
		return fmt.Errorf("%w: the revisions that it keeps have more than %d bytes; use several batches", storage.ErrTooLarge, storage.MaxTxBytes)
	}
	t.key = format.RevisionKey(t.key[:0], o.FoldedID, number)
	t.value = append(format.RevisionHead{}.Append(t.value[:0]), old.past.head...)
	t.Tx.Set(t.key, t.value, old.past.body)
	t.countRevisions(format.CollectionKey(old.Collection), 1)
	return nil
}

// readPast reads the version that o replaces, which is still there.
func (t *Txn) readPast(o *Op, old *OldDocument) error {
	t.key = format.DocumentKey(t.key[:0], o.FoldedID)
	value, closer, err := t.Tx.Get(t.key)
	if err != nil {
		return err
	}
	own := bytes.Clone(value)
	if err := closer.Close(); err != nil {
		return err
	}
	h, body, err := metadata.Decode(own)
	head := len(own) - len(body)
	old.past = past{own[:head:head], body}
	old.ID = docs.WrittenID(&h, o.FoldedID)
	return err
}

func (t *Txn) stageHistory(foldedID string, h format.History) {
	t.key = format.HistoryKey(t.key[:0], foldedID)
	t.value = h.Append(t.value[:0])
	t.Tx.Set(t.key, t.value, nil)
}

// stageDeletionRevision keeps the version that o deletes, and its deletion, which has
// this etag.
func (t *Txn) stageDeletionRevision(o *Op, old *OldDocument, foldedCollection string, etag uint64) error {
	if t.rules() == nil && old.Revision == 0 && !o.KeepRevision {
		return nil
	}
	rule := t.rules().Of(foldedCollection)
	if rule == nil && old.Revision == 0 && !o.KeepRevision {
		return nil
	}
	history, _, err := revisions.HistoryOf(t.Tx, o.FoldedID)
	if err != nil {
		return err
	}
	number := old.number(history)
	if err := t.stageVersion(o, old, number); err != nil {
		return err
	}

	deletion := metadata.Header{Node: t.Writer.Env.Node, Etag: etag, Modified: o.Header.Modified, Collection: []byte(old.Collection), Revision: number + 1}
	if old.ID != o.FoldedID {
		deletion.ID = []byte(old.ID)
	}
	t.key = format.RevisionKey(t.key[:0], o.FoldedID, number+1)
	t.value = deletion.AppendTail(deletion.AppendHead(format.RevisionHead{Deletion: true}.Append(t.value[:0])))
	t.Tx.Set(t.key, t.value, emptyBody)
	t.countRevisions(foldedCollection, 1)

	span := revisions.Span{First: history.First, Last: number - 1, Replaced: old.Modified, Newest: number}
	first, _, err := t.trim(o, rule, span)
	if err != nil {
		return err
	}
	t.stageHistory(o.FoldedID, format.History{First: first, Last: number + 1})
	t.key = format.DeletedKey(t.key[:0], o.FoldedID)
	t.Tx.Set(t.key, nil, nil)
	return nil
}

// emptyBody is the body of a deletion's revision.
var emptyBody = []byte("{}")

// stageKeep makes the version that is there a revision, which it is not yet if no rule
// was there when it was written. The version stays the same.
func (t *Txn) stageKeep(o *Op) error {
	t.key = format.DocumentKey(t.key[:0], o.FoldedID)
	value, closer, err := t.Tx.Get(t.key)
	if err == storage.ErrNotFound {
		return errs.ErrNotFound
	}
	if err != nil {
		return err
	}
	size := len(value)
	shared, body, err := metadata.Decode(value)
	o.Header, o.JSON = cloneHeader(&shared), append([]byte(nil), body...)
	if err := errs.First(err, closer.Close()); err != nil {
		return err
	}
	if docs.IsGone(&o.Header, t.moment) {
		return errs.ErrNotFound
	}
	if o.InCollection != "" && format.CollectionKey(string(o.Header.Collection)) != o.InCollection {
		return &metadata.CollectionError{ID: o.ID, Current: OrEmpty(string(o.Header.Collection)), Given: o.Collection}
	}
	if err := t.checkVersion(o, &OldDocument{Node: o.Header.Node, Etag: o.Header.Etag}, true); err != nil {
		return err
	}
	o.Outcome = Present
	if o.Header.Revision != 0 {
		return nil
	}
	history, _, err := revisions.HistoryOf(t.Tx, o.FoldedID)
	if err != nil {
		return err
	}
	o.Header.Revision = history.Last + 1
	t.change(o.FoldedID)
	t.key = format.DocumentKey(t.key[:0], o.FoldedID)
	t.value = o.Header.AppendTail(o.Header.AppendHead(t.value[:0]))
	t.Tx.Set(t.key, t.value, o.JSON)
	if err := env.Rewritten(t.Tx); err != nil {
		return err
	}
	return t.count(format.CollectionKey(string(o.Header.Collection)), o.FoldedID, 0, int64(len(t.value)+len(o.JSON)-size))
}
