package core

import (
	"context"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/computed"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/query"
)

// ComputedIndexes are the computed indexes of a database.
type ComputedIndexes struct{ *Database }

// Ensure makes sure that there is a computed index: see indexer.Indexer.EnsureComputed.
func (db ComputedIndexes) Ensure(ctx context.Context, c index.Computed, o indexer.Options) error {
	if db.Owner != nil {
		return Ask[any](ctx, db.Database, ask.EnsureComputed, ask.ComputedArguments{Computed: c, Replace: o.Replace}, new(any), o.Progress)
	}
	return db.Indexer.EnsureComputed(ctx, c, o)
}

// Drop drops a computed index: see indexer.Indexer.DropComputed.
func (db ComputedIndexes) Drop(ctx context.Context, name string) error {
	if db.Owner != nil {
		return Ask[any, any](ctx, db.Database, ask.DropComputed, ask.DropComputedArguments{Name: name}, new(any), nil)
	}
	return db.Indexer.DropComputed(ctx, name)
}

// Declared returns the declaration of a computed index.
func (db ComputedIndexes) Declared(ctx context.Context, name string) (index.Computed, error) {
	d, err := db.find(ctx, name)
	if err != nil {
		return index.Computed{}, err
	}
	return d.Declared, nil
}

// Documents returns the query of the documents of a query of a computed index: see computed.Definition.Documents.
func (db ComputedIndexes) Documents(ctx context.Context, q *query.Query, isMember func(name string) bool) (*query.Query, error) {
	d, err := db.find(ctx, q.Index)
	if err != nil {
		return nil, err
	}
	return d.Documents(q, isMember)
}

// find returns the computed index of a name.
func (db ComputedIndexes) find(ctx context.Context, name string) (*computed.Definition, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	c, err := db.Indexes.Load().KnownComputed(name, errs.ErrNoIndex)
	if err != nil {
		return nil, err
	}
	return c.Declared, nil
}

// List returns the computed indexes, by name. The errors of documents are counted as of a moment after that of the list.
func (db ComputedIndexes) List(ctx context.Context) ([]index.ComputedInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	current := db.Indexes.Load()
	out := []index.ComputedInfo{}
	for _, c := range current.Computed {
		if c.Unknown != nil {
			out = append(out, index.ComputedInfo{Computed: index.Computed{Name: c.Name}, Unknown: c.Unknown.Error()})
			continue
		}
		info, err := db.infoOf(ctx, current, c.Declared)
		if err == nil && c.Next != nil {
			info.Next = new(index.ComputedInfo)
			*info.Next, err = db.infoOf(ctx, current, c.Next)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b index.ComputedInfo) int {
		return strings.Compare(format.FoldName(a.Name), format.FoldName(b.Name))
	})
	return out, nil
}

// infoOf returns what there is of a declaration.
func (db ComputedIndexes) infoOf(ctx context.Context, current *catalog.Catalog, d *computed.Definition) (info index.ComputedInfo, err error) {
	info = index.ComputedInfo{Computed: d.Declared, State: index.Ready, Algebra: d.String(), Parts: []index.Info{}}
	for _, part := range current.PartsOf(d) {
		one := part.Info
		if part.Errors {
			if one.Errors, err = db.countErrors(ctx, part); err != nil {
				return info, err
			}
		}
		info.Parts = append(info.Parts, one)
		if part.Info.State == index.Building {
			info.State = index.Building
		}
	}
	_, info.Without = catalog.Parts(d)
	return info, nil
}
