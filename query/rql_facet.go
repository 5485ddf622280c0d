package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// facets parses the facets of a select.
type facets struct{ p *parser }

// all = facet { "," facet } . They count the answers, so the query has neither groups nor an order, and no page.
func (fs facets) all(q *Query) error {
	p, at := fs.p, fs.p.tok.offset
	switch {
	case len(q.GroupBy) > 0 || q.Distinct:
		return p.fail(at, "facets count documents, and a query with them has neither group by nor distinct")
	case len(q.OrderBy) > 0:
		return p.fail(at, "facets have an order of their own").hinting("its options have TermSortMode: ValueAsc, ValueDesc, CountAsc or CountDesc")
	}
	if err := p.list("facets", func() error {
		if !p.tok.is("facet") || !p.atCall() {
			return p.fail(p.tok.offset, "facets stand alone in select").expecting("facet()")
		}
		return fs.facet(q)
	}); err != nil {
		return err
	}
	return nil
}

// facet = "facet" "(" ( "id" "(" text ")" | [ part { "," part } ] ) ")" [ "as" name ] .
// part  = field | condition | function | parameter | "options" "(" text ")" .
func (fs facets) facet(q *Query) error {
	p := fs.p
	at := p.tok.offset
	p.advance()
	p.advance()
	f := Facet{}
	var err error
	switch {
	case p.tok.is("id") && p.atCall():
		f.Setup, err = fs.setup()
	case !p.tok.isSymbol(")"):
		err = p.list("parts of a facet", func() error { return fs.part(&f) })
	}
	if err != nil {
		return err
	}
	if err := p.expectSymbol(")", "behind the facet"); err != nil {
		return err
	}
	f.Name = f.defaultName()
	if p.accept("as") {
		if f.Setup != "" {
			return p.fail(at, "the facets of a document have names of their own")
		}
		if f.Name, err = p.name("a name for the facet"); err != nil {
			return err
		}
	}
	if err := f.check(); err != nil {
		return p.fail(at, "%s", trimmed(err)).because(err)
	}
	q.Facets = append(q.Facets, f)
	if len(q.Facets) > MaxFacets {
		return p.fail(at, "too many facets: %d are the most", MaxFacets)
	}
	return nil
}

// trimmed returns the text of an error of facets without what all of them begin with.
func trimmed(err error) string { return strings.TrimPrefix(err.Error(), ErrFacet.Error()+": ") }

// defaultName returns the name of a facet that has none: that of its field, or of the field of its first range.
func (f *Facet) defaultName() string {
	switch {
	case len(f.Ranges) > 0:
		if fields := Fields(f.Ranges[0]); len(fields) > 0 {
			return fields[0].String()
		}
	case !f.Field.isZero():
		return f.Field.String()
	}
	return "@AllResults"
}

// setup = "id" "(" ( text | parameter ) ")" .
func (fs facets) setup() (id string, err error) {
	p := fs.p
	p.advance()
	p.advance()
	start := p.tok
	switch p.tok.kind {
	case tokenText:
		id = p.tok.text
		p.advance()
	case tokenParameter:
		value, err := p.parameter()
		if err != nil {
			return "", err
		}
		id, _ = value.(string)
	}
	if id == "" {
		return "", p.fail(start.offset, "id() names the document that has the facets, as text")
	}
	return id, p.expectSymbol(")", "behind the ID")
}

// part parses one part of a facet.
func (fs facets) part(f *Facet) error {
	p := fs.p
	at := p.tok.offset
	switch {
	case p.tok.kind == tokenParameter:
		value, err := p.parameter()
		if err != nil {
			return err
		}
		raw, err := json.Marshal(value)
		if err != nil || len(raw) == 0 || raw[0] != '{' {
			return p.fail(at, "a parameter of a facet is an object of options").hinting("TermSortMode, Start, PageSize and IncludeRemainingTerms")
		}
		return fs.options(f, raw, at)
	case p.tok.is("options") && p.atCall():
		p.advance()
		p.advance()
		text := p.tok
		if text.kind != tokenText {
			return p.unexpected("options as text, such as '{\"PageSize\":10}'")
		}
		p.advance()
		if err := fs.options(f, []byte(text.text), at); err != nil {
			return err
		}
		return p.expectSymbol(")", "behind the options")
	case p.function() != FuncNone && p.atCall():
		return fs.column(f)
	}
	before := *p
	if field, err := p.dateField("a field or a condition"); err == nil && (p.tok.isSymbol(",") || p.tok.isSymbol(")")) {
		if !f.Field.isZero() || len(f.Ranges) > 0 {
			return p.fail(at, "a facet has one field, or ranges")
		}
		f.Field = field
		return nil
	}
	*p = before
	e, err := p.condition()
	if err != nil {
		return err
	}
	if group, found := GroupField(e); found {
		return p.fail(at, "%s is of groups, and a range is of documents", group)
	}
	f.Ranges = append(f.Ranges, e)
	return nil
}

// options sets the options of a facet.
func (fs facets) options(f *Facet, raw []byte, at int) (err error) {
	if f.Options, err = ParseFacetOptions(raw); err != nil {
		return fs.p.fail(at, "%s", trimmed(err)).because(err)
	}
	return nil
}

// column parses a function of a facet, with the name that its results have.
func (fs facets) column(f *Facet) error {
	p := fs.p
	what, err := p.term("a function", refusedSelects)
	if err != nil {
		return err
	}
	if what.fn == FuncCount {
		return nil // it is there anyway
	}
	c := Column{Func: what.fn, Field: what.field, Name: what.field.String()}
	if p.accept("as") {
		if c.Name, err = p.name("a name for the results of the function"); err != nil {
			return err
		}
	}
	f.Columns = append(f.Columns, c)
	return nil
}

// printFacet returns a facet as a query writes it.
func printFacet(f Facet) string {
	if f.Setup != "" {
		return "facet(id(" + quote(f.Setup) + "))"
	}
	var parts []string
	if !f.Field.isZero() {
		parts = append(parts, f.Field.String())
	}
	for _, e := range f.Ranges {
		parts = append(parts, FormatCondition(e))
	}
	for _, c := range f.Columns {
		part := funcText(c.Func, c.Field)
		if c.Name != c.Field.String() {
			part += " as " + printName(c.Name)
		}
		parts = append(parts, part)
	}
	if f.Options != (FacetOptions{}) {
		parts = append(parts, "options("+quote(string(f.Options.appendOptions(nil)))+")")
	}
	s := "facet(" + strings.Join(parts, ", ") + ")"
	if f.Name != f.defaultName() {
		s += " as " + printName(f.Name)
	}
	return s
}

// facetSetup is a document with facets, as RavenDB's clients store it.
type facetSetup struct {
	Facets, RangeFacets []struct {
		FieldName        string
		DisplayFieldName string
		Ranges           []string
		Options          json.RawMessage
		Aggregations     map[string]json.RawMessage
	}
}

// ParseFacetSetup returns the facets of a document as RavenDB's clients store it: Facets with
// FieldName and RangeFacets with Ranges, each with DisplayFieldName, Options and Aggregations. It
// returns ErrFacet for an invalid facet.
func ParseFacetSetup(body []byte) ([]Facet, error) {
	var setup facetSetup
	if err := json.Unmarshal(body, &setup); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFacet, err)
	}
	var out []Facet
	for i, given := range slices.Concat(setup.Facets, setup.RangeFacets) {
		var parts []string
		if i < len(setup.Facets) && given.FieldName != "" {
			parts = append(parts, given.FieldName)
		}
		parts = append(parts, given.Ranges...)
		names := make([]string, 0, len(given.Aggregations))
		for name := range given.Aggregations {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			list, err := aggregationFields(name, given.Aggregations[name])
			if err != nil {
				return nil, err
			}
			parts = append(parts, list...)
		}
		text := "facet(" + strings.Join(parts, ", ") + ")"
		if given.DisplayFieldName != "" {
			text += " as " + quote(given.DisplayFieldName)
		}
		q, err := Parse("from "+allDocuments+" select "+text, nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFacet, err)
		}
		if len(q.Facets) != 1 || q.Facets[0].Setup != "" {
			return nil, fmt.Errorf("%w: %.200q is not one facet", ErrFacet, text)
		}
		f := q.Facets[0]
		if len(given.Options) > 0 && string(given.Options) != "null" {
			if f.Options, err = ParseFacetOptions(given.Options); err != nil {
				return nil, err
			}
			if err := f.check(); err != nil {
				return nil, err
			}
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: the document has neither Facets nor RangeFacets", ErrFacet)
	}
	return out, nil
}

// aggregationFields returns the functions that a member of Aggregations asks for: its value is a
// field, a list of fields, or a list of objects with Name and DisplayName.
func aggregationFields(name string, raw json.RawMessage) ([]string, error) {
	fn := map[string]string{"sum": "sum", "average": "avg", "min": "min", "max": "max"}[strings.ToLower(name)]
	if fn == "" {
		return nil, fmt.Errorf("%w: the aggregation %.100q, and not Sum, Average, Min or Max", ErrFacet, name)
	}
	type named struct{ Name, DisplayName string }
	var one string
	var texts []string
	var list []named
	switch {
	case json.Unmarshal(raw, &one) == nil:
		list = []named{{Name: one}}
	case json.Unmarshal(raw, &texts) == nil:
		for _, text := range texts {
			list = append(list, named{Name: text})
		}
	case json.Unmarshal(raw, &list) != nil:
		return nil, fmt.Errorf("%w: the aggregation %s has neither fields nor objects with Name", ErrFacet, name)
	}
	var out []string
	for _, field := range list {
		if field.Name == "" {
			return nil, errors.Join(ErrFacet, fmt.Errorf("the aggregation %s has a field without a name", name))
		}
		text := fn + "(" + field.Name + ")"
		if field.DisplayName != "" {
			text += " as " + quote(field.DisplayName)
		}
		out = append(out, text)
	}
	return out, nil
}
