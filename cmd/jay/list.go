package main

import (
	"context"

	"github.com/jaydb/jay"
)

// listCommand lists documents.
type listCommand struct {
	Collection string `placeholder:"NAME" help:"Only this collection; @empty is one too."`
	Prefix     string `placeholder:"P" help:"Only IDs that begin with this."`
	After      string `placeholder:"ID" help:"Begin behind this ID, whether or not it is there: for paging."`
	Limit      int    `placeholder:"N" help:"At most so many documents."`
	IDsOnly    bool   `name:"ids-only" help:"Print only IDs, one a line."`
}

// Help is shown by jay list --help.
func (*listCommand) Help() string {
	return `Documents come in the byte order of their IDs, so users/10-A stands before users/2-A. Each is one line of JSON with its @metadata.

Examples:

    jay list --collection Users --limit 10
    jay list --prefix users/ --ids-only
    jay list --after users/7-A --limit 100`
}

// Run prints the documents, or their IDs.
func (c *listCommand) Run(ctx context.Context, a *app) error {
	if c.Limit < 0 {
		return usageError{"--limit must not be negative"}
	}
	scan := jay.Scan{Collection: c.Collection, Prefix: c.Prefix, After: c.After, Limit: c.Limit}
	return a.withDatabase(false, func(db *jay.DB) error {
		return eachDocument(ctx, db, scan, func(doc *jay.Document) error {
			switch {
			case !c.IDsOnly:
				return a.printDocument(doc)
			case a.json:
				return a.printLine(doc.ID())
			}
			return a.print(doc.ID() + "\n")
		})
	})
}
