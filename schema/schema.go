// Package schema defines rules about the shape of documents. A rule is a JSON Schema for the
// documents of a collection, and a Mode, which says what the database does with a document that
// violates the schema. The package has the types that package jay, a compiler and the tools share.
// It does not implement JSON Schema: package github.com/jaydb/jay/schema/jsonschema, a module of
// its own, is the Compiler.
//
//	db, err := jay.Open("shop.jay", &jay.Options{Schemas: jsonschema.New()})
//	...
//	err = db.Definitions().Schemas().Set(ctx, schema.Rule{
//		Collection: "Orders",
//		Mode:       schema.Refuse,
//		Schema:     []byte(`{"required": ["total"], "properties": {"total": {"type": "number"}}}`),
//	})
//
// The database does not change values of these types, and goroutines may share them.
package schema

import (
	"encoding/json"
	"fmt"
)

// Mode says what a database does with a write that violates a schema.
type Mode string

const (
	// Off stores the rule and does not run it. Writes work as without a rule, also in programs without
	// a Compiler.
	Off Mode = "off"

	// Warn carries out the write, counts it and logs it.
	Warn Mode = "warn"

	// Refuse refuses the write with an *Error.
	Refuse Mode = "refuse"
)

// Bounds of rules. docs/limits.md has them.
const (
	MaxBytes      = 256 << 10 // of the text of a schema
	MaxDepth      = 64        // of arrays and objects in each other in a schema
	MaxRules      = 1000      // of a database
	MaxTotalBytes = 16 << 20  // of the texts of all schemas of a database
	MaxViolations = 100       // that are listed for a document
)

// Rule is the rule of a collection.
type Rule struct {
	// Collection is the name of the collection. Case does not matter. Names that begin with @ have no rules.
	Collection string `json:"collection"`

	// Mode is what happens to a write that violates Schema.
	Mode Mode `json:"mode"`

	// Schema is a JSON Schema of draft 2020-12: the text as it was given. It applies to the body of a
	// document without @metadata.
	Schema json.RawMessage `json:"schema"`

	// Number is the number of the change that stored the rule. It grows with every change, and never
	// repeats. Calls that take a rule ignore it.
	Number uint64 `json:"number,omitempty"`
}

// Violation is a place in a document that violates a schema.
type Violation struct {
	// Path is the JSON pointer (RFC 6901) of the value, "" for the whole document.
	Path string `json:"path"`

	// Keyword is the keyword of the schema that the value violates, such as "required".
	Keyword string `json:"keyword"`

	// Message says what is wrong, for people. Its text may change.
	Message string `json:"message"`
}

// String returns the violation as text for people.
func (v Violation) String() string {
	if v.Path == "" {
		return "the document: " + v.Message
	}
	return v.Path + ": " + v.Message
}

// Compiler compiles the schemas of a database. It must be safe for concurrent use. Package jay
// calls it when the database is opened and when a rule changes, on any goroutine. The Compiler must
// not call the database.
type Compiler interface {
	// Compile returns the Validator of a schema. It must not keep text. An error refuses the schema.
	// It may be a *RuleError, whose Collection package jay sets, or any other error.
	Compile(text []byte) (Validator, error)
}

// Validator validates documents against a schema. It must be safe for concurrent use, and must not call the database.
type Validator interface {
	// Validate returns how many places of a body violate the schema, and the first violations, at most
	// most. The body is a JSON object without @metadata. Validate must neither change nor keep body.
	// It must return the same answer for the same body.
	Validate(body []byte, most int) (violations []Violation, count int)
}

// Check returns a *RuleError if m is not a mode.
func (m Mode) Check() error {
	switch m {
	case Off, Warn, Refuse:
		return nil
	}
	return &RuleError{Rule: fmt.Sprintf("a mode is %q, %q or %q", Off, Warn, Refuse), Value: string(m)}
}
