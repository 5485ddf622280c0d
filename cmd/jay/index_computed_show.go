package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jaydb/jay"
)

// showComputedCommand shows a computed index.
type showComputedCommand struct {
	Errors int    `default:"10" placeholder:"N" help:"At most so many errors of documents for each part, up to 10,000; 0 is none."`
	Name   string `arg:"" help:"Name of the index."`
}

// Help is shown by jay index computed show --help.
func (*showComputedCommand) Help() string {
	return `It prints the declaration, the parts that keep the answers with their state, size on disk and errors, what is not kept and why, and documents for which an expression fails. Sizes are estimates, and do not count what was written last.

Examples:

    jay index computed show Products/Turnover
    jay index computed show Products/Turnover --json | jq '.parts[].bytes'
    jay index computed show Products/Turnover --errors 1000
    jay index errors Orders computed:Products/Turnover:3    those of one part, page by page`
}

// shownComputed is what index computed show prints with --json.
type shownComputed struct {
	jay.ComputedInfo
	Parts  []shownPart           `json:"parts"`
	Bytes  int64                 `json:"bytes"` // of all parts
	Errors []jay.ComputedFailure `json:"errors,omitempty"`
}

// shownPart is a part with its size.
type shownPart struct {
	jay.IndexInfo
	Bytes int64 `json:"bytes"`
}

// Run shows the index.
func (c *showComputedCommand) Run(ctx context.Context, a *app) error {
	if c.Errors < 0 {
		return usageError{text: fmt.Sprintf("--errors %d: it is a number from 0 to 10,000", c.Errors)}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		shown, err := c.find(ctx, db)
		if err != nil {
			return err
		}
		if a.json {
			return a.printLine(shown)
		}
		return a.print(shown.text(a.width))
	})
}

// find reads all that is shown.
func (c *showComputedCommand) find(ctx context.Context, db *jay.DB) (shown shownComputed, err error) {
	list, err := jay.ComputedOf(db).List(ctx)
	if err != nil {
		return shown, err
	}
	names := make([]string, 0, len(list))
	found := false
	for _, info := range list {
		if strings.EqualFold(info.Name, c.Name) {
			shown.ComputedInfo, found = info, true
		}
		names = append(names, info.Name)
	}
	if !found {
		there := "there is none"
		if len(names) > 0 {
			there = fmt.Sprintf("there is %q", names)
		}
		return shown, explained{fmt.Sprintf("there is no computed index %q; %s", c.Name, there), jay.ErrNotFound}
	}
	usage, err := db.DiskUsage(ctx)
	if err != nil {
		return shown, err
	}
	shown.Parts = []shownPart{}
	for _, part := range shown.ComputedInfo.Parts {
		one := shownPart{IndexInfo: part}
		for _, u := range usage.Indexes {
			if u.Collection == part.Collection && u.Name == part.Name {
				one.Bytes = u.Bytes
			}
		}
		shown.Bytes += one.Bytes
		shown.Parts = append(shown.Parts, one)
	}
	if c.Errors > 0 && shown.Unknown == "" {
		shown.Errors, err = jay.ComputedOf(db).Errors(ctx, c.Name, c.Errors)
	}
	return shown, err
}

// text is what is shown without --json, for a terminal of a width.
func (shown shownComputed) text(width int) string {
	var b strings.Builder
	if shown.Unknown != "" {
		fmt.Fprintf(&b, "%s: this version does not understand its declaration: %s\n", shown.Name, shown.Unknown)
		return b.String()
	}
	declared, err := json.MarshalIndent(shown.Computed, "", "  ")
	if err != nil {
		panic(err) // texts always marshal
	}
	fmt.Fprintf(&b, "%s, %s, %s\n%s\n", shown.Name, shown.State, size(shown.Bytes), declared)
	if shown.Next != nil {
		fmt.Fprintf(&b, "being replaced by: %s\n", shown.Next.Algebra)
	}
	if len(shown.Parts) > 0 {
		t := newFigures("Part", "Collection", "Fields", "Kind", "Where", "State", "Bytes")
		t.words = true
		for _, p := range shown.Parts {
			state := string(p.State)
			if p.IndexInfo.Errors > 0 {
				state += ", " + count(p.IndexInfo.Errors, "error")
			}
			t.add(fit(p.Name, tableCell), fit(p.Collection, tableCell), fit(strings.Join(p.Fields, ","), tableCell), indexKind(p.IndexInfo), fit(p.Where, tableCell), state, size(p.Bytes))
		}
		b.WriteString(t.render(width) + "\n")
	}
	for _, why := range shown.Without {
		fmt.Fprintf(&b, "not kept: %s\n", why)
	}
	if len(shown.Errors) > 0 {
		t := newFigures("Collection", "Document", "Expression", "Reason")
		t.words = true
		for _, e := range shown.Errors {
			t.add(fit(e.Collection, tableCell), fit(e.ID, tableCell), fit(e.Field, tableCell), fit(e.Reason, 2*tableCell))
		}
		b.WriteString(t.render(width) + "\n")
	}
	return b.String()
}

// previewComputedCommand shows what a declaration makes of documents.
type previewComputedCommand struct {
	File string   `arg:"" help:"The declaration as JSON; - is standard input."`
	IDs  []string `arg:"" optional:"" name:"id" help:"Documents to look at, at most 100. Without one they are the first ten of each collection."`
}

// Help is shown by jay index computed preview --help.
func (*previewComputedCommand) Help() string {
	return `It prints what the maps of a declaration give for each document, the expressions that fail, and what the reduce makes of these documents together. No index is created.

Examples:

    jay index computed preview turnover.json
    jay index computed preview turnover.json orders/1-A orders/2-A`
}

// Run shows the preview.
func (c *previewComputedCommand) Run(ctx context.Context, a *app) error {
	declared, err := readDeclaration(ctx, a.input(), c.File)
	if err != nil {
		return err
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		p, err := jay.ComputedOf(db).Preview(ctx, declared, c.IDs...)
		if err != nil {
			return err
		}
		if a.json {
			return a.printLine(p)
		}
		var b strings.Builder
		for _, doc := range p.Documents {
			for _, m := range doc.Maps {
				for _, entry := range m.Entries {
					fmt.Fprintf(&b, "%s, map %d: %s\n", doc.ID, m.Map, entry)
				}
				for _, e := range m.Errors {
					fmt.Fprintf(&b, "%s, map %d: %s fails: %s\n", doc.ID, m.Map, e.Field, e.Reason)
				}
			}
		}
		for _, result := range p.Results {
			fmt.Fprintf(&b, "result: %s\n", result)
		}
		for _, why := range p.Without {
			fmt.Fprintf(&b, "not kept: %s\n", why)
		}
		if b.Len() == 0 {
			b.WriteString("no entries\n")
		}
		return a.print(b.String())
	})
}
