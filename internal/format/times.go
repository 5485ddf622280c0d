package format

import (
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/instant"
)

// What is due for a document at an instant. Part of the on-disk format. Must not change.
const (
	DueExpiry  = 'e' // it is deleted
	DueRefresh = 'r' // it gets a new version
)

// Due is an entry of the key space 't': what is due for a document, and when.
type Due struct {
	At         time.Time
	Kind       byte   // DueExpiry or DueRefresh
	FoldedID   string // the document's ID
	Collection string // folded
}

// TimeKey appends the key of an entry of what is due: its kind, the instant as
// instant.AppendTimeKey has it, the folded ID and 00. The value is the folded
// collection. Part of the on-disk format. Must not change.
//
//	't' kind instant(9) id 00 → collection
func TimeKey(dst []byte, at time.Time, kind byte, foldedID string) []byte {
	dst = append(TimesFrom(dst, kind, at), foldedID...)
	return append(dst, 0)
}

// TimesFrom appends the first key of what is due at an instant or later.
func TimesFrom(dst []byte, kind byte, at time.Time) []byte {
	return instant.AppendTimeKey(append(dst, SpaceTimes, kind), at)
}

// TimesAfter appends the first key of what is due after an instant.
func TimesAfter(dst []byte, kind byte, at time.Time) []byte {
	return PrefixEnd(TimesFrom(dst, kind, at))
}

// DecodeDue returns the entry at a key.
func DecodeDue(key, value []byte) (Due, error) {
	const id = 2 + instant.KeySize
	if len(key) < id+2 || key[0] != SpaceTimes || key[1] != DueExpiry && key[1] != DueRefresh || key[len(key)-1] != 0 {
		return Due{}, fmt.Errorf("time key %x: %w", key, errs.ErrCorrupt)
	}
	at, ok := instant.DecodeTimeKey(key[2:id])
	if !ok {
		return Due{}, fmt.Errorf("time key %x: %w", key, errs.ErrCorrupt)
	}
	return Due{At: at, Kind: key[1], FoldedID: string(key[id : len(key)-1]), Collection: string(value)}, nil
}

// TimesName is the record under 'm' of how far the documents of an older database were
// looked at for instants: TimesState, as JSON. Part of the on-disk format. Must not
// change.
const TimesName = "times"

// TimesState is how far the documents of a database were looked at for instants that
// have no entries under 't' yet. A new database has nothing to look at. Part of the
// on-disk format. Must not change.
type TimesState struct {
	All      bool      `json:"all"`               // nothing is left to do
	UpTo     string    `json:"upTo,omitempty"`    // folded ID of the last document that was looked at
	Upgraded time.Time `json:"upgraded,omitzero"` // documents that had expired then stay as they are
	Overdue  int64     `json:"overdue,omitempty"` // how many documents those are
	Invalid  int64     `json:"invalid,omitempty"` // how many have an @expires or @refresh that is no instant
}
