package builder

import (
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/query"
)

// WithFacets returns the query with facets, each as the parts of facet() in RQL, and its options. A name is not "".
func (q Definition) WithFacets(parts [][]string, names []string, options []query.FacetOptions) (Definition, error) {
	if err := q.Check(); err != nil {
		return q, err
	}
	if exec.IsGrouped(&q.Query) || q.Query.Projects() || q.Query.Distinct || len(q.Query.OrderBy) > 0 || q.Query.IncludesMore() || q.Query.HasLimit || q.Query.Offset > 0 || q.cursor != "" {
		return q, fmt.Errorf("%w: facets count documents: the query must have neither columns, groups, an order, a page nor includes", errs.ErrQuery)
	}
	q.Query.Facets = nil
	for i, list := range parts {
		text := "facet(" + strings.Join(list, ", ") + ")"
		parsed, err := query.Parse("from '@all_docs' select "+text, nil)
		if err != nil {
			return q, fmt.Errorf("%w: %s: %w", errs.ErrQuery, errs.Shorten(text), err)
		}
		if len(parsed.Facets) != 1 || len(parsed.Select) > 0 || parsed.Facets[0].Setup != "" {
			return q, fmt.Errorf("%w: %s is not one facet", errs.ErrQuery, errs.Shorten(text))
		}
		f := parsed.Facets[0]
		if f.Options = options[i]; names[i] != "" {
			f.Name = names[i]
		}
		q.Query.Facets = append(q.Query.Facets, f)
	}
	if _, err := query.NewFacets(q.Query.Facets, 0); err != nil {
		return q, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	return q, nil
}
