package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// facetRun answers a query with facets: one row for each.
type facetRun struct{ r *Run }

// answers counts the documents for all facets in one pass.
func (f facetRun) answers(ctx context.Context) (answers, error) {
	r := f.r
	list, err := f.facets()
	if err != nil {
		return nil, err
	}
	facets, err := query.NewFacets(list, r.env.MaxQueryBytes, queryOptions(r.env)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	facets.SetPace(&r.pace)
	if r.plan.Facets != nil {
		err = f.counted(ctx, facets)
	} else {
		err = entryRun(f).addDocuments(ctx, facets.Add, facets.Bytes)
	}
	if err != nil {
		return nil, err
	}
	next := 0
	return func(context.Context) (*Row, error) {
		if next == facets.Len() {
			return nil, nil
		}
		next++
		return &Row{JSON: facets.AppendResult(nil, next-1)}, nil
	}, nil
}

// counted takes the numbers of documents from indexes.
func (f facetRun) counted(ctx context.Context, facets *query.Facets) error {
	for i, c := range f.r.plan.Facets {
		groups := facets.Groups(i)
		var err error
		if c.Kept != nil {
			err = keptRun(f).fill(ctx, c.Kept, groups)
		} else {
			err = keptRun(f).walk(ctx, c.Along, c.Query, groups, func(doc query.Doc) error { return facets.AddTo(i, doc) })
		}
		if err != nil {
			return err
		}
		if err := facets.Check(); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
	}
	return f.r.pace.Err()
}

// facets returns the facets of the query, with those of documents in place of these.
func (f facetRun) facets() (list []query.Facet, err error) {
	for _, facet := range f.r.q.Facets {
		if facet.Setup == "" {
			list = append(list, facet)
			continue
		}
		doc, err := f.setup(f.r.env.Rules.Fold(facet.Setup))
		if errors.Is(err, errs.ErrNotFound) {
			return nil, fmt.Errorf("%w: %w: the document %.300q, which has the facets, is not there", errs.ErrQuery, query.ErrFacet, facet.Setup)
		}
		if err != nil {
			return nil, err
		}
		given, err := query.ParseFacetSetup(doc.JSON())
		if err != nil {
			return nil, fmt.Errorf("%w: document %.300q: %w", errs.ErrQuery, facet.Setup, err)
		}
		list = append(list, given...)
	}
	return list, nil
}

// setup returns the document with the facets, as the query sees it.
func (f facetRun) setup(folded string) (*docs.Document, error) {
	if f.r.overlay.Written[folded] && f.r.overlay.Read != nil {
		return f.r.overlay.Read(folded)
	}
	doc, err := f.r.docs.ReadFolded(f.r.snapshot, folded)
	return docs.AliveAt(f.r.moment, doc, err)
}
