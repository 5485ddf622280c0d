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
	// ErrLocked is returned when the database is already open, in another process or in this one.
	ErrLocked = storage.ErrLocked

	// ErrNotDatabase is returned when the directory holds other files than a database.
	ErrNotDatabase = storage.ErrNotDatabase

	// ErrNoDatabase is returned with Options.MustExist when the database does not exist.
	ErrNoDatabase = storage.ErrNoDatabase

	// ErrNewerFormat is matched by every *FormatError: a newer Jay wrote the database. Nothing was changed in
	// it.
	ErrNewerFormat = storage.ErrNewerFormat

	// ErrKey is returned when an encryption key is missing or wrong: an encrypted database is opened without
	// Options.EncryptionKeys or with other keys, a key cannot be obtained, or keys are given for a database
	// that is not encrypted. Backups and restores return it, too. Nothing was changed. The message names the
	// key.
	ErrKey = storage.ErrKey

	// ErrNotWritable is returned when the directory or its disk is not writable. If the disk is full, the error is
	// ErrDiskFull, too; Options.ReadOnly opens the database all the same.
	ErrNotWritable = storage.ErrNotWritable

	// ErrFixed is returned when an option differs from its value at the creation of the database and cannot be
	// changed.
	ErrFixed = errs.ErrFixed

	// ErrOption is returned when an option has an invalid value.
	ErrOption = errs.ErrOption

	// ErrRestoring is returned for a database that Restore or Copy has not completed. After Restore, remove the
	// database and restore again. After Copy, call Copy again, which continues the copy.
	ErrRestoring = errs.ErrRestoring

	// ErrStandby is returned by an Open for writing of a standby's directory, for a standby whose first copy is
	// incomplete, by writes to a standby that follows its source (these errors are ErrReadOnly, too), and for a
	// source that cannot be followed. The message says what to do.
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

	// ErrCorrupt is returned, also by Open, when stored bytes differ from the bytes that Jay wrote, or when a
	// file is missing. The message names the file and the remedy; the detailed cause is wrapped.
	ErrCorrupt = storage.ErrCorrupt

	// ErrSnapshotExpired is returned when a call reads a snapshot for longer than the engine of Options.Engine
	// keeps it (storage.Limits): by queries and iterations, also in their middle, by View and Update, Backup
	// and Verify. Nothing was changed, and all results that were returned before are correct. Read less at a
	// time: use pages and shorter transactions. The default engine never returns it.
	ErrSnapshotExpired = storage.ErrSnapshotExpired

	// ErrUnreadable is returned, also by Open, when the operating system refuses to open or read an existing
	// file of the database: check the permissions and the disk. The error of the system is wrapped.
	ErrUnreadable = storage.ErrUnreadable
)

// Returned by backups, restores and copies.
var (
	// ErrBackup is matched by every *BackupError: a stream is not a backup, is truncated, is damaged, or does
	// not follow the one before it. It is also returned when the restored data is inconsistent. No database was
	// made.
	ErrBackup = errs.ErrBackup

	// ErrBackupBase is matched by every *BackupBaseError: the database does not know what has changed since the
	// backup that BackupSince names.
	ErrBackupBase = errs.ErrBackupBase

	// ErrCopy is matched by every *CopyError: a database cannot be copied. The error names the rule and the
	// remedy.
	ErrCopy = errs.ErrCopy
)

// Returned by reads and writes of documents.
var (
	// ErrNotFound is returned when no document with the ID exists.
	ErrNotFound = errs.ErrNotFound

	// ErrExists is returned by an insert when a document with the ID already exists.
	ErrExists = errs.ErrExists

	// ErrConflict is matched by every *ConflictError: the document is not in the version that the caller
	// expected, or that a transaction has read. Nothing was changed. Update returns it if Retry is not set, or
	// after the last run.
	ErrConflict = storage.ErrConflict

	// ErrInvalidID is matched by every *IDError.
	ErrInvalidID = ids.ErrInvalid

	// ErrInvalidDocument is matched by every *DocumentError.
	ErrInvalidDocument = metadata.ErrInvalid

	// ErrCollection is matched by every *CollectionError: a write would move a document to another collection
	// (delete the document first), or a read of one collection names a document of another.
	ErrCollection = errs.ErrCollection

	// ErrUnique is matched by every *UniqueError: a unique index refuses the document.
	ErrUnique = errs.ErrUnique

	// ErrSchema is matched by every *SchemaError: a document violates the schema of its collection.
	ErrSchema = errs.ErrSchema

	// ErrSchemaRule is matched by every *SchemaRuleError and every *SchemaCompilerError: a schema is not valid
	// as the rule of a collection, or this program cannot check documents against it.
	ErrSchemaRule = errs.ErrSchemaRule

	// ErrIndex is returned for an invalid declaration of an index, and for an index that does not exist. Every
	// *KindError and every *OptionError matches it.
	ErrIndex = errs.ErrIndex

	// ErrIndexExists is returned when another index already has the name.
	ErrIndexExists = errs.ErrIndexExists

	// ErrNoAttachment is returned when the document has no attachment with the name. It is an ErrNotFound, too.
	ErrNoAttachment = errs.ErrNoAttachment

	// ErrInvalidAttachment is matched by every *AttachmentError.
	ErrInvalidAttachment = metadata.ErrInvalidAttachment

	// ErrInvalidPatch is matched by every *PatchError. ErrPatchTest is one of them: a test of a JSONPatch
	// failed.
	ErrInvalidPatch = patch.ErrInvalid
	ErrPatchTest    = patch.ErrTestFailed

	// ErrQuery is returned for a query that cannot run: a field or value does not parse, or the query exceeds a
	// documented bound.
	ErrQuery = errs.ErrQuery

	// ErrSyntax is matched by every *SyntaxError.
	ErrSyntax = query.ErrSyntax

	// ErrUpdateRQL is returned by RQL for a text with update { }, which changes documents: use UpdateRQL for
	// it. The error is an ErrSyntax as well.
	ErrUpdateRQL = query.ErrUpdate

	// ErrNoIndex is returned, with Query.NoScan, for a query that would examine every document of a collection;
	// and with Query.UseIndex, if the index does not exist, is not ready, or cannot answer the query.
	ErrNoIndex = errs.ErrNoIndex

	// ErrChangesGone is matched by every *ChangesGoneError: changes after a token may be missing.
	ErrChangesGone = errs.ErrChangesGone

	// ErrSubscription is returned for an invalid declaration of a subscription, for a subscription that does
	// not exist, and for one that cannot have a worker: the message says why.
	ErrSubscription = errs.ErrSubscription

	// ErrSubscriptionInUse is returned, with FailInUse, for a subscription that has a
	// worker.
	ErrSubscriptionInUse = errs.ErrInUse

	// ErrSubscriptionEnded is returned by a worker that was replaced, or whose
	// subscription was disabled, reset or dropped. Its last batch is not acknowledged.
	ErrSubscriptionEnded = errs.ErrEnded

	// ErrRequestID is returned when the RequestID of a call belongs to a different call that was carried out.
	// It is also an ErrUsage.
	ErrRequestID = requests.ErrOther

	// ErrUsage is returned for a call that can never work, such as a Replace
	// without an ID.
	ErrUsage = ids.ErrUsage

	// ErrShared is returned for operations that a database does not support in a store to which other processes
	// may write (Options.Engine), because these processes would not notice the operation. It is an ErrUsage,
	// too.
	ErrShared = shared.ErrRefused

	// ErrNodeTag is returned by Open for a NodeTag of another process that has the same store open. The message
	// names the process.
	ErrNodeTag = errs.ErrNodeTag

	// ErrLeaseLost is returned by writes on a store that several processes have open, when the process did not
	// renew the lease on its node tag in time: the process stalled, or could not reach the store. Nothing was
	// changed. The message says whether to repeat the call, or to open the database again because another
	// process now has the tag.
	ErrLeaseLost = errs.ErrLeaseLost

	// ErrType is returned when a Go type cannot be stored as documents.
	ErrType = errs.ErrType
)

// Returned by writes when numbers or storage run out.
var (
	// ErrNeedsFloor is returned in a database that was opened with Options.CopyTag for an ID without a node
	// tag: an identity, or an ID of HiLo2 or HiLo2010. The original may have used the next numbers. Set a floor
	// with SeedIdentity or RaiseCounters.
	ErrNeedsFloor = errs.ErrNeedsFloor

	// ErrExhausted is returned when a counter has no number left.
	ErrExhausted = ids.ErrExhausted

	// ErrNeedsCapacity is returned for a HiLo document of HiLo2010 when Options.HiLoCapacity, the size of its
	// blocks, is not set.
	ErrNeedsCapacity = errs.ErrNeedsCapacity

	// ErrLeadTooLarge is returned when a HiLo client claims numbers far above the granted ones.
	ErrLeadTooLarge = ids.ErrLeadTooLarge

	// ErrTooLarge is returned when one write stages more than 1 GiB, or more than the storage engine accepts: a
	// storage.LimitError names the limit.
	ErrTooLarge = storage.ErrTooLarge

	// ErrMemory is matched by every *MemoryError.
	ErrMemory = storage.ErrMemory

	// ErrUnavailable is returned when the store of Options.Engine is temporarily unreachable, such as a server
	// during a restart. The call changed nothing, and may be repeated later. The default engine never returns
	// it.
	ErrUnavailable = storage.ErrUnavailable

	// ErrUnknownOutcome is returned when it is unknown whether a write was committed, or whether the data that
	// a transaction or a refused write has read is durable.
	//
	// If the error also matches the error of the context, the write was waiting for the disk when the context
	// ended. The write may still become visible. The database stays usable, and a Flush with a context that
	// lasts returns when the outcome is decided. Otherwise the log could not be written or synced: open the
	// database again to see whether the write was committed. Until then every read that would have to show the
	// write returns ErrUnknownOutcome, too: Get of the document, queries and walks that meet it, and counts that
	// it changes. Other reads work.
	ErrUnknownOutcome = storage.ErrUnknownOutcome

	// ErrReadOnly is returned by every write to a database that was opened with Options.ReadOnly, and by a
	// write through Look that the other program does not carry out.
	ErrReadOnly = storage.ErrReadOnly

	// ErrFailed is returned by writes after an unknown outcome or a disk failure in background work. Reads
	// still work, except those that would have to show a write of unknown outcome: see ErrUnknownOutcome. Close
	// the database, check the disk, and open the database again. If the disk was full, the error is
	// ErrDiskFull, too: open the database again when there is room.
	ErrFailed = storage.ErrFailed

	// ErrDiskFull is returned by writes as long as the free space on the disk is below Options.MinFreeBytes:
	// see DiskFullError. Nothing was changed. Open returns it, with ErrNotWritable, if there is no room for what it writes.
	ErrDiskFull = storage.ErrDiskFull
)

// FormatError is the error for a database, or other data with a format number, that a newer Jay wrote. Nothing
// was changed. errors.Is(err, ErrNewerFormat) is true. Its fields (see package storage):
//
//	What      string    "database", or what else has a format number
//	Found     int       its format; 0 if unknown
//	Newest    int       the newest format that this program reads
//	Features  []string  features in use that this program does not know, as far as known
type FormatError = storage.FormatError

// DamageError is the error of Open for a directory whose contents differ from what was written. Nothing was
// changed. errors.Is(err, ErrCorrupt) is true. Its fields (see package storage):
//
//	Dir      string  the directory, as passed to Open
//	File     string  the name of the damaged or missing file in the directory
//	Offset   int64   of the damage in the file; -1 if the file is missing or has another length
//	Problem  string  what is wrong
//	Loss     string  what an Open with Options.AcceptLoss would lose; "" for nothing
//	Remedy   string  what to do, if not to restore a backup or to repair; else ""
type DamageError = storage.DamageError

// MemoryError is the error of queries and bulk writers when the share of Options.MaxMemory for work has too
// little free memory. Nothing was changed. A request that can never fit fails at once; any other has waited for
// up to 5 seconds. Its fields (see package storage):
//
//	What    string  the work, such as "query"
//	Wanted  int64   bytes that it requested
//	Held    int64   bytes that it had
//	Used    int64   bytes that all work had
//	Most    int64   bytes that all work may have
type MemoryError = storage.MemoryError

// DiskFullError is the error of writes while the free space on the disk is below Options.MinFreeBytes.
// errors.Is(err, ErrDiskFull) is true. Nothing was changed. Deletions and DB.Compact, which make room, still
// work. Other writes work again as soon as there is room. Its fields (see package storage):
//
//	Dir           string  the directory of the database
//	FreeBytes     uint64  approximate free space on its disk
//	MinFreeBytes  uint64  space that must stay free
type DiskFullError = storage.DiskFullError

// IDError names the rule that an ID breaks. errors.Is(err, ErrInvalidID) is true.
// Its fields (see package ids):
//
//	ID      string  the final ID, or the requested ID if no final ID was made
//	Rule    string  such as "at most 2025 bytes"
//	Limit   int     in bytes; 0 if the rule has no limit
//	Actual  int     the size in bytes, or without a limit the offset of the wrong byte
type IDError = ids.Error

// DocumentError names the rule that a document's JSON breaks, and the offset of the violation. errors.Is(err,
// ErrInvalidDocument) is true. Its fields (see package metadata):
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

// ConflictError is the error of a write or a transaction when a document does not have the expected version:
// the version of IfMatch, of a version field, or the version that a transaction has read. Nothing was changed.
// errors.Is(err, ErrConflict) is always true. errors.Is also finds ErrExists or ErrNotFound where they apply.
// Its fields (see package metadata):
//
//	ID        string  "" for a new document that has no ID yet
//	Expected  string  the expected change vector; "" if the document must not exist
//	Actual    string  the document's change vector; "" if it does not exist
//	Walk      string  the read of a transaction that the change affects, such as a query; else ""
type ConflictError = metadata.ConflictError

// CollectionError is the error of a write that would move a document to another collection. A document stays in
// its collection: to move it, delete it and store it again. A read of a Collection or a session also returns a
// CollectionError, which is ErrNotFound as well, for a document of another collection. errors.Is(err,
// ErrCollection) is true. Its fields (see package metadata):
//
//	ID       string  the document
//	Current  string  the collection that it is in
//	Given    string  the collection that the call named
type CollectionError = metadata.CollectionError

// DecodeError is the error for a document, or a row of a query, that does not decode into its Go type.
// Iterations continue after it. Its fields (see package metadata):
//
//	ID   string  of the document; "" for a row
//	Err  error   the error of the decoder
type DecodeError = metadata.DecodeError
