package query

import (
	"errors"
	"fmt"
)

// Errors of values, returned by NewValue.
var (
	// ErrValue is returned when a Go value has no counterpart in a document
	// that a query could compare: a struct, a map, a slice, a function.
	ErrValue = errors.New("not a value that a query can compare")

	// ErrNumber is returned when a number is NaN or infinite, or a json.Number
	// is not written as JSON writes numbers or has an exponent beyond
	// MaxExponent.
	ErrNumber = errors.New("not a JSON number")

	// ErrText is returned when a text is not valid UTF-8.
	ErrText = errors.New("text must be valid UTF-8")
)

// Errors of conditions and columns, returned when they are compiled.
var (
	// ErrCondition is returned when a condition has no meaning: one that is
	// nil or looks at no field, compares with an array, an object or with
	// nothing, or has a regular expression that does not parse.
	ErrCondition = errors.New("invalid condition")

	// ErrColumn is returned when a column has no meaning: one without a name
	// or a field, two of one name, or one that is neither a function nor
	// grouped by where there are groups.
	ErrColumn = errors.New("invalid column")

	// ErrLimit is what every *LimitError is: errors.Is(err, ErrLimit).
	ErrLimit = errors.New("query is too large")
)

// LimitError tells which bound a query, or the work it asks for, exceeds.
type LimitError struct {
	What   string // such as "levels of conditions"
	Limit  int
	Actual int // what was found when it was given up, may be less than all
}

// Error names the bound and what was found.
func (e *LimitError) Error() string {
	return fmt.Sprintf("query is too large: %d %s, at most %d are allowed", e.Actual, e.What, e.Limit)
}

// Is makes errors.Is(err, ErrLimit) true.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }
