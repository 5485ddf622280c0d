package builder

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/txn"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// Receive hands on what an answer includes.
func (q Definition) Receive(row *exec.Row) {
	if q.Arrive != nil && len(row.Included) > 0 {
		q.Arrive(row.Included)
	}
}

// Iter runs the query.
func (q Definition) Iter(ctx context.Context) iter.Seq2[*exec.Row, error] {
	return func(yield func(*exec.Row, error) bool) {
		q, err := q.complete()
		if err != nil {
			yield(nil, err)
			return
		}
		span := watchQuery(ctx, q.Via, "query", &q.Query)
		if span != nil {
			ctx = span.Context()
			defer span.Finish()
		}
		r, err := q.Via.StartRun(ctx, &q.Query, q.run)
		if err != nil {
			yield(nil, span.Fail(err))
			return
		}
		defer r.Close()
		for {
			span.Resume()
			row, err := r.Next(ctx)
			span.Pause()
			if err != nil {
				yield(nil, span.Fail(err))
				return
			}
			if row == nil {
				return
			}
			span.Found()
			if !yield(row, nil) {
				return
			}
		}
	}
}

// watchQuery begins an operation, or returns nil if nothing is observed. The caller
// finishes it.
func watchQuery(ctx context.Context, via Source, verb string, q *query.Query) *observe.Span {
	if via == nil { // the query was not made by a database
		return nil
	}
	watch := via.Database().Watch
	if watch == nil {
		return nil
	}
	return watch.Start(ctx, observe.Operation{Verb: verb, Collection: q.From, Query: q.String})
}

// Broken are errors of answers that do not decode. It keeps the first errors.
type Broken struct {
	first []error
	more  int
}

// maxBroken is how many errors of answers All and Page return.
const maxBroken = 100

// Add takes an error in if it is a *DecodeError.
func (b *Broken) Add(err error) bool {
	var decode *metadata.DecodeError
	switch {
	case !errors.As(err, &decode):
		return false
	case len(b.first) < maxBroken:
		b.first = append(b.first, err)
	default:
		b.more++
	}
	return true
}

// Err returns the errors, joined; nil for none.
func (b *Broken) Err() error {
	if b.more > 0 {
		return errors.Join(append(b.first, fmt.Errorf("and %d more do not decode", b.more))...)
	}
	return errors.Join(b.first...)
}

// Exists reports whether there is an answer.
func (q Definition) Exists(ctx context.Context) (bool, error) {
	q.Query.Include, q.Query.Highlights, q.Query.Explanations = nil, nil, false // they are not seen
	if !q.Query.HasLimit {
		q.Limit(1)
	}
	for _, err := range q.Iter(ctx) {
		if err != nil {
			return false, fmt.Errorf("query: %w", err)
		}
		return true, nil
	}
	return false, nil
}

// Count returns how many answers there are.
func (q Definition) Count(ctx context.Context) (n int64, err error) {
	if span := watchQuery(ctx, q.Via, "count", &q.Query); span != nil {
		ctx = span.Context()
		defer func() {
			span.Documents, span.Err = n, err
			span.Finish()
		}()
	}
	q.Query.Include, q.Query.Highlights, q.Query.Explanations = nil, nil, false // they make no difference
	q, err = q.complete()
	if err != nil {
		return 0, err
	}
	if n, counted, err := q.countAll(ctx); counted || err != nil {
		return n, err
	}
	plain := q.Query
	plain.OrderBy, plain.Fused, plain.Include = nil, false, nil
	if plain.Projects() || q.run.After != nil {
		plain = q.Query // the rows themselves must be made
	} else {
		q.run.Counting = true
	}
	r, err := q.Via.StartRun(ctx, &plain, q.run)
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	defer r.Close()
	n, err = r.Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	return n, nil
}

// Pay pays for a row that a page holds.
func Pay(ctx context.Context, row *exec.Row) error {
	take := budget.Of(ctx)
	if take == nil {
		return nil
	}
	n := len(row.JSON)
	if row.Document != nil {
		n += len(row.Document.JSON())
	}
	return take(int64(n + row.HighlightBytes()))
}

// Page calls take with the rows of a page, and returns the cursor of the next one.
func (q Definition) Page(ctx context.Context, take func(*exec.Row) error) (next string, err error) {
	if err := q.Check(); err != nil {
		return "", err
	}
	if err := q.checkPaging(); err != nil {
		return "", err
	}
	q, err = q.dated() // before the cursor names the query
	if err != nil {
		return "", err
	}
	if len(q.Query.OrderBy) == 0 && q.Query.Index == "" {
		q.OrderBy([]string{"id()"})
	}
	limit := 100
	if q.Query.HasLimit {
		limit = q.Query.Limit
	}
	if limit == 0 || limit == math.MaxInt {
		return "", fmt.Errorf("%w: a page of %d answers", errs.ErrQuery, limit)
	}
	q.Limit(limit + 1)
	q.run.Paging, q.run.PageBytes = true, q.pageBytes
	var last *exec.Cursor
	taken, bytes := 0, 0
	lastID := "" // as its document has it
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return "", fmt.Errorf("query: %w", err)
		}
		enough := q.pageBytes > 0 && bytes >= q.pageBytes && last != nil && last.Exact
		if taken == limit || enough {
			if last == nil {
				return "", nil
			}
			if !last.Exact {
				return "", fmt.Errorf("%w: the page ends at %q, one of whose values is too long to go on from: order by something shorter", errs.ErrQuery, lastID)
			}
			return last.Text(&q.Query), nil
		}
		taken, last = taken+1, row.Cursor
		if err := take(row); err != nil {
			return "", err
		}
		bytes += row.HighlightBytes()
		if bytes += len(row.JSON); row.Document != nil {
			bytes += len(row.Document.JSON())
		}
		if last != nil {
			if lastID = last.ID; row.Document != nil {
				lastID = row.Document.ID()
			}
		}
	}
	return "", nil
}

// Explain runs the query to its end, and reports how it was answered, and the query as it was run.
func (q Definition) Explain(ctx context.Context) (exec.Report, query.Query, error) {
	q, err := q.complete()
	if err != nil {
		return exec.Report{}, query.Query{}, err
	}
	r, err := q.Via.StartRun(ctx, &q.Query, q.run)
	if err != nil {
		return exec.Report{}, query.Query{}, fmt.Errorf("explain: %w", err)
	}
	defer r.Close()
	for {
		row, err := r.Next(ctx)
		if err != nil {
			return exec.Report{}, query.Query{}, fmt.Errorf("explain: %w", err)
		}
		if row == nil {
			report, err := r.Explain(ctx)
			if err != nil {
				return exec.Report{}, query.Query{}, fmt.Errorf("explain: %w", err)
			}
			return report, q.Query, nil
		}
	}
}

// countAll is Count of a query for all documents of a collection: the database keeps
// that number. It reports whether the query is one. A transaction of Update counts
// what it sees, which joins its read set.
func (q Definition) countAll(ctx context.Context) (n int64, counted bool, err error) {
	if len(q.Query.Suggests) > 0 || len(q.Query.Facets) > 0 || q.Query.Where != nil || q.Query.Index != "" || !q.Query.Each.IsZero() || q.Query.Projects() || len(q.Query.GroupBy) > 0 || q.Query.Distinct || q.run.After != nil || q.run.NoScan || q.Query.UseIndex != "" {
		return 0, false, nil
	}
	switch via := q.Via.(type) {
	case *core.Database:
		n, err = via.CountOf(ctx, q.Query.From)
	case *txn.Tx:
		if via.Writable() {
			return 0, false, nil
		}
		n, err = via.CountOf(ctx, q.Query.From)
	default:
		return 0, false, nil
	}
	if errors.Is(err, counts.ErrNotReady) {
		return 0, false, nil
	}
	if err != nil {
		return 0, true, fmt.Errorf("count: %w", err)
	}
	n = max(0, n-int64(q.Query.Offset))
	if q.Query.HasLimit {
		n = min(n, int64(q.Query.Limit))
	}
	return n, true, nil
}
