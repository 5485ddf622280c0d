// Package backup writes the contents of a database as one stream, and makes a database
// of one or more of them.
//
// A stream holds keys and values as the storage engine has them, those of one snapshot.
// A full backup has all of them. An incremental one has what has changed since its base,
// and how to change the base (stream.go). What can be made anew is left out: the entries of indexes,
// and chunks of attachments that nothing refers to.
//
// Which documents have changed is known from the records of changes ([Source]). What
// changes without such a record is either small, and carried whole, or counted where it
// changes: see env.Rewritten and env.Revised. docs/format.md has the bytes,
// docs/decisions/0050-backup.md the reasons.
package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Format is the number of the newest format of streams: see plainFormat and encryptedFormat.
// Part of the format. docs/format.md lists them.
const Format = encryptedFormat

// Header is the first block of a stream, as JSON. Part of the format.
type Header struct {
	ID       string `json:"id"`             // of this backup: see format.RandomID
	Base     string `json:"base,omitempty"` // the ID of the backup that this one follows
	Database string `json:"database"`       // the database ID
	NodeTag  string `json:"nodeTag"`
	Format   int    `json:"databaseFormat"` // of the keys and values
	// Features are those that the database uses, beyond what all of BaseFormat have.
	Features []storage.Feature `json:"features,omitempty"`
	Created  time.Time         `json:"created"`
	Etag     uint64            `json:"etag"`            // of the newest change that the snapshot shows
	After    uint64            `json:"after,omitempty"` // that of the base
}

// Trailer is the last block of a stream, as JSON. Part of the format.
type Trailer struct {
	Keys      int64  `json:"keys"`      // that are set
	Documents int64  `json:"documents"` // among them
	Deletions int64  `json:"deletions"` // of documents; 0 in a full backup
	RawBytes  int64  `json:"rawBytes"`  // of all data blocks before compression
	Blocks    uint32 `json:"blocks"`    // of data
	SHA256    string `json:"sha256"`    // of all bytes before this block, in hex
}

// Error is what is wrong with a stream.
type Error struct {
	Stream  int   // its position in the chain, from 0
	Offset  int64 // in bytes, of the block; -1 if the whole stream is meant
	Problem string
	Key     string // the ID of the key that is missing or wrong; "" if the error is about anything else
	Cause   error  // or nil
}

func (e *Error) Error() string {
	text := "backup"
	if e.Stream > 0 {
		text = fmt.Sprintf("backup %d of the chain", e.Stream+1)
	}
	if e.Offset >= 0 {
		text += fmt.Sprintf(", at byte %d", e.Offset)
	}
	text += ": " + e.Problem
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Is makes errors.Is find errs.ErrBackup.
func (e *Error) Is(target error) bool { return target == errs.ErrBackup }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// BaseError says why a database cannot tell what has changed since a backup.
type BaseError struct {
	Base    string // the ID of the backup
	Etag    uint64 // its etag; 0 if the backup is not known
	Oldest  uint64 // the least etag of a backup that could be followed
	Problem string
}

func (e *BaseError) Error() string {
	return fmt.Sprintf("no backup can follow %s: %s; make a full one", errs.Shorten(e.Base), e.Problem)
}

// Is makes errors.Is find errs.ErrBackupBase.
func (e *BaseError) Is(target error) bool { return target == errs.ErrBackupBase }

func recordKey(name string) []byte { return format.AppendKey(nil, format.SpaceMeta, name) }

// Known returns the backups that a database remembers.
func Known(r docs.Getter) (known format.Backups, err error) {
	value, closer, err := r.Get(recordKey(format.BackupsName))
	if errors.Is(err, storage.ErrNotFound) {
		return known, nil
	}
	if err != nil {
		return known, err
	}
	if err := errs.First(json.Unmarshal(value, &known), closer.Close()); err != nil {
		return known, fmt.Errorf("record of backups: %w: %w", errs.ErrCorrupt, err)
	}
	return known, nil
}

// MaxKnown is how many backups a database remembers: the newest ones.
const MaxKnown = 100

// Remember stages that a backup was made, so that others can follow it.
func Remember(tx storage.Tx, b format.Backup) error {
	known, err := Known(tx)
	if err != nil {
		return err
	}
	known.Made = append(known.Made, b)
	if n := len(known.Made) - MaxKnown; n > 0 {
		known.Made = known.Made[n:]
	}
	return env.SetJSON(tx, recordKey(format.BackupsName), known)
}

// Forget stages that no backup can be followed.
func Forget(tx storage.Tx) { tx.Delete(recordKey(format.BackupsName)) }
