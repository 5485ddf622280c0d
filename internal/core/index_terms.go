package core

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/vocabulary"
	"github.com/jaydb/jay/query"
)

// Bounds of IndexTerms.
const (
	UsualIndexTerms = 100 // without a limit
	MaxIndexTerms   = 10_000
)

// IndexTerms returns terms that an index of words has of a field: see IndexTerms of package jay.
func IndexTerms(ctx context.Context, db *Database, collection, name string, o index.TermList) (list []index.Term, err error) {
	switch {
	case o.Limit < 0 || o.Limit > MaxIndexTerms:
		return nil, fmt.Errorf("%w: %d terms of an index: 0 to %d can be asked for", ids.ErrUsage, o.Limit, MaxIndexTerms)
	case o.Limit == 0:
		o.Limit = UsualIndexTerms
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	c, snapshot, err := db.View(db.Env.Engine.Snapshot)
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, snapshot.Close()) }()
	pace := new(query.Pace)
	pace.Begin(ctx)
	source := vocabulary.Source{Reader: snapshot, Pace: pace}
	if source.Vocabulary, source.Field, err = termsOf(c.Find(collection, name), collection, name, o.Field); err != nil {
		return nil, err
	}
	found, err := source.List(o.Prefix, o.After, o.Limit)
	list = make([]index.Term, len(found))
	for i, w := range found {
		list[i] = index.Term{Text: w.Word, Documents: w.Documents}
	}
	return list, err
}

// termsOf returns what knows the terms of an index, and the place of a field in it: of the first one for "".
func termsOf(ix *catalog.Index, collection, name, field string) (v catalog.Vocabulary, at int, err error) {
	if ix == nil {
		return nil, 0, fmt.Errorf("%w: %s has no index %.100q", errs.ErrIndex, collection, name)
	}
	v, is := ix.Keeper.(catalog.Vocabulary)
	if !is || ix.Info.State != index.Ready {
		return nil, 0, fmt.Errorf("%w: index %q of %s has no terms: it is of kind %q, and %s", errs.ErrIndex, ix.Info.Name, ix.Info.Collection, ix.Info.Kind, ix.Info.State)
	}
	if field == "" {
		return v, 0, nil
	}
	for i := range ix.Fields {
		if ix.Fields[i].Text == field {
			return v, i, nil
		}
	}
	return nil, 0, fmt.Errorf("%w: index %q of %s does not have %.100q", errs.ErrIndex, ix.Info.Name, ix.Info.Collection, field)
}
