package live

import (
	"fmt"
	"reflect"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/query"
)

// Check returns ErrQuery, with what it is that the query has, for a query whose answers
// are not decided by each document alone, or that are not a set.
func Check(q *query.Query) error {
	refused := ""
	switch {
	case q.Index != "":
		refused = "computed index"
	case !q.Each.IsZero():
		refused = "each"
	case len(q.Facets) > 0:
		refused = "facets"
	case len(q.Suggests) > 0:
		refused = "suggestions"
	case len(q.GroupBy) > 0:
		refused = "group by"
	case exec.IsGrouped(q):
		refused = "functions of groups"
	case q.Script != nil:
		refused = "JavaScript"
	case q.Distinct:
		refused = "distinct"
	case len(q.OrderBy) > 0:
		refused = "order"
	case q.HasLimit, q.Offset > 0:
		refused = "limit, nor answers to skip"
	case q.IncludesMore():
		refused = "include"
	case q.Timings:
		refused = "timings"
	}
	for _, c := range q.Select {
		switch {
		case c.Field.Loads():
			refused = "load"
		case c.Field.Meta == query.MetaScore:
			refused = "score()"
		}
	}
	for _, f := range query.Fields(q.Where) {
		if f.Loads() {
			refused = "load"
		}
	}
	if refused == "" {
		refused = refusedCondition(q.Where)
	}
	if refused != "" {
		return fmt.Errorf("%w: a live query has no %s: its answers are documents, each of which is one by what it contains: %.300s", errs.ErrQuery, refused, q)
	}
	return nil
}

// refusedCondition returns what a condition has that a live query must not have, or "".
func refusedCondition(e query.Expr) string {
	switch e := e.(type) {
	case nil, query.Compare, query.CompareFields, query.Between, query.In, query.StartsWith, query.EndsWith, query.Contains, query.Regexp, query.Exists, query.HasSize, query.HasType, query.Place:
		return ""
	case query.And:
		return refusedIn(e)
	case query.Or:
		return refusedIn(e)
	case query.Not:
		return refusedCondition(e.Expr)
	case query.ElemMatch:
		return refusedCondition(e.Where)
	case query.Search:
		return "search for words"
	case query.Fuzzy:
		return "fuzzy search"
	case query.MoreLike:
		return "moreLikeThis"
	case query.Similar:
		return "search for vectors"
	case query.Boost:
		return "boost"
	}
	return "condition of the kind " + reflect.TypeOf(e).Name()
}

func refusedIn(all []query.Expr) string {
	for _, e := range all {
		if refused := refusedCondition(e); refused != "" {
			return refused
		}
	}
	return ""
}
