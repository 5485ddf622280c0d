package core

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/format"
)

// ListIndexes returns the indexes of a collection, or all of them if collection is "", by
// collection and name.
//
// The errors of documents are counted as of a moment after that of the list.
func (db *Database) ListIndexes(ctx context.Context, collection string) (out []index.Info, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	out = []index.Info{}
	for _, ix := range db.Indexes.Load().All {
		if collection == "" || format.FoldName(collection) == ix.Collection {
			info := ix.Info
			info.Fields, info.Options = slices.Clone(info.Fields), maps.Clone(info.Options)
			if ix.Errors {
				if info.Errors, err = db.countErrors(ctx, ix); err != nil {
					return nil, err
				}
			}
			out = append(out, info)
		}
	}
	slices.SortFunc(out, func(a, b index.Info) int {
		return cmp.Or(strings.Compare(format.FoldName(a.Collection), format.FoldName(b.Collection)), strings.Compare(format.FoldName(a.Name), format.FoldName(b.Name)))
	})
	return out, nil
}
