// Package script runs the scripts with which RavenDB's clients patch documents. The
// language is a part of JavaScript. The package interprets the syntax tree itself, so that
// every allocation, loop and access to the outside is counted.
//
//	program, err := script.Parse("this.Visits += args.n")
//	result, err := program.Run(ctx, script.Input{ID: id, Document: doc, Args: args}, host)
//
// Every evaluated node is a step, natives count a step for each element or byte that they
// touch, and allocated bytes are counted. A script that exceeds a limit ends with an
// *Error. There is no clock, no randomness, and no input or output except the functions of
// Host. A feature that is not supported is refused when the script is parsed, with an
// *Error that names it and its line.
//
// Values are those of JSON. A number keeps its digits until the script calculates with it.
// Integers of 64 bits are exact; other numbers behave as in JavaScript. Storing a number
// that JSON cannot express, such as NaN, is an error.
//
// A Program is immutable, and safe for concurrent use.
package script

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Bounds of a script. Those of a run are in Limits.
const (
	MaxScriptBytes = 64 << 10
	maxNesting     = 128 // of expressions and statements
	maxCalls       = 64  // nested calls of functions
)

// Limits bound a run. The zero value has the defaults.
type Limits struct {
	Steps int64 // default 1,000,000
	Bytes int64 // allocated bytes; default 64 MiB
	Calls int   // of Load, Put and Delete; default 1,000
}

// DefaultLimits has the limits of the zero value.
var DefaultLimits = Limits{Steps: 1_000_000, Bytes: 64 << 20, Calls: 1000}

// Error is the reason why a script cannot run or has failed.
type Error struct {
	Line, Column int // from 1, the column in characters; 0 if unknown
	Offset       int // in bytes
	Message      string
	Missing      bool // a feature of JavaScript that this package does not have
	Cause        error

	place int // Offset+1 until the error leaves the package; 0 if unknown
}

// locate sets the line and the column of an error in a script. It returns err.
func locate(err error, source string) error {
	var e *Error
	if !errors.As(err, &e) || e.place == 0 || e.Line > 0 {
		return err
	}
	e.Offset = min(e.place-1, len(source))
	e.Line, e.Column = 1, 1
	for i := 0; i < e.Offset; {
		if n := lineBreak(source[i:]); n > 0 {
			e.Line, e.Column = e.Line+1, 1
			i += n
			continue
		}
		_, size := utf8.DecodeRuneInString(source[i:])
		e.Column++
		i += size
	}
	return err
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

// Host gives a script access to documents. Documents are JSON with their @metadata.
type Host interface {
	// Load returns a document, or nil if there is none.
	Load(id string) ([]byte, error)
	// Put stores a document and returns its ID.
	Put(id string, document []byte, changeVector string) (string, error)
	// Delete deletes a document, and reports whether there was one.
	Delete(id string) (bool, error)
}
