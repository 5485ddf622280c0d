package transfer

import (
	"errors"
	"fmt"
)

// ErrInvalid matches every *Error: the input violates its format, or a document cannot be written
// in the format.
var ErrInvalid = errors.New("invalid record")

// Error says where an input is invalid, and which rule it breaks.
type Error struct {
	Rule   string // such as "a number must be one of JSON's"
	Detail string // what was found, or ""

	Record int64 // from 1; 0 if the error is not in a record, such as in the header of CSV
	Line   int64 // of the record's first byte, from 1; 0 if the format has no lines
	Offset int64 // of the record's first byte, from 0

	// Raw is the record as JSON on one line, for a file of rejected records: a document, or an array
	// of the cells of a row. It is valid until the next call of the reader. It is nil if the reader
	// cannot continue after the error.
	Raw []byte
}

// Error returns the rule with what was found and where.
func (e *Error) Error() string {
	text := e.Rule
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	switch {
	case e.Line > 0:
		text += fmt.Sprintf(" (line %d)", e.Line)
	case e.Record > 0:
		text += fmt.Sprintf(" (record %d at byte %d)", e.Record, e.Offset)
	}
	return text
}

// Is reports whether target is ErrInvalid.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

func invalid(rule, format string, args ...any) *Error {
	return &Error{Rule: rule, Detail: fmt.Sprintf(format, args...)}
}
