package write

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// stageTimes replaces the entries of what is due for a document: those of before, which
// it had, by those of after. A pair of instants that are equal stays as it is.
func (t *Txn) stageTimes(folded, foldedCollection string, before *metadata.Times, after metadata.Times) {
	var had metadata.Times
	if before != nil {
		had = *before
	}
	t.stageTime(folded, foldedCollection, format.DueExpiry, had.Expires, after.Expires)
	t.stageTime(folded, foldedCollection, format.DueRefresh, had.Refresh, after.Refresh)
}

// stageTime is stageTimes for one kind of entry.
func (t *Txn) stageTime(folded, foldedCollection string, kind byte, before, after time.Time) {
	if before.Equal(after) {
		return
	}
	if !before.IsZero() {
		t.key = format.TimeKey(t.key[:0], before, kind, folded)
		t.Tx.Delete(t.key)
		t.countTime(kind, -1)
	}
	if after.IsZero() {
		return
	}
	t.key = format.TimeKey(t.key[:0], after, kind, folded)
	t.Tx.Set(t.key, []byte(foldedCollection), nil)
	t.countTime(kind, 1)
	if t.due.IsZero() || after.Before(t.due) {
		t.due = after
	}
}

// hasTime reports whether there is an entry of what is due. Its key is in t.key then.
func (t *Txn) hasTime(folded string, kind byte, at time.Time) (bool, error) {
	t.key = format.TimeKey(t.key[:0], at, kind, folded)
	_, closer, err := t.Tx.Get(t.key)
	if err == storage.ErrNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, closer.Close()
}

// timesOf returns the instants of a header, nil if it has none.
func timesOf(h *metadata.Header) *metadata.Times {
	if !h.Timed {
		return nil
	}
	times := h.Times()
	return &times
}

// noteTimes notes in the agenda what a run has staged, before it commits. A run before
// it, of the same Update, may have noted something else.
func (t *Txn) noteTimes() {
	if t.due.IsZero() || t.due == t.noted {
		return
	}
	t.Writer.Agenda.Staged(t.due)
	t.endTimes()
	t.noted = t.due
}

// endTimes takes back what noteTimes has noted. The transaction has ended.
func (t *Txn) endTimes() {
	if !t.noted.IsZero() {
		t.Writer.Agenda.Ended(t.noted)
		t.noted = time.Time{}
	}
}

// dueOp makes an op one of the sweeper: it does what is due for a document, if that is
// still due.
type dueOp struct {
	due  format.Due
	seen Version // that the refreshed document must still have
}

// DueDeletion returns the deletion of a document that has expired.
func DueDeletion(d format.Due) *Op {
	return &Op{Request: Request{Verb: Delete, RequestID: d.FoldedID}, Prepared: Prepared{due: &dueOp{due: d}}}
}

// DueRefresh returns the write that gives a document a new version, without its
// @refresh. The op keeps the document.
func DueRefresh(d format.Due, doc *docs.Document) (*Op, error) {
	h := doc.Header()
	custom, err := metadata.SetTime(h.Custom, metadata.Refresh, time.Time{})
	if err != nil {
		return nil, err
	}
	timed := metadata.ReadTimes(custom) != (metadata.Times{})
	o := &Op{Request: Request{Verb: Put, RequestID: doc.ID(), Collection: string(h.Collection), Named: true, Kept: custom, KeptTimed: timed, Body: doc.JSON(), Validated: true}}
	o.due = &dueOp{due: d, seen: Version{h.Node, h.Etag}}
	return o, nil
}

// IsDisabled reports whether nothing is done at the instants of one kind.
func IsDisabled(e *env.Env, kind byte) bool {
	if kind == format.DueRefresh {
		return e.RefreshDisabled.Load()
	}
	return e.ExpirationDisabled.Load()
}

// holds reports whether what the op does is still due for the document found. If not,
// its entry, which is none of the document, is removed, but for that of another version.
// While the kind is disabled, nothing is due and every entry stays.
func (o *dueOp) holds(t *Txn, old *OldDocument, found bool) (bool, error) {
	d := &o.due
	if IsDisabled(t.Writer.Env, d.Kind) {
		return false, nil
	}
	at := time.Time{}
	if found && old.Times != nil {
		at = old.Times.Expires
		if d.Kind == format.DueRefresh {
			at = old.Times.Refresh
		}
	}
	if !at.Equal(d.At) {
		there, err := t.hasTime(d.FoldedID, d.Kind, d.At)
		if there {
			t.Tx.Delete(t.key)
			t.countTime(d.Kind, -1)
		}
		return false, err
	}
	return o.seen == (Version{}) || o.seen == (Version{old.Node, old.Etag}), nil
}

// sweptTogether is how many ops of Sweep a transaction stages, while other writes wait.
const sweptTogether = 16

// Sweep does what ops, made by DueDeletion and DueRefresh, are for, at the time now.
// What is not due any more is left out: see IsDone. It neither waits for the disk nor calls
// the user's clock. The documents are read together; then small transactions follow one
// another, so that writers wait for little; rest is called after each. Sweep returns how
// many of ops are committed.
func (w *Writer) Sweep(ctx context.Context, ops []*Op, now time.Time, rest func()) (committed int, err error) {
	if err := w.prepareOps(ops, metadata.Ticks(now)); err != nil {
		return 0, err
	}
	if err := w.Yield(ctx, ops); err != nil {
		return 0, err
	}
	ahead, err := w.Prefetch(ctx, ops)
	if err != nil {
		return 0, err
	}
	defer ahead.Close(ops)
	for committed < len(ops) {
		end := min(committed+sweptTogether, len(ops))
		if err := w.sweep(ctx, ops[committed:end], ahead); err != nil {
			return committed, err
		}
		committed = end
		rest()
	}
	return committed, nil
}

func (w *Writer) sweep(ctx context.Context, ops []*Op, ahead *Prefetched) error {
	return w.Background(ctx, false, func(t *Txn) error {
		t.prefetched = ahead
		return t.Run(ops)
	})
}

// IsDone reports whether an op of Sweep has done something.
func (o *Op) IsDone() bool {
	return o.Outcome == Present || o.Outcome == Absent && o.Header.Etag != 0
}

// With Options.ExactExpiry a document that has expired is as if it were deleted, before
// the sweeper has deleted it. A write that would find one in its way, under its ID or in
// a unique index, has it deleted first, by a transaction of its own, and runs again.

// errInTheWay ends a run that has met documents which have expired: see Txn.inTheWay.
var errInTheWay = errors.New("a document that has expired is in the way")

// hasExpired reports whether the document found counts as deleted.
func (t *Txn) hasExpired(old *OldDocument) bool {
	return old.Times != nil && t.expiredBy(*old.Times)
}

func (t *Txn) expiredBy(times metadata.Times) bool {
	return !t.moment.IsZero() && !times.Expires.IsZero() && !times.Expires.After(t.moment)
}

// meet notes a document that has expired and is in the way, and returns errInTheWay.
func (t *Txn) meet(folded string, at time.Time) error {
	if !slices.ContainsFunc(t.inTheWay, func(d format.Due) bool { return d.FoldedID == folded }) {
		t.inTheWay = append(t.inTheWay, format.Due{At: at, Kind: format.DueExpiry, FoldedID: folded})
	}
	return errInTheWay
}

// meetOthers notes those that the other ops will meet, so that the transaction runs
// again once, and not once for each.
func (t *Txn) meetOthers(ops []*Op) error {
	met := make(map[string]bool, len(ops))
	for _, d := range t.inTheWay {
		met[d.FoldedID] = true
	}
	for _, o := range ops {
		if o.Strategy.Made() || o.Verb.Deletes() || o.Verb.Edits() || o.FoldedID == "" || met[o.FoldedID] {
			continue
		}
		met[o.FoldedID] = true
		old, found, err := t.old(o)
		if err != nil {
			return err
		}
		if found && t.hasExpired(&old) {
			t.inTheWay = append(t.inTheWay, format.Due{At: old.Times.Expires, Kind: format.DueExpiry, FoldedID: o.FoldedID})
		}
	}
	return errInTheWay
}

// MeetExpired is meet for a document that has expired. It returns nil for any other: the
// caller needs a value of a unique index that the document has or would have.
func (t *Txn) MeetExpired(folded string) error {
	if t.moment.IsZero() {
		return nil
	}
	h, err := headerAt(t.Tx, format.DocumentKey(nil, folded))
	if err != nil || !docs.IsGone(&h, t.moment) {
		return err
	}
	return t.meet(folded, h.Times().Expires)
}

// clear deletes documents that have expired and are in the way of a transaction.
func (w *Writer) clear(ctx context.Context, inTheWay []format.Due, now time.Time) error {
	ops := make([]*Op, len(inTheWay))
	for i, d := range inTheWay {
		ops[i] = DueDeletion(d)
	}
	if err := w.prepareOps(ops, metadata.Ticks(now)); err != nil {
		return err
	}
	return w.sweep(ctx, ops, nil) // without Yield: the caller may have the turn
}

// AliveVersion is Version for a reader to whom a document that has expired is missing.
func (t *Txn) AliveVersion(folded string) (Version, error) {
	t.key = format.DocumentKey(t.key[:0], folded)
	h, err := headerAt(t.Tx, t.key)
	if err != nil || docs.IsGone(&h, t.moment) {
		return Version{}, err
	}
	return Version{h.Node, h.Etag}, nil
}

// headerAt returns the header of the document at a key, without its texts but for the
// custom metadata of one that has instants, or the zero one if there is none.
func headerAt(r docs.Getter, key []byte) (metadata.Header, error) {
	record, closer, err := r.Get(key)
	if err == storage.ErrNotFound {
		return metadata.Header{}, nil
	}
	if err != nil {
		return metadata.Header{}, err
	}
	h, _, err := metadata.Decode(record)
	own := metadata.Header{Node: h.Node, Etag: h.Etag, Modified: h.Modified, Timed: h.Timed, Revision: h.Revision}
	if h.Timed {
		own.Custom = slices.Clone(h.Custom)
	}
	return own, errs.First(err, closer.Close())
}

// Adopt gives the document that a transaction has found, and whose custom metadata has
// instants of which the database knows nothing yet, its entries. It stays in its version.
// After a loss that was accepted, it may have some of them.
func (t *Txn) Adopt(folded string, h *metadata.Header, body []byte) error {
	h.Timed = true
	var had metadata.Times
	times := h.Times()
	for _, one := range []struct {
		kind    byte
		at, had *time.Time
	}{{format.DueExpiry, &times.Expires, &had.Expires}, {format.DueRefresh, &times.Refresh, &had.Refresh}} {
		if one.at.IsZero() {
			continue
		}
		there, err := t.hasTime(folded, one.kind, *one.at)
		if err != nil {
			return err
		}
		if there {
			*one.had = *one.at
		}
	}

	t.change(folded)
	t.key = format.DocumentKey(t.key[:0], folded)
	t.value = h.AppendTail(h.AppendHead(t.value[:0]))
	t.value = append(t.value, body...)
	t.Tx.Set(t.key, t.value, nil)
	if err := env.Rewritten(t.Tx); err != nil {
		return err
	}
	t.stageTimes(folded, format.CollectionKey(string(h.Collection)), &had, times)
	return nil
}
