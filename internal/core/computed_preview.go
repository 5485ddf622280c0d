package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/computed"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/query"
)

// Bounds of previews.
const (
	MaxPreviewed   = 100     // documents that are asked for
	usualPreviewed = 10      // documents of each collection, if none is asked for
	previewedBytes = 1 << 20 // and about so many of their bytes
)

// Preview returns what a declaration makes of the documents with these IDs, or of the first ones of its collections: see
// ComputedIndexes.Preview of package jay.
func (db ComputedIndexes) Preview(ctx context.Context, c index.Computed, given []string) (_ *index.ComputedPreview, err error) {
	if len(given) > MaxPreviewed {
		return nil, fmt.Errorf("%w: a preview of %d documents: %d are the most", ids.ErrUsage, len(given), MaxPreviewed)
	}
	d, err := catalog.CanonicalComputed(c)
	if err != nil {
		return nil, err
	}
	var pace query.Pace
	pace.Begin(ctx)
	sample, err := d.NewSample(&pace)
	if err != nil {
		return nil, err
	}
	parts, without := catalog.Parts(d)
	p := &index.ComputedPreview{Algebra: d.String(), Parts: []index.Part{}, Without: without, Documents: []index.Previewed{}}
	for _, part := range parts {
		part.Index.Name = "" // it is given one when it is made
		p.Parts = append(p.Parts, index.Part{Of: part.Of, Collection: part.Collection, Index: part.Index})
	}
	expand, done, err := db.expander(d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, done()) }()
	err = db.previewed(ctx, d, given, func(doc *docs.Document) error {
		read := new(exec.DocView).Of(db.Env, doc)
		err := expand(&read)
		var maps []index.Mapped
		if err == nil {
			maps, err = sample.Add(doc.ID(), doc.Collection(), read)
		}
		if err != nil {
			return previewError(ctx, d, fmt.Sprintf("document %q: ", doc.ID()), err)
		}
		p.Documents = append(p.Documents, index.Previewed{ID: doc.ID(), Collection: doc.Collection(), Maps: maps})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p.Results, err = sample.Results(); err != nil {
		return nil, previewError(ctx, d, "", err)
	}
	return p, nil
}

// expander returns a function that gives documents what the maps of a declaration load, as it is now, and what ends it.
func (db ComputedIndexes) expander(d *computed.Definition) (expand func(*query.Doc) error, done func() error, err error) {
	paths, err := d.LoadedPaths()
	if err != nil {
		return nil, nil, err
	}
	spec := loads.NewSpec(paths)
	if spec == nil {
		return func(*query.Doc) error { return nil }, func() error { return nil }, nil
	}
	if err := db.Env.Enter(); err != nil {
		return nil, nil, err
	}
	snapshot := db.Env.Engine.Snapshot()
	expand = func(doc *query.Doc) error {
		e, err := spec.Expand(doc.Body, db.Env.Rules.Fold, loads.From(snapshot))
		if err == nil {
			doc.Body = e.Body
		}
		return err
	}
	return expand, func() error { defer db.Env.Exit(); return snapshot.Close() }, nil
}

// previewError is the error of a preview.
func previewError(ctx context.Context, d *computed.Definition, of string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: preview of computed index %q: %s%w", errs.ErrQuery, errs.Shorten(d.Declared.Name), of, err)
}

// previewed calls fn with the documents with these IDs, or with some of the collections of a declaration, one after another.
func (db ComputedIndexes) previewed(ctx context.Context, d *computed.Definition, given []string, fn func(*docs.Document) error) error {
	for _, id := range given {
		doc, err := db.get(ctx, id)
		if err == nil {
			err = fn(doc)
		}
		if err != nil {
			return err
		}
	}
	if len(given) > 0 {
		return nil
	}
	if err := db.Env.Enter(); err != nil {
		return err
	}
	defer db.Env.Exit()
	seen := make(map[string]bool) // a declaration of all documents may have maps of collections, too
	for _, collection := range d.Collections() {
		some, err := db.ReadBatch(ctx, docs.Range{Collection: collection, Moment: db.Docs.Moment()}, usualPreviewed, previewedBytes)
		if err != nil {
			return err
		}
		for _, doc := range some {
			if seen[doc.FoldedID()] {
				continue
			}
			seen[doc.FoldedID()] = true
			if err := fn(doc); err != nil {
				return err
			}
		}
	}
	return nil
}

// Errors returns the documents for which expressions of a computed index fail, at most limit for each of its parts, by collection and
// folded ID: see ComputedIndexes.Errors of package jay.
func (db ComputedIndexes) Errors(ctx context.Context, name string, limit int) ([]index.ComputedFailure, error) {
	parts, err := db.partsOf(name)
	if err != nil {
		return nil, err
	}
	all := []index.ComputedFailure{}
	for _, part := range parts {
		list, err := IndexView{db.Database, part.Info.Collection, part.Info.Name}.Errors(ctx, "", limit)
		if errors.Is(err, errs.ErrIndex) { // it was dropped or replaced meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			one := index.ComputedFailure{Collection: part.Info.Collection, Failure: f}
			if !slices.Contains(all, one) { // several parts may compute the same
				all = append(all, one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b index.ComputedFailure) int {
		if order := strings.Compare(format.FoldName(a.Collection), format.FoldName(b.Collection)); order != 0 {
			return order
		}
		return strings.Compare(db.Env.Rules.Fold(a.ID), db.Env.Rules.Fold(b.ID))
	})
	return all, nil
}

// partsOf returns the parts of a computed index.
func (db ComputedIndexes) partsOf(name string) ([]*catalog.Index, error) {
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	current := db.Indexes.Load()
	c, err := current.KnownComputed(name, errs.ErrIndex)
	if err != nil {
		return nil, err
	}
	return current.PartsOf(c.Declared), nil
}
