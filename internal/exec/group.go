package exec

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// groupAnswers gathers the documents into groups.
func (r *Run) groupAnswers(ctx context.Context) (answers, error) {
	if len(r.q.Facets) > 0 {
		return facetRun{r}.answers(ctx)
	}
	if rows, err := r.countedGroup(ctx); rows != nil || err != nil {
		return rows, err
	}
	if rows, err := r.extremes(); rows != nil || err != nil {
		return rows, err
	}
	columns, having, err := r.q.GroupColumns()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	keep := func([]query.Value) bool { return true }
	if having != nil {
		matcher, err := query.Compile(having)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		matcher.SetPace(&r.pace)
		var body []byte
		keep = func(row []query.Value) bool {
			body = query.AppendRow(body[:0], columns, row)
			return matcher.Match(query.Doc{Body: body})
		}
	}
	groups, entries, err := entryRun{r}.newGroups(columns)
	if err != nil {
		return nil, err
	}
	if entries != nil && entries.streams() {
		return entries.answers(keep)
	}
	if err := (entryRun{r}).fill(ctx, groups, entries); err != nil {
		return nil, err
	}
	if len(r.q.OrderBy) == 0 {
		return r.rowsOf(groups, keep), nil
	}
	var rows [][]query.Value
	for row := range groups.Rows() {
		if keep(row) {
			rows = append(rows, row)
		}
		if !r.pace.Spend(groupWork) {
			return nil, r.pace.Err()
		}
	}
	r.stats.sorted = true
	sorter, err := query.NewRowSorter(r.q.OrderBy, r.q.Select)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	slices.SortStableFunc(rows, func(a, b []query.Value) int {
		if !r.pace.Spend(groupWork) {
			return 0
		}
		return sorter.Compare(a, b)
	})
	if err := r.pace.Err(); err != nil {
		return nil, err
	}
	shown := rowMaker{columns: r.q.Select}
	return func(context.Context) (*Row, error) {
		if len(rows) == 0 {
			return nil, nil
		}
		row := rows[0]
		rows = rows[1:]
		return shown.of(row), nil
	}, nil
}

// rowMaker makes rows with these columns, each in memory of its own.
type rowMaker struct {
	columns []query.Column
	text    []byte // scratch
}

func (m *rowMaker) of(values []query.Value) *Row {
	m.text = query.AppendRow(m.text[:0], m.columns, values)
	return &Row{JSON: bytes.Clone(m.text)}
}

// newGroups returns the groups of a run, with these columns, and what makes them of the entries of an index; nil if nothing does.
func (er entryRun) newGroups(columns []query.Column) (groups *query.Groups, entries *entryGroups, err error) {
	r := er.r
	if groups, err = query.NewGroups(r.q.GroupBy, columns, r.env.MaxQueryBytes); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	groups.SetPace(&r.pace)
	if r.plan.Along != nil {
		entries, err = newEntryGroups(r, r.plan, r.q, r.source.(*indexSource), groups)
	}
	return groups, entries, err
}

// fill gathers the documents of a run, or the entries of an index, into groups, or reads those that an index keeps.
func (er entryRun) fill(ctx context.Context, groups *query.Groups, entries *entryGroups) error {
	switch {
	case entries != nil:
		return entries.collect(ctx)
	case er.r.plan.Kept != nil:
		return keptRun(er).fill(ctx, er.r.plan.Kept, groups)
	}
	if err := scanRun(er).group(ctx, groups); err != nil {
		return err
	}
	return er.addDocuments(ctx, groups.Add, groups.Bytes)
}

// addDocuments calls add with the documents of a run, and pays for what the memory that bytes tells grows by.
func (er entryRun) addDocuments(ctx context.Context, add func(query.Doc) error, bytes func() int) error {
	r := er.r
	return r.each(ctx, func(doc query.Doc) error {
		held := bytes()
		if err := add(doc); err != nil {
			return groupError(doc, err, r.pace.Err())
		}
		return r.payer.Pay(bytes() - held)
	})
}

// groupError returns the error of a document that cannot be added to groups; stopped is that of the pace.
func groupError(doc query.Doc, err, stopped error) error {
	if err == nil || err == stopped {
		return err
	}
	return fmt.Errorf("%w: document %q: %w", errs.ErrQuery, doc.Meta.AppendMeta(nil, query.MetaID), err)
}

// groupWork is what a row of a group counts for where its size is not looked at.
const groupWork = 1 << 10

// rowsOf makes the rows of groups, each when its turn comes, as they may be
// larger than what they are made of.
func (r *Run) rowsOf(groups *query.Groups, keep func(row []query.Value) bool) answers {
	i := 0
	shown := rowMaker{columns: r.q.Select}
	return func(context.Context) (*Row, error) {
		for ; i < groups.Len(); i++ {
			row := groups.Row(i)
			kept := keep(row)
			if !r.pace.Spend(groupWork) {
				return nil, r.pace.Err()
			}
			if kept {
				i++
				return shown.of(row), nil
			}
		}
		return nil, nil
	}
}

// countedGroup answers "select count()" without making documents, or returns nil.
func (r *Run) countedGroup(ctx context.Context) (answers, error) {
	if len(r.q.GroupBy) > 0 || r.q.Having != nil || r.plan.Kept != nil {
		return nil, nil
	}
	for _, c := range r.q.Select {
		if c.Func != query.FuncCount {
			return nil, nil
		}
	}
	n, err := r.countDocuments(ctx)
	if err != nil {
		return nil, err
	}
	row := make([]query.Value, len(r.q.Select))
	for i := range row {
		if row[i], err = query.NewValue(n); err != nil {
			return nil, err
		}
	}
	return oneRow(r.q.Select, row), nil
}

// oneRow is the answer of a query that has one.
func oneRow(columns []query.Column, row []query.Value) answers {
	done := false
	return func(context.Context) (*Row, error) {
		if done {
			return nil, nil
		}
		done = true
		return &Row{JSON: query.AppendRow(nil, columns, row)}, nil
	}
}

// extremes answers "select min(path), max(path)" from the two ends of the range of
// an index that has the path's values in order, or returns nil.
func (r *Run) extremes() (answers, error) {
	s, ok := r.source.(*indexSource)
	if !ok || r.covers == nil || !r.plan.CountOnly || len(s.ranges) != 1 || !r.plan.Access[0].IsMinMax(r.q) {
		return nil, nil
	}
	a := r.plan.Access[0]
	f := a.Index.Fields[a.Equal]
	row := make([]query.Value, len(r.q.Select))
	for i, c := range r.q.Select {
		var err error
		if row[i], err = s.extreme(a.Equal, (c.Func == query.FuncMin) != f.Descending); err != nil {
			return nil, err
		}
	}
	r.stats.minMax = true
	return oneRow(r.q.Select, row), nil
}
