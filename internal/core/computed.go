package core

import (
	"context"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/computed"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/indexer"
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

// List returns the computed indexes, by name.
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
		info := infoOf(current, c.Declared)
		if c.Next != nil {
			next := infoOf(current, c.Next)
			info.Next = &next
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b index.ComputedInfo) int {
		return strings.Compare(format.FoldName(a.Name), format.FoldName(b.Name))
	})
	return out, nil
}

// infoOf returns what there is of a declaration.
func infoOf(current *catalog.Catalog, d *computed.Definition) index.ComputedInfo {
	info := index.ComputedInfo{Computed: d.Declared, State: index.Ready, Algebra: d.String(), Parts: []index.Info{}}
	for _, part := range current.PartsOf(d) {
		info.Parts = append(info.Parts, part.Info)
		if part.Info.State == index.Building {
			info.State = index.Building
		}
	}
	_, info.Without = catalog.Parts(d)
	return info
}
