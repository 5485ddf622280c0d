package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/query"
)

// FieldOption is what a definition says of the values of a field: how they are found.
type FieldOption struct {
	Analyzer string // of the words of a field that is searched; "" for one that is found by its values
	Suggests bool   // words are suggested that its texts have
	Exact    bool   // case matters

	Form       string // of a vector, as embedding.i8() names it; "" for what is none
	Dimensions int    // of a vector, 0 if they are not said
}

// words returns the analyzer of the index of words that the field is in, "" for none.
func (o FieldOption) words() string {
	if o.Analyzer == "" && o.Suggests {
		return "lower-keyword"
	}
	return o.Analyzer
}

// DynamicField is the name under which a definition has the options of fields whose names are in documents. No field that it names is without
// options then.
const DynamicField = "_"

// allFields is the name under which a definition has the options of all fields.
const allFields = "__all_fields"

// FieldOptions are those of the fields of a definition, by name. Those under allFields are of all others.
type FieldOptions map[string]FieldOption

// Of returns the options of a field.
func (all FieldOptions) Of(field string) FieldOption {
	if o, found := all[field]; found {
		return o
	}
	if o, found := all[DynamicField]; found {
		return o
	}
	return all[allFields]
}

// analyzers are the names of RavenDB's and Lucene's analyzers, in lower case and without their name spaces, and those of Jay that stand for them.
var analyzers = map[string]string{
	"ravenstandardanalyzer":       "lucene",
	"standardanalyzer":            "lucene",
	"stopanalyzer":                "stop",
	"simpleanalyzer":              "simple",
	"whitespaceanalyzer":          "whitespace",
	"lowercasewhitespaceanalyzer": "lower-whitespace",
	"keywordanalyzer":             "keyword",
	"lowercasekeywordanalyzer":    "lower-keyword",
	"ngramanalyzer":               "ngram",
}

// analyzerOf returns the analyzer that a client's name stands for, such as "Lucene.Net.Analysis.Standard.StandardAnalyzer, Lucene.Net". Names of Jay's analyzers
// stand for themselves.
func analyzerOf(name string) (string, error) {
	short, _, _ := strings.Cut(name, ",")
	short = strings.ToLower(strings.TrimSpace(short[strings.LastIndex(short, ".")+1:]))
	if known, found := analyzers[short]; found {
		return known, nil
	}
	if slices.Contains(query.Analyzers(), short) {
		return short, nil
	}
	return "", fmt.Errorf("the analyzer %.100q, which is code in C# or unknown: there are %s, and %s", name, strings.Join(slices.Sorted(maps.Keys(analyzers)), ", "), strings.Join(query.Analyzers(), ", "))
}

// GivenField has the options of a field as clients send them.
type GivenField struct {
	Indexing    *string
	Analyzer    *string
	Suggestions *bool
	TermVector  *string
	Vector      *GivenVector `json:",omitempty"`
}

// CreatedField has the options that a map gives a field which it creates.
type CreatedField struct {
	GivenField
	Stored bool `json:",omitempty"`
}

// textOf returns a text that may be missing.
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Option returns what the options of a field mean. The error says what there is not.
func (f *GivenField) Option() (o FieldOption, err error) {
	o.Suggests = f.Suggestions != nil && *f.Suggestions
	if f.Vector != nil {
		if f.Analyzer != nil || o.Suggests || strings.EqualFold(textOf(f.Indexing), "Search") {
			return o, fmt.Errorf("words beside a vector")
		}
		o.Form, o.Dimensions, err = f.Vector.form()
		return o, err
	}
	indexing, analyzer := textOf(f.Indexing), textOf(f.Analyzer)
	if indexing == "" && analyzer != "" { // as in RavenDB
		indexing = "Search"
	}
	switch {
	case strings.EqualFold(indexing, "Search"):
		o.Analyzer = "lucene"
		if analyzer != "" {
			o.Analyzer, err = analyzerOf(analyzer)
		}
	case indexing != "" && !strings.EqualFold(indexing, "Default") && !strings.EqualFold(indexing, "Exact"):
		err = fmt.Errorf("the indexing %.50s: it is Default, Exact or Search", indexing)
	case analyzer != "":
		err = fmt.Errorf("the analyzer %.100q beside the indexing %.50s, which has no words", analyzer, indexing)
	default:
		o.Exact = strings.EqualFold(indexing, "Exact")
	}
	if vector := textOf(f.TermVector); err == nil && !slices.Contains([]string{"", "No", "Yes", "WithPositions", "WithOffsets", "WithPositionsAndOffsets"}, vector) {
		err = fmt.Errorf("the term vector %.50s", vector)
	}
	return o, err
}

// Options returns the options of the fields, without those that say nothing.
func (d *Definition) Options() FieldOptions {
	var given struct{ Fields map[string]*GivenField }
	_ = json.Unmarshal(d.Given, &given) // it was parsed when it was given
	all := make(FieldOptions)
	add := func(name string, one *GivenField) {
		if o, err := one.Option(); err == nil && (o != FieldOption{} || given.Fields[allFields] != nil) {
			all[name] = o
		}
	}
	for name, one := range given.Fields {
		if one != nil {
			add(name, one)
		}
	}
	for name, one := range d.Created {
		add(name, &one.GivenField)
	}
	if _, dynamic := all[DynamicField]; dynamic {
		others := all[allFields]
		d.eachMember(func(_ index.Map, one index.Member) {
			if _, found := all[one.Name]; !found {
				all[one.Name] = others
			}
		})
	}
	return all
}

// Ordered returns the fields that have an index of their values: those that are neither searched, nor places, nor vectors.
func (d *Definition) Ordered() (fields []string) {
	options := d.Options()
	for _, field := range d.Fields {
		if o := options.Of(field); o.Analyzer == "" && o.Form == "" && !slices.Contains(d.Places, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// SideIndex is an index that a definition has in one collection beside those of its values: of the words of fields, of a place, or of vectors.
type SideIndex struct {
	Collection string
	jay.Index
	Members map[string][]string // the fields of the collection by the names that the definition gives them
}

// wordsName ends the name of an index of words.
const wordsName = "::words"

// WordsIndexes returns the indexes of words of the definition: one in each collection of its maps, of the fields that are searched or suggest words and that the map does
// not compute. Elements of arrays have none: queries look at documents.
func (d *Definition) WordsIndexes() (list []SideIndex) {
	options := d.Options()
	if len(options) == 0 {
		return nil
	}
	add := func(collection, member, path string) {
		analyzer := options.Of(member).words()
		if analyzer == "" || collection == "" {
			return
		}
		at := slices.IndexFunc(list, func(w SideIndex) bool { return strings.EqualFold(w.Collection, collection) })
		if at < 0 {
			at = len(list)
			list = append(list, SideIndex{Collection: collection, Members: make(map[string][]string), Index: jay.Index{Name: d.Name + wordsName, Kind: "text"}})
		}
		w := &list[at]
		w.Members[member] = append(w.Members[member], path)
		if slices.Contains(w.Fields, path) {
			return
		}
		w.Fields = append(w.Fields, path)
		if w.Options == nil {
			w.Options = map[string]string{"analyzer": analyzer}
		} else {
			w.Options["analyzer"] += ", " + analyzer
		}
	}
	d.eachMember(func(m index.Map, one index.Member) {
		if path, is := pathOf(m, one); is {
			add(m.Collection, one.Name, path)
		}
	})
	return list
}

// eachMember calls fn with the members of the maps. Fields are those of a map that names them, and a reduce has none.
func (d *Definition) eachMember(fn func(index.Map, index.Member)) {
	for _, field := range d.Fields {
		fn(index.Map{Collection: d.Collection}, index.Member{Name: field})
	}
	if d.Computed == nil || d.Computed.Reduce != nil {
		return
	}
	for _, m := range d.Computed.Maps {
		for _, one := range m.Select {
			fn(m, one)
		}
	}
}

// EachTerm calls fn with the terms that the words of a field are, of each index of words that has it, until it returns an error. Found is false if there is none, since
// the field is not searched, or is computed.
func (d *Definition) EachTerm(ctx context.Context, db *jay.DB, field string, fn func(term string) error) (found bool, err error) {
	if d == nil || d.Options().Of(field).Analyzer == "" {
		return false, nil
	}
	for _, w := range d.WordsIndexes() {
		for _, path := range w.Members[field] {
			found = true
			list := jay.IndexTermList{Field: path, Limit: termPage}
			for {
				terms, err := jay.IndexOf(db, w.Collection, w.Name).Terms(ctx, list)
				if err != nil {
					return true, err
				}
				for _, t := range terms {
					if err := fn(t.Text); err != nil {
						return true, err
					}
				}
				if len(terms) < termPage {
					break
				}
				list.After = terms[len(terms)-1].Text
			}
		}
	}
	return found, nil
}

// termPage is how many terms are read at a time.
const termPage = 1000

// SuggestsNothing returns a field that is to suggest words, and for which there is no index of words: it is computed, of elements or of a reduce.
func (d *Definition) SuggestsNothing() (field string, is bool) {
	list, options := d.WordsIndexes(), d.Options()
	for _, field := range slices.Sorted(maps.Keys(options)) {
		if field != allFields && options[field].Suggests && !slices.ContainsFunc(list, func(w SideIndex) bool { return w.Members[field] != nil }) {
			return field, true
		}
	}
	return "", false
}

// pathOf returns the field of documents that a member of a map is. One that is loaded is of another document, and has neither words nor places in an
// index of its own.
func pathOf(m index.Map, one index.Member) (path string, is bool) {
	if m.Each != "" {
		return "", false
	}
	if one.Expression == "" {
		return one.Name, true
	}
	f, err := query.ParseExpression(one.Expression)
	if err != nil || f.Meta != query.MetaNone || f.Date != query.DateNone || f.Path.IsZero() || f.Loads() {
		return "", false
	}
	return f.Path.String(), true
}

// Adapt makes a query of the definition's fields one that finds what they say: by their analyzers, with regard to case, and with vectors in their form.
func (d *Definition) Adapt(q *query.Query) error {
	if d == nil {
		return nil
	}
	return d.Options().adaptQuery(q)
}

// adaptQuery is Adapt for the definition of these options.
func (all FieldOptions) adaptQuery(q *query.Query) (err error) {
	if len(all) > 0 && q.Where != nil {
		q.Where, err = all.adapt(q.Where)
	}
	return err
}

// adapt returns a condition with the analyzers, the regard to case and the vectors of its fields. Two fields that are compared, and the elements of an array, stay as they are.
func (all FieldOptions) adapt(e query.Expr) (query.Expr, error) {
	return query.MapConditions(e, func(e query.Expr) (query.Expr, error) {
		switch e := e.(type) {
		case query.Similar:
			form := all.Of(e.Field.Path.String()).Form
			if form == "" || form == "f32" || e.Field.Meta != query.MetaNone || e.Vector.Form() != 0 {
				return e, nil
			}
			var err error
			if e.Vector, err = e.Vector.In(form); err != nil {
				err = fmt.Errorf("%w: the vectors of %s are %s: %w", jay.ErrQuery, e.Field, form, err)
			}
			return e, err
		case query.Search:
			switch o := all.Of(e.Field.Path.String()); {
			case e.Analyzer != "" || e.Field.Meta != query.MetaNone:
			case o.Exact:
				e.Analyzer = "keyword"
			default:
				e.Analyzer = o.Analyzer
			}
			return e, nil
		case query.CompareFields, query.ElemMatch:
			return e, nil
		}
		return query.Refold(e, func(f query.Field, fold bool) bool {
			return fold && (f.Meta != query.MetaNone || !all.Of(f.Path.String()).Exact)
		}), nil
	})
}
