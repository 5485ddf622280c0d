package builder

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/bulk"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/txn"
	"github.com/jaydb/jay/internal/write"
)

// ChangeBytes is the size of the batches of a change, in bytes of the bodies that were found; knobs.ChangeDocuments is the number of their documents.
const ChangeBytes = 4 << 20

// Changed counts what a change by query has done: see Changed of package jay.
type Changed struct{ Documents, Unchanged, Overtaken int64 }

// ChangeFunc changes one document in a transaction, and counts it.
type ChangeFunc func(t *txn.Tx, id string, done *Changed) error

// Delete deletes the documents that the query finds.
func (q Definition) Delete(ctx context.Context) (Changed, error) {
	if q.IsOwned() {
		return q.Ask(ctx, nil)
	}
	return q.Change(ctx, "delete by query", func(t *txn.Tx, id string, done *Changed) error {
		done.Documents++
		return t.Write(ctx, []*write.Op{{Request: write.Request{Verb: write.Delete, RequestID: id}}})
	})
}

// Change changes the documents that the query finds.
func (q Definition) Change(ctx context.Context, what string, fn ChangeFunc) (Changed, error) {
	if err := q.checkChange(); err != nil {
		return Changed{}, fmt.Errorf("%s: %w", what, err)
	}
	done, err := q.changeIn(ctx, fn)
	if err != nil {
		return done, fmt.Errorf("%s, when %d documents were changed: %w", what, done.Documents, err)
	}
	return done, nil
}

func (q Definition) checkChange() error {
	if err := q.Check(); err != nil {
		return err
	}
	switch {
	case q.Query.Index != "":
		return fmt.Errorf("%w: the query is of a computed index, and changes no documents", ids.ErrUsage)
	case q.Query.From == "":
		return fmt.Errorf("%w: the query names no collection", ids.ErrUsage)
	case exec.IsGrouped(&q.Query) || q.Query.Projects() || q.Query.Distinct || q.Query.IncludesMore():
		return fmt.Errorf("%w: the answers must be whole documents, without select, group by, distinct and include", ids.ErrUsage)
	}
	return nil
}

func (q Definition) changeIn(ctx context.Context, fn ChangeFunc) (done Changed, err error) {
	t, inside := q.Via.(*txn.Tx)
	if !inside {
		return q.changeBatches(ctx, q.Via.Database(), fn)
	}
	err = t.Savepoint(ctx, func() error {
		var found []string // the query ends before the transaction changes what it sees
		for row, err := range q.Iter(ctx) {
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
	if q.Progress != nil {
		q.Progress(done)
	}
	return done, nil
}

// changeBatches changes the documents in transactions of their own.
func (q Definition) changeBatches(ctx context.Context, db *core.Database, fn ChangeFunc) (done Changed, err error) {
	filter, err := exec.NewLoadingFilter(db.Env, &q.Query)
	if err != nil {
		return done, err
	}
	batch, size := make([]string, 0, knobs.ChangeDocuments), 0
	lazy := bulk.NewLazy(db)
	defer func() { err = lazy.Finish(ctx, err) }()
	write := func() error {
		var in Changed
		err := txn.ObservedUpdate(ctx, db, func(t *txn.Tx) error {
			in = Changed{} // the function may run more than once
			for _, id := range batch {
				if err := changeIfMatches(ctx, t, id, filter, &in, fn); err != nil {
					return err
				}
			}
			return nil
		}, txn.Options{Retries: math.MaxInt, Lazy: true})
		if err != nil {
			return err
		}
		done.Documents += in.Documents
		done.Unchanged += in.Unchanged
		done.Overtaken += in.Overtaken
		if err := lazy.Committed(ctx, size); err != nil {
			return err
		}
		batch, size = batch[:0], 0
		if q.Progress != nil {
			q.Progress(done)
		}
		return nil
	}
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return done, err
		}
		batch = append(batch, row.Document.ID())
		if size += len(row.Document.JSON()); len(batch) >= knobs.ChangeDocuments || size >= ChangeBytes {
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
func changeIfMatches(ctx context.Context, t *txn.Tx, id string, filter *exec.Filter, done *Changed, fn ChangeFunc) error {
	doc, err := t.Get(ctx, id)
	matches := false
	switch {
	case errors.Is(err, errs.ErrNotFound):
	case err != nil:
		return err
	default:
		if matches, err = filter.MatchIn(ctx, doc, t.Loads(ctx)); err != nil {
			return err
		}
	}
	if !matches {
		done.Overtaken++
		return nil
	}
	return fn(t, id, done)
}
