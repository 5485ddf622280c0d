package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/jaydb/jay/internal/jsonpath"
)

// ErrFacet is returned for a facet that has no meaning: the error says which, and why.
var ErrFacet = errors.New("jay: invalid facet")

// Facet counts the answers of a query by the values of a field, or by ranges. A query with facets has one row for each of them.
type Facet struct {
	Setup   string       // the ID of a document that has facets, in place of all that follows; "" for none
	Name    string       // in the answer
	Field   Field        // by whose values the documents are counted; the zero Field with Ranges, and for all documents together
	Ranges  []Expr       // a document counts in each range of which the condition is true
	Columns []Column     // what is computed beside the count: sum, avg, min or max of a field, under a name
	Options FacetOptions // not with Ranges
}

// FacetOptions choose terms, which are the values of a facet's field. The zero value takes all of them, in the order of values.
type FacetOptions struct {
	Order     FacetOrder
	Start     int  // how many terms are left out
	Size      int  // the greatest number of terms, if HasSize
	HasSize   bool // false means no limit
	Remaining bool // the terms that follow are listed
}

// FacetOrder is the order of the terms of a facet.
type FacetOrder uint8

const (
	FacetValueAsc  FacetOrder = iota // by value, in the order of all values
	FacetValueDesc                   // the other way round
	FacetCountAsc                    // by the number of documents, and those with as many by value
	FacetCountDesc                   // by the number of documents, greatest first, and those with as many by value
)

// facetOrders are the names of orders, RavenDB's TermSortMode.
var facetOrders = [...]string{FacetValueAsc: "ValueAsc", FacetValueDesc: "ValueDesc", FacetCountAsc: "CountAsc", FacetCountDesc: "CountDesc"}

// Bounds of facets.
const (
	MaxFacets      = 64  // of one query
	MaxFacetRanges = 256 // of one facet, and of its columns
)

// Facets counts documents for several facets in one pass. It is not safe for concurrent use.
type Facets struct {
	facets []*facetCount
	limit  int // of the memory of all of them; 0 for none
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

// NewFacets returns Facets without documents, of facets that name no setup. They use about maxBytes of memory at most; 0 means
// no limit. Conditions are compiled with the options. Its errors are ErrFacet, ErrColumn and those of Compile.
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
	return all, nil
}

// check returns ErrFacet for a facet that has no meaning.
func (f *Facet) check() error {
	switch {
	case len(f.Ranges) > MaxFacetRanges || len(f.Columns) > MaxFacetRanges:
		return fmt.Errorf("%w: %d ranges and %d functions, %d are the most of each", ErrFacet, len(f.Ranges), len(f.Columns), MaxFacetRanges)
	case len(f.Ranges) > 0 && !f.Field.isZero():
		return fmt.Errorf("%w: it has a field and ranges", ErrFacet)
	case len(f.Ranges) > 0 && f.Options != FacetOptions{}:
		return fmt.Errorf("%w: options are of the terms of a field, and ranges are given as they are written", ErrFacet)
	case f.Options.Start < 0 || f.Options.Size < 0 || int(f.Options.Order) >= len(facetOrders):
		return fmt.Errorf("%w: options with start %d, size %d and order %d", ErrFacet, f.Options.Start, f.Options.Size, f.Options.Order)
	}
	for _, c := range f.Columns {
		if c.Func < FuncSum || c.Func > FuncMax {
			return fmt.Errorf("%w: %s: a facet counts, and has sum, avg, min and max of fields", ErrFacet, funcText(c.Func, c.Field))
		}
	}
	return nil
}

func newFacetCount(f Facet, options []Option) (*facetCount, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	columns := []Column{{Name: countColumn, Func: FuncCount}}
	for i, c := range f.Columns {
		columns = append(columns, Column{Name: fmt.Sprint(i), Func: c.Func, Field: c.Field})
	}
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
		count.groups, err = NewGroups([]Field{f.Field}, append(columns, Column{Name: termColumn, Field: f.Field}), 0)
	}
	return count, err
}

// SetPace makes Add stop when p stops. Add then returns the error of p.
func (f *Facets) SetPace(p *Pace) {
	f.pace = p
	for _, c := range f.facets {
		if c.groups != nil {
			c.groups.SetPace(p)
		}
		if c.reader != nil {
			c.reader.SetPace(p)
		}
		for _, r := range c.ranges {
			r.groups.SetPace(p)
			r.matcher.SetPace(p)
		}
	}
}

// Add adds a document. Its errors are those of Groups.Add.
func (f *Facets) Add(doc Doc) error {
	for _, c := range f.facets {
		if err := c.add(doc); err != nil {
			return fmt.Errorf("facet %q: %w", c.Name, err)
		}
	}
	if used := f.Bytes(); f.limit > 0 && used > f.limit {
		return &LimitError{"bytes of facets", f.limit, used}
	}
	return f.pace.Err()
}

func (c *facetCount) add(doc Doc) error {
	for _, r := range c.ranges {
		if r.matcher.Match(doc) {
			if err := r.groups.Add(doc); err != nil {
				return err
			}
		}
	}
	if c.reader != nil {
		if c.reader.Reset(doc); len(c.reader.Values(0)) == 0 {
			return nil // a document without a value is of no term
		}
	}
	if c.groups == nil {
		return nil
	}
	return c.groups.Add(doc)
}

// Bytes returns about how many bytes the facets take.
func (f *Facets) Bytes() int {
	n := 0
	for _, c := range f.facets {
		if c.groups != nil {
			n += c.groups.Bytes()
		}
		for _, r := range c.ranges {
			n += r.groups.Bytes()
		}
	}
	return n
}

// Len returns the number of facets.
func (f *Facets) Len() int { return len(f.facets) }

// AppendResult appends the result of facet i as a JSON object in RavenDB's shape: Name, Values, RemainingTerms, RemainingTermsCount and
// RemainingHits. Each of Values has a Range and a Count; with functions there is one for each name of theirs, with Name and Sum, Average, Min
// and Max.
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

// termText returns a value as a term: text as it is, null and the empty text as RavenDB writes them, and all else as JSON.
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
var facetFuncs = [...]string{FuncSum: "Sum", FuncAvg: "Average", FuncMin: "Min", FuncMax: "Max"}

// appendValues appends the values of one term or range: one for each name that functions have, and one if there are none.
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

// facetOptions are the options of a facet as RavenDB's clients send them.
type facetOptions struct {
	TermSortMode          string
	IncludeRemainingTerms bool
	Start                 int
	PageSize              *int
}

// ParseFacetOptions parses options as RavenDB's clients send them: TermSortMode, Start, PageSize and IncludeRemainingTerms. It returns
// ErrFacet for others.
func ParseFacetOptions(raw []byte) (o FacetOptions, err error) {
	var given facetOptions
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&given); err != nil {
		return o, fmt.Errorf("%w: options: %w", ErrFacet, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return o, fmt.Errorf("%w: options: there is something behind the object", ErrFacet)
	}
	at := slices.Index(facetOrders[:], cmp.Or(given.TermSortMode, facetOrders[0]))
	if at < 0 {
		return o, fmt.Errorf("%w: options: TermSortMode %q, and not ValueAsc, ValueDesc, CountAsc or CountDesc", ErrFacet, given.TermSortMode)
	}
	o = FacetOptions{Order: FacetOrder(at), Start: given.Start, Remaining: given.IncludeRemainingTerms}
	if given.PageSize != nil && *given.PageSize != math.MaxInt32 { // which is none in the C# client
		o.Size, o.HasSize = *given.PageSize, true
	}
	if o.Start < 0 || o.Size < 0 {
		return o, fmt.Errorf("%w: options: Start %d and PageSize %d", ErrFacet, o.Start, o.Size)
	}
	return o, nil
}

// appendOptions is the inverse of ParseFacetOptions.
func (o FacetOptions) appendOptions(dst []byte) []byte {
	given := struct {
		TermSortMode          string
		IncludeRemainingTerms bool
		Start                 int
		PageSize              *int `json:",omitempty"`
	}{facetOrders[o.Order], o.Remaining, o.Start, nil}
	if o.HasSize {
		given.PageSize = &o.Size
	}
	raw, _ := json.Marshal(given)
	return append(dst, raw...)
}
