package main

import (
	"context"

	"github.com/jaydb/jay"
)

// revertCommand stores an older version of a document as its new version.
type revertCommand struct {
	AsOf         *timeValue `placeholder:"TIME" help:"Revert to the version of that time."`
	IfMatch      *string    `placeholder:"CV" help:"Only if the document has the version with this change vector; empty if it must be deleted."`
	ID           string     `arg:"" name:"id" help:"ID of the document."`
	ChangeVector string     `arg:"" optional:"" help:"The revision, as jay revisions ID shows it."`
}

// Help is shown by jay revert --help.
func (*revertCommand) Help() string {
	return `The document gets the body and the metadata of the revision, as a new version. A deleted document is there again. One that still has the version of --as-of stays as it is.

Examples:

    jay revert users/ann A:7-kKRSXHCbUUOAD9V3vs1NPA
    jay revert users/ann --as-of 2026-01-31T12:00:00Z`
}

// Run reverts the document and prints its metadata.
func (c *revertCommand) Run(ctx context.Context, a *app) error {
	if (c.ChangeVector == "") == (c.AsOf == nil) {
		return usageError{text: "revert needs a change vector or --as-of"}
	}
	var options []jay.WriteOption
	if c.IfMatch != nil {
		options = append(options, jay.IfMatch(*c.IfMatch))
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		vector := c.ChangeVector
		if c.AsOf != nil {
			rev, err := db.Revisions().AsOf(ctx, c.ID, c.AsOf.at)
			if err != nil {
				return err
			}
			if vector = rev.ChangeVector(); rev.Current() {
				return a.printMetadata(rev.Metadata()) // the document already equals that version
			}
		}
		m, err := db.Revisions().Revert(ctx, c.ID, vector, options...)
		if err != nil {
			return err
		}
		return a.printMetadata(m)
	})
}
