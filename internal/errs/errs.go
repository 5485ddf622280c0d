// Package errs holds errors that several packages return which must not import
// one another.
package errs

import "errors"

// ErrCorrupt is returned when stored bytes are not those that were written:
// by package storage for files, by package metadata for the records in them.
var ErrCorrupt = errors.New("stored data is corrupt")
