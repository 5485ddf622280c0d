package metadata

import (
	"fmt"
	"strconv"

	"github.com/jaydb/jay/internal/errs"
)

// ConflictError says that a document does not have the version that IfMatch, or a transaction that
// has read the document, expects. errors.Is(err, jay.ErrConflict) is always true; jay.ErrExists and
// jay.ErrNotFound are true as they apply.
type ConflictError struct {
	ID       string // "" for a new document that has none yet
	Expected string // the change vector asked for; "" means it must not exist
	Actual   string // the document's change vector; "" if it does not exist
	Walk     string // what a transaction had read, such as a collection, before the document in it changed; else ""
}

// Error names the expected and the actual state.
func (e *ConflictError) Error() string {
	name := strconv.Quote(errs.Shorten(e.ID))
	if e.ID == "" {
		name = "a new document"
	}
	expected, actual := errs.Shorten(e.Expected), errs.Shorten(e.Actual)
	switch {
	case e.Walk != "" && e.Actual == "":
		return fmt.Sprintf("jay: conflict on %s: it was deleted after the transaction had read the %s", name, e.Walk)
	case e.Walk != "":
		return fmt.Sprintf("jay: conflict on %s: it was written, as %s, after the transaction had read the %s", name, actual, e.Walk)
	case e.Actual == "" && e.Expected == "":
		return fmt.Sprintf("jay: conflict on %s: a document that is not there cannot be deleted on the condition that it is not there", name)
	case e.Actual == "":
		return fmt.Sprintf("jay: conflict on %s: expected version %s, but there is no such document", name, expected)
	case e.Expected == "":
		return fmt.Sprintf("jay: conflict on %s: expected no such document, but it has version %s", name, actual)
	}
	return fmt.Sprintf("jay: conflict on %s: expected version %s, but it has %s", name, expected, actual)
}

// Is reports whether target is ErrConflict, or describes this conflict: ErrExists or ErrNotFound.
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

// CollectionError says which collection a document is in, and which one the call named. A document
// stays in its collection. To move it, delete it and store it again. errors.Is(err,
// jay.ErrCollection) is true.
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
