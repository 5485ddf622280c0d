package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// updateCommand changes the documents that a query finds.
type updateCommand struct {
	changeFlags
	File  string   `short:"f" placeholder:"FILE" help:"Read the text from this file, - for standard input."`
	Param []string `placeholder:"NAME=VALUE" sep:"none" help:"Value of the parameter $$NAME: JSON if it is JSON, or else text. May be repeated."`
	Query string   `arg:"" optional:"" help:"A query that ends with update { }; - reads it from standard input."`
}

// Help is shown by jay update --help.
func (*updateCommand) Help() string {
	return `The statements in update { } are a part of JavaScript: they assign values, parameters and other members, add numbers with +=, -=, ++ and --, call push(), pop() and shift() of arrays, and delete members. docs/queries/updates.md has the rest.

Documents are changed in batches. If a document cannot be changed, or the command is interrupted, the batches before are changed. Those that are already as the statements would leave them are not written.

Examples:

    jay update 'from Orders where Total < 10 update { this.Small = true }' --dry-run
    jay update 'from Orders where Total < 10 update { this.Small = true }' --yes
    jay update 'from Users where Name = $n update { this.Visits += 1; this.Tags.push($tag); delete this.Old }' --param n=Ann --param tag=x
    jay update --file change.rql --yes --json`
}

// Run changes the documents and prints how many.
func (c *updateCommand) Run(ctx context.Context, a *app) error {
	params, err := parseParams(c.Param)
	if err != nil {
		return err
	}
	text, err := a.queryText(ctx, c.File, c.Query, "from Users update { this.Seen = true }")
	if err != nil {
		return err
	}
	if (c.File == stdinName || c.Query == stdinName) && !c.Yes && !c.DryRun {
		return usageError{text: "update from standard input cannot ask there: it needs --yes or --dry-run"}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		q, edits, err := db.UpdateRQL(text, params)
		if err != nil {
			return err
		}
		return c.change(ctx, a, q, change{"change", "changed", func(q jay.Query[jay.Row]) (jay.Changed, error) { return q.Patch(ctx, edits...) }})
	})
}

// changeFlags are the flags of commands that change many documents.
type changeFlags struct {
	Yes    bool `short:"y" help:"Do not ask first."`
	DryRun bool `help:"Print how many documents there are, and change nothing."`
}

// change is what is done to the documents of a query.
type change struct {
	verb, done string
	run        func(q jay.Query[jay.Row]) (jay.Changed, error)
}

// changeResult is what a change of many documents prints with --json.
type changeResult struct {
	jay.Changed
	DryRun  bool    `json:"dryRun"`
	Seconds float64 `json:"seconds"`
}

// change asks for confirmation, changes the results of the query, and prints a summary.
func (f *changeFlags) change(ctx context.Context, a *app, q jay.Query[jay.Row], c change) error {
	total := int64(-1)
	if f.DryRun || !f.Yes || a.showsProgress() {
		if !f.DryRun && !f.Yes {
			if err := a.checkAsking(); err != nil { // before counting, which takes time
				return err
			}
		}
		var err error
		if total, err = q.Count(ctx); err != nil {
			return err
		}
	}
	if f.DryRun {
		if a.json {
			return a.printLine(changeResult{Changed: jay.Changed{Documents: total}, DryRun: true})
		}
		return a.print(fmt.Sprintf("%s would be %s\n", count(total, "document"), c.done))
	}
	if !f.Yes {
		if err := a.confirm(ctx, fmt.Sprintf("%s %s?", c.verb, count(total, "document"))); err != nil {
			return err
		}
	}
	start := time.Now()
	bar := a.newCountProgress(c.verb, total)
	done, err := c.run(q.Progress(func(n jay.Changed) { bar.set(n.Documents + n.Unchanged + n.Overtaken) }))
	bar.done()
	if err != nil {
		return err
	}
	r := changeResult{Changed: done, Seconds: time.Since(start).Seconds()}
	if a.json {
		return a.printLine(r)
	}
	text := fmt.Sprintf("%s %s in %.1f s", c.done, count(done.Documents, "document"), r.Seconds)
	if done.Unchanged > 0 {
		text += fmt.Sprintf(", %s already so", thousands(done.Unchanged))
	}
	if done.Overtaken > 0 {
		text += fmt.Sprintf(", %s left to others, who changed them meanwhile", thousands(done.Overtaken))
	}
	return a.print(text + "\n")
}

// checkAsking returns an error if there is no terminal to ask on.
func (a *app) checkAsking() error {
	if a.json || !a.isTerminal(a.stdin) || !a.isTerminal(a.stderr) {
		return usageError{text: "there is no terminal to ask on: --yes changes the documents, and --dry-run counts them"}
	}
	return nil
}

// confirm asks a question on the terminal, and returns an error for any answer but yes.
func (a *app) confirm(ctx context.Context, question string) error {
	if err := a.checkAsking(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(a.stderr, "%s [y/N] ", printable(question)) // if this fails, there is no answer, and nothing is changed
	ahead := newReadAhead(ctx, a.stdin)
	defer ahead.stop()
	answer, err := bufio.NewReader(io.LimitReader(ahead, 100)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was changed, as the answer was not yes")
}
