package main

import (
	"context"
	"strings"

	"github.com/jaydb/jay"
)

// listCommand lists documents.
type listCommand struct {
	Collection string `placeholder:"NAME" help:"Only this collection; @empty is one too."`
	Prefix     string `placeholder:"P" help:"Only IDs that begin with this."`
	After      string `placeholder:"ID" help:"Begin behind this ID, whether or not it is there: for paging."`
	Matches    string `placeholder:"PATTERN" help:"Only IDs whose part behind the prefix is like this: * stands for any characters, ? for one, | separates alternatives."`
	Exclude    string `placeholder:"PATTERN" help:"No IDs whose part behind the prefix is like this."`
	Limit      *int   `placeholder:"N" help:"At most so many documents."`
	System     bool   `help:"System documents too: those of the collection @hilo and those whose IDs begin with Raven/."`
	IDsOnly    bool   `name:"ids-only" help:"Print only IDs, one a line."`
}

// Help is shown by jay list --help.
func (*listCommand) Help() string {
	return `Documents come in the byte order of their IDs, so users/10-A stands before users/2-A. Each is one line of JSON with its @metadata. System documents, such as Raven/HiLo/users, are left out unless they are asked for.

Examples:

    jay list --collection Users --limit 10
    jay list --prefix users/ --ids-only
    jay list --prefix users/ --matches '*-A' --exclude '1*'
    jay list --after users/7-A --limit 100`
}

// Run prints the documents, or their IDs.
func (c *listCommand) Run(ctx context.Context, a *app) error {
	if c.Limit != nil && *c.Limit < 0 {
		return usageError{text: "--limit must not be negative"}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		found, err := c.list(ctx, a, db)
		if err != nil || found {
			return err
		}
		return a.noteEmptyCollection(ctx, db, c.Collection)
	})
}

// list prints the documents, and reports whether there was one.
func (c *listCommand) list(ctx context.Context, a *app, db *jay.DB) (found bool, err error) {
	hides := !c.asksForSystem()
	scan := jay.Scan{Collection: c.Collection, Prefix: c.Prefix, Matches: c.Matches, Exclude: c.Exclude, After: c.After}
	listed := 0
	for doc, err := range db.Documents(ctx, scan) {
		if err != nil {
			return found, err
		}
		found = true
		if c.Limit != nil && listed >= *c.Limit {
			break
		}
		if hides && isSystem(doc) {
			continue
		}
		listed++
		if err := c.print(a, doc); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (c *listCommand) print(a *app, doc *jay.Document) error {
	switch {
	case !c.IDsOnly:
		return a.printDocument(doc)
	case a.json:
		return a.printLine(doc.ID())
	}
	return a.print(doc.ID() + "\n")
}

// asksForSystem reports whether system documents are listed: by --system, or where
// their collection or the beginning of their IDs is named.
func (c *listCommand) asksForSystem() bool {
	named := len(c.Prefix) >= len(systemPrefix) && strings.EqualFold(c.Prefix[:len(systemPrefix)], systemPrefix)
	return c.System || named || strings.EqualFold(c.Collection, "@hilo")
}
