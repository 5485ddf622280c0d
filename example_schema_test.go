package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/schema"
)

// requiredOnly is a compiler for the examples: its schemas are {"required": [...]} and nothing else. A program takes jsonschema.New of the module
// github.com/jaydb/jay/schema/jsonschema.
type requiredOnly struct{ Required []string }

func (requiredOnly) Compile(text []byte) (schema.Validator, error) {
	var n requiredOnly
	err := json.Unmarshal(text, &n)
	if err == nil && n.Required == nil {
		err = &schema.RuleError{Rule: "only required is known"}
	}
	return n, err
}

func (n requiredOnly) Validate(body []byte, most int) (all []schema.Violation, count int) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(body, &members)
	for _, name := range n.Required {
		if _, found := members[name]; !found {
			all = append(all, schema.Violation{Keyword: "required", Message: "missing property " + name})
		}
	}
	return all[:min(len(all), most)], len(all)
}

// A rule refuses documents that violate the schema of their collection, and says what was there already.
func ExampleSchemaRules() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{Schemas: requiredOnly{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	_, _ = db.Put(ctx, "orders/1", []byte(`{"note": "there before"}`), jay.InCollection("Orders"))

	rules := db.Definitions().Schemas()
	err = rules.Set(ctx, schema.Rule{Collection: "Orders", Mode: schema.Refuse, Schema: []byte(`{"required": ["customer", "total"]}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = db.Put(ctx, "orders/2", []byte(`{"total": 12}`), jay.InCollection("Orders"))
	fmt.Println(errors.Is(err, jay.ErrSchema))
	report, _ := rules.Wait(ctx, "Orders")
	fmt.Println(report.Violating, "of", report.Documents, "violate it:", report.First[0].ID)
	// Output:
	// true
	// 1 of 1 violate it: orders/1
}

// The error of a document lists what is wrong with it.
func ExampleSchemaError() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{Schemas: requiredOnly{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	_ = db.Definitions().Schemas().Set(ctx, schema.Rule{Collection: "Orders", Mode: schema.Refuse, Schema: []byte(`{"required": ["customer", "total"]}`)})
	_, err = db.Put(ctx, "orders/2", []byte(`{"total": 12}`), jay.InCollection("Orders"))
	var refused *jay.SchemaError
	if errors.As(err, &refused) {
		fmt.Println(refused.ID, refused.Count, refused.Violations[0].Message)
	}
	// Output: orders/2 1 missing property customer
}

// A schema that cannot be is refused when the rule is set.
func ExampleSchemaRuleError() {
	db, err := jay.OpenMemory(&jay.Options{Schemas: requiredOnly{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	err = db.Definitions().Schemas().Set(context.Background(), schema.Rule{Collection: "Orders", Mode: schema.Refuse, Schema: []byte(`{"type": "object"}`)})
	var wrong *jay.SchemaRuleError
	fmt.Println(errors.As(err, &wrong), errors.Is(err, jay.ErrSchemaRule), wrong.Rule)
	// Output: true true only required is known
}

// A program that cannot check documents is told so when it sets a rule, and when it writes into a collection with one.
func ExampleSchemaCompilerError() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	err = db.Definitions().Schemas().Set(context.Background(), schema.Rule{Collection: "Orders", Mode: schema.Warn, Schema: []byte(`{}`)})
	var missing *jay.SchemaCompilerError
	fmt.Println(errors.As(err, &missing), missing.Collection)
	// Output: true Orders
}

// A rule that warns counts the documents that violate it.
func ExampleSchemaWarning() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{Schemas: requiredOnly{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	_ = db.Definitions().Schemas().Set(ctx, schema.Rule{Collection: "Orders", Mode: schema.Warn, Schema: []byte(`{"required": ["total"]}`)})
	_, err = db.Store(ctx, "Orders", []byte(`{}`))
	stats, _ := db.Stats(ctx)
	fmt.Println(err, stats.SchemaWarnings[0].Collection, stats.SchemaWarnings[0].Documents)
	// Output: <nil> Orders 1
}
