package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jaydb/jay"
)

// changesCommand prints changes.
type changesCommand struct {
	Since       string   `placeholder:"TOKEN" help:"Only changes behind this token, which is printed with each change; now begins behind the newest."`
	Follow      bool     `help:"Wait for more, until interrupted."`
	Collections []string `name:"collection" sep:"none" placeholder:"NAME" help:"Only of this collection; can be repeated."`
	Prefixes    []string `name:"prefix" sep:"none" placeholder:"P" help:"Only of IDs that begin with this; can be repeated."`
	IDs         []string `name:"id" sep:"none" placeholder:"ID" help:"Only of this document; can be repeated."`
	Documents   bool     `help:"Print the documents, too."`
	Limit       *int     `placeholder:"N" help:"At most so many changes."`
}

// Help is shown by jay changes --help.
func (*changesCommand) Help() string {
	return `Each document comes with its newest change, in the order in which they were written, one line of JSON each: whether it was put or deleted, its ID, collection and etag, and a token. With --since TOKEN the next call goes on behind that change. Deletions come as long as their records are kept: an error says if some behind the token are gone.

If another program has the database open, --follow shows what that writes; else no other process can write, and it shows the background work of this one.

Examples:

    jay changes --limit 10
    jay changes --collection Orders --since A:1200-AAECAwQFBgcICQoLDA0ODw
    jay changes --documents > changes.ndjson`
}

// changeLine is a line of jay changes.
type changeLine struct {
	Change       string        `json:"change"` // put or delete
	ID           string        `json:"id"`
	Collection   string        `json:"collection"`
	Etag         uint64        `json:"etag"`
	LastModified string        `json:"lastModified,omitempty"`
	Token        string        `json:"token"`
	Document     *jay.Document `json:"document,omitempty"`
}

// Run prints the changes.
func (c *changesCommand) Run(ctx context.Context, a *app) error {
	if c.Limit != nil && *c.Limit < 0 {
		return usageError{text: "--limit must not be negative"}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		if c.Limit != nil && *c.Limit == 0 {
			return nil
		}
		printed := 0
		for change, err := range db.Changes(ctx, c.Since, c.options()...) {
			if err != nil {
				return err
			}
			if err := a.printLine(newChangeLine(change)); err != nil {
				return err
			}
			if c.Follow {
				if err := a.stdout.Flush(); err != nil {
					return err
				}
			}
			if printed++; c.Limit != nil && printed == *c.Limit {
				return nil // without waiting for another change
			}
		}
		return nil
	})
}

func (c *changesCommand) options() (opts []jay.ChangesOption) {
	if len(c.Collections) > 0 {
		opts = append(opts, jay.OfCollections(c.Collections...))
	}
	if len(c.Prefixes) > 0 {
		opts = append(opts, jay.OfPrefixes(c.Prefixes...))
	}
	if len(c.IDs) > 0 {
		opts = append(opts, jay.OfIDs(c.IDs...))
	}
	if c.Documents {
		opts = append(opts, jay.WithDocuments())
	}
	if !c.Follow {
		opts = append(opts, jay.UntilCaughtUp())
	}
	return opts
}

func newChangeLine(c jay.Change) changeLine {
	r := changeLine{Change: "put", ID: c.ID, Collection: c.Collection, Etag: c.Etag, Token: c.Token(), Document: c.Document}
	if c.Deleted {
		r.Change = "delete"
	} else {
		r.LastModified = c.LastModified.Format(time.RFC3339Nano)
	}
	return r
}

var _ json.Marshaler = (*jay.Document)(nil) // with its @metadata
