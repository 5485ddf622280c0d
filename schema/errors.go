package schema

import (
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/errs"
)

// Error is returned for a document that violates the schema of its collection, whose rule refuses it. Nothing was changed. It is
// jay.ErrSchema.
type Error struct {
	ID         string      `json:"id,omitempty"` // of the document; "" if none was made yet
	Collection string      `json:"collection"`   // as the rule names it
	Count      int         `json:"count"`        // of all violations
	Violations []Violation `json:"violations"`   // the first of them, at most MaxViolations
}

// shown is how many violations the text of an Error has.
const shown = 3

// Error names the document and the first violations.
func (e *Error) Error() string {
	var out strings.Builder
	if e.ID != "" {
		fmt.Fprintf(&out, "document %q violates", errs.Shorten(e.ID))
	} else {
		out.WriteString("the document violates")
	}
	fmt.Fprintf(&out, " the schema of the collection %q", errs.Shorten(e.Collection))
	for i, v := range e.Violations[:min(len(e.Violations), shown)] {
		out.WriteString([]string{": ", "; "}[min(i, 1)] + v.String())
	}
	if more := e.Count - min(len(e.Violations), shown); more > 0 {
		fmt.Fprintf(&out, "; and %d more", more)
	}
	return out.String()
}

// Is reports whether target is jay.ErrSchema.
func (e *Error) Is(target error) bool { return target == errs.ErrSchema }

// RuleError is returned for a rule that cannot be: a schema that is not valid, a reference to another document, a pattern that Go's regular
// expressions do not have, a bound. Nothing was changed. It is jay.ErrSchemaRule.
type RuleError struct {
	Collection string `json:"collection,omitempty"`
	Path       string `json:"path,omitempty"`  // JSON pointer into the schema; "" for the whole, or if it is not known
	Rule       string `json:"rule"`            // what must hold
	Value      string `json:"value,omitempty"` // what was given, shortened
}

// Error names the rule and the value.
func (e *RuleError) Error() string {
	var out strings.Builder
	out.WriteString("schema")
	if e.Collection != "" {
		fmt.Fprintf(&out, " of the collection %q", errs.Shorten(e.Collection))
	}
	if e.Path != "" {
		fmt.Fprintf(&out, ", at %s", e.Path)
	}
	out.WriteString(": " + e.Rule)
	if e.Value != "" {
		fmt.Fprintf(&out, ": %q", errs.Shorten(e.Value))
	}
	return out.String()
}

// Is reports whether target is jay.ErrSchemaRule.
func (e *RuleError) Is(target error) bool { return target == errs.ErrSchemaRule }

// CompilerError is returned for a write into a collection with a rule that the program cannot run: it was opened without a Compiler, or its
// Compiler refuses the schema, which another one has accepted. Nothing was changed. The documents can be read and deleted, and other collections
// written. It is jay.ErrSchemaRule.
type CompilerError struct {
	Collection string `json:"collection"`
	Cause      string `json:"cause,omitempty"` // why the Compiler refuses the schema; "" without a Compiler
}

// Error says what to do.
func (e *CompilerError) Error() string {
	if e.Cause == "" {
		return fmt.Sprintf("the collection %q has a schema, and this program cannot check documents against it: open the database with Options.Schemas, or switch the rule off", errs.Shorten(e.Collection))
	}
	return fmt.Sprintf("the collection %q has a schema that this program does not understand (%s): use the version that has stored it, or switch the rule off", errs.Shorten(e.Collection), errs.Shorten(e.Cause))
}

// Is reports whether target is jay.ErrSchemaRule.
func (e *CompilerError) Is(target error) bool { return target == errs.ErrSchemaRule }
