package exec

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
)

// Filter decides whether single documents satisfy the condition of a query and are in
// its collection. It is not safe for concurrent use.
type Filter struct {
	collection string // folded; "" for all
	matcher    *query.Matcher
	projector  *query.Projector // nil for whole documents
	meta       docMeta
	pace       query.Pace
	limit      int // of the bytes of a row
}

// NewFilter returns the Filter of a query.
func NewFilter(e *env.Env, q *query.Query) (*Filter, error) {
	if q.Index != "" {
		return nil, fmt.Errorf("%w: a query of a computed index asks of no document as it is", errs.ErrQuery)
	}
	if !q.Each.IsZero() {
		return nil, fmt.Errorf("%w: a query with each answers with elements, and asks of no document as it is", errs.ErrQuery)
	}
	if q.Script != nil {
		return nil, fmt.Errorf("%w: a query with JavaScript reads other documents, and changes of these would not be noticed", errs.ErrQuery)
	}
	f := &Filter{meta: docMeta{env: e}, limit: e.MaxQueryBytes}
	if q.From != "" {
		f.collection = format.CollectionKey(q.From)
	}
	var err error
	if len(q.Select) > 0 {
		if f.projector, err = query.NewProjector(q.Select); err != nil {
			return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		f.projector.SetPace(&f.pace)
	}
	if q.Where == nil {
		return f, nil
	}
	if f.matcher, err = query.Compile(q.Where, queryOptions(e)...); err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	f.matcher.SetPace(&f.pace)
	return f, nil
}

// Match reports whether a document satisfies the condition.
func (f *Filter) Match(ctx context.Context, d *docs.Document) (bool, error) {
	if f.collection != "" && !d.IsIn(f.collection) {
		return false, nil
	}
	if f.matcher == nil {
		return true, nil
	}
	f.pace.Begin(ctx)
	if !f.pace.Spend(len(d.JSON())) {
		return false, f.pace.Err()
	}
	f.meta.look(d)
	matches := f.matcher.Match(query.Doc{Body: d.JSON(), Meta: &f.meta})
	return matches, f.pace.Err()
}

// Project returns what the query selects of a document: nil for a query that selects
// whole documents.
func (f *Filter) Project(ctx context.Context, d *docs.Document) (row []byte, err error) {
	if f.projector == nil {
		return nil, nil
	}
	f.pace.Begin(ctx)
	f.meta.look(d)
	if row, err = f.projector.AppendWithin(nil, query.Doc{Body: d.JSON(), Meta: &f.meta}, max(f.limit, len(d.JSON()))); err != nil {
		return nil, fmt.Errorf("%w: document %q: %w (Options.MaxQueryBytes): select less", errs.ErrQuery, d.ID(), err)
	}
	return row, f.pace.Err()
}
