package score

import (
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
)

// Explain returns what the score of an answer is made of. The same must hold as for Score.
func (r *Scorer) Explain(doc query.Doc) *query.Explanation {
	e := &query.Explanation{Score: r.Score(doc), Parts: []query.ExplainedPart{}}
	for i := range r.scores.Parts {
		p := &r.scores.Parts[i]
		if p.Kind != Other {
			e.Parts = append(e.Parts, r.explain(p, doc)...)
		}
		if p.Constant > 0 { // true of each answer
			e.Parts = append(e.Parts, constant(p))
		}
	}
	return e
}

// constant explains a condition that counts its boost.
func constant(p *Part) query.ExplainedPart {
	return query.ExplainedPart{Condition: query.FormatCondition(p.Expr), Score: p.Constant, Boost: p.Constant}
}

// explain returns what the conditions in a part count that are true; nothing if it is not. The words of the document have been read.
func (r *Scorer) explain(p *Part, doc query.Doc) (parts []query.ExplainedPart) {
	if _, is := p.Score(func(p *Part) (float64, bool) { return r.part(p, doc) }); !is {
		return nil
	}
	switch {
	case p.Kind == Search:
		return []query.ExplainedPart{r.explainSearch(p)}
	case p.Kind != Other:
		for i := range p.Parts {
			parts = append(parts, r.explain(&p.Parts[i], doc)...)
		}
	case p.Constant > 0:
		return []query.ExplainedPart{constant(p)}
	}
	return parts
}

// explainSearch explains a search that is true.
func (r *Scorer) explainSearch(p *Part) query.ExplainedPart {
	s, f, words := &r.scores.Searches[p.Search], r.scores.Frequencies[p.Search], r.words[p.Search]
	length := text.ClassOf(words.Length).Length()
	e := query.ExplainedPart{
		Condition: query.FormatCondition(s.Search), Boost: p.Boost,
		Field: s.Field.String(), Analyzer: s.Analyzer.Name(), Weight: f.Weight,
		Documents: f.Documents, Length: length, AverageLength: f.Average(),
	}
	for i := range s.Parsed.Clauses {
		c, n := &s.Parsed.Clauses[i], words.Count(i)
		if n == 0 || c.Occur == text.MustNot {
			continue
		}
		w := query.ExplainedWord{
			Text: c.Text, Boost: c.Boost, Documents: min(f.Found[i], f.Documents), Rarity: text.Rarity(f.Documents, f.Found[i]),
			Count: n, Frequency: text.Weight(n, length, f.Average()),
		}
		w.Score = p.Boost * w.Boost * f.Weight * w.Rarity * w.Frequency
		e.Score += w.Score
		e.Words = append(e.Words, w)
	}
	return e
}
