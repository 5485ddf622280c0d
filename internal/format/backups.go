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

	// RewrittenName and RevisedName are the numbers of env.Rewritten and env.Revised.
	RewrittenName = "rewritten"
	RevisedName   = "revised"

	// RestoringName is the record of a database that is being restored or copied and not whole yet: Restoring, as JSON.
	RestoringName = "restoring"
)

// Restoring is the record of a database that is not whole yet. Part of the on-disk format.
type Restoring struct {
	Copy *Copying `json:"copy,omitempty"` // nil for one that is restored
}

// Copying says how far a copy of another database has come. Part of the on-disk format.
type Copying struct {
	Run      string   `json:"run"`               // of the process that makes the copy; another one that takes it over has another
	Database string   `json:"database"`          // the ID of the source
	NodeTag  string   `json:"nodeTag"`           // of the source
	Etag     uint64   `json:"etag"`              // up to which the source has reserved etags
	Commit   uint64   `json:"commit,omitempty"`  // of the source, if others may write to it
	CopyTag  string   `json:"copyTag,omitempty"` // that the copy gets; "" if it keeps that of the source
	After    []byte   `json:"after,omitempty"`   // keys up to this one are there
	Done     CopySize `json:"done"`              // of what is there
	Total    CopySize `json:"total"`             // of all; the zero value if it was not measured
	Equal    bool     `json:"equal,omitempty"`   // all is there, and was found to be equal
}

// CopySize is an amount of keys. Part of the on-disk format.
type CopySize struct {
	Keys      int64 `json:"keys"`
	Bytes     int64 `json:"bytes"`     // of keys and values
	Documents int64 `json:"documents"` // among the keys
}

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
	Rewritten int64  `json:"rewritten,omitempty"` // see env.Rewritten
	Revised   int64  `json:"revised,omitempty"`   // see env.Revised
	Revisions bool   `json:"revisions,omitempty"` // there were revisions
}

// DecodeNumber returns a number of 8 bytes.
func DecodeNumber(value []byte) (int64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("number %x: %w", value, errs.ErrCorrupt)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}
