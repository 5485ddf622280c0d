package main

import (
	"context"

	"github.com/jaydb/jay"
)

// deleteCommand deletes documents.
type deleteCommand struct {
	IfMatch *string  `placeholder:"CV" help:"Delete only the version with this change vector. For a single ID."`
	IDs     []string `arg:"" name:"id" help:"IDs of the documents."`
}

// Help is shown by jay delete --help.
func (*deleteCommand) Help() string {
	return `All are deleted, or after an error none. A document that is not there is no error, unless --if-match asks for a version of it.

Examples:

    jay delete users/ann
    jay list --prefix drafts/ --ids-only | xargs -d '\n' jay delete`
}

// Run deletes the documents in one batch.
func (c *deleteCommand) Run(ctx context.Context, a *app) error {
	var options []jay.WriteOption
	if c.IfMatch != nil {
		if len(c.IDs) > 1 {
			return usageError{text: "delete --if-match takes a single ID"}
		}
		options = append(options, jay.IfMatch(*c.IfMatch))
	}

	var batch jay.Batch
	for _, id := range c.IDs {
		batch.Delete(id, options...)
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		if _, err := db.Apply(ctx, &batch); err != nil {
			return err
		}
		if a.json {
			return a.printLine(map[string][]string{"ids": c.IDs})
		}
		return nil
	})
}
