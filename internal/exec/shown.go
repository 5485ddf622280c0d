package exec

import (
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/score"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
)

// shown is what a run has to show of each answer why it is one: highlights and explanations.
type shown struct {
	reader     *query.Reader // of the fields of the highlights; nil for none
	highlights []highlighting
}

// highlighting makes the fragments of one field.
type highlighting struct {
	*query.Highlight
	markers []*text.Marker // of the searches of the field
	tags    text.Tags
}

// Fragments are the parts of the texts of a field in which searches have found something.
type Fragments struct {
	Field string
	Texts []string // with tags
}

// HighlightBytes is how many bytes the fragments of a row have.
func (r *Row) HighlightBytes() (n int) {
	for _, h := range r.Highlights {
		for _, t := range h.Texts {
			n += len(t)
		}
	}
	return n
}

// prepare finds the searches of the fields that are highlighted.
func (s *shown) prepare(r *Run) error {
	if len(r.q.Highlights) == 0 {
		return nil
	}
	if IsGrouped(r.q) {
		return fmt.Errorf("%w: highlights are of documents, and the query answers with groups", errs.ErrQuery)
	}
	var fields []query.Field
	for i := range r.q.Highlights {
		h := highlighting{Highlight: &r.q.Highlights[i]}
		if err := h.Check(); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		if err := h.find(r); err != nil {
			return err
		}
		h.tags.Plain = h.Options.Plain
		h.tags.Before, h.tags.After = h.Options.Tags()
		s.highlights, fields = append(s.highlights, h), append(fields, h.Field)
	}
	s.reader = query.NewReader(fields)
	s.reader.SetPace(&r.pace)
	return nil
}

// find makes the markers of the searches.
func (h *highlighting) find(r *Run) error {
	for _, e := range query.SearchesIn(r.q.Where) {
		if e.Field.String() != h.Field.String() {
			continue
		}
		w, err := score.WordsOf(e)
		if err != nil {
			return err
		}
		m := text.NewMarker(w.Analyzer, w.Parsed)
		m.SetSpend(r.pace.Spend)
		h.markers = append(h.markers, m)
	}
	if len(h.markers) == 0 {
		return fmt.Errorf("%w: highlight(%s): the query does not search %s: where search(%s, 'oak')", errs.ErrQuery, h.Field, h.Field, h.Field)
	}
	return nil
}

// complete adds to a row what it includes.
func (s *shown) complete(r *Run, row *Row, read readFunc) error {
	if err := r.include(row, read); err != nil {
		return err
	}
	if row.Document != nil && (s.reader != nil || r.q.Explanations) {
		row.ID = row.Document.ID()
		doc := r.doc(row.Document)
		if err := s.highlight(r, row, doc); err != nil {
			return err
		}
		if r.q.Explanations {
			row.Explanation = r.meta.scorer.Explain(doc)
		}
	}
	if row.Document != nil && r.scripted != nil && r.scripted.distinct == nil {
		row.ID = row.Document.ID()
	}
	if r.projector != nil || r.scripted != nil {
		row.Document = nil
	}
	return r.pace.Err()
}

// highlight adds the fragments to a row.
func (s *shown) highlight(r *Run, row *Row, doc query.Doc) error {
	if s.reader == nil {
		return nil
	}
	s.reader.Reset(doc)
	row.Highlights = make([]Fragments, len(s.highlights))
	for i := range s.highlights {
		h := &s.highlights[i]
		texts := s.texts(r, i)
		row.Highlights[i] = Fragments{Field: h.Field.String(), Texts: h.fragments(texts)}
	}
	return nil
}

// texts returns the texts of a field that are looked at.
func (s *shown) texts(r *Run, field int) (texts []string) {
	size := 0
	s.reader.Each(field, func(v query.Value) bool {
		if v.Kind() == query.KindText {
			t := v.Text()
			texts = append(texts, t)
			size += len(t)
		}
		return r.pace.Spend(1) && size < text.MaxMarkedBytes
	})
	return texts
}

// fragments returns the fragments of texts.
func (h *highlighting) fragments(texts []string) []string {
	var marks []text.Mark
	clauses := 0
	for _, m := range h.markers {
		m.Reset()
		for _, t := range texts {
			m.Add(t)
		}
		for _, mark := range m.Marks() {
			mark.Clause += clauses
			marks = append(marks, mark)
		}
		clauses += m.Clauses()
	}
	out := []string{}
	for _, f := range text.Fragments(texts, marks, h.Length, h.Count) {
		out = append(out, string(f.Append(nil, texts[f.Text], &h.tags)))
	}
	return out
}
