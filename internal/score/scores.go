// Package score decides how well documents match the searches of a query. Which conditions count, and for how much, is the business of
// [Scores]; how often words are in all documents comes from an index of words or a walk over the documents, as [text.Frequencies]; and a [Scorer]
// scores one document by its body. An index of words may score documents by itself: it must come to the same numbers.
//
// Scores are those of BM25, with the parameters of package text. Lengths of texts count by their classes.
package score

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
)

// MaxWords is how many words and phrases the searches that count may have together.
const MaxWords = text.MaxClauses

// Kind is what a Part is.
type Kind uint8

const (
	Other  Kind = iota // a condition that is true or not, such as a Not
	Search             // one for words
	And                // all parts are true: their scores are added
	Or                 // one part is true: the scores of those that are true are added
)

// Part is a condition as it counts for scores.
type Part struct {
	Kind     Kind
	Expr     query.Expr // without boosts
	Parts    []Part     // of And and Or
	Search   int        // its place in Scores.Searches
	Boost    float64    // of a Search
	Constant float64    // of Other: what it counts where it is true
}

// Score returns what a part counts for a document, and whether it is true of it, by a function that says so of each Search and each Other in it.
// What is added is added in the order of the condition, so that all who score come to the same bits.
func (p *Part) Score(of func(*Part) (score float64, is bool)) (score float64, is bool) {
	if p.Kind == Search || p.Kind == Other {
		return of(p)
	}
	is = p.Kind == And
	for i := range p.Parts {
		one, found := p.Parts[i].Score(of)
		switch {
		case found:
			score, is = score+one, true
		case p.Kind == And:
			return 0, false
		}
	}
	return score, is
}

// Words is a search for words.
type Words struct {
	query.Search
	Analyzer *text.Analyzer
	Parsed   *text.Search
}

// Scores say how the answers of a query are scored.
type Scores struct {
	// Parts are the conditions that And joins in the condition of the query, in their order: the score of an answer is the sum of
	// theirs.
	Parts []Part

	// Searches are those in Parts, and Frequencies how often their words are; nil for what is not known yet.
	Searches    []Words
	Frequencies []*text.Frequencies

	// After is where answers in the order of their scores begin; nil for all.
	After *Position
}

// Position is the place of a document among answers in the order of their scores, the best first, equal ones by descending IDs.
type Position struct {
	Score float64
	ID    string // folded
}

// New returns the Scores of a query with a condition, which is within the bounds of one. It returns errs.ErrQuery if nothing in it
// counts.
func New(where query.Expr) (*Scores, error) {
	s := new(Scores)
	if err := s.add(where, 1); err != nil {
		return nil, err
	}
	if where == nil || !counts(where) {
		return nil, fmt.Errorf("%w: score() is of searches, and the query has none: where search(Text, 'oak')", errs.ErrQuery)
	}
	words := 0
	for i := range s.Searches {
		words += len(s.Searches[i].Parsed.Clauses)
	}
	if words > MaxWords {
		return nil, fmt.Errorf("%w: %w", errs.ErrQuery, &query.LimitError{What: "words that count for scores", Limit: MaxWords, Actual: words})
	}
	s.Frequencies = make([]*text.Frequencies, len(s.Searches))
	return s, nil
}

// Of returns Scores of which each Part is one of some conditions, to find documents by them.
func Of(conditions []query.Expr) *Scores {
	s := new(Scores)
	for _, e := range conditions {
		part := Part{Expr: e}
		if counts(e) {
			var err error
			if part, err = s.part(e, 1); err != nil {
				part = Part{Expr: e} // Compile says why
			}
		}
		s.Parts = append(s.Parts, part)
	}
	s.Frequencies = make([]*text.Frequencies, len(s.Searches))
	return s
}

// counts reports whether a condition has a search or a boost that counts.
func counts(e query.Expr) bool {
	any := func(list []query.Expr) bool {
		for _, kid := range list {
			if counts(kid) {
				return true
			}
		}
		return false
	}
	switch e := e.(type) {
	case query.And:
		return any(e)
	case query.Or:
		return any(e)
	case query.Search, query.Boost:
		return true
	}
	return false
}

// add adds the conditions that And joins in e.
func (s *Scores) add(e query.Expr, boost float64) error {
	switch e := e.(type) {
	case nil:
		return nil
	case query.And:
		for _, kid := range e {
			if err := s.add(kid, boost); err != nil {
				return err
			}
		}
		return nil
	case query.Boost:
		if err := e.Check(); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		from := len(s.Parts)
		if err := s.add(e.Expr, boost*e.By); err != nil {
			return err
		}
		if !counts(e.Expr) && len(s.Parts) > from { // it counts once
			s.Parts[from].Constant = boost * e.By
		}
		return nil
	}
	part, err := s.part(e, boost)
	s.Parts = append(s.Parts, part)
	return err
}

// part returns a condition as it counts.
func (s *Scores) part(e query.Expr, boost float64) (p Part, err error) {
	p.Expr = query.Unboosted(e)
	list := func(kind Kind, in []query.Expr) (Part, error) {
		p.Kind = kind
		for _, kid := range in {
			part, err := s.part(kid, boost)
			if err != nil {
				return p, err
			}
			p.Parts = append(p.Parts, part)
		}
		return p, nil
	}
	switch e := e.(type) {
	case query.Boost:
		if err := e.Check(); err != nil {
			return p, fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		if !counts(e.Expr) {
			p.Constant = boost * e.By
			return p, nil
		}
		return s.part(e.Expr, boost*e.By)
	case query.And:
		if counts(e) {
			return list(And, e)
		}
	case query.Or:
		if counts(e) {
			return list(Or, e)
		}
	case query.Search:
		words, err := WordsOf(e)
		if err != nil || words.leavesOut() {
			return p, err
		}
		p.Kind, p.Search, p.Boost = Search, len(s.Searches), boost
		s.Searches = append(s.Searches, words)
	}
	return p, nil
}

// leavesOut reports whether a search only leaves documents out: it counts nothing, and documents without texts are found.
func (w *Words) leavesOut() bool {
	for i := range w.Parsed.Clauses {
		if w.Parsed.Clauses[i].Occur != text.MustNot {
			return false
		}
	}
	return len(w.Parsed.Clauses) > 0
}

// WordsOf parses a search.
func WordsOf(e query.Search) (Words, error) {
	a, found := text.Find(cmp.Or(e.Analyzer, query.DefaultAnalyzer))
	if !found {
		return Words{}, fmt.Errorf("%w: there is no analyzer %.50q", errs.ErrQuery, e.Analyzer)
	}
	parsed, err := text.Parse(a, e.Text, e.All)
	if err != nil {
		return Words{}, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	return Words{e, a, parsed}, nil
}

// Missing returns the searches whose frequencies are not known.
func (s *Scores) Missing() (missing []int) {
	for i, f := range s.Frequencies {
		if f == nil {
			missing = append(missing, i)
		}
	}
	return missing
}

// errFrequencies is returned for what AppendFrequencies has not made of the same searches.
var errFrequencies = errors.New("not the frequencies of the words of the query")

// AppendFrequencies appends all frequencies, which must be known: of each search the weight (8 bytes), and uvarints of the documents, the terms,
// and the documents of each clause.
func (s *Scores) AppendFrequencies(dst []byte) []byte {
	for _, f := range s.Frequencies {
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(f.Weight))
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(f.Documents)), uint64(f.Terms))
		for _, n := range f.Found {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
	}
	return dst
}

// SetFrequencies sets all frequencies to what AppendFrequencies has made of them.
func (s *Scores) SetFrequencies(rest []byte) error {
	next := func() (n int64, ok bool) {
		u, size := binary.Uvarint(rest)
		if size <= 0 || u > 1<<60 {
			return 0, false
		}
		rest = rest[size:]
		return int64(u), true
	}
	for i := range s.Searches {
		if len(rest) < 8 {
			return errFrequencies
		}
		f := &text.Frequencies{Weight: math.Float64frombits(binary.BigEndian.Uint64(rest)), Found: make([]int64, len(s.Searches[i].Parsed.Clauses))}
		rest = rest[8:]
		ok := f.Weight > 0 && f.Weight <= query.MaxBoost
		for _, to := range []*int64{&f.Documents, &f.Terms} {
			if ok {
				*to, ok = next()
			}
		}
		for c := range f.Found {
			if ok {
				f.Found[c], ok = next()
			}
		}
		if !ok {
			return errFrequencies
		}
		s.Frequencies[i] = f
	}
	if len(rest) > 0 {
		return errFrequencies
	}
	return nil
}
