package exec

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// fanOut makes of the documents of a run those of their elements, of which the condition of the query is true.
type fanOut struct {
	elements *query.Elements
	matcher  *query.Matcher // nil for none
	pace     *query.Pace
	at       int // the position of the present element in its document
}

// newFanOut returns the fanOut of a query.
func newFanOut(each query.Each, matcher *query.Matcher, pace *query.Pace) *fanOut {
	return &fanOut{elements: query.NewElements(each), matcher: matcher, pace: pace}
}

// visit calls fn with each element of a document of which the condition is true. Without a fan-out it is fn.
func (f *fanOut) visit(doc query.Doc, fn func(query.Doc) error) error {
	if f == nil {
		return fn(doc)
	}
	f.at = -1
	return f.elements.Each(doc, func(doc query.Doc) error {
		f.at++
		if !f.pace.Spend(len(doc.Element)) {
			return f.pace.Err()
		}
		if f.matcher != nil && !f.matcher.Match(doc) {
			return f.pace.Err()
		}
		return fn(doc)
	})
}

// entry is an answer that is no document: what was selected of an element, or of a group.
type entry struct {
	json  []byte
	picks []query.Value // what the order compares
	part  int           // of a query of several parts
	id    string        // folded, of its document
	at    int           // its position in the document
}

// size is about how much memory an entry takes.
func (e *entry) size() int {
	n := len(e.json) + len(e.id) + 120
	for _, v := range e.picks {
		n += len(v.Raw()) + 40
	}
	return n
}

// entries gathers entries in the order of a query.
type entries struct {
	r      *Run
	sorter *query.Sorter // that compares; nil for no order
	keep   int           // of so many that come first; below 0 of all
	list   []*entry
	bytes  int
	paid   int
}

// entryRun answers a query with entries.
type entryRun struct{ r *Run }

// entries returns the entries of a run. The order of equal ones is that of IDs, in the direction of the last field.
func (er entryRun) entries(sorter *query.Sorter) *entries {
	r := er.r
	e := &entries{r: r, sorter: sorter, keep: -1}
	if r.left >= 0 && r.distinct == nil && sorter != nil {
		e.keep = r.skip + r.left
	}
	return e
}

// compare orders two entries.
func (e *entries) compare(a, b *entry) int {
	if !e.r.pace.Spend(1) {
		return 0
	}
	c := e.sorter.ComparePicks(a.picks, b.picks)
	if c == 0 {
		c = cmp.Or(strings.Compare(a.id, b.id), a.part-b.part, a.at-b.at)
		if len(e.r.q.OrderBy) > 0 && e.r.tiesDescend() {
			c = -c
		}
	}
	return c
}

// add takes an entry in, if it comes after the cursor and is among those that are kept.
func (e *entries) add(one *entry) error {
	if after := e.r.options.After; after != nil && !e.isAfter(one, after) {
		return nil
	}
	e.list = append(e.list, one)
	e.bytes += one.size()
	if e.keep >= 0 && len(e.list) > 2*e.keep+64 {
		e.cut()
	}
	if limit := e.r.env.MaxQueryBytes; e.bytes > limit {
		if e.cut(); e.bytes > limit {
			return fmt.Errorf("%w: %w (Options.MaxQueryBytes): use a limit", errs.ErrQuery, &query.LimitError{What: "bytes to be sorted", Limit: limit, Actual: e.bytes})
		}
	}
	held := max(e.bytes, e.paid)
	defer func() { e.paid = held }()
	return e.r.payer.Pay(held - e.paid)
}

// cut leaves those out that do not come first.
func (e *entries) cut() {
	if e.keep < 0 || len(e.list) <= e.keep {
		return
	}
	slices.SortFunc(e.list, e.compare)
	for _, one := range e.list[e.keep:] {
		e.bytes -= one.size()
	}
	clear(e.list[e.keep:])
	e.list = e.list[:e.keep]
}

// cursor returns the position of an entry.
func (e *entries) cursor(one *entry) *Cursor {
	c := &Cursor{ID: one.id, Part: one.part, At: one.at}
	c.Key, c.Exact = e.sorter.AppendPicks(nil, one.picks)
	return c
}

// isAfter reports whether an entry comes after a cursor.
func (e *entries) isAfter(one *entry, after *Cursor) bool {
	c := e.cursor(one)
	order := bytes.Compare(c.Key, after.Key)
	if order == 0 {
		order = cmp.Or(strings.Compare(c.ID, after.ID), c.Part-after.Part, c.At-after.At)
		if len(e.r.q.OrderBy) > 0 && e.r.tiesDescend() {
			order = -order
		}
	}
	return order > 0
}

// answers returns the entries in their order.
func (e *entries) answers() (answers, error) {
	e.r.stats.sorted = true
	slices.SortFunc(e.list, e.compare)
	if err := e.r.pace.Err(); err != nil {
		return nil, err
	}
	return func(context.Context) (*Row, error) {
		if len(e.list) == 0 {
			return nil, nil
		}
		one := e.list[0]
		e.list = e.list[1:]
		row := &Row{JSON: one.json}
		if e.r.options.Paging {
			row.Cursor = e.cursor(one)
		}
		return row, nil
	}, nil
}

// selecting makes the entries of the documents of a run, which is the whole of a query or one of its parts.
type selecting struct {
	r         *Run // of the documents
	part      int
	projector *query.Projector
	sorter    *query.Sorter // nil for no order
	next      []*entry      // of the present document
	bytes     int           // of next
}

// selecting returns what makes entries of the documents of a run.
func (er entryRun) selecting(part int) (*selecting, error) {
	r := er.r
	s := &selecting{r: r, part: part}
	var err error
	if s.projector, err = query.NewProjector(r.q.Select); err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	s.projector.SetPace(&r.pace)
	if len(r.q.OrderBy) > 0 {
		if s.sorter, err = query.NewSorter(r.q.OrderBy); err != nil {
			return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		s.sorter.SetPace(&r.pace)
	}
	return s, nil
}

// nextEntry returns the next entry, in the order of documents, or nil at the end.
func (s *selecting) nextEntry(ctx context.Context) (*entry, error) {
	for len(s.next) == 0 {
		doc, err := s.r.nextDocument(ctx)
		if doc == nil || err != nil {
			return nil, err
		}
		s.bytes = 0
		position := 0
		take := func(of query.Doc) error {
			limit := max(s.r.env.MaxQueryBytes, len(of.Body))
			e := &entry{part: s.part, id: doc.FoldedID(), at: position}
			position++
			var err error
			if e.json, err = s.projector.AppendWithin(nil, of, limit); err != nil {
				return fmt.Errorf("%w: document %q: %w (Options.MaxQueryBytes): select less", errs.ErrQuery, doc.ID(), err)
			}
			if s.sorter != nil {
				e.picks = s.sorter.Picks(of)
			}
			if s.bytes += e.size(); s.bytes > limit {
				return fmt.Errorf("%w: document %q: %w (Options.MaxQueryBytes): select less", errs.ErrQuery, doc.ID(), &query.LimitError{What: "bytes of the elements of one document", Limit: limit, Actual: s.bytes})
			}
			s.next = append(s.next, e)
			return s.r.pace.Err()
		}
		if err := s.r.fan.visit(s.r.doc(doc), take); err != nil {
			return nil, err
		}
	}
	e := s.next[0]
	s.next = s.next[1:]
	return e, nil
}

// answers are the answers of parts of a query that select something of elements, all of them or those that come first in
// the order of r.
func (er entryRun) answers(ctx context.Context, parts []*selecting) (answers, error) {
	r := er.r
	if len(r.q.OrderBy) == 0 && !r.options.Paging {
		return func(ctx context.Context) (*Row, error) {
			for len(parts) > 0 {
				e, err := parts[0].nextEntry(ctx)
				if e != nil || err != nil {
					if e == nil {
						return nil, err
					}
					return &Row{JSON: e.json}, nil
				}
				parts = parts[1:]
			}
			return nil, nil
		}, nil
	}
	all := er.entries(parts[0].sorter)
	for _, s := range parts {
		for all.keep != 0 {
			e, err := s.nextEntry(ctx)
			if err != nil {
				return nil, err
			}
			if e == nil {
				break
			}
			if err := all.add(e); err != nil {
				return nil, err
			}
		}
	}
	return all.answers()
}
