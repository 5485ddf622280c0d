// Package script runs the scripts with which RavenDB's clients patch documents. They are
// a part of JavaScript, which the package parses and walks: it has no engine, and so
// nothing that allocates, loops or reaches outside without being counted.
//
//	program, err := script.Parse("this.Visits += args.n")
//	result, err := program.Run(ctx, script.Input{ID: id, Document: doc, Args: args}, host)
//
// Every node that is evaluated is a step, natives count a step for each element or byte that
// they touch, and what is allocated is counted: a script that takes too much ends with an
// *Error. There is no clock, no randomness, and no input or output but the functions of
// Host. What is not there is refused when the script is parsed, with an *Error that names
// it and its line.
//
// Values are those of JSON. Numbers keep their digits until a script calculates with
// them; integers of 64 bits are exact, others are as in JavaScript. A number that JSON
// cannot have, such as NaN, is an error when it is stored.
//
// A Program is immutable, and safe for concurrent use.
package script

import "fmt"

// Bounds of a script. Those of a run are in Limits.
const (
	MaxScriptBytes = 64 << 10
	maxNesting     = 128 // of expressions and statements
	maxCalls       = 64  // of functions inside each other
)

// Limits bound a run. The zero value has the defaults.
type Limits struct {
	Steps int64 // default 1,000,000
	Bytes int64 // that are allocated; default 64 MiB
	Calls int   // of Load, Put and Delete; default 1,000
}

// DefaultLimits are those of the zero value.
var DefaultLimits = Limits{Steps: 1_000_000, Bytes: 64 << 20, Calls: 1000}

// Error says why a script cannot run, or has failed.
type Error struct {
	Line    int // from 1; 0 if the error has none
	Message string
	Missing bool // JavaScript has it, and this package does not
	Cause   error
}

func (e *Error) Error() string {
	text := e.Message
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	return "script: " + text
}

// Unwrap returns the error of a Host.
func (e *Error) Unwrap() error { return e.Cause }

// Host is what a script reaches outside. Documents are JSON with their @metadata.
type Host interface {
	// Load returns a document, or nil if there is none.
	Load(id string) ([]byte, error)
	// Put stores a document and returns its ID.
	Put(id string, document []byte, changeVector string) (string, error)
	// Delete deletes a document, and reports whether there was one.
	Delete(id string) (bool, error)
}
