package txn

import (
	"context"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
)

// StartRun starts a query on what the transaction sees. The range that the query looks at joins the read set.
func (t *Tx) StartRun(ctx context.Context, q *query.Query, o exec.Options) (*exec.Run, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	overlay := exec.Overlay{Enter: t.enter, Exit: t.exit, Read: t.lookup}
	overlay.Written, overlay.Own = t.written(q.From)
	r, err := exec.Start(ctx, exec.Database{Env: t.db.Env, Docs: t.db.Docs, Snapshot: t.snapshot, Catalog: t.catalog, Moment: t.moment.At, DueFrom: t.moment.DueFrom}, q, overlay, o)
	if err != nil {
		return nil, err
	}
	if t.writable {
		for _, w := range r.Walks() {
			note := &rangeRead{prefix: w.Prefix, low: w.Low, high: w.High}
			if w.Collection != "" {
				note.collection, note.named = format.CollectionKey(w.Collection), w.Collection
			}
			t.reads.walks = append(t.reads.walks, note)
		}
	}
	r.Closed = func(r *exec.Run) {
		t.unregister(r)
		if q.Index == "" {
			t.db.SuggestIndex(r, q.From)
		}
	}
	t.register(r)
	return r, nil
}

// Loads returns the function that has the bodies of the documents which conditions load, as the transaction sees them: they join the read set. A document that
// has expired counts until it is deleted. It is for use until the transaction ends.
func (t *Tx) Loads(ctx context.Context) func(folded string) ([]byte, error) {
	return func(folded string) ([]byte, error) {
		if err := t.enter(ctx); err != nil {
			return nil, err
		}
		defer t.exit()
		if err := t.checkHeld(folded); err != nil {
			return nil, err
		}
		if i, found := t.staged[folded]; found {
			if o := t.ops[i]; !o.Verb.Deletes() {
				return o.JSON, nil
			}
			return nil, nil
		}
		doc, err := t.stored(folded)
		if err == errs.ErrNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return doc.JSON(), nil
	}
}

// written returns the IDs of the documents that the transaction has written,
// and those documents of a collection that it has not deleted.
func (t *Tx) written(collection string) (map[string]bool, []*docs.Document) {
	hidden := make(map[string]bool, len(t.staged))
	var own []*docs.Document
	for folded, i := range t.staged {
		hidden[folded] = true
		doc, err := t.peek(t.ops[i])
		if err == nil && (collection == "" || doc.IsIn(format.CollectionKey(collection))) {
			own = append(own, doc)
		}
	}
	slices.SortFunc(own, func(a, b *docs.Document) int { return strings.Compare(a.FoldedID(), b.FoldedID()) })
	return hidden, own
}

// CountOf returns how many documents a collection has in the snapshot, or counts.ErrNotReady;
// "" is all documents. The writes of the transaction do not count.
func (t *Tx) CountOf(ctx context.Context, collection string) (int64, error) {
	if err := t.enter(ctx); err != nil {
		return 0, err
	}
	defer t.exit()
	return core.CountOf(ctx, t.snapshot, collection, t.moment)
}
