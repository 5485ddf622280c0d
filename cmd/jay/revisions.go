package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// revisionsCommand shows and removes older versions of documents.
type revisionsCommand struct {
	List      listRevisionsCommand      `cmd:"" default:"withargs" help:"Print the revisions of a document, newest first."`
	Diff      diffRevisionsCommand      `cmd:"" help:"Show what differs between two revisions."`
	Deleted   deletedRevisionsCommand   `cmd:"" help:"List deleted documents that have revisions."`
	Configure configureRevisionsCommand `cmd:"" help:"Say of which collections revisions are kept, or show it."`
	Purge     purgeRevisionsCommand     `cmd:"" help:"Remove revisions for good."`
}

// listRevisionsCommand prints the revisions of a document.
type listRevisionsCommand struct {
	Before string     `placeholder:"CV" help:"Begin behind the revision with this change vector."`
	AsOf   *timeValue `placeholder:"TIME" help:"Print only the version of that time."`
	Limit  int        `placeholder:"N" help:"Print at most so many."`
	ID     string     `arg:"" name:"id" help:"ID of the document."`
}

// Help is shown by jay revisions list --help.
func (*listRevisionsCommand) Help() string {
	return `Each revision is one line of JSON with its @metadata, whose @flags say whether it is a version of the document or its deletion. The newest version is the document itself. Of a document that is called like a command, ask with list.

Examples:

    jay revisions users/ann
    jay revisions users/ann --limit 1 --as-of 2026-01-31T12:00:00Z
    jay revisions list purge`
}

// Run prints the revisions.
func (c *listRevisionsCommand) Run(ctx context.Context, a *app) error {
	if c.Limit < 0 {
		return usageError{text: fmt.Sprintf("--limit is not negative, got %d", c.Limit)}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		if c.AsOf != nil {
			rev, err := db.Revisions().AsOf(ctx, c.ID, c.AsOf.at)
			if err != nil {
				return err
			}
			return a.printRevision(rev)
		}
		found := false
		for rev, err := range db.Revisions().List(ctx, c.ID, jay.RevisionPage{Before: c.Before, Limit: c.Limit}) {
			if err != nil {
				return err
			}
			if err := a.printRevision(rev); err != nil {
				return err
			}
			found = true
		}
		if !found {
			a.note("%q has no revisions", c.ID)
		}
		return nil
	})
}

func (a *app) printRevision(rev *jay.Revision) error {
	text, err := rev.MarshalJSON()
	if err != nil {
		return err
	}
	return a.print(string(text) + "\n")
}

// diffRevisionsCommand shows what differs between two revisions.
type diffRevisionsCommand struct {
	ID     string `arg:"" name:"id" help:"ID of the document."`
	Before string `arg:"" help:"Change vector of the one."`
	After  string `arg:"" optional:"" help:"Change vector of the other, the document as it is unless told."`
}

// diffResult is a difference as diff prints it with --json.
type diffResult struct {
	Path string          `json:"path"`
	Kind string          `json:"kind"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// Run prints the differences.
func (c *diffRevisionsCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		changes, err := db.Revisions().Diff(ctx, c.ID, c.Before, c.After)
		if err != nil {
			return err
		}
		for _, one := range changes {
			r := diffResult{one.Path, one.Kind.String(), one.Old, one.New}
			if a.json {
				err = a.printLine(r)
			} else {
				err = a.print(strings.TrimRight(fmt.Sprintf("%s %s: %s → %s", r.Kind, r.Path, orNothing(r.Old), orNothing(r.New)), " ") + "\n")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func orNothing(value json.RawMessage) string {
	if value == nil {
		return "nothing"
	}
	return string(value)
}

// deletedRevisionsCommand lists deleted documents.
type deletedRevisionsCommand struct {
	After string `placeholder:"ID" help:"Begin behind this ID."`
	Limit int    `placeholder:"N" help:"Print at most so many."`
}

// Run prints the deletions.
func (c *deletedRevisionsCommand) Run(ctx context.Context, a *app) error {
	if c.Limit < 0 {
		return usageError{text: fmt.Sprintf("--limit is not negative, got %d", c.Limit)}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		n := 0
		for rev, err := range db.Revisions().Deleted(ctx, c.After) {
			if err != nil {
				return err
			}
			if err := a.printRevision(rev); err != nil {
				return err
			}
			if n++; n == c.Limit {
				break
			}
		}
		return nil
	})
}

// configureRevisionsCommand changes which revisions are kept.
type configureRevisionsCommand struct {
	All        bool          `xor:"what" help:"Keep all revisions."`
	Keep       uint64        `placeholder:"N" help:"Keep so many versions of a document, the newest included."`
	KeepFor    time.Duration `placeholder:"DURATION" help:"Keep versions for so long after they were replaced, such as 720h."`
	Disable    bool          `xor:"what" help:"Make no more revisions."`
	Remove     bool          `xor:"what" help:"Remove the rule; of a collection, the default applies then."`
	Collection string        `arg:"" optional:"" help:"The collection, the default of all unless told."`
}

// Help is shown by jay revisions configure --help.
func (*configureRevisionsCommand) Help() string {
	return `Without flags it shows what is configured. With --keep and --keep-for, a version goes when both allow it. What is there stays, until it is purged or its document is written.

Examples:

    jay revisions configure
    jay revisions configure --keep 10
    jay revisions configure Orders --all
    jay revisions configure Logs --disable
    jay revisions configure Orders --keep 5 --keep-for 720h`
}

// Run changes the configuration and prints it.
func (c *configureRevisionsCommand) Run(ctx context.Context, a *app) error {
	limits := c.Keep > 0 || c.KeepFor != 0
	if limits && (c.All || c.Remove) {
		return usageError{text: "--keep and --keep-for go without --all and --remove"}
	}
	shows := !limits && !c.All && !c.Disable && !c.Remove
	if shows && c.Collection != "" {
		return usageError{text: "say what to keep: --all, --keep, --keep-for, --disable or --remove"}
	}
	return a.withDatabase(!shows, func(db *jay.DB) error {
		config := db.Revisions().Configuration()
		if !shows {
			c.change(&config)
			if err := db.Revisions().Configure(ctx, config); err != nil {
				return err
			}
			config = db.Revisions().Configuration()
		}
		return a.printRules(config)
	})
}

func (c *configureRevisionsCommand) change(config *jay.RevisionsConfiguration) {
	rule := jay.RevisionRule{Keep: c.Keep, KeepFor: c.KeepFor, Disabled: c.Disable}
	if c.Collection == "" {
		if config.Default = &rule; c.Remove {
			config.Default = nil
		}
		return
	}
	for name := range config.Collections { // names are compared without case
		if strings.EqualFold(name, c.Collection) {
			delete(config.Collections, name)
		}
	}
	if !c.Remove {
		config.Collections[c.Collection] = rule
	}
}

func (a *app) printRules(config jay.RevisionsConfiguration) error {
	if a.json {
		return a.printLine(config)
	}
	if config.Default == nil && len(config.Collections) == 0 {
		return a.print("no revisions are kept\n")
	}
	t := newFigures("Collection", "Revisions")
	t.words = true
	for _, name := range slices.Sorted(maps.Keys(config.Collections)) {
		t.add(fit(name, tableCell), ruleText(config.Collections[name]))
	}
	if config.Default != nil {
		t.add("(all others)", ruleText(*config.Default))
	}
	return a.print(t.render(a.width) + "\n")
}

// ruleText describes what a rule keeps.
func ruleText(r jay.RevisionRule) string {
	switch {
	case r.Disabled:
		return "none"
	case r.Keep > 0 && r.KeepFor > 0:
		return fmt.Sprintf("%d, and all of %v", r.Keep, r.KeepFor)
	case r.Keep > 0:
		return fmt.Sprint(r.Keep)
	case r.KeepFor > 0:
		return fmt.Sprintf("all of %v", r.KeepFor)
	}
	return "all"
}

// purgeRevisionsCommand removes revisions.
type purgeRevisionsCommand struct {
	Retention  bool       `xor:"what" help:"What the configuration keeps no longer."`
	Before     *timeValue `xor:"what" placeholder:"TIME" help:"What was replaced or deleted before that time."`
	Collection string     `placeholder:"NAME" help:"Only of documents of this collection."`
	Deleted    bool       `help:"Only of deleted documents."`
	ID         string     `arg:"" optional:"" name:"id" help:"Only of this document."`
}

// Help is shown by jay revisions purge --help.
func (*purgeRevisionsCommand) Help() string {
	return `Revisions are removed from the oldest of each document on; the document itself stays. An interrupted purge is continued by another one.

Examples:

    jay revisions purge --retention
    jay revisions purge --before 2026-01-01
    jay revisions purge --deleted --before 2026-01-01T00:00:00Z --collection Orders
    jay revisions purge users/ann`
}

// Run removes the revisions and prints a summary.
func (c *purgeRevisionsCommand) Run(ctx context.Context, a *app) error {
	if !c.Retention && c.Before == nil && c.ID == "" {
		return usageError{text: "say what is to go: --retention, --before or an ID"}
	}
	p := jay.RevisionPurge{ID: c.ID, Collection: c.Collection, Deleted: c.Deleted, Retention: c.Retention}
	if c.Before != nil {
		p.Before = c.Before.at
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		bar := a.newCountProgress("purge", -1)
		p.Progress = func(done jay.RevisionsPurged) { bar.set(done.Revisions) }
		done, err := db.Revisions().Purge(ctx, p)
		bar.done()
		if err != nil {
			return err
		}
		if a.json {
			return a.printLine(done)
		}
		return a.print(fmt.Sprintf("removed %s, %s\n", count(done.Revisions, "revision"), size(done.Bytes)))
	})
}

// timeValue is a time on the command line: RFC 3339, or a day, in UTC.
type timeValue struct{ at time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *timeValue) UnmarshalText(text []byte) (err error) {
	if t.at, err = time.Parse(time.RFC3339Nano, string(text)); err == nil {
		return nil
	}
	if t.at, err = time.Parse(time.DateOnly, string(text)); err == nil {
		return nil
	}
	return fmt.Errorf("a time is such as 2026-01-31T12:00:00Z or 2026-01-31, got %q", text)
}
