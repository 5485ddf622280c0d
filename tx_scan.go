package jay

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
)

// Documents is DB.Documents. The iteration includes what the transaction had
// written when it began, except documents whose ID the commit will make. The range
// joins the read set, as far as the loop went; but documents of @hilo, which
// drawing IDs writes at any time, only count in an iteration over that collection
// or over a prefix.
func (t *Tx) Documents(ctx context.Context, s Scan) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		w, err := t.startWalk(ctx, s)
		if err != nil {
			yield(nil, fmt.Errorf("documents: %w", err))
			return
		}
		defer w.close()
		for n := 0; s.Limit <= 0 || n < s.Limit; n++ {
			doc, err := w.next(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("documents: %w", err))
				return
			}
			if doc == nil {
				w.last = "" // the end was seen, too
				return
			}
			w.last = doc.FoldedID()
			if !yield((*Document)(doc), nil) {
				return
			}
		}
	}
}

// txWalk merges a Cursor over the state before a transaction with what the
// transaction has written.
type txWalk struct {
	t      *Tx
	base   *docs.Cursor
	note   *rangeRead
	last   string // the last ID that was returned
	peeked *docs.Document
	done   bool // base is at its end

	own    []*op // in the order of the iteration
	hidden map[string]bool
}

func (t *Tx) startWalk(ctx context.Context, s Scan) (*txWalk, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	over := s.documents()
	over.Moment = t.moment.at
	base, err := t.db.docs.NewCursor(over, t.snapshot)
	if err != nil {
		return nil, err
	}
	w := &txWalk{t: t, base: base, hidden: make(map[string]bool)}
	w.note = &rangeRead{prefix: t.db.env.Rules.Fold(s.Prefix), after: t.db.env.Rules.Fold(s.After), reverse: s.Reverse}
	if s.Collection != "" {
		w.note.collection, w.note.named = format.CollectionKey(s.Collection), s.Collection
	}
	for folded, i := range t.staged {
		w.hidden[folded] = true
		o := t.ops[i]
		if o.Verb != write.Delete && !docs.IsGone(&o.Header, t.moment.at) && w.note.covers(o.FoldedCollection, folded) && (base.Want == nil || base.Want([]byte(folded), &o.Header, o.JSON)) {
			w.own = append(w.own, o)
		}
	}
	slices.SortFunc(w.own, func(a, b *op) int { return strings.Compare(a.FoldedID, b.FoldedID) })
	if s.Reverse {
		slices.Reverse(w.own)
	}

	if t.writable {
		t.reads.walks = append(t.reads.walks, w.note)
	}
	t.db.env.Unregister(base) // the transaction is registered instead
	t.register(base)
	return w, nil
}

// next returns the next document, or nil at the end.
func (w *txWalk) next(ctx context.Context) (*docs.Document, error) {
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

// close ends the iteration and records how far it went. One that was broken off has
// not read what comes after.
func (w *txWalk) close() {
	w.base.Close()
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.note.last = w.last
	delete(w.t.open, w.base)
}
