package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"math"
	"slices"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/server/internal/serve"
)

// IDColumn is the name of a column with the ID of the document of a row.
const IDColumn = "@id"

// Entries is a query of a computed index whose entries are not those of one collection: of several maps, or of elements of an array. It asks
// package jay for IDs and members of entries, and reads the documents.
type Entries struct {
	text     string // of all entries, in their order
	unsorted string // the same in any order
	ordered  bool   // the text has an order
	columns  []query.Column
	ofIndex  []bool         // which of the columns are in the entries
	document []query.Column // the others
	page     QueryPage      // of the text
	distinct bool
	repeats  bool // documents may be found several times, and are answers once

	take func(bytes int64) error
}

// newEntries returns the query q of an index, in which documents may have several entries if repeats is set.
func newEntries(c *serve.Call, name string, repeats bool, q *query.Query, isMember func(string) bool) (*Entries, error) {
	switch {
	case q.Script != nil:
		return nil, serve.NotSupported("index %.150q: JavaScript is of the documents of one collection, and the index has several maps, or elements", name)
	case len(q.GroupBy) > 0 || slices.ContainsFunc(q.Select, func(c query.Column) bool { return c.Func != query.FuncNone }):
		return nil, serve.BadRequest("index %.150q: a query of an index has no groups of its own: they are defined with the index, by a reduce", name)
	case len(q.Facets) > 0:
		return nil, serve.NotSupported("index %.150q: facets are of documents, and the index has several maps, or elements", name)
	}
	e := &Entries{columns: q.Select, distinct: q.IsDistinct(), ordered: len(q.OrderBy) > 0, take: c.Take}
	e.repeats = len(q.Select) == 0 && repeats
	if q.HasLimit {
		e.page.PageSize = &q.Limit
	}
	if q.Offset > 0 {
		e.page.Start = &q.Offset
	}
	inner := *q
	inner.Select, inner.Include, inner.Distinct, inner.Offset, inner.HasLimit, inner.Limit = nil, nil, false, 0, false, 0
	for _, column := range q.Select {
		document, index := sourcesOf(column.Field, isMember)
		if document != "" && index != "" {
			return nil, serve.NotSupported("index %.150q: %s is computed of %s, which the index has, and of %s, which the document has", name, column.Field, index, document)
		}
		e.ofIndex = append(e.ofIndex, document == "")
		if document == "" {
			inner.Select = append(inner.Select, column)
		} else {
			e.document = append(e.document, column)
		}
	}
	inner.Select = append(inner.Select, query.Column{Name: IDColumn, Field: query.Field{Meta: query.MetaID}})
	e.text = inner.String()
	inner.OrderBy, inner.Fused = nil, false
	e.unsorted = inner.String()
	return e, nil
}

// sourcesOf returns a name in a field that is not of the index, and one that is; "" for none.
func sourcesOf(f query.Field, isMember func(name string) bool) (document, index string) {
	_, _ = query.Substitute(f, func(f query.Field) (query.Field, error) {
		switch name := f.Path.Root(); {
		case f.Meta != query.MetaNone: // both have it
		case isMember(name):
			index = name
		default:
			document = name
		}
		return f, nil
	})
	return document, index
}

// Rows reports whether the answers are rows, and whether these have the ID of their document as their last member.
func (e *Entries) Rows() (rows, ids bool) {
	return len(e.columns) > 0, len(e.columns) > 0 && !e.distinct
}

// Repeat makes each entry an answer, also those of one document.
func (e *Entries) Repeat() { e.repeats = false }

// Iter returns the answers of a page.
func (e *Entries) Iter(ctx context.Context, tx *jay.Tx, page QueryPage) iter.Seq2[*jay.Row, error] {
	skip, most := e.bounds(page)
	return func(yield func(*jay.Row, error) bool) {
		maker, err := e.maker(tx)
		if err != nil {
			yield(nil, err)
			return
		}
		// An order sorts all entries, or so many. How many entries make a page of different documents is not known, so that it tries.
		limit := math.MaxInt
		if e.ordered && most < math.MaxInt {
			limit = min(skip, math.MaxInt32) + most
			if e.distinct || e.repeats {
				limit = 2*limit + 64
			}
		}
		for done := 0; ; limit *= 4 {
			entries, different := 0, 0
			for row, err := range e.answers(ctx, tx, e.text, limit, maker) {
				if err != nil {
					yield(nil, err)
					return
				}
				if entries++; row == nil {
					continue
				}
				if different++; different <= skip+done {
					continue
				}
				if done == most {
					return
				}
				if row, err = maker.finish(ctx, row); err != nil {
					yield(nil, err)
					return
				}
				done++
				if row.answer != nil && !yield(row.answer, nil) {
					return
				}
			}
			if entries < limit || done == most || limit > math.MaxInt/4 {
				return
			}
		}
	}
}

// bounds returns how many answers a page leaves out, and how many it has at most. What the request says counts more than the text of the query.
func (e *Entries) bounds(page QueryPage) (skip, most int) {
	most = math.MaxInt
	for _, p := range []QueryPage{e.page, page} {
		if p.Start != nil && *p.Start > 0 {
			skip = *p.Start
		}
		if p.PageSize != nil && *p.PageSize < math.MaxInt32 {
			most = *p.PageSize
		}
	}
	return skip, most
}

// Count returns the number of all answers, on any page.
func (e *Entries) Count(ctx context.Context, tx *jay.Tx) (n int64, err error) {
	if !e.distinct && !e.repeats {
		q, err := tx.RQL(e.unsorted, nil)
		if err != nil {
			return 0, err
		}
		return q.Count(ctx)
	}
	maker, err := e.maker(tx)
	if err != nil {
		return 0, err
	}
	for row, err := range e.answers(ctx, tx, e.unsorted, math.MaxInt, maker) {
		if err != nil {
			return 0, err
		}
		if row != nil {
			n++
		}
	}
	return n, nil
}

// Explain runs the query of all entries, and reports how it was answered.
func (e *Entries) Explain(ctx context.Context, tx *jay.Tx) (jay.Explanation, error) {
	q, err := tx.RQL(e.text, nil)
	if err != nil {
		return jay.Explanation{}, err
	}
	return q.Explain(ctx)
}

// answered is an entry on its way to an answer.
type answered struct {
	id     string
	entry  []byte // the members of the index, without braces, and with a comma behind each
	answer *jay.Row
}

// answers returns the entries of a text, and nil in place of those that give the same answer as an earlier one.
func (e *Entries) answers(ctx context.Context, tx *jay.Tx, text string, limit int, maker *rowMaker) iter.Seq2[*answered, error] {
	return func(yield func(*answered, error) bool) {
		q, err := tx.RQL(text, nil)
		if err != nil {
			yield(nil, err)
			return
		}
		if limit < math.MaxInt {
			q = q.Limit(limit)
		}
		seen := make(map[string]bool)
		for row, err := range q.Iter(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			one, err := splitEntry(row.JSON)
			if err == nil && e.distinct {
				one, err = maker.finish(ctx, one)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if key := e.key(one); key != "" {
				if seen[key] {
					one = nil
				} else {
					if err := e.take(int64(len(key)) + 64); err != nil {
						yield(nil, err)
						return
					}
					seen[key] = true
				}
			}
			if !yield(one, nil) {
				return
			}
		}
	}
}

// key returns what makes an entry the same answer as another one, or "" if each entry is an answer.
func (e *Entries) key(one *answered) string {
	switch {
	case e.distinct && one.answer != nil:
		return string(one.answer.JSON)
	case e.repeats:
		return one.id
	}
	return ""
}

// splitEntry splits the row of an entry before the ID, which is its last member.
func splitEntry(row []byte) (*answered, error) {
	name := []byte(`"` + IDColumn + `":`)
	at := bytes.LastIndex(row, name) // a text in a row cannot have it with its quotes
	one := &answered{entry: row[1:at:at]}
	return one, json.Unmarshal(row[at+len(name):len(row)-1], &one.id)
}

// rowMaker makes answers of entries.
type rowMaker struct {
	*Entries
	tx        *jay.Tx
	projector *query.Projector // of the columns of documents; nil for none
}

func (e *Entries) maker(tx *jay.Tx) (m *rowMaker, err error) {
	m = &rowMaker{Entries: e, tx: tx}
	if len(e.document) > 0 {
		m.projector, err = query.NewProjector(e.document)
	}
	return m, err
}

// finish makes the answer of an entry: nil if its document is gone, as it has expired.
func (m *rowMaker) finish(ctx context.Context, one *answered) (*answered, error) {
	if one.answer != nil {
		return one, nil
	}
	var doc *jay.Document
	if len(m.columns) == 0 || m.projector != nil {
		var err error
		if doc, err = m.tx.Get(ctx, one.id); err != nil {
			if serve.IsMissing(err) {
				return one, nil
			}
			return one, err
		}
	}
	if len(m.columns) == 0 {
		one.answer = &jay.Row{Document: doc}
		return one, nil
	}
	row := append([]byte{'{'}, one.entry...)
	if m.projector != nil {
		var err error
		if row, err = m.merge(one.entry, doc); err != nil {
			return one, err
		}
	}
	if m.distinct {
		row = append(bytes.TrimSuffix(row, []byte(",")), '}')
	} else {
		row = append(append(append(row, `"`+IDColumn+`":`...), serve.MustJSON(one.id)...), '}')
	}
	one.answer = &jay.Row{JSON: row}
	return one, nil
}

// merge returns the columns of the index and those of the document in their order, behind a brace and each with a comma behind it.
func (m *rowMaker) merge(entry []byte, doc *jay.Document) ([]byte, error) {
	of, err := m.projector.AppendWithin(nil, query.Doc{Body: doc.Body()}, maxRow)
	if err != nil {
		return nil, serve.TooLarge("document %.150q: a row has at most %d bytes: select less", doc.ID(), maxRow)
	}
	inner := append(append([]byte{'{'}, bytes.TrimSuffix(entry, []byte(","))...), '}')
	index, document, err := membersOf(inner, of)
	if err != nil {
		return nil, err
	}
	row := []byte{'{'}
	for _, ofIndex := range m.ofIndex {
		from := &document
		if ofIndex {
			from = &index
		}
		row = append(append(row, (*from)[0]...), ',')
		*from = (*from)[1:]
	}
	return row, nil
}

// maxRow bounds the bytes of the columns of a document in a row.
const maxRow = 16 << 20

// membersOf returns the members of two rows, each as it is written.
func membersOf(a, b []byte) (ofA, ofB [][]byte, err error) {
	for _, row := range []struct {
		text []byte
		list *[][]byte
	}{{a, &ofA}, {b, &ofB}} {
		if err := serve.EachMember(row.text, func(name, value []byte) error {
			member := append(append([]byte{'"'}, name...), `":`...)
			*row.list = append(*row.list, append(member, value...))
			return nil
		}); err != nil {
			return nil, nil, err
		}
	}
	return ofA, ofB, nil
}
