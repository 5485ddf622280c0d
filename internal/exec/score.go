package exec

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/score"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// scoring is what a run has to score its answers.
type scoring struct {
	scores  *score.Scores // nil for a query without
	rankers []ranker
	packed  []byte // the frequencies, for cursors
	text    string // says where they come from, for Report
}

// ranker is an index that knows how frequent words are.
type ranker struct {
	catalog.Ranker
	name string
}

// checkScored refuses scores where there are none.
func checkScored(q *query.Query) error {
	refused := func(what string) error {
		return fmt.Errorf("%w: score() is of documents, and the query answers with %s", errs.ErrQuery, what)
	}
	for _, f := range q.GroupBy {
		if f.Meta == query.MetaScore {
			return refused("groups")
		}
	}
	for _, c := range q.Select {
		if c.Func != query.FuncNone && c.Field.Meta == query.MetaScore {
			return refused("groups")
		}
	}
	switch {
	case !q.IsScored():
		return nil
	case IsGrouped(q):
		return refused("groups")
	case !q.Each.IsZero():
		return refused("elements")
	}
	for _, o := range q.OrderBy {
		if o.Field.Meta == query.MetaScore && (o.As != query.CastNone || o.Field.Date != query.DateNone) {
			return fmt.Errorf("%w: score() is a number", errs.ErrQuery)
		}
	}
	return nil
}

// prepare finds out what counts, before the query is planned. From here on the condition of the run has no boosts.
func (s *scoring) prepare(r *Run, c *catalog.Catalog) (err error) {
	where := r.q.Where
	if query.Boosts(where) {
		plain := *r.q
		plain.Where = query.Unboosted(where)
		r.q = &plain
	}
	if !r.q.IsScored() {
		return nil
	}
	if s.scores, err = score.New(where); err != nil {
		return err
	}
	s.rankers = rankersOf(r.q, c)
	if after := r.options.After; after != nil {
		return s.goOn(r.q, after)
	}
	return nil
}

// rankersOf returns the indexes that know how frequent words are in the collection of a query.
func rankersOf(q *query.Query, c *catalog.Catalog) (rankers []ranker) {
	if q.NoIndex || q.From == "" {
		return nil
	}
	collection := format.FoldName(q.From)
	for _, ix := range c.All {
		if k, is := ix.Keeper.(catalog.Ranker); is && ix.Collection == collection && ix.Info.State == index.Ready && ix.Filter == nil {
			rankers = append(rankers, ranker{k, ix.Info.Name})
		}
	}
	return rankers
}

// goOn makes the scores those that a cursor began with.
func (s *scoring) goOn(q *query.Query, after *Cursor) error {
	bad := fmt.Errorf("%w: not a cursor of Page: its scores are not those of the query", errs.ErrQuery)
	if s.scores.SetFrequencies(after.Scores) != nil {
		return bad
	}
	if len(q.OrderBy) != 1 || q.OrderBy[0].Field.Meta != query.MetaScore || !q.OrderBy[0].Descending {
		return nil
	}
	v, _ := query.DecodeKey(after.Key)
	n, err := strconv.ParseFloat(string(v.AppendJSON(nil)), 64)
	if err != nil {
		return bad
	}
	s.scores.After = &score.Position{Score: n, ID: after.ID}
	return nil
}

// begin finds out how frequent the words are, and makes the scorer.
func (s *scoring) begin(ctx context.Context, r *Run) (err error) {
	if s.scores == nil {
		return nil
	}
	if source, is := r.source.(*indexSource); is && r.plan.Ordered && len(source.answers) > 0 && source.offered == nil {
		if err := source.offer(); err != nil {
			return err
		}
	}
	return s.know(ctx, r)
}

// know finds out how frequent the words are.
func (s *scoring) know(ctx context.Context, r *Run) (err error) {
	if r.meta.scorer, err = s.scores.NewScorer(&r.pace, queryOptions(r.env)...); err != nil {
		return err
	}
	if err := s.ask(r); err != nil {
		return err
	}
	if missing := s.scores.Missing(); len(missing) > 0 {
		return s.count(ctx, r, missing)
	}
	return nil
}

// ask asks the indexes of words for the frequencies that are not known.
func (s *scoring) ask(r *Run) error {
	var names []string
	for _, i := range s.scores.Missing() {
		for _, ranker := range s.rankers {
			f, err := ranker.Frequencies(&r.means, &s.scores.Searches[i])
			if err != nil {
				return err
			}
			if f != nil {
				s.scores.Frequencies[i] = f
				names = append(names, fmt.Sprintf("%q", ranker.name))
				break
			}
		}
	}
	if names != nil {
		s.text = "score by the words of index " + strings.Join(names, ", ")
	}
	return nil
}

// count counts in all documents of the collection how frequent words are.
func (s *scoring) count(ctx context.Context, r *Run, missing []int) error {
	if r.options.NoScan {
		return fmt.Errorf("%w: score() of %.300s: how frequent its words are is known to an index of them, or is counted in all documents", errs.ErrNoIndex, query.FormatCondition(s.scores.Searches[missing[0]].Search))
	}
	s.text = "score by the words of all documents, which are read first"
	w, err := r.docs.NewCursor(docs.Range{Collection: r.q.From, Moment: r.moment}, r.snapshot)
	if err != nil {
		return err
	}
	r.env.Unregister(w)
	counter := r.meta.scorer.NewCounter(missing)
	w.Want = func(folded []byte, h *metadata.Header, body []byte) bool {
		r.stats.documents++
		r.meta.folded, r.meta.header = folded, h
		counter.Add(query.Doc{Body: body, Meta: &r.meta})
		return !r.pace.Spend(len(body))
	}
	_, err = w.Next(ctx)
	return errs.First(errs.First(r.pace.Err(), err), w.Release(errs.ErrClosed))
}

// bytes returns the frequencies for a cursor; nil for a query without scores.
func (s *scoring) bytes() []byte {
	if s.scores != nil && s.packed == nil {
		s.packed = s.scores.AppendFrequencies(nil)
	}
	return s.packed
}
