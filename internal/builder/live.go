package builder

import (
	"context"
	"fmt"
	"iter"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/live"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Live runs the query as a live query: from its answers on, or after a token.
func (q Definition) Live(ctx context.Context, token string) iter.Seq2[live.Event, error] {
	return func(yield func(live.Event, error) bool) {
		r, err := q.openLive(ctx, token)
		if err != nil {
			yield(live.Event{}, err)
			return
		}
		defer r.Close()
		for {
			e, err := r.Next(ctx)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// openLive checks the query, and opens a reader of it.
func (q Definition) openLive(ctx context.Context, token string) (*live.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	db, is := q.Via.(*core.Database)
	if !is {
		return nil, fmt.Errorf("%w: a live query is of a database, and this one is of a transaction or a session", ids.ErrUsage)
	}
	if q.cursor != "" {
		return nil, fmt.Errorf("%w: a live query has no After, as it has no order", errs.ErrQuery)
	}
	q, err := q.complete()
	if err != nil {
		return nil, err
	}
	if err := live.Check(&q.Query); err != nil {
		return nil, err
	}
	asked := q.Query
	return db.Live.Open(ctx, &asked, token, func(ctx context.Context, plain *query.Query, seen func(storage.Reader) error) (*exec.Run, error) {
		o := q.run
		o.Seen, o.Expired = seen, true
		return db.StartRun(ctx, plain, o)
	})
}
