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
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/query"
)

// Filter decides whether single documents satisfy the condition of a query and are in
// its collection. It is not safe for concurrent use.
type Filter struct {
	entries   []entryFilter    // one of these decides
	loading   bool             // they may ask for documents that are loaded: see MatchIn
	projector *query.Projector // nil for whole documents
	meta      docMeta
	pace      query.Pace
	limit     int // of the bytes of a row
}

// entryFilter decides whether a document is an answer of a query, or has an entry of a map of a computed index that is.
type entryFilter struct {
	collection string          // folded; "" for all
	elements   *query.Elements // nil for one entry of each document
	matcher    *query.Matcher  // nil for no condition
	spec       *loads.Spec     // of what it loads; nil for nothing
	alone      error           // why a document by itself does not decide it
}

// newFilter returns a Filter that decides by nothing yet.
func newFilter(e *env.Env) *Filter { return &Filter{meta: docMeta{env: e}, limit: e.MaxQueryBytes} }

// add adds documents that a query finds.
func (f *Filter) add(q *query.Query) (err error) {
	var one entryFilter
	if q.From != "" {
		one.collection = format.CollectionKey(q.From)
	}
	if !q.Each.IsZero() {
		if err := q.Each.Check(); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		one.elements = query.NewElements(q.Each)
	}
	one.alone = query.CheckSingle(q.Where)
	if one.alone != nil && !f.loading {
		return fmt.Errorf("%w: %w", errs.ErrQuery, one.alone)
	}
	paths, err := query.LoadedPaths(q.Each, query.Fields(q.Where))
	if err != nil {
		return fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	one.spec = loads.NewSpec(paths)
	if q.Where != nil {
		if one.matcher, err = query.Compile(q.Where, queryOptions(f.meta.env)...); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		one.matcher.SetPace(&f.pace)
	}
	f.entries = append(f.entries, one)
	return nil
}

// NewEntryFilter returns the Filter of a query of a computed index without a reduce. A document satisfies it that has an entry of which the condition is
// true. MatchIn decides if the index loads.
func NewEntryFilter(e *env.Env, d *computed.Definition, q *query.Query) (*Filter, error) {
	if d.IsReduced() {
		return nil, fmt.Errorf("%w: computed index %q: a group is of several documents, and no document matches it", errs.ErrQuery, d.Declared.Name)
	}
	resolved, err := d.Resolve(q)
	if err != nil {
		return nil, err
	}
	f := newFilter(e)
	f.loading = true
	for _, p := range resolved.Parts {
		if err := f.add(p.Query); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// expanded returns the body of a document with what the condition asks for of others.
func (f *entryFilter) expanded(d *docs.Document, fold func(string) string, load loads.Load) ([]byte, error) {
	if f.spec == nil {
		return d.JSON(), nil
	}
	if load == nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrQuery, f.alone)
	}
	x, err := f.spec.Expand(d.JSON(), fold, load)
	if large := (*query.LimitError)(nil); errors.As(err, &large) {
		err = fmt.Errorf("%w: document %q: %w", errs.ErrQuery, d.ID(), err)
	}
	return x.Body, err
}

// errFound ends a walk over elements.
var errFound = errors.New("an element has been found")

// match reports whether a document of the collection is an answer.
func (f *entryFilter) match(doc query.Doc, pace *query.Pace) (bool, error) {
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

// NewFilter returns the Filter of a query, which asks for no document that is loaded.
func NewFilter(e *env.Env, q *query.Query) (*Filter, error) { return filterOf(e, q, false) }

// NewLoadingFilter returns the Filter of a query. MatchIn decides if it asks for documents that are loaded.
func NewLoadingFilter(e *env.Env, q *query.Query) (*Filter, error) { return filterOf(e, q, true) }

func filterOf(e *env.Env, q *query.Query, loading bool) (*Filter, error) {
	if q.Index != "" {
		return nil, fmt.Errorf("%w: a query of a computed index asks of no document as it is", errs.ErrQuery)
	}
	if !q.Each.IsZero() {
		return nil, fmt.Errorf("%w: a query with each answers with elements, and asks of no document as it is", errs.ErrQuery)
	}
	if q.Script != nil {
		return nil, fmt.Errorf("%w: a query with JavaScript reads other documents, and changes of these would not be noticed", errs.ErrQuery)
	}
	f := newFilter(e)
	f.loading = loading
	var err error
	if len(q.Select) > 0 {
		if f.projector, err = query.NewProjector(q.Select); err != nil {
			return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		f.projector.SetPace(&f.pace)
	}
	if err := f.add(q); err != nil {
		return nil, err
	}
	return f, nil
}

// Match reports whether a document satisfies the condition. One that asks for documents that are loaded is ErrQuery: see MatchIn.
func (f *Filter) Match(ctx context.Context, d *docs.Document) (bool, error) {
	return f.MatchIn(ctx, d, nil)
}

// MatchIn is Match with the documents that load has.
func (f *Filter) MatchIn(ctx context.Context, d *docs.Document, load loads.Load) (bool, error) {
	begun := false
	for i := range f.entries {
		e := &f.entries[i]
		switch {
		case e.collection != "" && !d.IsIn(e.collection):
			continue
		case e.matcher == nil && e.elements == nil:
			return true, nil
		case !begun:
			begun = true
			f.pace.Begin(ctx)
			if !f.pace.Spend(len(d.JSON())) {
				return false, f.pace.Err()
			}
			f.meta.look(d)
		}
		body, err := e.expanded(d, f.meta.env.Rules.Fold, load)
		if err != nil {
			return false, err
		}
		if found, err := e.match(query.Doc{Body: body, Meta: &f.meta}, &f.pace); found || err != nil {
			return found, err
		}
	}
	return false, nil
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
