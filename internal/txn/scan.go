package txn

import (
	"context"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
)

// Walk is an iteration over documents as a transaction sees them: it merges a Cursor over the state before a transaction with what the
// transaction has written.
type Walk struct {
	t      *Tx
	base   *docs.Cursor
	note   *rangeRead
	last   string // the last ID that was returned
	peeked *docs.Document
	done   bool // base is at its end

	own    []*write.Op // in the order of the iteration
	hidden map[string]bool
}

// Walk begins an iteration, which includes what the transaction had written when it began.
// Close must follow.
func (t *Tx) Walk(ctx context.Context, over docs.Range) (*Walk, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	over.Moment = t.moment.At
	base, err := t.docs.NewCursor(over, t.snapshot)
	if err != nil {
		return nil, err
	}
	w := &Walk{t: t, base: base, hidden: make(map[string]bool)}
	w.note = &rangeRead{prefix: t.db.Env.Rules.Fold(over.Prefix), after: t.db.Env.Rules.Fold(over.After), reverse: over.Reverse}
	if over.Collection != "" {
		w.note.collection, w.note.named = format.CollectionKey(over.Collection), over.Collection
	}
	for folded, i := range t.staged {
		w.hidden[folded] = true
		o := t.ops[i]
		if err := t.showDue(o); err != nil {
			base.Close()
			return nil, err
		}
		if !o.Verb.Deletes() && !docs.IsGone(&o.Header, t.moment.At) && w.note.covers(o.FoldedCollection, folded) && (base.Want == nil || base.Want([]byte(folded), &o.Header, o.JSON)) {
			w.own = append(w.own, o)
		}
	}
	slices.SortFunc(w.own, func(a, b *write.Op) int { return strings.Compare(a.FoldedID, b.FoldedID) })
	if over.Reverse {
		slices.Reverse(w.own)
	}

	if t.writable {
		t.reads.walks = append(t.reads.walks, w.note)
	}
	t.db.Env.Unregister(base) // the transaction is registered instead
	t.register(base)
	return w, nil
}

// Next returns the next document, or nil at the end.
func (w *Walk) Next(ctx context.Context) (*docs.Document, error) {
	doc, err := w.next(ctx)
	switch {
	case err != nil:
		return nil, err
	case doc == nil:
		w.last = "" // the end was seen, too
	default:
		w.last = doc.FoldedID()
	}
	return doc, nil
}

func (w *Walk) next(ctx context.Context) (*docs.Document, error) {
	if err := w.t.enter(ctx); err != nil {
		return nil, err
	}
	defer w.t.exit()
	for w.peeked == nil && !w.done {
		doc, err := w.base.Next(ctx)
		if err != nil {
			return nil, err
		}
		if doc == nil {
			w.done = true
		} else if !w.hidden[doc.FoldedID()] {
			w.peeked = doc
		}
	}
	if len(w.own) > 0 && (w.peeked == nil || (w.own[0].FoldedID < w.peeked.FoldedID()) != w.note.reverse) {
		o := w.own[0]
		w.own = w.own[1:]
		return w.t.pending(o)
	}
	doc := w.peeked
	w.peeked = nil
	return doc, nil
}

// Close ends the iteration and records how far it went. One that was broken off has
// not read what comes after.
func (w *Walk) Close() {
	w.base.Close()
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.note.last = w.last
	delete(w.t.open, w.base)
}
