package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay"
)

// getCommand prints documents.
type getCommand struct {
	IDs []string `arg:"" name:"id" help:"IDs of the documents."`
}

// Help is shown by jay get --help.
func (*getCommand) Help() string {
	return `Each document is one line of JSON with its @metadata. If one is missing, the others are printed all the same, and jay exits with 1.

Examples:

    jay get users/ann
    jay get users/1-A users/2-A | jq .Name`
}

// Run prints the documents in the order of their IDs on the command line.
func (c *getCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		for _, id := range c.IDs {
			doc, err := db.Get(ctx, id)
			if errors.Is(err, jay.ErrNotFound) {
				a.failed = true
				a.complain(fmt.Errorf("no document %q", id), kindOf(err))
				continue
			}
			if err != nil {
				return err
			}
			if err := a.printDocument(doc); err != nil {
				return err
			}
		}
		return nil
	})
}
