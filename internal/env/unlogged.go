package env

import (
	"encoding/binary"
	"errors"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Rewritten stages that the record of a document changes without a new etag: only its
// flags for a revision number or for instants do. An incremental backup knows by
// the number under 'm' 'rewritten' that the records of changes do not name all documents
// that it needs.
func Rewritten(tx storage.Tx) error { return increment(tx, format.RewrittenName) }

// Revised stages that revisions change without a change of their document: they are
// imported, or purged. See Rewritten.
func Revised(tx storage.Tx) error { return increment(tx, format.RevisedName) }

// increment adds 1 to a number under 'm'. It reads it: Tx.Add is for spaces that hold
// numbers only.
func increment(tx storage.Tx, name string) error {
	key := format.AppendKey(nil, format.SpaceMeta, name)
	n := int64(0)
	value, closer, err := tx.Get(key)
	switch {
	case err == nil:
		n, err = format.DecodeNumber(value)
		if err := errs.First(err, closer.Close()); err != nil {
			return err
		}
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	tx.Set(key, binary.BigEndian.AppendUint64(nil, uint64(n+1)), nil)
	return nil
}
