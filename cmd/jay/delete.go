package main

import (
	"context"

	"github.com/jaydb/jay"
)

// deleteCommand deletes documents.
type deleteCommand struct {
	changeFlags
	IfMatch *string  `placeholder:"CV" help:"Delete only the version with this change vector. For a single ID."`
	Query   string   `placeholder:"QUERY" help:"Delete the documents that this query finds, with --yes or after a question."`
	Param   []string `placeholder:"NAME=VALUE" sep:"none" help:"Value of the parameter $$NAME of the query: JSON if it is JSON, or else text. May be repeated."`
	IDs     []string `arg:"" optional:"" name:"id" help:"IDs of the documents."`
}

// Help is shown by jay delete --help.
func (*deleteCommand) Help() string {
	return `All documents that are named by ID are deleted, or after an error none. A document that is not there is no error, unless --if-match asks for a version of it.

What a query finds is deleted in batches. If the command is interrupted, the batches before are deleted: run it again to go on.

Examples:

    jay delete users/ann
    jay delete --query 'from Drafts where Age > 30' --dry-run
    jay delete --query 'from Drafts where Age > $age' --param age=30 --yes
    jay list --prefix drafts/ --ids-only | xargs -d '\n' jay delete`
}

// Run deletes the documents.
func (c *deleteCommand) Run(ctx context.Context, a *app) error {
	if c.Query != "" {
		return c.byQuery(ctx, a)
	}
	switch {
	case len(c.IDs) == 0:
		return usageError{text: "delete needs IDs or --query"}
	case c.DryRun || len(c.Param) > 0:
		return usageError{text: "--dry-run and --param go with --query"}
	}
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

// byQuery deletes what the query finds.
func (c *deleteCommand) byQuery(ctx context.Context, a *app) error {
	if len(c.IDs) > 0 || c.IfMatch != nil {
		return usageError{text: "delete takes IDs or --query, not both, and --if-match goes with an ID"}
	}
	params, err := parseParams(c.Param)
	if err != nil {
		return err
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		q, err := db.RQL(c.Query, params)
		if err != nil {
			return err
		}
		return c.change(ctx, a, q, change{"delete", "deleted", func(q jay.Query[jay.Row]) (jay.Changed, error) { return q.Delete(ctx) }})
	})
}
