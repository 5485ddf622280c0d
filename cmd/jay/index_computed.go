package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// computedCommand creates, lists, shows and drops computed indexes.
type computedCommand struct {
	Create  createComputedCommand  `cmd:"" help:"Create a computed index from a JSON file, and wait until its parts are ready."`
	Preview previewComputedCommand `cmd:"" help:"Show what a declaration makes of documents, without creating the index."`
	List    listComputedCommand    `cmd:"" help:"List computed indexes, their algebra and their parts."`
	Show    showComputedCommand    `cmd:"" help:"Show a computed index: its declaration, its parts with state and size, and errors of documents."`
	Drop    dropComputedCommand    `cmd:"" help:"Remove a computed index with its parts."`
}

// createComputedCommand creates a computed index.
type createComputedCommand struct {
	Replace bool   `help:"Replace an index of the same name that is declared otherwise; it answers until the new one is ready."`
	File    string `arg:"" help:"The declaration as JSON; - is standard input."`
}

// Help is shown by jay index computed create --help.
func (*createComputedCommand) Help() string {
	return `The declaration is JSON such as

    {"name": "Products/Turnover",
     "maps": [{"collection": "Orders", "each": "Lines", "as": "line", "where": "line.Quantity > 0",
               "select": [{"name": "Product", "expression": "line.Product"},
                          {"name": "Total", "expression": "line.Price * line.Quantity"}]}],
     "reduce": {"groupBy": ["Product"],
                "select": [{"name": "Product"}, {"name": "Total", "expression": "sum(Total)"}]}}

Without reduce the results are the members of each document or element. If the index exists already, nothing changes and jay exits with 0.

Examples:

    jay index computed create turnover.json
    jay query "from index 'Products/Turnover' order by Total desc"
    jay index computed create turnover.json --replace
    jay index computed create turnover.json --url http://127.0.0.1:8080/databases/shop`
}

// maxDeclaration bounds the JSON of a declaration: more than its names and texts may have.
const maxDeclaration = 1 << 20

// Run creates the index.
func (c *createComputedCommand) Run(ctx context.Context, a *app) error {
	declared, err := readDeclaration(ctx, a.input(), c.File)
	if err != nil {
		return err
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		bar := a.newCountProgress("index "+declared.Name, -1)
		defer bar.done()
		options := []jay.IndexOption{jay.IndexProgress(func(n int64) { bar.set(n) })}
		if c.Replace {
			options = append(options, jay.ReplaceIndex())
		}
		if err := jay.ComputedOf(db).Ensure(ctx, declared, options...); err != nil {
			return err
		}
		return c.done(a, declared)
	})
}

// done says that the index is ready.
func (*createComputedCommand) done(a *app, declared jay.Computed) error {
	if a.json {
		return a.printLine(declared)
	}
	return a.print(fmt.Sprintf("computed index %q is ready\n", declared.Name))
}

// remote creates the index on a server, which answers now and then while the parts are being built.
func (c *createComputedCommand) remote(ctx context.Context, a *app, r *remote) error {
	declared, err := readDeclaration(ctx, a.input(), c.File)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"index": declared, "replace": c.Replace})
	if err != nil {
		return err
	}
	for {
		text, err := r.readAt(ctx, "PUT", r.own("/indexes/computed"), nil, body)
		if err != nil {
			return err
		}
		switch ready := gjson.GetBytes(text, "ready"); {
		case !ready.IsBool():
			return fmt.Errorf("%s: not the reply of jay serve", r.base)
		case ready.Bool():
			return c.done(a, declared)
		}
	}
}

// readDeclaration reads the declaration of a computed index.
func readDeclaration(ctx context.Context, in standardInput, file string) (declared jay.Computed, err error) {
	name, text, err := in.read(ctx, file, "a declaration", maxDeclaration)
	switch {
	case err == errLongInput:
		return declared, usageError{text: fmt.Sprintf("%s: a declaration has at most %d bytes", name, maxDeclaration)}
	case err != nil:
		return declared, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&declared); err != nil {
		return declared, usageError{text: fmt.Sprintf("%s: no declaration of a computed index: %v", name, err)}
	}
	if _, err := d.Token(); err != io.EOF {
		return declared, usageError{text: fmt.Sprintf("%s: there is more than one declaration", name)}
	}
	return declared, nil
}

// listComputedCommand lists computed indexes.
type listComputedCommand struct{}

// Help is shown by jay index computed list --help.
func (*listComputedCommand) Help() string {
	return `Parts are the indexes that keep the answers; what has none is computed from documents.

Examples:

    jay index computed list
    jay index computed list --json | jq .parts`
}

// Run prints the computed indexes.
func (c *listComputedCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		list, err := jay.ComputedOf(db).List(ctx)
		if err != nil {
			return err
		}
		if a.json {
			for _, info := range list {
				if err := a.printLine(info); err != nil {
					return err
				}
			}
			return nil
		}
		if len(list) == 0 {
			return a.print("no computed indexes\n")
		}
		t := newFigures("Name", "State", "Parts", "Algebra")
		t.words = true
		for _, info := range list {
			state, algebra := string(info.State), info.Algebra
			if info.Next != nil {
				state += ", being replaced"
			}
			if info.Unknown != "" {
				state, algebra = "unknown", info.Unknown
			}
			t.add(fit(info.Name, tableCell), state, fmt.Sprint(len(info.Parts)), fit(algebra, 2*tableCell))
		}
		return a.print(t.render(a.width) + "\n")
	})
}

// dropComputedCommand removes a computed index.
type dropComputedCommand struct {
	Name string `arg:"" help:"Name of the index."`
}

// Help is shown by jay index computed drop --help.
func (*dropComputedCommand) Help() string {
	return `Documents stay as they are.

Examples:

    jay index computed drop Products/Turnover`
}

// Run removes the index.
func (c *dropComputedCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		if err := jay.ComputedOf(db).Drop(ctx, c.Name); err != nil {
			return err
		}
		return c.done(a)
	})
}

// done says that the index is gone.
func (c *dropComputedCommand) done(a *app) error {
	if a.json {
		return a.printLine(map[string]any{"name": c.Name, "dropped": true})
	}
	return a.print(fmt.Sprintf("dropped computed index %q\n", c.Name))
}

// remote removes the index on a server. Its entries may be removed after the reply.
func (c *dropComputedCommand) remote(ctx context.Context, a *app, r *remote) error {
	if _, err := r.readAt(ctx, "DELETE", r.own("/indexes/computed"), url.Values{"name": {c.Name}}, nil); err != nil {
		return err
	}
	return c.done(a)
}
