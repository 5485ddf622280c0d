package jay

import (
	"context"

	"github.com/jaydb/jay/internal/parts"
)

// Package checks, with which tests look into a database, reaches it by this.
func init() { parts.Of = partsOf }

// partsOf returns the parts of a *DB.
func partsOf(db any) parts.Parts {
	d := db.(*DB)
	return parts.Parts{
		Env:         d.env,
		Indexes:     d.indexes,
		Indexer:     d.indexer,
		Counts:      d.counts,
		Contents:    d.contents,
		CheckCounts: func(ctx context.Context) error { return checkCounts(ctx, d) },

		CheckRevisions: func() error { return checkRevisions(d) },
		CheckContents:  func(ctx context.Context) error { return checkContents(ctx, d) },
	}
}
