package query

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Facets counts documents for several facets in one pass. It is not safe for concurrent use.
type Facets struct {
	facets []*facetCount
	used   int // bytes of memory of all of them
	limit  int // of used; 0 for none
	pace   *Pace
}

// facetCount is one of them.
type facetCount struct {
	Facet
	reader *Reader // of the field; nil for ranges and for all documents
	groups *Groups // of the terms, or of all documents
	ranges []facetRange
}

// facetRange is one range of a facet.
type facetRange struct {
	matcher *Matcher
	groups  *Groups // one, of all documents in the range
}

// countColumn is the name of the first column of the groups of a facet, termColumn that of the second one.
const (
	countColumn = "\x00count"
	termColumn  = "\x00term"
)

// NewFacets returns Facets without documents, of facets that name no setup. They use about maxBytes
// of memory at most; 0 means no limit. Conditions are compiled with the options. Its errors are
// ErrFacet, ErrColumn and those of Compile.
func NewFacets(facets []Facet, maxBytes int, options ...Option) (*Facets, error) {
	if len(facets) > MaxFacets {
		return nil, fmt.Errorf("%w: %d facets, %d are the most", ErrFacet, len(facets), MaxFacets)
	}
	all := &Facets{limit: maxBytes}
	for _, f := range facets {
		count, err := newFacetCount(f, options)
		if err != nil {
			return nil, fmt.Errorf("facet %q: %w", f.Name, err)
		}
		all.facets = append(all.facets, count)
	}
	all.measure()
	return all, nil
}

func newFacetCount(f Facet, options []Option) (*facetCount, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	columns := f.columns()
	count := &facetCount{Facet: f}
	var err error
	for _, e := range f.Ranges {
		r := facetRange{}
		if r.matcher, err = Compile(e, options...); err != nil {
			return nil, err
		}
		if r.groups, err = NewGroups(nil, columns, 0); err != nil {
			return nil, err
		}
		count.ranges = append(count.ranges, r)
	}
	switch {
	case len(f.Ranges) > 0:
	case f.Field.isZero():
		count.groups, err = NewGroups(nil, columns, 0)
	default:
		count.reader = NewReader([]Field{f.Field})
		count.groups, err = NewGroups([]Field{f.Field}, columns, 0)
	}
	return count, err
}

// all returns the groups of all ranges, or of the terms or all documents.
func (c *facetCount) all() (all []*Groups) {
	for _, r := range c.ranges {
		all = append(all, r.groups)
	}
	if c.groups != nil {
		all = append(all, c.groups)
	}
	return all
}

// SetPace makes Add stop when p stops. Add then returns the error of p.
func (f *Facets) SetPace(p *Pace) {
	f.pace = p
	for _, c := range f.facets {
		for _, g := range c.all() {
			g.SetPace(p)
		}
		if c.reader != nil {
			c.reader.SetPace(p)
		}
		for _, r := range c.ranges {
			r.matcher.SetPace(p)
		}
	}
}

// Add adds a document. Its errors are those of Groups.Add.
func (f *Facets) Add(doc Doc) error {
	for _, c := range f.facets {
		grown, err := c.add(doc)
		if f.used += grown; err != nil {
			return fmt.Errorf("facet %q: %w", c.Name, err)
		}
	}
	return f.within()
}

// add adds a document, and returns how many bytes of memory it has taken.
func (c *facetCount) add(doc Doc) (grown int, err error) {
	addTo := func(g *Groups) error {
		held := g.Bytes()
		err := g.Add(doc)
		grown += g.Bytes() - held
		return err
	}
	for _, r := range c.ranges {
		if r.matcher.Match(doc) {
			if err := addTo(r.groups); err != nil {
				return grown, err
			}
		}
	}
	if c.reader != nil {
		if c.reader.Reset(doc); len(c.reader.Values(0)) == 0 {
			return grown, nil // a document without a value is of no term
		}
	}
	if c.groups != nil {
		err = addTo(c.groups)
	}
	return grown, err
}

// Groups returns the groups of the terms of facet i, or the group of all documents if the facet has
// no field. A caller that does not use Add, such as an index that has counted documents, adds
// documents to the groups. The groups have the memory bound of the facets. Groups returns nil for a
// facet with ranges.
func (f *Facets) Groups(i int) *Groups {
	g := f.facets[i].groups
	if g != nil {
		g.limit = f.limit
	}
	return g
}

// AddTo adds a document to facet i only. Its errors are those of Add.
func (f *Facets) AddTo(i int, doc Doc) error {
	grown, err := f.facets[i].add(doc)
	f.used += grown
	return cmp.Or(err, f.pace.Err())
}

// within returns a *LimitError if the facets exceed their memory, as it was counted last.
func (f *Facets) within() error {
	if f.limit > 0 && f.used > f.limit {
		return &LimitError{"bytes of facets", f.limit, f.used}
	}
	return f.pace.Err()
}

// Check returns a *LimitError if the facets, including what was added through Groups, exceed their
// memory.
func (f *Facets) Check() error {
	f.measure()
	return f.within()
}

// measure counts the memory of all facets.
func (f *Facets) measure() {
	f.used = 0
	for _, c := range f.facets {
		for _, g := range c.all() {
			f.used += g.Bytes()
		}
	}
}

// Query returns the groups of a facet as a query of its own, which has the collection and the
// condition of q. Its columns are those of Facets.Groups. It returns false for a facet with ranges,
// and for a facet whose Setup is a document.
func (f *Facet) Query(q *Query) (*Query, bool) {
	if f.Setup != "" || len(f.Ranges) > 0 {
		return nil, false
	}
	of := &Query{From: q.From, Where: q.Where, Select: f.columns()}
	if !f.Field.isZero() {
		of.GroupBy = []Field{f.Field}
	}
	return of, true
}

// columns are those of the groups of a facet.
func (f *Facet) columns() []Column {
	columns := []Column{{Name: countColumn, Func: FuncCount}}
	for i, c := range f.Columns {
		columns = append(columns, Column{Name: fmt.Sprint(i), Func: c.Func, Field: c.Field})
	}
	if !f.Field.isZero() {
		columns = append(columns, Column{Name: termColumn, Field: f.Field})
	}
	return columns
}

// Bytes returns about how many bytes the facets take.
func (f *Facets) Bytes() int { return f.used }

// Len returns the number of facets.
func (f *Facets) Len() int { return len(f.facets) }

// AppendResult appends the result of facet i as a JSON object in RavenDB's shape: Name, Values,
// RemainingTerms, RemainingTermsCount and RemainingHits. Each of Values has a Range and a Count;
// with functions there is one for each name of theirs, with Name and Sum, Average, Min, Max, First
// and Last.
func (f *Facets) AppendResult(dst []byte, i int) []byte {
	c := f.facets[i]
	dst = append(append(append(dst, `{"Name":`...), jsonpath.AppendQuoted(nil, c.Name)...), `,"Values":[`...)
	empty := len(dst)
	value := func(label string, row []Value) {
		if len(dst) > empty {
			dst = append(dst, ',')
		}
		dst = c.appendValues(dst, label, row)
	}
	var remaining [][]Value
	switch {
	case len(c.ranges) > 0:
		for i, r := range c.ranges {
			value(FormatCondition(c.Ranges[i]), r.groups.Row(0))
		}
	case c.reader == nil:
		value(c.Name, c.groups.Row(0))
	default:
		var rows [][]Value
		rows, remaining = c.terms()
		for _, row := range rows {
			value(termText(row[len(row)-1]), row)
		}
	}
	dst = append(dst, `],"RemainingTerms":[`...)
	hits := int64(0)
	for i, row := range remaining {
		n, _ := smallInt(row[0].raw)
		hits += n
		if !c.Options.Remaining {
			continue
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonpath.AppendQuoted(dst, termText(row[len(row)-1]))
	}
	return fmt.Appendf(dst, `],"RemainingTermsCount":%d,"RemainingHits":%d}`, len(remaining), hits)
}

// terms returns the rows of the terms that the options choose, and those that follow.
func (c *facetCount) terms() (rows, remaining [][]Value) {
	rows = slices.Collect(c.groups.Rows())
	slices.SortFunc(rows, func(a, b []Value) int {
		byValue := a[len(a)-1].Compare(b[len(b)-1])
		switch c.Options.Order {
		case FacetValueDesc:
			return -byValue
		case FacetCountAsc:
			return cmp.Or(a[0].Compare(b[0]), byValue)
		case FacetCountDesc:
			return cmp.Or(b[0].Compare(a[0]), byValue)
		}
		return byValue
	})
	rows = rows[min(c.Options.Start, len(rows)):]
	if c.Options.HasSize && c.Options.Size < len(rows) {
		return rows[:c.Options.Size], rows[c.Options.Size:]
	}
	return rows, nil
}

// termText returns a value as a term: text as it is, null and the empty text as RavenDB writes
// them, and all else as JSON.
func termText(v Value) string {
	switch {
	case v.Kind() == KindNull || v.IsMissing():
		return "NULL_VALUE"
	case v.Kind() == KindText && v.Text() == "":
		return "EMPTY_STRING"
	case v.Kind() == KindText:
		return v.Text()
	case v.Kind() == KindInstant:
		return string(v.raw[1 : len(v.raw)-1])
	}
	return string(v.AppendJSON(nil))
}

// facetFuncs are the members of the results of functions.
var facetFuncs = [...]string{FuncSum: "Sum", FuncAvg: "Average", FuncMin: "Min", FuncMax: "Max", FuncFirst: "First", FuncLast: "Last"}

// appendValues appends the values of one term or range: one for each name that functions have, and
// one if there are none.
func (c *facetCount) appendValues(dst []byte, label string, row []Value) []byte {
	begin := func(name string) {
		dst = append(append(dst, `{"Range":`...), jsonpath.AppendQuoted(nil, label)...)
		dst = row[0].AppendJSON(append(dst, `,"Count":`...))
		if name != "" {
			dst = append(append(dst, `,"Name":`...), jsonpath.AppendQuoted(nil, name)...)
		}
	}
	if len(c.Columns) == 0 {
		begin("")
		return append(dst, '}')
	}
	for i, column := range c.Columns {
		if slices.ContainsFunc(c.Columns[:i], func(other Column) bool { return other.Name == column.Name }) {
			continue
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		begin(column.Name)
		for j, other := range c.Columns {
			if other.Name == column.Name {
				dst = row[1+j].AppendJSON(append(append(append(dst, `,"`...), facetFuncs[other.Func]...), `":`...))
			}
		}
		dst = append(dst, '}')
	}
	return dst
}
