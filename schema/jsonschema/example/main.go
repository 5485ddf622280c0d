// Command example gives a collection with documents in it a schema: it makes the schema of a
// Go type, looks what violates it, warns at first, mends the documents, and refuses then.
// docs/schemas.md has the rules.
//
//	go run ./schema/jsonschema/example
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/schema/jsonschema"
)

// Order is stored in the collection Orders.
type Order struct {
	ID       string
	Customer string `json:"customer"`
	Cents    uint64 `json:"cents"`
	Lines    []Line `json:"lines,omitempty"`
}

// Line is a part of an order.
type Line struct {
	Product string `json:"product"`
	Pieces  uint16 `json:"pieces"`
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	db, err := jay.OpenMemory(&jay.Options{Schemas: jsonschema.New()})
	if err != nil {
		return err
	}
	defer db.Close()

	// These were written by an older program, and by hand.
	for id, body := range map[string]string{
		"orders/1": `{"customer":"Ann","cents":1250,"lines":[{"product":"tea","pieces":2}]}`,
		"orders/2": `{"customer":"Bob","cents":"990"}`,
		"orders/3": `{"customer":"Cyd","cents":700,"lines":[{"product":"cup"}]}`,
	} {
		if _, err := db.Put(ctx, id, []byte(body), jay.InCollection("Orders")); err != nil {
			return err
		}
	}

	text, err := jsonschema.For[Order]()
	if err != nil {
		return err
	}
	rule := schema.Rule{Collection: "Orders", Mode: schema.Warn, Schema: text}
	rules := db.Definitions().Schemas()
	if err := rules.Set(ctx, rule); err != nil {
		return err
	}
	if err := show(ctx, out, rules, "Before they are mended"); err != nil {
		return err
	}

	for id, edit := range map[string]jay.PatchOption{
		"orders/2": jay.Set("cents", 990),
		"orders/3": jay.Set("lines[0].pieces", 1),
	} {
		if _, err := db.Patch(ctx, id, edit); err != nil {
			return err
		}
	}
	rule.Mode = schema.Refuse
	if err := rules.Set(ctx, rule); err != nil {
		return err
	}
	if err := show(ctx, out, rules, "Afterwards"); err != nil {
		return err
	}

	_, err = db.Put(ctx, "orders/4", []byte(`{"cents":-1,"lines":[{"product":"pot","pieces":1}]}`), jay.InCollection("Orders"))
	var refused *jay.SchemaError
	if !errors.As(err, &refused) {
		return fmt.Errorf("the order was not refused: %w", err)
	}
	fmt.Fprintln(out, "A new order is refused:")
	for _, v := range refused.Violations {
		fmt.Fprintf(out, "  %s\n", v)
	}

	orders, err := jay.CollectionOf[Order](db)
	if err != nil {
		return err
	}
	if _, err := orders.Put(ctx, &Order{ID: "orders/4", Customer: "Dan", Cents: 1, Lines: []Line{{"pot", 1}}}); err != nil {
		return err
	}
	fmt.Fprintln(out, "A value of the type is stored.")
	return nil
}

// show waits for the validation of what is there, and prints its report.
func show(ctx context.Context, out io.Writer, rules jay.SchemaRules, when string) error {
	report, err := rules.Wait(ctx, "Orders")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %d of %d orders violate the schema.\n", when, report.Violating, report.Documents)
	for _, d := range report.First {
		for _, v := range d.Violations {
			fmt.Fprintf(out, "  %s %s\n", d.ID, v)
		}
	}
	return nil
}
