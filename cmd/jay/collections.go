package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// collectionsCommand lists, renames and drops collections.
type collectionsCommand struct {
	List   listCollectionsCommand  `cmd:"" default:"withargs" help:"List collections, and how many documents each has."`
	Rename renameCollectionCommand `cmd:"" help:"Put all documents of a collection into a new one."`
	Drop   dropCollectionCommand   `cmd:"" help:"Delete all documents and indexes of a collection."`
}

// listCollectionsCommand lists collections.
type listCollectionsCommand struct {
	All bool `help:"Also @hilo, which has the documents that count HiLo IDs."`
}

// Help is shown by jay collections list --help.
func (*listCollectionsCommand) Help() string {
	return `The numbers are exact and at hand: no document is read to count it. Documents without a collection are in @empty.

Examples:

    jay collections
    jay collections --json | jq -r .name`
}

// collectionLine is what collections prints of each with --json.
type collectionLine struct {
	jay.CollectionCount
	Indexes int `json:"indexes"`
}

// Run prints the collections.
func (c *listCollectionsCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		all, err := db.Collections(ctx)
		if err != nil {
			return err
		}
		indexes, err := db.Indexes(ctx, "")
		if err != nil {
			return err
		}
		return c.print(a, all, indexes)
	})
}

// print prints collections.
func (c *listCollectionsCommand) print(a *app, all []jay.CollectionCount, indexes []jay.IndexInfo) error {
	t := newFigures("Collection", "Documents", "Indexes")
	total := int64(0)
	for _, one := range all {
		if one.Name == "@hilo" && !c.All {
			continue
		}
		line := collectionLine{CollectionCount: one}
		for _, ix := range indexes {
			if strings.EqualFold(ix.Collection, one.Name) {
				line.Indexes++
			}
		}
		if a.json {
			if err := a.printLine(line); err != nil {
				return err
			}
		}
		t.add(fit(line.Name, tableCell), line.Documents, line.Indexes)
		total += line.Documents
	}
	switch {
	case a.json:
		return nil
	case len(t.rows) == 0:
		return a.print("no collections\n")
	}
	t.total("all", total)
	return a.print(t.render(a.width) + "\n")
}

// renameCollectionCommand renames a collection.
type renameCollectionCommand struct {
	From string `arg:"" help:"The collection."`
	To   string `arg:"" help:"Its new name."`
}

// Help is shown by jay collections rename --help.
func (*renameCollectionCommand) Help() string {
	return `IDs and contents stay as they are. The new name must not be that of a collection with documents. Indexes move as well. New HiLo IDs begin with the new name, and with number 1.

Documents move in batches. If the command is interrupted, some have the old name and some the new one: run it again to go on, or with the names exchanged to go back.

Examples:

    jay collections rename Users People
    jay collections rename users Users               only the spelling`
}

// renameResult is what collections rename prints with --json.
type renameResult struct {
	From      string  `json:"from"`
	To        string  `json:"to"`
	Documents int64   `json:"documents"` // moved by this command
	Seconds   float64 `json:"seconds"`
}

// Run renames the collection and prints a summary.
func (c *renameCollectionCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		total, err := a.progressTotal(ctx, db, c.From)
		if err != nil {
			return err
		}
		start := time.Now()
		bar := a.newCountProgress("rename "+c.From, total)
		n, err := db.RenameCollection(ctx, c.From, c.To, jay.CollectionProgress(bar.set))
		bar.done()
		if err != nil {
			return err
		}
		r := renameResult{c.From, c.To, n, time.Since(start).Seconds()}
		if a.json {
			return a.printLine(r)
		}
		return a.print(fmt.Sprintf("renamed %s to %s: %s in %.1f s\n", r.From, r.To, count(r.Documents, "document"), r.Seconds))
	})
}

// progressTotal returns how many documents a collection has, for a progress bar, or -1
// if none is shown.
func (a *app) progressTotal(ctx context.Context, db *jay.DB, collection string) (int64, error) {
	if !a.showsProgress() {
		return -1, nil
	}
	return db.Query(collection).Count(ctx)
}

// dropCollectionCommand drops a collection.
type dropCollectionCommand struct {
	changeFlags
	Name string `arg:"" help:"The collection."`
}

// Help is shown by jay collections drop --help.
func (*dropCollectionCommand) Help() string {
	return `Documents are deleted in batches, and then the indexes. If the command is interrupted, run it again to go on.

Examples:

    jay collections drop Drafts --dry-run
    jay collections drop Drafts --yes`
}

// dropResult is what collections drop prints with --json.
type dropResult struct {
	Name      string  `json:"name"`
	Documents int64   `json:"documents"`
	Indexes   int     `json:"indexes"`
	DryRun    bool    `json:"dryRun"`
	Seconds   float64 `json:"seconds"`
}

// Run drops the collection and prints a summary.
func (c *dropCollectionCommand) Run(ctx context.Context, a *app) error {
	if !c.Yes && !c.DryRun {
		if err := a.checkAsking(); err != nil {
			return err
		}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		r := dropResult{Name: c.Name, DryRun: c.DryRun}
		indexes, err := db.Indexes(ctx, c.Name)
		if err != nil {
			return err
		}
		r.Indexes = len(indexes)
		if r.Documents, err = db.Query(c.Name).Count(ctx); err != nil {
			return err
		}
		what := fmt.Sprintf("%s and %s of %s", count(r.Documents, "document"), plural(r.Indexes, "index", "indexes"), c.Name)
		if r.Documents == 0 && r.Indexes == 0 {
			if err := a.noteEmptyCollection(ctx, db, c.Name); err != nil {
				return err
			}
		}
		switch {
		case c.DryRun && a.json:
			return a.printLine(r)
		case c.DryRun:
			return a.print(what + " would be deleted\n")
		case !c.Yes:
			if err := a.confirm(ctx, "delete "+what+"?"); err != nil {
				return err
			}
		}
		start := time.Now()
		bar := a.newCountProgress("drop "+c.Name, r.Documents)
		r.Documents, err = db.DropCollection(ctx, c.Name, jay.CollectionProgress(bar.set))
		bar.done()
		if err != nil {
			return err
		}
		r.Seconds = time.Since(start).Seconds()
		if a.json {
			return a.printLine(r)
		}
		return a.print(fmt.Sprintf("dropped %s: %s and %s in %.1f s\n", c.Name, count(r.Documents, "document"), plural(r.Indexes, "index", "indexes"), r.Seconds))
	})
}

// plural returns "1 index", "2 indexes".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(int64(n)) + " " + many
}
