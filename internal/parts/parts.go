// Package parts gives checks that live in packages of their own the parts of an open
// database. Nothing but tests calls it.
package parts

import (
	"context"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/indexer"
)

// Parts are those of one database.
type Parts struct {
	Env     *env.Env
	Indexes *catalog.Current
	Indexer *indexer.Indexer
	Counts  *counts.Counts

	Contents *attachments.Store

	// CheckCounts compares the numbers of documents that are kept with the documents.
	CheckCounts func(context.Context) error

	// CheckRevisions compares all records about revisions with one another.
	CheckRevisions func() error

	// CheckContents compares the contents of attachments with the documents that have them.
	CheckContents func(context.Context) error
}

// Of returns the parts of a *jay.DB. Package jay sets it.
var Of func(db any) Parts
