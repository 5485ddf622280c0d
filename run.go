package jay

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
)

func (db *DB) database() *DB { return db }

func (t *Tx) database() *DB { return t.db }

// startRun implements access.
func (db *DB) startRun(ctx context.Context, q *query.Query, o exec.Options) (_ *exec.Run, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	begun := beginMoment(db)
	c, snapshot := db.indexes.View(db.env.Engine.Snapshot)
	at := endMoment(db, begun)
	started := false
	defer func() {
		if !started {
			err = errors.Join(err, snapshot.Close()) // also after a panic
		}
	}()
	r, err := exec.Start(ctx, exec.Database{Env: db.env, Docs: db.docs, Snapshot: snapshot, Owned: snapshot, Catalog: c, Moment: at.at, DueFrom: at.dueFrom}, q, exec.Overlay{}, o)
	if err != nil {
		return nil, err
	}
	started = true
	r.Closed = func(r *exec.Run) { db.suggestIndex(r, q.From) }
	db.env.Register(r)
	return r, nil
}

// startRun implements access. The range that the query looks at joins the read set.
func (t *Tx) startRun(ctx context.Context, q *query.Query, o exec.Options) (*exec.Run, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	overlay := exec.Overlay{Enter: t.enter, Exit: t.exit, Read: t.lookup}
	overlay.Written, overlay.Own = t.written(q.From)
	r, err := exec.Start(ctx, exec.Database{Env: t.db.env, Docs: t.db.docs, Snapshot: t.snapshot, Catalog: t.catalog, Moment: t.moment.at, DueFrom: t.moment.dueFrom}, q, overlay, o)
	if err != nil {
		return nil, err
	}
	if t.writable {
		note := &rangeRead{prefix: r.Prefix()}
		note.low, note.high = r.Bounds()
		if q.From != "" {
			note.collection, note.named = format.CollectionKey(q.From), q.From
		}
		t.reads.walks = append(t.reads.walks, note)
	}
	r.Closed = func(r *exec.Run) {
		t.unregister(r)
		t.db.suggestIndex(r, q.From)
	}
	t.register(r)
	return r, nil
}

// written returns the IDs of the documents that the transaction has written,
// and those documents of a collection that it has not deleted.
func (t *Tx) written(collection string) (map[string]bool, []*docs.Document) {
	hidden := make(map[string]bool, len(t.staged))
	var own []*docs.Document
	for folded, i := range t.staged {
		hidden[folded] = true
		doc, err := t.peek(t.ops[i])
		if err == nil && (collection == "" || docs.SameCollection(doc.Header().Collection, format.CollectionKey(collection))) {
			own = append(own, doc)
		}
	}
	slices.SortFunc(own, func(a, b *docs.Document) int { return strings.Compare(a.FoldedID(), b.FoldedID()) })
	return hidden, own
}
