package builder

import (
	"fmt"

	"github.com/jaydb/jay/query"
)

// Fuzzy is true of what differs a little from what c asks for.
func Fuzzy(c Condition, similarity float64) Condition {
	return c.replaced(func(e query.Expr) (query.Expr, error) { return query.NewFuzzy(e, similarity) })
}

// Proximity is true of the words of c near each other.
func Proximity(c Condition, words int) Condition {
	return c.replaced(func(e query.Expr) (query.Expr, error) { return query.NewProximity(e, words) })
}

// Lucene is a query in Lucene's syntax, as the Search is that prepare is given.
func Lucene(field, search string, prepare func(*query.Search)) Condition {
	return OnText(field, search, func(f query.Field) query.Expr {
		e := query.Search{Field: f}
		prepare(&e)
		return e
	}).replaced(func(e query.Expr) (query.Expr, error) {
		s := e.(query.Search)
		if s.All {
			return nil, fmt.Errorf("%w: AllWords is of Search: AND and + are Lucene's words for it", query.ErrCondition)
		}
		return query.NewLucene(s.Field, search, s.Analyzer)
	})
}

// replaced returns what fn makes of a condition.
func (c Condition) replaced(fn func(query.Expr) (query.Expr, error)) Condition {
	if c.err != nil {
		return c
	}
	e, err := fn(c.expr)
	if err != nil {
		return refused(err)
	}
	return newCondition(e)
}
