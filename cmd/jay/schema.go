package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/schema/jsonschema"
)

// schemaCommand sets and shows the schemas of collections.
type schemaCommand struct {
	List   listSchemasCommand  `cmd:"" default:"withargs" help:"List the collections with a schema."`
	Get    getSchemaCommand    `cmd:"" help:"Print the schema of a collection."`
	Set    setSchemaCommand    `cmd:"" help:"Give a collection a schema, and validate its documents."`
	Remove removeSchemaCommand `cmd:"" help:"Take the schema of a collection away."`
	Check  checkSchemaCommand  `cmd:"" help:"Validate the documents of a collection, and change nothing."`
	Infer  inferSchemaCommand  `cmd:"" help:"Propose a schema that the documents of a collection fit."`
}

// listSchemasCommand lists rules.
type listSchemasCommand struct{}

// Help is shown by jay schema list --help.
func (*listSchemasCommand) Help() string {
	return `A schema says which shape the documents of a collection have. In the mode "refuse", writes that violate it are refused; in the mode "warn" they are counted and logged; in the mode "off" they are not checked.

Examples:

    jay schema
    jay schema list --json`
}

// schemaLine is what list and set print of a rule with --json.
type schemaLine struct {
	schema.Rule
	Report schema.Report `json:"report"`
}

// Run prints the rules.
func (*listSchemasCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		rules := db.Definitions().Schemas()
		all, err := rules.List(ctx)
		if err != nil {
			return err
		}
		t := newFigures("Collection", "Mode", "Bytes", "Validated", "Violating")
		for _, rule := range all {
			report, err := rules.Report(ctx, rule.Collection)
			if err != nil {
				return err
			}
			if a.json {
				if err := a.printLine(schemaLine{rule, report}); err != nil {
					return err
				}
			}
			t.add(fit(rule.Collection, tableCell), string(rule.Mode), len(rule.Schema), report.Documents, report.Violating)
		}
		switch {
		case a.json:
			return nil
		case len(all) == 0:
			return a.print("no schemas\n")
		}
		return a.print(t.render(a.width) + "\n")
	})
}

// getSchemaCommand prints a schema.
type getSchemaCommand struct {
	Collection string `arg:"" help:"The collection."`
}

// Help is shown by jay schema get --help.
func (*getSchemaCommand) Help() string {
	return `The schema is printed as it was given. With --json, the mode and the report on the documents that were there come with it.

Examples:

    jay schema get Orders > orders.schema.json`
}

// Run prints the schema.
func (c *getSchemaCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		rules := db.Definitions().Schemas()
		rule, err := rules.Get(ctx, c.Collection)
		if err != nil {
			return err
		}
		if !a.json {
			return a.print(string(rule.Schema) + "\n")
		}
		report, err := rules.Report(ctx, c.Collection)
		if err != nil {
			return err
		}
		return a.printLine(schemaLine{rule, report})
	})
}

// setSchemaCommand sets a rule.
type setSchemaCommand struct {
	Collection string `arg:"" help:"The collection."`
	File       string `arg:"" optional:"" help:"The file with the schema; - is standard input. Without it, only the mode changes."`
	Mode       string `enum:"refuse,warn,off" default:"refuse" help:"What happens to a write that violates it: refuse, warn or off."`
}

// Help is shown by jay schema set --help.
func (*setSchemaCommand) Help() string {
	return `The schema is a JSON Schema, draft 2020-12. Documents that are there are validated, and stay as they are.

Examples:

    jay schema set Orders orders.schema.json --mode warn
    jay schema set Orders                            the same schema, from now on refusing
    jay schema set Orders --mode off`
}

// Run sets the rule, waits for the validation and prints what it has found.
func (c *setSchemaCommand) Run(ctx context.Context, a *app) error {
	rule := schema.Rule{Collection: c.Collection, Mode: schema.Mode(c.Mode)}
	if c.File != "" {
		var err error
		if rule.Schema, err = readSchema(c.File, a.stdin); err != nil {
			return err
		}
	}
	return a.withDatabase(c.File != "", func(db *jay.DB) error {
		rules := db.Definitions().Schemas()
		if c.File == "" {
			there, err := rules.Get(ctx, c.Collection)
			if err != nil {
				return err
			}
			rule.Collection, rule.Schema = there.Collection, there.Schema
		}
		if err := rules.Set(ctx, rule); err != nil {
			return err
		}
		rule, err := rules.Get(ctx, c.Collection)
		if err != nil {
			return err
		}
		var report schema.Report
		if rule.Mode != schema.Off {
			if report, err = rules.Wait(ctx, c.Collection); err != nil {
				return err
			}
		}
		return c.done(a, schemaLine{rule, report})
	})
}

// done prints what was set.
func (*setSchemaCommand) done(a *app, is schemaLine) error {
	switch {
	case a.json:
		return a.printLine(is)
	case is.Mode == schema.Off:
		return a.print("the schema of " + is.Collection + " is off\n")
	}
	return a.print(reportText(is.Report))
}

// reportPause is how long a command waits before it asks a server again for the report of a validation.
const reportPause = 50 * time.Millisecond

// remote sets the rule on a server, waits for the validation and prints what it has found.
func (c *setSchemaCommand) remote(ctx context.Context, a *app, r *remote) error {
	var text []byte
	if c.File != "" {
		var err error
		if text, err = readSchema(c.File, a.stdin); err != nil {
			return err
		}
		if len(bytes.TrimSpace(text)) == 0 { // without a schema, the endpoint changes the mode
			return &schema.RuleError{Collection: c.Collection, Rule: "a schema is a JSON object"}
		}
	}
	of := url.Values{"collection": {c.Collection}}
	if _, err := r.readAt(ctx, "PUT", r.own("/schemas/rule"), url.Values{"collection": {c.Collection}, "mode": {c.Mode}}, text); err != nil {
		return err
	}
	for {
		reply, err := r.readAt(ctx, "GET", r.own("/schemas/rule"), of, nil)
		if err != nil {
			return err
		}
		var is schemaLine
		if err := json.Unmarshal(reply, &is); err != nil {
			return fmt.Errorf("%s: not the reply of jay serve: %w", r.base, err)
		}
		if is.Mode == schema.Off || !is.Report.Ended.IsZero() {
			return c.done(a, is)
		}
		select {
		case <-time.After(reportPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readSchema reads a file with a schema, or from for "-". A longer one than a schema may be is refused without being read to its end.
func readSchema(file string, from io.Reader) (json.RawMessage, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close() // it was read
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, schema.MaxBytes+1))
	return text, err
}

// reportText is the text for what violates a schema.
func reportText(r schema.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s validated, %s violating\n", count(r.Documents, "document"), r.Collection, thousands(r.Violating))
	for _, d := range r.First {
		for _, v := range d.Violations {
			fmt.Fprintf(&b, "%s %s\n", printable(d.ID), printable(v.String()))
		}
	}
	if more := r.Violating - int64(len(r.First)); more > 0 {
		b.WriteString("and " + count(more, "more document") + "\n")
	}
	return b.String()
}

// removeSchemaCommand removes a rule.
type removeSchemaCommand struct {
	Collection string `arg:"" help:"The collection."`
}

// Help is shown by jay schema remove --help.
func (*removeSchemaCommand) Help() string {
	return `The documents stay, and are not checked any more.

Examples:

    jay schema remove Orders`
}

// Run removes the rule.
func (c *removeSchemaCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		if err := db.Definitions().Schemas().Remove(ctx, c.Collection); err != nil {
			return err
		}
		return c.done(a)
	})
}

// done prints that the rule is removed.
func (c *removeSchemaCommand) done(a *app) error {
	if a.json {
		return a.printLine(map[string]string{"removed": c.Collection})
	}
	return a.print("removed the schema of " + c.Collection + "\n")
}

// remote removes the rule on a server.
func (c *removeSchemaCommand) remote(ctx context.Context, a *app, r *remote) error {
	if _, err := r.readAt(ctx, "DELETE", r.own("/schemas/rule"), url.Values{"collection": {c.Collection}}, nil); err != nil {
		return err
	}
	return c.done(a)
}

// errViolating ends a check that has found documents which violate the schema.
var errViolating = errors.New("documents violate the schema")

// checkSchemaCommand validates documents.
type checkSchemaCommand struct {
	Collection string `arg:"" help:"The collection."`
	File       string `arg:"" optional:"" help:"The file with the schema; - is standard input. Without it, the schema of the collection."`
}

// Help is shown by jay schema check --help.
func (*checkSchemaCommand) Help() string {
	return `It lists the first 100 documents that violate the schema, and fails if there are any. It works while another program has the database open.

Examples:

    jay schema check Orders
    jay schema check Orders new.schema.json`
}

// Run validates the documents and prints what it has found.
func (c *checkSchemaCommand) Run(ctx context.Context, a *app) error {
	rule := schema.Rule{Collection: c.Collection}
	if c.File != "" {
		var err error
		if rule.Schema, err = readSchema(c.File, a.stdin); err != nil {
			return err
		}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		rules := db.Definitions().Schemas()
		if c.File == "" {
			var err error
			if rule, err = rules.Get(ctx, c.Collection); err != nil {
				return err
			}
		}
		total, err := a.progressTotal(ctx, db, c.Collection)
		if err != nil {
			return err
		}
		bar := a.newCountProgress("check "+c.Collection, total)
		report, err := rules.Check(ctx, rule, bar.set)
		bar.done()
		if err != nil {
			return err
		}
		if a.json {
			err = a.printLine(report)
		} else {
			err = a.print(reportText(report))
		}
		if err == nil && report.Violating > 0 {
			err = errViolating
		}
		return err
	})
}

// inferSchemaCommand proposes a schema.
type inferSchemaCommand struct {
	Collection string `arg:"" help:"The collection."`
	Limit      int    `default:"100000" help:"How many documents are looked at, in the order of their IDs; 0 for all."`
}

// Help is shown by jay schema infer --help.
func (*inferSchemaCommand) Help() string {
	return `The proposal has types, the members that all documents have, texts of which there are few, and formats of dates. Read it before you set it: what is the same in all documents so far may differ in the next one.

Examples:

    jay schema infer Orders > orders.schema.json`
}

// Run prints the proposal.
func (c *inferSchemaCommand) Run(ctx context.Context, a *app) error {
	if c.Limit < 0 {
		return usageError{text: "--limit must not be negative"}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		var in jsonschema.Inference
		for doc, err := range db.Documents(ctx, jay.Scan{Collection: c.Collection}) {
			if err != nil {
				return err
			}
			if err := in.Add(doc.Body()); err != nil {
				return err
			}
			if c.Limit > 0 && in.Documents() >= int64(c.Limit) {
				break
			}
		}
		if in.Documents() == 0 {
			return fmt.Errorf("%w: the collection %s has no documents", jay.ErrNotFound, c.Collection)
		}
		return a.print(string(in.Schema()))
	})
}
