package schema

import (
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/errs"
)

// Error is returned for a document that violates the schema of its collection, if the Mode of the
// rule is Refuse. Nothing was changed. errors.Is(err, jay.ErrSchema) is true.
type Error struct {
	ID         string      `json:"id,omitempty"` // of the document; "" if no ID was made yet
	Collection string      `json:"collection"`   // as the rule names it
	Count      int         `json:"count"`        // of all violations
	Violations []Violation `json:"violations"`   // the first violations, at most MaxViolations
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

// RuleError is returned for an invalid rule: a schema that is not valid, a reference to another
// document, a pattern that Go's regular expressions do not support, or a rule beyond a bound.
// Nothing was changed. errors.Is(err, jay.ErrSchemaRule) is true.
type RuleError struct {
	Collection string `json:"collection,omitempty"`
	Path       string `json:"path,omitempty"`  // JSON pointer into the schema; "" for the whole schema, or if the place is not known
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

// CompilerError is returned for a write into a collection whose rule the program cannot run: the
// database was opened without a Compiler, or the Compiler refuses a schema that another Compiler
// has accepted. Nothing was changed. The documents of the collection can be read and deleted, and
// other collections can be written. errors.Is(err, jay.ErrSchemaRule) is true.
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
