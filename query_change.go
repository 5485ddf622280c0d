package jay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/exec"
)

// Sizes of the batches of Patch and Delete. The bytes are those of the bodies that the
// query found. Variables for tests.
var (
	changeDocuments = 128
	changeBytes     = 4 << 20
)

// Progress has fn called after each batch of Patch and Delete, with what is done so far.
func (q Query[T]) Progress(fn func(Changed)) Query[T] {
	q.def.progress = fn
	return q
}

// Patch edits every document that the query finds, as DB.Patch edits one, and leaves
// the others as they are:
//
//	orders.Query().Where(jay.Lt("Total", 10)).Patch(ctx, jay.Set("Small", true))
//
// The query sees the database as it is when Patch begins; so Count or All of the same
// query says beforehand what would be changed. The documents are edited in its order,
// with Skip and Limit, in batches of up to 128 documents and about 4 MiB. Each batch is
// a transaction: all of it is written or nothing, and each document is tested against
// the condition again, so that one which other writes have changed meanwhile, and which
// satisfies the condition no more, is left as it is. Documents that begin to satisfy
// the condition meanwhile are not edited.
//
// If a document cannot be edited, or ctx ends, the batches before are written: Changed
// counts their documents. Calling Patch again edits all that the query finds then.
//
// In a transaction, Patch edits all documents or, after an error, none, and they are
// written when the transaction commits.
//
// The query needs a collection, and whole documents: Select, GroupBy, Distinct and
// Include are ErrUsage, and so are OrInsert and conditions on one document's version.
func (q Query[T]) Patch(ctx context.Context, opts ...PatchOption) (Changed, error) {
	if err := checkEdits(opts); err != nil {
		return Changed{}, fmt.Errorf("patch by query: %w", err)
	}
	return q.def.change(ctx, "patch by query", func(t *Tx, id string, done *Changed) error {
		r, err := t.Patch(ctx, id, opts...)
		if r.Status == PatchNotModified {
			done.Unchanged++
		} else {
			done.Documents++
		}
		return err
	})
}

// Delete deletes every document that the query finds. What Patch says of batches,
// conditions, errors and transactions holds for Delete too.
func (q Query[T]) Delete(ctx context.Context) (Changed, error) {
	return q.def.change(ctx, "delete by query", func(t *Tx, id string, done *Changed) error {
		done.Documents++
		return t.Delete(ctx, id)
	})
}

// checkEdits refuses what no document could be patched with.
func checkEdits(opts []PatchOption) error {
	o := newPatch("", opts)
	if o.UsageError != nil {
		return o.UsageError
	}
	if o.Patching.OrInsert || o.Expected != nil || o.Collection != "" || o.Returning != nil || len(o.Custom) > 0 {
		return fmt.Errorf("%w: a patch of many documents takes edits only, and no option for one document", ErrUsage)
	}
	return o.CheckPatch()
}

// changeFunc changes one document in a transaction, and counts it.
type changeFunc func(t *Tx, id string, done *Changed) error

// change changes the documents that the query finds.
func (q definition) change(ctx context.Context, what string, fn changeFunc) (Changed, error) {
	if err := q.checkChange(); err != nil {
		return Changed{}, fmt.Errorf("%s: %w", what, err)
	}
	done, err := q.changeIn(ctx, fn)
	if err != nil {
		return done, fmt.Errorf("%s, when %d documents were changed: %w", what, done.Documents, err)
	}
	return done, nil
}

func (q definition) checkChange() error {
	if err := q.check(); err != nil {
		return err
	}
	switch {
	case q.q.From == "":
		return fmt.Errorf("%w: the query names no collection", ErrUsage)
	case exec.IsGrouped(&q.q) || len(q.q.Select) > 0 || q.q.Distinct || len(q.q.Include) > 0:
		return fmt.Errorf("%w: the answers must be whole documents, without select, group by, distinct and include", ErrUsage)
	}
	return nil
}

func (q definition) changeIn(ctx context.Context, fn changeFunc) (done Changed, err error) {
	t, inside := q.via.(*Tx)
	if !inside {
		return q.changeBatches(ctx, q.via.database(), fn)
	}
	err = t.Savepoint(ctx, func() error {
		var found []string // the query ends before the transaction changes what it sees
		for row, err := range q.rows(ctx) {
			if err != nil {
				return err
			}
			found = append(found, row.Document.ID())
		}
		for _, id := range found {
			if err := fn(t, id, &done); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Changed{}, err
	}
	if q.progress != nil {
		q.progress(done)
	}
	return done, nil
}

// changeBatches changes the documents in transactions of their own.
func (q definition) changeBatches(ctx context.Context, db *DB, fn changeFunc) (done Changed, err error) {
	filter, err := exec.NewFilter(db.env, &q.q)
	if err != nil {
		return done, err
	}
	batch, size := make([]string, 0, changeDocuments), 0
	write := func() error {
		var in Changed
		err := db.Update(ctx, func(t *Tx) error {
			in = Changed{} // the function may run more than once
			for _, id := range batch {
				if err := changeIfMatches(ctx, t, id, filter, &in, fn); err != nil {
					return err
				}
			}
			return nil
		}, Retry())
		if err != nil {
			return err
		}
		done.Documents += in.Documents
		done.Unchanged += in.Unchanged
		done.Overtaken += in.Overtaken
		batch, size = batch[:0], 0
		if q.progress != nil {
			q.progress(done)
		}
		return nil
	}
	for row, err := range q.rows(ctx) {
		if err != nil {
			return done, err
		}
		batch = append(batch, row.Document.ID())
		if size += len(row.Document.JSON()); len(batch) >= changeDocuments || size >= changeBytes {
			if err := write(); err != nil {
				return done, err
			}
		}
	}
	if len(batch) > 0 {
		err = write()
	}
	return done, err
}

// changeIfMatches changes a document, if it still satisfies the condition.
func changeIfMatches(ctx context.Context, t *Tx, id string, filter *exec.Filter, done *Changed, fn changeFunc) error {
	doc, err := t.Get(ctx, id)
	matches := false
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return err
	default:
		if matches, err = filter.Match(ctx, (*docs.Document)(doc)); err != nil {
			return err
		}
	}
	if !matches {
		done.Overtaken++
		return nil
	}
	return fn(t, id, done)
}
