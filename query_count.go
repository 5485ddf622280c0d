package jay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/errs"
)

// countAll is Count of a query for all documents of a collection: the database keeps
// that number. It reports whether the query is one. A transaction of Update counts
// what it sees, which joins its read set.
func (q definition) countAll(ctx context.Context) (n int64, counted bool, err error) {
	if q.q.Where != nil || len(q.q.Select) > 0 || len(q.q.GroupBy) > 0 || q.q.Distinct || q.run.After != nil || q.run.NoScan || q.q.UseIndex != "" {
		return 0, false, nil
	}
	switch via := q.via.(type) {
	case *DB:
		n, err = via.countOf(ctx, q.q.From)
	case *Tx:
		if via.writable {
			return 0, false, nil
		}
		n, err = via.countOf(ctx, q.q.From)
	default:
		return 0, false, nil
	}
	if errors.Is(err, counts.ErrNotReady) {
		return 0, false, nil
	}
	if err != nil {
		return 0, true, fmt.Errorf("count: %w", err)
	}
	n = max(0, n-int64(q.q.Offset))
	if q.q.HasLimit {
		n = min(n, int64(q.q.Limit))
	}
	return n, true, nil
}

func (db *DB) countOf(ctx context.Context, collection string) (_ int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := db.env.Enter(); err != nil {
		return 0, err
	}
	defer db.env.Exit()
	begun := beginMoment(db)
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return countOf(ctx, snapshot, collection, endMoment(db, begun))
}

func (t *Tx) countOf(ctx context.Context, collection string) (int64, error) {
	if err := t.enter(ctx); err != nil {
		return 0, err
	}
	defer t.exit()
	return countOf(ctx, t.snapshot, collection, t.moment)
}
