package computed

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
)

// Bounds of a sample.
const (
	MaxSampled       = 1_000   // entries of all documents, and results
	maxSampledBytes  = 4 << 20 // of entries, and of results
	maxSampledGroups = 16 << 20
)

// Sample finds what a declaration makes of single documents, by the rules of queries of the index, whether there is such an index or
// not. It is not safe for concurrent use.
type Sample struct {
	of    *Definition
	maps  []*sampledMap
	pace  *query.Pace
	count int // of entries
	bytes int // of them
}

// sampledMap is one map.
type sampledMap struct {
	where    *query.Matcher   // nil for none
	elements *query.Elements  // nil for none
	entry    *query.Projector // the members
	reader   *query.Reader    // of what an index of the map computes
	fields   []query.Field    // of reader
	groups   *query.Groups    // nil without a reduce
}

// NewSample returns a Sample of a declaration. Conditions are compiled with the options.
func (d *Definition) NewSample(pace *query.Pace, options ...query.Option) (*Sample, error) {
	s := &Sample{of: d, pace: pace}
	resolved, err := d.Resolve(&query.Query{Index: d.Declared.Name})
	if err != nil {
		return nil, err
	}
	for i := range d.maps {
		m, err := d.newSampledMap(i, pace, options)
		if err == nil && resolved.Reduce != nil {
			of := resolved.Parts[i].Query
			if m.groups, err = query.NewGroups(of.GroupBy, of.Select, maxSampledGroups); err == nil {
				m.groups.SetPace(pace)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%w: computed index %q: map %d: %w", errs.ErrIndex, errs.Shorten(d.Declared.Name), i+1, err)
		}
		s.maps = append(s.maps, m)
	}
	return s, nil
}

func (d *Definition) newSampledMap(i int, pace *query.Pace, options []query.Option) (*sampledMap, error) {
	p := &d.maps[i]
	m := new(sampledMap)
	var err error
	if p.where != nil {
		if m.where, err = query.Compile(p.where, options...); err != nil {
			return nil, err
		}
		m.where.SetPace(pace)
	}
	if !p.each.IsZero() {
		m.elements = query.NewElements(p.each)
	}
	var columns []query.Column
	for n, name := range d.members {
		columns = append(columns, query.Column{Name: name, Field: p.fields[n]})
		m.fields = append(m.fields, p.fields[n])
	}
	if m.entry, err = query.NewProjector(columns); err != nil {
		return nil, err
	}
	m.entry.SetPace(pace)
	if d.reduce != nil { // what is summed up may be computed of members
		for _, c := range d.reduce.columns {
			f, err := query.Substitute(c.Field, func(f query.Field) (query.Field, error) { return d.member(i, f) })
			if c.Func == query.FuncCount || err != nil || f.Expression == nil {
				continue
			}
			f.By = nil
			m.fields = append(m.fields, f)
		}
	}
	m.reader = query.NewReader(m.fields)
	m.reader.Apart()
	m.reader.SetPace(pace)
	return m, nil
}

// Add adds a document with its ID and its collection, and returns what each map of the collection makes of it. Nothing of what it is given
// is kept. The bounds of the sample are an error that is a *query.LimitError.
func (s *Sample) Add(id, collection string, doc query.Doc) (list []index.Mapped, err error) {
	for i, m := range s.maps {
		of := s.of.maps[i].collection
		if of != "" && format.FoldName(of) != format.FoldName(collection) {
			continue
		}
		mapped := index.Mapped{Map: i + 1, Entries: []json.RawMessage{}}
		reasons := make([]error, len(m.fields))
		add := func(doc query.Doc) error { return s.add(m, doc, &mapped, reasons) }
		if m.elements != nil {
			if err = m.elements.Each(doc, add); err == nil && m.elements.Failed() != nil {
				mapped.Errors = append(mapped.Errors, index.Failure{ID: id, Field: s.of.maps[i].each.String(), Reason: query.Reason(m.elements.Failed())})
			}
		} else {
			err = add(doc)
		}
		if err != nil {
			return list, err
		}
		seen := make(map[string]bool)
		for n, reason := range reasons {
			if text := m.fields[n].String(); reason != nil && !seen[text] {
				seen[text] = true
				mapped.Errors = append(mapped.Errors, index.Failure{ID: id, Field: text, Reason: query.Reason(reason)})
			}
		}
		list = append(list, mapped)
	}
	return list, nil
}

// add adds the document, or one of its elements, to a map.
func (s *Sample) add(m *sampledMap, doc query.Doc, to *index.Mapped, reasons []error) error {
	if m.where != nil && !m.where.Match(doc) {
		return s.pace.Err()
	}
	m.reader.Reset(doc)
	for n := range m.fields {
		if reasons[n] == nil {
			reasons[n] = m.reader.Failed(n)
		}
	}
	entry, err := m.entry.AppendWithin(nil, doc, maxSampledBytes)
	if err == nil {
		err = s.pace.Err()
	}
	if err != nil {
		return err
	}
	to.Entries = append(to.Entries, entry)
	if s.count, s.bytes = s.count+1, s.bytes+len(entry); s.count > MaxSampled {
		return &query.LimitError{What: "entries of a preview", Limit: MaxSampled, Actual: s.count}
	}
	if s.bytes > maxSampledBytes {
		return &query.LimitError{What: "bytes of the entries of a preview", Limit: maxSampledBytes, Actual: s.bytes}
	}
	if m.groups != nil {
		return m.groups.Add(doc)
	}
	return nil
}

// Results returns what the reduce makes of all documents that were added, in the order of the first of each group. Without a
// reduce there are none. It must be called last.
func (s *Sample) Results() (results []json.RawMessage, err error) {
	if s.of.reduce == nil {
		return nil, nil
	}
	all := s.maps[0].groups
	for _, m := range s.maps[1:] {
		if err := all.Merge(m.groups); err != nil {
			return nil, err
		}
	}
	p, err := query.NewProjector(s.of.reduce.results)
	if err != nil {
		return nil, err
	}
	p.SetPace(s.pace)
	columns := s.of.groupColumns()
	results, size := []json.RawMessage{}, 0
	var row []byte
	for values := range all.Rows() {
		row = query.AppendRow(row[:0], columns, values)
		one, err := p.AppendWithin(nil, query.Doc{Body: row}, maxSampledBytes)
		if err != nil {
			return nil, err
		}
		if size += len(one); size > maxSampledBytes {
			return nil, &query.LimitError{What: "bytes of the results of a preview", Limit: maxSampledBytes, Actual: size}
		}
		results = append(results, bytes.Clone(one))
	}
	return results, s.pace.Err()
}

// groupColumns are the columns of a row of a group: the members of the reduce's groupBy, and the functions.
func (d *Definition) groupColumns() (columns []query.Column) {
	for _, name := range d.Declared.Reduce.GroupBy {
		columns = append(columns, query.Column{Name: name})
	}
	return append(columns, d.reduce.columns...)
}
