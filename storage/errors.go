package storage

import (
	"errors"

	"github.com/jaydb/jay/internal/errs"
)

// Returned when an engine is opened.
var (
	// ErrLocked is returned when another engine, in this process or another,
	// has the directory open.
	ErrLocked = errors.New("directory is in use: another process, or another Open in this one, has the database open")

	// ErrNotDatabase is returned when a directory holds files that are not those
	// of a Jay database.
	ErrNotDatabase = errors.New("directory is not a jay database")

	// ErrNoDatabase is returned when there is no database in the directory and Open must not create
	// one.
	ErrNoDatabase = errors.New("no database in this directory")

	// ErrNewerFormat is returned when the directory was written by a newer
	// version of the engine. Nothing in it was changed.
	ErrNewerFormat = errors.New("database has a newer format")

	// ErrKey is returned when an encryption key is missing or wrong, when an encrypted database is
	// opened without keys, and when keys are given for a database that is not encrypted. It is also
	// returned for a file that was encrypted with a key that is not among the given keys. Nothing was
	// changed.
	ErrKey = errs.ErrKey

	// ErrNotWritable is returned when the directory, or the disk it is on,
	// refuses writes, or is full.
	ErrNotWritable = errors.New("directory is not writable")
)

// Returned by reads.
var (
	// ErrNotFound is returned by Get when the key is not there.
	ErrNotFound = errors.New("key not found")

	// ErrCorrupt is returned when a file is missing or does not hold what was
	// written, as its size or its checksums show: by Open, by reads, and with
	// ErrFailed for damage that a compaction met. The message names the file
	// and what to do; errors.Unwrap returns the cause. The value is the one of
	// package metadata.
	ErrCorrupt = errs.ErrCorrupt

	// ErrUnreadable is returned, also by Open, when the system refuses to open
	// or read a file that is there: for its permissions, or for an error of the
	// disk. The system's error is wrapped.
	ErrUnreadable = errors.New("file of the database cannot be read")

	// ErrSnapshotExpired is returned by reads of a Snapshot, and by Iterator.Error, when the engine
	// can no longer show the moment: see Limits.SnapshotAge. A new Snapshot can be taken.
	ErrSnapshotExpired = errors.New("the storage engine shows one moment for a short time only, and this read has taken longer: read less at a time")
)

// Returned by Update.
var (
	// ErrReadOnly is returned when the engine was opened to read only. Nothing was
	// changed.
	ErrReadOnly = errors.New("database is open to be read only")

	// ErrConflict is returned when another transaction changed what this one
	// read. Nothing was changed.
	ErrConflict = errs.ErrConflict

	// ErrUnknownOutcome is returned when the log could not be written or synced. The commit is in
	// doubt: it may or may not be there after the database is reopened.
	ErrUnknownOutcome = errors.New("outcome of the commit is unknown")

	// ErrFailed is returned after an ErrUnknownOutcome, or after the engine
	// failed in the background. Reads go on; writes need a new engine.
	ErrFailed = errors.New("engine has failed and refuses writes until it is reopened")

	// ErrUnavailable is returned when the store cannot be reached at the moment, such as a server
	// that is being restarted. The call did nothing, and may be made again later. The
	// engine stays usable: see ErrFailed for one that does not.
	ErrUnavailable = errors.New("store cannot be reached at the moment; nothing was changed")

	// ErrTooLarge is returned when a transaction stages more than the engine's Limits
	// allow: see LimitError. Nothing was changed.
	ErrTooLarge = errors.New("transaction is too large")

	// ErrDiskFull is returned when less is free on the disk than must stay free: see
	// DiskFullError. Nothing was changed. It is also returned with ErrNotWritable, ErrUnknownOutcome and ErrFailed
	// if a full disk is the reason.
	ErrDiskFull = errors.New("disk is almost full")

	// ErrMemory is returned when an operation finds too little memory: see MemoryError.
	ErrMemory = errors.New("not enough memory for this work")

	// ErrSequenceExhausted is returned when the commit sequence has no number
	// left.
	ErrSequenceExhausted = errors.New("commit sequence is exhausted")
)
