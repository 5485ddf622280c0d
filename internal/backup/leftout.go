package backup

import (
	"bytes"
	"slices"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// LeftOut are the keys of attachments that no backup and no copy of a database has: those of streams that are being written, or
// that no content has any more. It does not change.
type LeftOut struct {
	uploads []uint64 // streams that are being written, ascending
	dead    []uint64 // these, and streams that no content has, ascending
}

// FindLeftOut finds the keys that a reader shows and that are to be left out.
func FindLeftOut(r storage.Reader) (*LeftOut, error) {
	uploads, err := streams(r, format.UploadPrefix())
	if err != nil {
		return nil, err
	}
	garbage, err := streams(r, format.GarbagePrefix())
	if err != nil {
		return nil, err
	}
	dead := slices.Concat(uploads, garbage)
	slices.Sort(dead)
	return &LeftOut{uploads, dead}, nil
}

// Has reports whether a key is left out.
func (l *LeftOut) Has(key []byte) bool {
	switch key[0] {
	case format.SpaceAttachments:
		return bytes.HasPrefix(key, format.UploadPrefix()) || bytes.HasPrefix(key, format.GarbagePrefix())
	case format.SpaceChunks:
		stream, _, err := format.SplitChunkKey(key)
		_, dead := slices.BinarySearch(l.dead, stream)
		return err == nil && dead
	}
	return false
}
