package metadata

import (
	"fmt"
	"strconv"

	"github.com/jaydb/jay/internal/errs"
)

// ConflictError says that a document is not in the version expected of it: by
// IfMatch, or by a transaction that has read it. errors.Is(err, jay.ErrConflict)
// is always true; jay.ErrExists and jay.ErrNotFound are true as they apply.
type ConflictError struct {
	ID       string // "" for a new document that has none yet
	Expected string // the change vector asked for; "" means it must not exist
	Actual   string // the document's change vector; "" if it does not exist
	Walk     string // what a transaction walked over before the document changed; else ""
}

// Error says what was expected and what is there.
func (e *ConflictError) Error() string {
	name := strconv.Quote(errs.Shorten(e.ID))
	if e.ID == "" {
		name = "a new document"
	}
	expected, actual := errs.Shorten(e.Expected), errs.Shorten(e.Actual)
	switch {
	case e.Walk != "":
		return fmt.Sprintf("jay: conflict on %s: it was written, as %s, after the transaction had walked over the %s", name, actual, e.Walk)
	case e.Actual == "" && e.Expected == "":
		return fmt.Sprintf("jay: conflict on %s: a document that is not there cannot be deleted on the condition that it is not there", name)
	case e.Actual == "":
		return fmt.Sprintf("jay: conflict on %s: expected version %s, but there is no such document", name, expected)
	case e.Expected == "":
		return fmt.Sprintf("jay: conflict on %s: expected no such document, but it has version %s", name, actual)
	}
	return fmt.Sprintf("jay: conflict on %s: expected version %s, but it has %s", name, expected, actual)
}

// Is reports what the conflict amounts to.
func (e *ConflictError) Is(target error) bool {
	switch target {
	case errs.ErrConflict:
		return true
	case errs.ErrExists:
		return e.Expected == "" && e.Actual != "" && e.Walk == ""
	case errs.ErrNotFound:
		return e.Actual == "" && e.Expected != ""
	}
	return false
}

// CollectionError says which collection a document is in, and which one the
// call named. A document stays in its collection: to move it, delete it and
// store it anew. errors.Is(err, jay.ErrCollection).
type CollectionError struct {
	ID      string
	Current string // where the document is
	Given   string // where the call wants it
}

// Error names both collections.
func (e *CollectionError) Error() string {
	return fmt.Sprintf("jay: document %.100q is in collection %.100q, not in %.100q, and documents do not move", e.ID, e.Current, e.Given)
}

// Is makes errors.Is(err, ErrCollection) true.
func (e *CollectionError) Is(target error) bool { return target == errs.ErrCollection }
