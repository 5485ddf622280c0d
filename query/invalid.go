package query

import (
	"errors"
	"fmt"
)

// Errors of values, returned by NewValue.
var (
	// ErrValue is returned for a Go value that is not a scalar in JSON: a
	// struct, a map, a slice, a function.
	ErrValue = errors.New("not a value that a query can compare")

	// ErrNumber is returned for NaN and infinities, and for a json.Number that is
	// not a JSON number or has an exponent beyond MaxExponent.
	ErrNumber = errors.New("not a JSON number")

	// ErrText is returned for text that is not valid UTF-8.
	ErrText = errors.New("text must be valid UTF-8")
)

// Errors of conditions and columns, returned when they are compiled.
var (
	// ErrCondition is returned for an invalid condition: it is nil, has no field,
	// compares with an array, an object or a missing value, or has a regular
	// expression that does not parse.
	ErrCondition = errors.New("invalid condition")

	// ErrColumn is returned for an invalid column: it has no name, the name of
	// another column, no field, or, in a query with groups, neither a function
	// nor a field of the group by.
	ErrColumn = errors.New("invalid column")

	// ErrLimit matches every *LimitError: errors.Is(err, ErrLimit).
	ErrLimit = errors.New("query is too large")
)

// LimitError says which bound a query, or the memory that it needs, exceeds.
type LimitError struct {
	What   string // such as "levels of conditions"
	Limit  int
	Actual int // counted until the query was refused; may be less than the whole
}

// Error names the bound and the actual number.
func (e *LimitError) Error() string {
	return fmt.Sprintf("query is too large: %d %s, at most %d are allowed", e.Actual, e.What, e.Limit)
}

// Is makes errors.Is(err, ErrLimit) true.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }
