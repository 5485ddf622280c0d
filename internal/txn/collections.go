package txn

import (
	"context"
	"errors"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Collections returns how many documents each collection has for the transaction, sorted by name.
// In one that writes all documents join the read set.
func (t *Tx) Collections(ctx context.Context) ([]core.CollectionCount, error) {
	all, err := t.keptCollections(ctx)
	if errors.Is(err, counts.ErrNotReady) {
		all, err = t.walkCollections(ctx)
	}
	return all, err
}

// keptCollections returns the numbers that the snapshot keeps, and what the transaction has
// changed since, or counts.ErrNotReady.
func (t *Tx) keptCollections(ctx context.Context) ([]core.CollectionCount, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	payer := budget.NewPayer(ctx)
	byName, err := core.CountsAt(ctx, t.snapshot, t.moment, &payer)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string) // of the transaction's own documents
	for folded, i := range t.staged {
		before, err := t.db.Docs.ReadFolded(t.snapshot, folded)
		before, err = docs.AliveAt(t.moment.At, before, err)
		switch {
		case err == nil:
			byName[format.CollectionKey(before.Collection())]--
		case err != errs.ErrNotFound:
			return nil, err
		}
		if after, err := t.peek(t.ops[i]); err == nil {
			key := format.CollectionKey(after.Collection())
			byName[key]++
			names[key] = after.Collection()
		}
	}
	all := make([]core.CollectionCount, 0, len(byName))
	for folded, n := range byName {
		if n == 0 {
			continue
		}
		name, err := t.db.NameOf(t.snapshot, folded, t.moment)
		if own := names[folded]; errors.Is(err, storage.ErrCorrupt) && own != "" {
			name, err = own, nil // the snapshot has none
		}
		if err == nil {
			err = payer.PayNamed(name)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, core.CollectionCount{Name: name, Documents: n})
	}
	if t.writable {
		t.reads.walks = append(t.reads.walks, &rangeRead{})
	}
	core.SortCollections(all)
	return all, nil
}

// walkCollections is Collections by reading all documents.
func (t *Tx) walkCollections(ctx context.Context) ([]core.CollectionCount, error) {
	w, err := t.Walk(ctx, docs.Range{})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	byName := make(map[string]*core.CollectionCount)
	for {
		doc, err := w.Next(ctx)
		if err != nil {
			return nil, err
		}
		if doc == nil {
			return core.SortedCollections(byName), nil
		}
		key := format.CollectionKey(doc.Collection())
		if byName[key] == nil {
			byName[key] = &core.CollectionCount{Name: doc.Collection()}
		}
		byName[key].Documents++
	}
}
