package computed

import (
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// IsPlain reports whether each document has at most one entry, and all entries are of one map: then a query of entries is a query of
// documents, which Documents returns.
func (d *Definition) IsPlain() bool {
	return d.reduce == nil && len(d.maps) == 1 && d.maps[0].each.IsZero()
}

// IsReduced reports whether the results are groups.
func (d *Definition) IsReduced() bool { return d.reduce != nil }

// Documents returns the query of the documents that have the entries which a query of a plain index asks for: what RavenDB's clients get
// of an index. Conditions, orders, facets, suggestions and highlights are on members. Of the columns those are on members whose root isMember accepts; others, JavaScript, and what is
// included are of the documents. The error is ErrQuery.
func (d *Definition) Documents(q *query.Query, isMember func(name string) bool) (*query.Query, error) {
	out, err := d.documents(q, isMember)
	if err != nil {
		return nil, fmt.Errorf("%w: index %q: %w", errs.ErrQuery, d.Declared.Name, err)
	}
	return out, nil
}

func (d *Definition) documents(q *query.Query, isMember func(name string) bool) (*query.Query, error) {
	if !d.IsPlain() {
		return nil, fmt.Errorf("it has a reduce, several maps, or elements: its entries are not those of the documents of a collection")
	}
	entries := *q
	entries.Include, entries.Facets, entries.Suggests, entries.Highlights, entries.Explanations = nil, nil, nil, nil, false
	if err := check(&entries); err != nil {
		return nil, err
	}
	entries.Select = nil
	out, err := d.entriesOf(0, &entries)
	if err != nil {
		return nil, err
	}
	out.Select = nil
	for _, c := range q.Select {
		c.Field, err = query.Substitute(c.Field, func(f query.Field) (query.Field, error) {
			if f.Meta != query.MetaNone || !isMember(f.Path.Root()) {
				return f, nil
			}
			return d.member(0, f)
		})
		if err != nil {
			return nil, err
		}
		out.Select = append(out.Select, c)
	}
	for _, f := range q.Facets {
		if f, err = d.facetOf(f); err != nil {
			return nil, err
		}
		out.Facets = append(out.Facets, f)
	}
	for _, s := range q.Suggests {
		if s.Field, err = d.textOf(s.Field); err != nil {
			return nil, err
		}
		out.Suggests = append(out.Suggests, s)
	}
	for _, h := range q.Highlights {
		name := h.Field.String()
		if h.Field, err = d.textOf(h.Field); err != nil {
			return nil, err
		}
		if h.Field.String() != name { // answers have fragments by their fields
			return nil, fmt.Errorf("the member %s is %s of the documents, and highlights are of a member with the name of its field", name, h.Field)
		}
		out.Highlights = append(out.Highlights, h)
	}
	out.Explanations = q.Explanations
	out.Include, out.Script = q.Include, q.Script
	out.Distinct, out.Offset, out.Limit, out.HasLimit = q.Distinct, q.Offset, q.Limit, q.HasLimit
	return out, nil
}

// facetOf returns a facet of members as one of documents, with the same names in its answer. A range is named by its condition, which must
// stay what it is.
func (d *Definition) facetOf(f query.Facet) (query.Facet, error) {
	if f.Setup != "" {
		return f, fmt.Errorf("the facets of a document name fields of documents, and not members")
	}
	ofDocument := func(f query.Field) (query.Field, error) { return d.member(0, f) }
	var err error
	if f.Field.Meta != query.MetaNone || !f.Field.Path.IsZero() {
		if f.Field, err = query.Substitute(f.Field, ofDocument); err != nil {
			return f, err
		}
	}
	for _, e := range f.Ranges {
		of, err := query.SubstituteCondition(e, ofDocument)
		if err != nil {
			return f, err
		}
		if text := query.FormatCondition(e); query.FormatCondition(of) != text {
			return f, fmt.Errorf("the range %s of a facet is named by its text, and stands for %s", text, query.FormatCondition(of))
		}
	}
	columns := f.Columns
	f.Columns = nil
	for _, c := range columns {
		if c.Field, err = query.Substitute(c.Field, ofDocument); err != nil {
			return f, err
		}
		f.Columns = append(f.Columns, c)
	}
	return f, nil
}

// textOf returns the field of documents that a member is, whose texts are shown or suggested.
func (d *Definition) textOf(f query.Field) (query.Field, error) {
	of, err := query.Substitute(f, func(f query.Field) (query.Field, error) { return d.member(0, f) })
	if err == nil && (of.Meta != query.MetaNone || of.Path.IsZero()) {
		err = fmt.Errorf("the member %s is computed, and highlights and suggestions are of fields of documents", f)
	}
	return of, err
}
