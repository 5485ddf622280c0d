// Package algebra translates the index definitions of RavenDB's clients, texts in C# and in JavaScript, into declarations
// of computed indexes, whose expressions are RQL.
//
//	declared, err := algebra.Translate("Orders/ByDay", []string{"from o in docs.Orders select new { o.Company, Total = o.Price * o.Count }"}, "")
//
// The package runs no program: it follows a text with values that are texts of RQL, as a compiler does. What it accepts
// means in RQL what it means in its language, by the rules that docs/server/definitions.md lists. What it cannot say exactly it refuses,
// with an [*Error] that has the line, the column and the reason.
//
// All functions are pure, and safe for concurrent use.
package algebra

import "fmt"

// Bounds of a definition. Translate refuses what is beyond.
const (
	// MaxTextBytes bounds each map, and the reduce.
	MaxTextBytes = 16 << 10

	// MaxMaps bounds the maps.
	MaxMaps = 16

	// MaxMembers bounds the members of an entry.
	MaxMembers = 32

	// MaxGroupMembers bounds the members by which a reduce groups.
	MaxGroupMembers = 8

	// maxNesting bounds how deep expressions, blocks and chains of operators are nested.
	maxNesting = 64

	// maxExpression bounds the RQL of an expression, in bytes. Each use of a variable has the text of its value.
	maxExpression = 8 << 10

	// maxWritten bounds the RQL that is written on the way to a declaration, in bytes, and so the work.
	maxWritten = 1 << 20
)

// Error says which place of a definition cannot be declared, and why.
type Error struct {
	Part   string // "map 1" for the first of the maps, or "reduce"
	Line   int    // from 1
	Column int    // in characters, from 1
	Reason string
	Syntax bool   // the text is not of its language, so that RavenDB refuses it too
	Text   string // the map or the reduce
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s, line %d, column %d: %s", e.Part, e.Line, e.Column, e.Reason)
}
