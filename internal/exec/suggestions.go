package exec

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/internal/vocabulary"
	"github.com/jaydb/jay/query"
)

// suggestions are the answers of a query that asks for words of an index, and for no documents.
type suggestions struct {
	r       *Run
	indexes []*catalog.Index // by suggest() or complete()
	next    int
}

// startSuggestions is Start of a query of words.
func startSuggestions(ctx context.Context, db Database, q *query.Query, overlay Overlay, o Options) (*Run, error) {
	if q.Where != nil || len(q.OrderBy) > 0 || len(q.GroupBy) > 0 || q.Projects() || len(q.Facets) > 0 || q.IncludesMore() || !q.Each.IsZero() || q.NoIndex {
		return nil, fmt.Errorf("%w: %w: a query of words has neither a condition, an order, columns nor includes", errs.ErrQuery, query.ErrSuggest)
	}
	r := newRun(ctx, db, q, overlay, o)
	r.plan, r.source, r.started = &plan.Plan{}, &noSource{}, time.Now()
	if err := r.findGone(db.DueFrom); err != nil {
		return nil, err
	}
	s := &suggestions{r: r}
	for i := range q.Suggests {
		if err := q.Suggests[i].Check(); err != nil {
			return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		ix := WordsIndex(db.Catalog, q.From, q.UseIndex, q.Suggests[i].Field)
		if ix == nil {
			return nil, fmt.Errorf("%w: %.300s: the words of %s are known to an index of kind text that has it, and there is none that is ready", errs.ErrNoIndex, q, q.Suggests[i].Field)
		}
		s.indexes = append(s.indexes, ix)
	}
	r.words, r.answers = s, s.answer
	return r, nil
}

// WordsIndex returns an index of a collection that has the words of a field, of the name if that is not ""; nil if there is none that is ready and has
// all documents.
func WordsIndex(c *catalog.Catalog, collection, name string, f query.Field) *catalog.Index {
	for _, ix := range c.All {
		if _, is := ix.Keeper.(catalog.Vocabulary); !is || ix.Collection != format.FoldName(collection) || ix.Info.State != index.Ready || ix.Filter != nil {
			continue
		}
		if FieldIn(ix, f) >= 0 && (name == "" || format.FoldName(name) == format.FoldName(ix.Info.Name)) {
			return ix
		}
	}
	return nil
}

// FieldIn returns the place of a field in an index of words, or -1.
func FieldIn(ix *catalog.Index, f query.Field) int {
	for i := range ix.Fields {
		if ix.Fields[i].Query().String() == f.String() {
			return i
		}
	}
	return -1
}

// steps describes how a query of words is answered.
func (s *suggestions) steps() (steps []string) {
	for i, ix := range s.indexes {
		steps = append(steps, fmt.Sprintf("look through the words of %s in index %q", s.r.q.Suggests[i].Field, ix.Info.Name))
	}
	return steps
}

// answer returns the result of the next suggest() or complete().
func (s *suggestions) answer(context.Context) (*Row, error) {
	r := s.r
	if s.next == len(s.indexes) {
		return nil, nil
	}
	hidden, err := r.hidden()
	if err != nil {
		return nil, err
	}
	o, ix := &r.q.Suggests[s.next], s.indexes[s.next]
	s.next++
	source := vocabulary.Source{Vocabulary: ix.Keeper.(catalog.Vocabulary), Field: FieldIn(ix, o.Field), Reader: r.snapshot, Changes: catalog.GroupChanges{Hidden: hidden}, Pace: &r.pace}
	for _, doc := range r.overlay.Own {
		source.Changes.Bodies = append(source.Changes.Bodies, doc.JSON())
	}
	found, err := source.Answer(o)
	r.stats.keys += source.Keys
	if err != nil {
		return nil, err
	}
	return &Row{JSON: query.AppendSuggestions(nil, o.Name, found)}, nil
}
