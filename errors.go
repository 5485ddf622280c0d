package jay

import (
	"fmt"
	"strconv"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Returned by Open.
var (
	// ErrLocked is returned when the database is open already, in another
	// process or in this one.
	ErrLocked = storage.ErrLocked

	// ErrNotDatabase is returned when the directory holds something else.
	ErrNotDatabase = storage.ErrNotDatabase

	// ErrNoDatabase is returned with Options.MustExist when there is none.
	ErrNoDatabase = storage.ErrNoDatabase

	// ErrNewerFormat is returned when a newer Jay wrote the database. Nothing
	// was changed in it.
	ErrNewerFormat = storage.ErrNewerFormat

	// ErrNotWritable is returned when the directory or its disk refuses
	// writes.
	ErrNotWritable = storage.ErrNotWritable

	// ErrFixed is returned when an option differs from what the database was
	// created with and cannot be changed.
	ErrFixed = errs.ErrFixed

	// ErrOption is returned when an option has a value that it cannot have.
	ErrOption = errs.ErrOption
)

// Returned by every method.
var (
	// ErrClosed is returned after Close.
	ErrClosed = errs.ErrClosed

	// ErrClientClosed is returned by a HiLoClient after its Close.
	ErrClientClosed = ids.ErrClosed

	// ErrTxDone is returned by a transaction whose function has returned.
	ErrTxDone = errs.ErrTxDone

	// ErrCorrupt is returned, by Open too, when stored bytes are not what Jay
	// wrote, or a file is missing. The message names the file and what to do;
	// the long cause is wrapped.
	ErrCorrupt = storage.ErrCorrupt

	// ErrUnreadable is returned, by Open too, when the system refuses to open or
	// read a file of the database that is there: see to its permissions and to
	// the disk. The system's error is wrapped.
	ErrUnreadable = storage.ErrUnreadable
)

// Returned by reads and writes of documents.
var (
	// ErrNotFound is returned when there is no document with the ID.
	ErrNotFound = errs.ErrNotFound

	// ErrExists is returned by an insert when a document has the ID already.
	ErrExists = errs.ErrExists

	// ErrConflict is what every *ConflictError is: the document is not in the
	// version that the caller expected. Nothing was changed.
	ErrConflict = storage.ErrConflict

	// ErrInvalidID is what every *IDError is.
	ErrInvalidID = ids.ErrInvalid

	// ErrInvalidDocument is what every *DocumentError is.
	ErrInvalidDocument = metadata.ErrInvalid

	// ErrCollection is what every *CollectionError is: a write would move a
	// document to another collection. Delete it first.
	ErrCollection = errs.ErrCollection

	// ErrUnique is what every *UniqueError is: a unique index refuses the
	// document.
	ErrUnique = errs.ErrUnique

	// ErrIndex is returned for a declaration of an index that cannot be, and
	// for an index that is not there.
	ErrIndex = errs.ErrIndex

	// ErrIndexExists is returned when another index has the name.
	ErrIndexExists = errs.ErrIndexExists

	// ErrInvalidPatch is what every *PatchError is. ErrPatchTest is one of them:
	// a test of a JSONPatch failed.
	ErrInvalidPatch = patch.ErrInvalid
	ErrPatchTest    = patch.ErrTestFailed

	// ErrQuery is returned for a query that cannot be answered: a field or value
	// that does not parse, or work beyond a stated bound.
	ErrQuery = errs.ErrQuery

	// ErrSyntax is what every *SyntaxError is.
	ErrSyntax = query.ErrSyntax

	// ErrNoIndex is returned, with Query.NoScan, for a query that would look at
	// every document of a collection.
	ErrNoIndex = errs.ErrNoIndex

	// ErrUsage is returned for a call that can never work, such as a Replace
	// without an ID.
	ErrUsage = ids.ErrUsage

	// ErrType is returned when a Go type cannot be kept as documents.
	ErrType = errs.ErrType
)

// Returned by writes when numbers or storage run out.
var (
	// ErrNeedsFloor is returned in a database that was opened with
	// Options.CopyTag for an ID without a node tag, an identity or one of HiLo2
	// and HiLo2010: the original may have used the next numbers. Give the floor
	// with SeedIdentity or RaiseCounters.
	ErrNeedsFloor = errs.ErrNeedsFloor

	// ErrExhausted is returned when a counter has no number left.
	ErrExhausted = ids.ErrExhausted

	// ErrNeedsCapacity is returned when a document of HiLo2010 is met and
	// Options.HiLoCapacity does not say how many numbers its blocks have.
	ErrNeedsCapacity = errs.ErrNeedsCapacity

	// ErrLeadTooLarge is returned when a HiLo client claims numbers far above
	// those granted.
	ErrLeadTooLarge = ids.ErrLeadTooLarge

	// ErrTooLarge is returned when one write stages more than 1 GiB.
	ErrTooLarge = storage.ErrTooLarge

	// ErrUnknownOutcome is returned when it is not known whether a write has
	// happened, or whether what a transaction or a refused write has read is
	// durable.
	//
	// If the error is also that of the context, the write was waiting for the disk
	// when the context ended. It may still appear; the database stays usable, and
	// Flush, with a context that lasts, says when all is decided. Else the log
	// could not be written or synced: whether the write is there shows after a
	// reopen. Reads return it for a document whose newest version is in doubt
	// since then.
	ErrUnknownOutcome = storage.ErrUnknownOutcome

	// ErrFailed is returned by writes after an unknown outcome or a failure of
	// the disk in the background. Reads go on. Close the database, see to the
	// disk, open it again.
	ErrFailed = storage.ErrFailed
)

// DamageError says what is wrong with a directory that Open does not open, since
// it does not hold what was written: which file, where, what going on would
// lose, and how. errors.Is(err, ErrCorrupt).
type DamageError = storage.DamageError

// IDError says which rule an ID breaks. errors.Is(err, ErrInvalidID).
type IDError = ids.Error

// DocumentError says which rule a document's JSON breaks, and at which byte.
// errors.Is(err, ErrInvalidDocument).
type DocumentError = metadata.Error

// ConflictError says that a document is not in the version expected of it: by
// IfMatch, or by a transaction that has read it. errors.Is(err, ErrConflict)
// is always true; ErrExists and ErrNotFound are true as they apply.
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
	case ErrConflict:
		return true
	case ErrExists:
		return e.Expected == "" && e.Actual != "" && e.Walk == ""
	case ErrNotFound:
		return e.Actual == "" && e.Expected != ""
	}
	return false
}

// CollectionError says which collection a document is in, and which one the
// call named. A document stays in its collection: to move it, delete it and
// store it anew. errors.Is(err, ErrCollection).
type CollectionError struct {
	ID      string
	Current string // where the document is
	Given   string // where the call wants it
}

// Error names both collections.
func (e *CollectionError) Error() string {
	return fmt.Sprintf("jay: document %q is in collection %q, not in %q, and documents do not move", errs.Shorten(e.ID), errs.Shorten(e.Current), errs.Shorten(e.Given))
}

// Is makes errors.Is(err, ErrCollection) true.
func (e *CollectionError) Is(target error) bool { return target == ErrCollection }
