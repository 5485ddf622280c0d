package jay

import (
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/shared"
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

	// ErrNewerFormat is what every *FormatError is: a newer Jay wrote the database.
	// Nothing was changed in it.
	ErrNewerFormat = storage.ErrNewerFormat

	// ErrKey is returned when an encryption key is missing or wrong: an encrypted database is opened without
	// Options.EncryptionKeys or with others, a key cannot be had, or keys are given for a database that is not encrypted. So do backups.
	// Nothing was changed. The message names the key.
	ErrKey = storage.ErrKey

	// ErrNotWritable is returned when the directory or its disk refuses
	// writes.
	ErrNotWritable = storage.ErrNotWritable

	// ErrFixed is returned when an option differs from what the database was
	// created with and cannot be changed.
	ErrFixed = errs.ErrFixed

	// ErrOption is returned when an option has a value that it cannot have.
	ErrOption = errs.ErrOption

	// ErrRestoring is returned for a database that Restore or Copy has not made whole: remove
	// it and restore again, or copy again, and the copy goes on.
	ErrRestoring = errs.ErrRestoring

	// ErrStandby is returned for the directory of a standby that would be written to, or whose first copy is not whole, by
	// writes to a standby that follows (they are ErrReadOnly, too), and for a source that cannot be followed. The message says what to do.
	ErrStandby = errs.ErrStandby
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

	// ErrSnapshotExpired is returned when a call reads one moment of the database for longer than the engine of
	// Options.Engine can show it (storage.Limits): by queries and iterations, also in their middle, by View and
	// Update, Backup and Verify. Nothing was changed, and nothing that was returned before is wrong. Read less at a
	// time: pages, shorter transactions. The default engine never returns it.
	ErrSnapshotExpired = storage.ErrSnapshotExpired

	// ErrUnreadable is returned, by Open too, when the system refuses to open or
	// read an existing file of the database: check its permissions and the disk. The
	// system's error is wrapped.
	ErrUnreadable = storage.ErrUnreadable
)

// Returned by backups, restores and copies.
var (
	// ErrBackup is what every *BackupError is: a stream is no backup, was cut short, is
	// damaged, or does not follow the one before it. It is also returned when what was
	// restored contradicts itself. No database was made.
	ErrBackup = errs.ErrBackup

	// ErrBackupBase is what every *BackupBaseError is: it is not known what has changed since
	// the backup that BackupSince names.
	ErrBackupBase = errs.ErrBackupBase

	// ErrCopy is what every *CopyError is: a database cannot be copied. The error names the rule and says what to do.
	ErrCopy = errs.ErrCopy
)

// Returned by reads and writes of documents.
var (
	// ErrNotFound is returned when there is no document with the ID.
	ErrNotFound = errs.ErrNotFound

	// ErrExists is returned by an insert when a document has the ID already.
	ErrExists = errs.ErrExists

	// ErrConflict is what every *ConflictError is: the document is not in the
	// version that the caller expected, or that a transaction has read. Nothing was
	// changed. Update returns it without Retry, or after the last run.
	ErrConflict = storage.ErrConflict

	// ErrInvalidID is what every *IDError is.
	ErrInvalidID = ids.ErrInvalid

	// ErrInvalidDocument is what every *DocumentError is.
	ErrInvalidDocument = metadata.ErrInvalid

	// ErrCollection is what every *CollectionError is: a write would move a
	// document to another collection (delete it first), or a read asked one
	// collection for a document of another.
	ErrCollection = errs.ErrCollection

	// ErrUnique is what every *UniqueError is: a unique index refuses the
	// document.
	ErrUnique = errs.ErrUnique

	// ErrSchema is what every *SchemaError is: a document violates the schema of its collection.
	ErrSchema = errs.ErrSchema

	// ErrSchemaRule is what every *SchemaRuleError and every *SchemaCompilerError is: a schema cannot be the rule of a collection, or this program
	// cannot check documents against it.
	ErrSchemaRule = errs.ErrSchemaRule

	// ErrIndex is returned for a declaration of an index that cannot be, and
	// for an index that is not there. Every *KindError and every *OptionError is one.
	ErrIndex = errs.ErrIndex

	// ErrIndexExists is returned when another index has the name.
	ErrIndexExists = errs.ErrIndexExists

	// ErrNoAttachment is returned when the document has no attachment with the name. It
	// is an ErrNotFound.
	ErrNoAttachment = errs.ErrNoAttachment

	// ErrInvalidAttachment is what every *AttachmentError is.
	ErrInvalidAttachment = metadata.ErrInvalidAttachment

	// ErrInvalidPatch is what every *PatchError is. ErrPatchTest is one of them:
	// a test of a JSONPatch failed.
	ErrInvalidPatch = patch.ErrInvalid
	ErrPatchTest    = patch.ErrTestFailed

	// ErrQuery is returned for a query that cannot be answered: a field or value
	// that does not parse, or work beyond a stated bound.
	ErrQuery = errs.ErrQuery

	// ErrSyntax is what every *SyntaxError is.
	ErrSyntax = query.ErrSyntax

	// ErrUpdateRQL is returned by RQL for a text with update { }, which changes
	// documents: UpdateRQL reads it. It is an ErrSyntax as well.
	ErrUpdateRQL = query.ErrUpdate

	// ErrNoIndex is returned, with Query.NoScan, for a query that would look at
	// every document of a collection; and with Query.UseIndex, if that index is not
	// there, not ready, or cannot answer the query.
	ErrNoIndex = errs.ErrNoIndex

	// ErrChangesGone is what every *ChangesGoneError is: changes behind a token may be
	// missing.
	ErrChangesGone = errs.ErrChangesGone

	// ErrSubscription is returned for the declaration of a subscription that cannot be,
	// for one that is not there, and for one that cannot be worked on: the message
	// says why.
	ErrSubscription = errs.ErrSubscription

	// ErrSubscriptionInUse is returned, with FailInUse, for a subscription that has a
	// worker.
	ErrSubscriptionInUse = errs.ErrInUse

	// ErrSubscriptionEnded is returned by a worker that was replaced, or whose
	// subscription was disabled, reset or dropped. Its last batch is not acknowledged.
	ErrSubscriptionEnded = errs.ErrEnded

	// ErrRequestID is returned when the RequestID of a call is that of another call, which
	// was carried out. It is also an ErrUsage.
	ErrRequestID = requests.ErrOther

	// ErrUsage is returned for a call that can never work, such as a Replace
	// without an ID.
	ErrUsage = ids.ErrUsage

	// ErrShared is returned for what a database does not do in a store that other processes
	// may write to (Options.Engine): they would not know of it. It is an ErrUsage.
	ErrShared = shared.ErrRefused

	// ErrNodeTag is returned by Open for a NodeTag that another process has, which has the same store open. The message says
	// which process.
	ErrNodeTag = errs.ErrNodeTag

	// ErrLeaseLost is returned by writes of a process that did not renew the lease of its node tag in time, on a store that several
	// processes have open: it stood still, or did not reach the store. Nothing was changed. The message says whether to call again, or to open
	// the database again as another process has the tag by now.
	ErrLeaseLost = errs.ErrLeaseLost

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

	// ErrTooLarge is returned when one write stages more than 1 GiB, or more than the storage
	// engine takes: a storage.LimitError says what.
	ErrTooLarge = storage.ErrTooLarge

	// ErrMemory is what every *MemoryError is.
	ErrMemory = storage.ErrMemory

	// ErrUnavailable is returned when the store of Options.Engine cannot be reached at the
	// moment, such as a server that is being restarted. The call did nothing, and may be
	// made again later. The default engine never returns it.
	ErrUnavailable = storage.ErrUnavailable

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

	// ErrReadOnly is returned by every write to a database that was opened with
	// Options.ReadOnly, and by one of a database of Look that its program does not carry out.
	ErrReadOnly = storage.ErrReadOnly

	// ErrFailed is returned by writes after an unknown outcome or a failure of
	// the disk in the background. Reads go on. Close the database, check the
	// disk, and open the database again. If the disk was full, the error is
	// ErrDiskFull, too: the database can be opened again when there is room.
	ErrFailed = storage.ErrFailed

	// ErrDiskFull is returned by writes as long as less is free on the disk than
	// Options.MinFreeBytes: see DiskFullError. Nothing was changed.
	ErrDiskFull = storage.ErrDiskFull
)

// FormatError is returned for a database, and for other things with a format number, that a
// newer Jay wrote. Nothing was changed. errors.Is(err, ErrNewerFormat) is true. Its
// fields (see package storage):
//
//	What      string    "database", or what else has a format number
//	Found     int       the format that it has; 0 if it does not say
//	Newest    int       the newest format that this program reads
//	Features  []string  what it uses that this program does not know, as far as it says
type FormatError = storage.FormatError

// DamageError is returned by Open for a directory that does not hold what was
// written to it. Nothing was changed. errors.Is(err, ErrCorrupt) is true.
// Its fields (see package storage):
//
//	Dir      string  the directory, as Open was given it
//	File     string  the name of the damaged or missing file in it
//	Offset   int64   where in the file; -1 if it is missing or has another length
//	Problem  string  what is wrong
//	Loss     string  what opening with Options.AcceptLoss would lose; "" for nothing
//	Remedy   string  what to do, where that is not to restore a backup or to repair; else ""
type DamageError = storage.DamageError

// MemoryError is returned by queries and bulk writers that find too little memory in the share of Options.MaxMemory that work draws on. Nothing was
// changed. What can never fit is refused at once; anything else has waited for up to 5 seconds. Its fields (see package storage):
//
//	What    string  that was to be done, such as "query"
//	Wanted  int64   bytes that it asked for
//	Held    int64   bytes that it had
//	Used    int64   bytes that all work had
//	Most    int64   bytes that all work may have
type MemoryError = storage.MemoryError

// DiskFullError is returned by writes that are refused because less is free on the disk
// than Options.MinFreeBytes. errors.Is(err, ErrDiskFull) is true. Nothing was changed.
// Deletions and DB.Compact, which make room, go on, and other writes as soon as there is
// some. Its fields (see package storage):
//
//	Dir           string  the directory of the database
//	FreeBytes     uint64  about how much is free on its disk
//	MinFreeBytes  uint64  how much must stay free
type DiskFullError = storage.DiskFullError

// IDError names the rule that an ID breaks. errors.Is(err, ErrInvalidID) is true.
// Its fields (see package ids):
//
//	ID      string  the final ID, or the requested one if no final ID was made
//	Rule    string  such as "at most 2025 bytes"
//	Limit   int     in bytes; 0 if the rule has no limit
//	Actual  int     the size in bytes, or without a limit the offset of the wrong byte
type IDError = ids.Error

// DocumentError names the rule that a document's JSON breaks, and the byte where it
// does. errors.Is(err, ErrInvalidDocument) is true. Its fields (see package
// metadata):
//
//	Rule    string  such as "keys must not repeat"
//	Detail  string  what was found; may be empty
//	Offset  int     in bytes, from the beginning of the JSON
//	Limit   int     0 if the rule has no limit
//	Actual  int     the size or depth, if the rule has a limit
type DocumentError = metadata.Error

// AttachmentError names the rule that an attachment breaks: of its name, its content
// type, its size, or the number of attachments of the document. Nothing was changed.
// errors.Is(err, ErrInvalidAttachment) is true. Its fields (see package metadata):
//
//	ID      string  the document
//	Name    string  the attachment
//	Rule    string  such as "a name is not empty"
//	Limit   int64   0 if the rule has no limit
//	Actual  int64   the size or number, if the rule has a limit; else the offset of the wrong byte
type AttachmentError = metadata.AttachmentError

// ConflictError is returned when a document does not have the expected version: that
// of IfMatch, of a version field, or the one that a transaction has read. Nothing was
// changed. errors.Is(err, ErrConflict) is always true, and errors.Is with ErrExists
// and ErrNotFound as they apply. Its fields (see package metadata):
//
//	ID        string  "" for a new document that has no ID yet
//	Expected  string  the expected change vector; "" if the document must not exist
//	Actual    string  the document's change vector; "" if it does not exist
//	Walk      string  what a transaction had read when the document changed, such as a query; else ""
type ConflictError = metadata.ConflictError

// CollectionError is returned for a write that would move a document to another
// collection. A document stays in its collection: to move it, delete it and store it
// again. It is also returned, as ErrNotFound too, when a Collection or a session reads a
// document of another collection. errors.Is(err, ErrCollection) is true. Its fields (see package metadata):
//
//	ID       string  the document
//	Current  string  the collection that it is in
//	Given    string  the collection that the call named
type CollectionError = metadata.CollectionError

// DecodeError is a document, or a row of a query, that does not decode into its Go type.
// Iterations go on behind it.
// Its fields (see package metadata):
//
//	ID   string  of the document; "" for a row
//	Err  error   what the decoder says
type DecodeError = metadata.DecodeError
