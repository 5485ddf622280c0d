package score

import (
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
)

// Scorer scores documents by their bodies. It is not safe for concurrent use.
type Scorer struct {
	scores   *Scores
	reader   *query.Reader
	words    []*text.Document // by search
	rankings []*text.Ranking  // by search, once they are needed
	matchers map[*Part]*query.Matcher
	pace     *query.Pace
}

// NewScorer returns a Scorer, whose work stops when pace stops. The options are those of conditions.
func (s *Scores) NewScorer(pace *query.Pace, options ...query.Option) (*Scorer, error) {
	r := &Scorer{scores: s, matchers: make(map[*Part]*query.Matcher), pace: pace}
	var fields []query.Field
	for i := range s.Searches {
		words := text.NewDocument(s.Searches[i].Analyzer, s.Searches[i].Parsed)
		words.Spend = pace.Spend
		r.words, fields = append(r.words, words), append(fields, s.Searches[i].Field)
	}
	r.reader = query.NewReader(fields)
	r.reader.SetPace(pace)
	for i := range s.Parts { // at the top what is no search is true of each answer
		if s.Parts[i].Kind != Other {
			if err := r.compile(&s.Parts[i], options); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// compile makes the matchers of a part.
func (r *Scorer) compile(p *Part, options []query.Option) error {
	if p.Kind == Other {
		m, err := query.Compile(p.Expr, options...)
		if err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		m.SetPace(r.pace)
		r.matchers[p] = m
	}
	for i := range p.Parts {
		if err := r.compile(&p.Parts[i], options); err != nil {
			return err
		}
	}
	return nil
}

// read counts the words of a document.
func (r *Scorer) read(doc query.Doc) {
	r.reader.Reset(doc)
	for i, words := range r.words {
		words.Reset()
		r.reader.Each(i, func(v query.Value) bool {
			if v.Kind() == query.KindText {
				words.Add(v.Text())
			}
			return r.pace.Spend(1)
		})
	}
}

// Score returns the score of an answer. All frequencies must be known, and remain as they are. If the pace has stopped, it has
// no meaning.
func (r *Scorer) Score(doc query.Doc) float64 {
	if r.rankings == nil {
		for i, f := range r.scores.Frequencies {
			r.rankings = append(r.rankings, text.NewRanking(r.scores.Searches[i].Parsed, f))
		}
	}
	r.read(doc)
	sum := 0.0
	for i := range r.scores.Parts {
		if p := &r.scores.Parts[i]; p.Kind != Other {
			score, _ := p.Score(func(p *Part) (float64, bool) { return r.part(p, doc) })
			sum += score
		}
	}
	for i := range r.scores.Parts {
		sum += r.scores.Parts[i].Constant // true of each answer
	}
	return sum
}

// part returns what a Search or an Other counts, and whether it is true.
func (r *Scorer) part(p *Part, doc query.Doc) (score float64, is bool) {
	if p.Kind == Search {
		return r.search(p)
	}
	if !r.matchers[p].Match(doc) {
		return 0, false
	}
	return p.Constant, true
}

// search returns what a search counts, and whether it is true.
func (r *Scorer) search(p *Part) (score float64, is bool) {
	words, parsed := r.words[p.Search], r.scores.Searches[p.Search].Parsed
	if !parsed.Matches(words.Count) {
		return 0, false
	}
	class := text.ClassOf(words.Length)
	for c := range parsed.Clauses {
		score += r.rankings[p.Search].Score(c, words.Count(c), class)
	}
	return score * p.Boost, true
}

// Counter counts how frequent the words of searches are.
type Counter struct {
	scorer   *Scorer
	searches []int
}

// NewCounter returns a Counter for some of the searches, which are those of no document yet. It sets their Frequencies.
func (r *Scorer) NewCounter(searches []int) *Counter {
	for _, i := range searches {
		r.scores.Frequencies[i] = &text.Frequencies{Found: make([]int64, len(r.scores.Searches[i].Parsed.Clauses)), Weight: 1}
	}
	return &Counter{r, searches}
}

// Add counts a document.
func (c *Counter) Add(doc query.Doc) {
	c.scorer.read(doc)
	for _, i := range c.searches {
		AddTo(c.scorer.scores.Frequencies[i], c.scorer.words[i])
	}
}

// AddTo adds a document to frequencies.
func AddTo(f *text.Frequencies, words *text.Document) {
	if words.Length == 0 {
		return
	}
	f.Documents++
	f.Terms += int64(words.Length)
	for c := range f.Found {
		if words.Count(c) > 0 {
			f.Found[c]++
		}
	}
}
