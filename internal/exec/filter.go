package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/computed"
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

	entries []entryFilter // of a computed index: one of these decides
}

// entryFilter decides whether a document has an entry of a map of a computed index, of which the condition of the query is true.
type entryFilter struct {
	collection string          // folded; "" for all
	elements   *query.Elements // nil for one entry of each document
	matcher    *query.Matcher  // nil for no condition
}

// NewEntryFilter returns the Filter of a query of a computed index without a reduce. A document satisfies it that has an entry of which the condition is true.
func NewEntryFilter(e *env.Env, d *computed.Definition, q *query.Query) (*Filter, error) {
	if d.IsReduced() {
		return nil, fmt.Errorf("%w: computed index %q: a group is of several documents, and no document matches it", errs.ErrQuery, d.Declared.Name)
	}
	resolved, err := d.Resolve(q)
	if err != nil {
		return nil, err
	}
	f := &Filter{meta: docMeta{env: e}, limit: e.MaxQueryBytes}
	for _, p := range resolved.Parts {
		var one entryFilter
		if p.Query.From != "" {
			one.collection = format.CollectionKey(p.Query.From)
		}
		if !p.Query.Each.IsZero() {
			one.elements = query.NewElements(p.Query.Each)
		}
		if p.Query.Where != nil {
			if one.matcher, err = query.Compile(p.Query.Where, queryOptions(e)...); err != nil {
				return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
			}
			one.matcher.SetPace(&f.pace)
		}
		f.entries = append(f.entries, one)
	}
	return f, nil
}

// errFound ends a walk over elements.
var errFound = errors.New("an element has been found")

// match reports whether a document has an entry of which the condition is true.
func (f *entryFilter) match(d *docs.Document, doc query.Doc, pace *query.Pace) (bool, error) {
	if f.collection != "" && !d.IsIn(f.collection) {
		return false, nil
	}
	if f.elements == nil {
		return f.matcher == nil || f.matcher.Match(doc), pace.Err()
	}
	err := f.elements.Each(doc, func(doc query.Doc) error {
		switch {
		case !pace.Spend(len(doc.Element)):
			return pace.Err()
		case f.matcher == nil || f.matcher.Match(doc):
			return errFound
		}
		return pace.Err()
	})
	if errors.Is(err, errFound) {
		return true, pace.Err()
	}
	return false, err
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
	if f.matcher == nil && f.entries == nil {
		return true, nil
	}
	f.pace.Begin(ctx)
	if !f.pace.Spend(len(d.JSON())) {
		return false, f.pace.Err()
	}
	f.meta.look(d)
	for i := range f.entries {
		if found, err := f.entries[i].match(d, query.Doc{Body: d.JSON(), Meta: &f.meta}, &f.pace); found || err != nil {
			return found, err
		}
	}
	if f.entries != nil {
		return false, nil
	}
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
