package format

import (
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
)

// Records under 'm' about backups. Part of the on-disk format. Must not change.
const (
	// BackupsName is the record of the backups that others can follow: Backups, as JSON.
	BackupsName = "backups"

	// BackupFloor is the name of the floor that keeps the records of deletions for the
	// next incremental backup.
	BackupFloor = "backup"

	// RewrittenName and RevisedName are the numbers of Rewritten and Revised.
	RewrittenName = "rewritten"
	RevisedName   = "revised"

	// RestoringName is the record of a database that is being restored and not whole yet.
	RestoringName = "restoring"
)

// Backups are the backups that a database remembers, oldest first. Part of the on-disk
// format.
type Backups struct {
	Made []Backup `json:"made"`
}

// Backup is what a database remembers of a backup: all that an incremental backup
// needs to know of its base. Part of the on-disk format.
type Backup struct {
	ID        string `json:"id"`
	Etag      uint64 `json:"etag"`                // of the newest change in it
	Streams   uint64 `json:"streams"`             // attachments in streams from this number on are not in it, or not whole
	Rewritten int64  `json:"rewritten,omitempty"` // see Rewritten
	Revised   int64  `json:"revised,omitempty"`   // see Revised
	Revisions bool   `json:"revisions,omitempty"` // there were revisions
}

// adder is the part of storage.Tx that counts.
type adder interface {
	Add(key []byte, deltas ...int64)
}

// Rewritten stages that the record of a document changes without a new etag: only its
// flags for a revision number or for instants do. An incremental backup knows by
// the number under 'm' 'rewritten' that the records of changes do not name all documents that it
// needs.
func Rewritten(tx adder) { tx.Add(AppendKey(nil, SpaceMeta, RewrittenName), 1) }

// Revised stages that revisions change without a change of their document: they are
// imported, or purged. See Rewritten.
func Revised(tx adder) { tx.Add(AppendKey(nil, SpaceMeta, RevisedName), 1) }

// DecodeNumber returns a number that storage.Tx.Add keeps.
func DecodeNumber(value []byte) (int64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("number %x: %w", value, errs.ErrCorrupt)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}
