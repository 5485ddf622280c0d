package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/computed"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/query"
)

// indexRun is what a run of a computed index has beside a run of documents: the runs of its maps, on the same snapshot.
type indexRun struct {
	of       *catalog.Computed
	parts    []*Run
	resolved *computed.Resolved
}

// noSource is the source of a run whose answers come from other runs.
type noSource struct{ parts []*Run }

func (s *noSource) next(context.Context, docs.Filter) (*docs.Document, error) { return nil, nil }

func (s *noSource) close() (err error) {
	for _, p := range s.parts {
		p.payer.End()
		err = errs.First(err, p.source.close())
	}
	return err
}

// startIndex is Start of a query of a computed index.
func startIndex(ctx context.Context, db Database, q *query.Query, overlay Overlay, o Options) (*Run, error) {
	c, err := db.Catalog.KnownComputed(q.Index, errs.ErrNoIndex)
	if err != nil {
		return nil, err
	}
	if q.Script != nil {
		return nil, fmt.Errorf("%w: computed index %q: JavaScript is of documents, and not of what an index gives", errs.ErrQuery, c.Name)
	}
	if o.Counting {
		q = c.Declared.Counted(q)
	}
	resolved, err := c.Declared.Resolve(q)
	if err != nil {
		return nil, err
	}
	if resolved.Reduce == nil && q.Where != nil { // whether it is valid depends on the maps, and not on what their plans leave to check
		for _, p := range resolved.Parts {
			if _, err := query.Compile(p.Query.Where, queryOptions(db.Env)...); err != nil {
				return nil, fmt.Errorf("%w: computed index %q: %w", errs.ErrQuery, c.Name, err)
			}
		}
	}
	if resolved.Reduce == nil && len(q.OrderBy) == 0 && (o.Paging || o.After != nil) {
		for _, p := range resolved.Parts {
			p.Query.OrderBy = []query.Order{{Field: query.Field{Meta: query.MetaID}}}
		}
	}
	if plain := resolved.Plain; plain != nil && plain.Each.IsZero() {
		r, err := Start(ctx, db, plain, overlay.of(plain.From), o)
		if r != nil {
			r.index = &indexRun{of: c, resolved: resolved}
		}
		return r, err
	}
	if q.Fused {
		return nil, fmt.Errorf("%w: computed index %q: rank.fuse() orders documents, and the index has groups, elements, or several maps", errs.ErrQuery, c.Name)
	}
	if q.IsScored() {
		return nil, fmt.Errorf("%w: computed index %q: score() is of documents, and the index has groups, elements, or several maps", errs.ErrQuery, c.Name)
	}
	r := newRun(ctx, db, q, Overlay{}, o)
	r.plan, r.started = &plan.Plan{}, time.Now()
	r.index = &indexRun{of: c, resolved: resolved}
	source := &noSource{}
	r.source = source
	db.Owned = nil
	for i := range resolved.Parts {
		p, err := startPart(ctx, db, &resolved.Parts[i], overlay, o)
		if err != nil {
			return nil, errs.First(err, source.close())
		}
		source.parts = append(source.parts, p)
	}
	r.index.parts = source.parts
	return r, nil
}

// startPart starts the run of one map. Of groups an index that keeps them answers if it can, and says with which conditions; otherwise documents
// are chosen by conditions that those of the wanted groups satisfy.
func startPart(ctx context.Context, db Database, p *computed.Part, overlay Overlay, o Options) (*Run, error) {
	own := overlay.of(p.Query.From)
	of := Options{NoScan: o.NoScan, groups: p.Wanted}
	if len(p.Wanted) == 0 {
		return Start(ctx, db, p.Query, own, of)
	}
	of.NoScan = false
	r, err := Start(ctx, db, p.Query, own, of)
	if err != nil || r.plan.Kept != nil {
		return r, err
	}
	r.payer.End()
	if err := r.source.close(); err != nil {
		return nil, err
	}
	narrow := *p.Query
	narrow.Where = query.And(append(query.Conjuncts(narrow.Where), p.Wanted...))
	return Start(ctx, db, &narrow, own, Options{NoScan: o.NoScan})
}

// of returns the part of an overlay that is of a collection; "" is all documents.
func (o Overlay) of(collection string) Overlay {
	if collection == "" {
		return o
	}
	var own []*docs.Document
	for _, doc := range o.Own {
		if doc.IsIn(format.CollectionKey(collection)) {
			own = append(own, doc)
		}
	}
	o.Own = own
	return o
}

// answers returns the answers of the index.
func (x *indexRun) answers(ctx context.Context, r *Run) (answers, error) {
	for _, p := range x.parts {
		p.pace.Begin(ctx)
		p.mu.Lock() // against a report
		defer p.mu.Unlock()
	}
	if x.resolved.Reduce != nil {
		return x.groupAnswers(ctx, r)
	}
	var parts []*selecting
	for i, p := range x.parts {
		s, err := entryRun{p}.selecting(i)
		if err != nil {
			return nil, err
		}
		parts = append(parts, s)
	}
	return entryRun{r}.answers(ctx, parts)
}

// groupAnswers merges the groups of all maps, and makes the results.
func (x *indexRun) groupAnswers(ctx context.Context, r *Run) (_ answers, err error) {
	defer func() {
		if e := (*query.ListError)(nil); errors.As(err, &e) {
			e.Index = x.of.Name
		}
	}()
	var all *query.Groups
	for i, p := range x.parts {
		groups, entries, err := entryRun{p}.newGroups(x.resolved.Parts[i].Query.Select)
		if err == nil {
			err = entryRun{p}.fill(ctx, groups, entries)
		}
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = groups
			continue
		}
		held := all.Bytes()
		if err := all.Merge(groups); err != nil {
			return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		if err := r.payer.Pay(max(0, all.Bytes()-held)); err != nil {
			return nil, err
		}
	}
	m, err := x.results(r)
	if err != nil {
		return nil, err
	}
	out := entryRun{r}.entries(m.sorter)
	if len(r.q.OrderBy) == 0 && !r.options.Paging && r.options.After == nil {
		i := 0
		return func(context.Context) (*Row, error) {
			for i < all.Len() {
				i++
				if e, err := m.entry(all.Row(i - 1)); err != nil {
					return nil, err
				} else if e != nil {
					return &Row{JSON: e.json}, nil
				}
			}
			return nil, nil
		}, nil
	}
	for row := range all.Rows() {
		e, err := m.entry(row)
		if err != nil {
			return nil, err
		}
		if e == nil || out.keep == 0 {
			continue
		}
		if err := out.add(e); err != nil {
			return nil, err
		}
	}
	return out.answers()
}

// results makes results of groups.
type results struct {
	r       *Run
	reduced *computed.Reduced
	make    *query.Projector // the result, of a row of columns
	keep    *query.Matcher   // nil for no condition
	shown   *query.Projector // of a result; nil for all of it
	sorter  *query.Sorter
	row     []byte
	whole   []byte // the result
	wrapped []byte // the result as conditions and orders see it
}

// results returns what makes results of the groups of a run.
func (x *indexRun) results(r *Run) (*results, error) {
	reduced := x.resolved.Reduce
	m := &results{r: r, reduced: reduced}
	var err error
	wrap := func(err error) error { return fmt.Errorf("%w: %w", errs.ErrQuery, err) }
	if m.make, err = query.NewProjector(reduced.Results); err != nil {
		return nil, wrap(err)
	}
	m.make.SetPace(&r.pace)
	if r.q.Where != nil {
		if m.keep, err = query.Compile(r.q.Where); err != nil {
			return nil, wrap(err)
		}
		m.keep.SetPace(&r.pace)
	}
	if len(r.q.Select) > 0 {
		if m.shown, err = query.NewProjector(r.q.Select); err != nil {
			return nil, wrap(err)
		}
		m.shown.SetPace(&r.pace)
	}
	if m.sorter, err = query.NewSorter(r.q.OrderBy); err != nil {
		return nil, wrap(err)
	}
	m.sorter.SetPace(&r.pace)
	return m, nil
}

// entry returns the entry of a group, or nil if the condition is not true of its result.
func (m *results) entry(row []query.Value) (*entry, error) {
	limit := m.r.env.MaxQueryBytes
	m.row = query.AppendRow(m.row[:0], m.reduced.Columns, row)
	var err error
	if m.whole, err = m.make.AppendWithin(m.whole[:0], query.Doc{Body: m.row}, limit); err != nil {
		return nil, fmt.Errorf("%w: %w (Options.MaxQueryBytes)", errs.ErrQuery, err)
	}
	body := m.whole
	if hasArray(row[:m.reduced.By]) {
		// An array is one value of a group, and would stand for its elements.
		m.row = query.AppendRow(m.row[:0], m.reduced.Columns, wrapArrays(row))
		if m.wrapped, err = m.make.AppendWithin(m.wrapped[:0], query.Doc{Body: m.row}, limit); err != nil {
			return nil, fmt.Errorf("%w: %w (Options.MaxQueryBytes)", errs.ErrQuery, err)
		}
		body = m.wrapped
	}
	if m.keep != nil && !m.keep.Match(query.Doc{Body: body}) {
		return nil, m.r.pace.Err()
	}
	e := &entry{picks: m.sorter.Picks(query.Doc{Body: body})}
	e.json = append([]byte(nil), m.whole...)
	if m.shown != nil {
		if e.json, err = m.shown.AppendWithin(nil, query.Doc{Body: m.whole}, limit); err != nil {
			return nil, fmt.Errorf("%w: %w (Options.MaxQueryBytes): select less", errs.ErrQuery, err)
		}
	}
	if len(m.r.q.OrderBy) > 0 || m.r.options.Paging {
		e.id = groupID(row[:m.reduced.By])
	}
	return e, m.r.pace.Err()
}

// Walk is what a run looks at: documents of a collection, or of all if it is "", with folded IDs that begin with a prefix, from the least to the
// greatest one; "" for no bound.
type Walk struct{ Collection, Prefix, Low, High string }

// Walks returns what the run looks at.
func (r *Run) Walks() (all []Walk) {
	if r.index == nil || r.index.parts == nil {
		w := Walk{Collection: r.q.From, Prefix: r.plan.Prefix}
		w.Low, _, _ = strings.Cut(r.plan.Low, "\x00")
		w.High, _, _ = strings.Cut(r.plan.High, "\x00")
		if r.loading.spec != nil {
			return []Walk{w, {}} // what is loaded may be any document
		}
		return []Walk{w}
	}
	for _, p := range r.index.parts {
		all = append(all, p.Walks()...)
	}
	return all
}

// steps describes how the index was answered.
func (x *indexRun) steps(r *Run) []string {
	steps := []string{fmt.Sprintf("computed index %q: %s", x.of.Name, x.of.Declared)}
	if _, without := catalog.Parts(x.of.Declared); len(without) > 0 {
		steps = append(steps, "not kept: "+strings.Join(without, "; "))
	}
	for _, p := range x.parts {
		for i, step := range p.Report().Steps {
			if i > 0 {
				step = "   " + step
			}
			steps = append(steps, step)
		}
	}
	if x.parts == nil {
		return steps
	}
	if len(x.parts) > 1 && x.resolved.Reduce != nil {
		steps = append(steps, fmt.Sprintf("add up the groups of %d maps", len(x.parts)))
	}
	if x.resolved.Reduce != nil {
		if names := x.resolved.Reduce.Listed(); len(names) > 0 {
			steps = append(steps, "computed when asked, from the entries of each group: "+strings.Join(names, ", "))
		}
	}
	if x.resolved.Reduce != nil && r.q.Where != nil {
		steps = append(steps, "keep results: "+query.FormatCondition(r.q.Where))
	}
	if r.stats.sorted {
		steps = append(steps, "sort in memory"+topN(r.q))
	}
	return steps
}

// report reports how the run of the index went so far.
func (x *indexRun) report(r *Run) Report {
	report := Report{Steps: x.steps(r), Returned: r.stats.returned, Elapsed: time.Since(r.started)}
	for _, p := range x.parts {
		part := p.Report()
		report.Keys, report.Documents = report.Keys+part.Keys, report.Documents+part.Documents
	}
	return report
}

// paths returns the paths into indexes that a run takes, those of its maps among them.
func (er entryRun) paths() []*plan.Path {
	r := er.r
	paths := slices.Clone(r.plan.Access)
	if r.plan.Intersect != nil {
		paths = append(paths, r.plan.Intersect)
	}
	if r.index != nil {
		for _, p := range r.index.parts {
			paths = append(paths, entryRun{p}.paths()...)
		}
	}
	return paths
}
