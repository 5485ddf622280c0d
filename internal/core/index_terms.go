package core

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/vocabulary"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Terms returns terms that an index of words has of a field: see IndexView.Terms of package jay.
func (v IndexView) Terms(ctx context.Context, o index.TermList) (list []index.Term, err error) {
	err = v.listed(ctx, "terms", o.Limit, func(ix *catalog.Index, r storage.Reader, limit int) (err error) {
		pace := new(query.Pace)
		pace.Begin(ctx)
		source := vocabulary.Source{Reader: r, Pace: pace}
		if source.Vocabulary, source.Field, err = termsOf(ix, o.Field); err != nil {
			return err
		}
		found, err := source.List(o.Prefix, o.After, limit)
		list = make([]index.Term, len(found))
		for i, w := range found {
			list[i] = index.Term{Text: w.Word, Documents: w.Documents}
		}
		return err
	})
	return list, err
}

// termsOf returns what knows the terms of an index, and the place of a field in it: of the first one for "".
func termsOf(ix *catalog.Index, field string) (v catalog.Vocabulary, at int, err error) {
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
