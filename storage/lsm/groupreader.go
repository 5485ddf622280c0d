package lsm

import (
	"bytes"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// groupReader reads committed keys for the transactions of one group. The first
// look-ups of a transaction are plain Gets. After those the group has an iterator,
// which keeps tables open from one look-up to the next and uses the bloom filters of
// the last level too, as DB.Get does not. That is correct only because nothing
// commits while a group runs.
type groupReader struct {
	gets int              // plain Gets of this transaction so far
	it   *pebble.Iterator // nil until it is worth its cost
}

// maxGets is how many look-ups of a transaction are plain Gets: an iterator costs
// about as much as some of them.
const maxGets = 4

// get is Reader.Get.
func (r *groupReader) get(db *pebble.DB, key []byte) ([]byte, io.Closer, error) {
	if r.it == nil {
		if r.gets++; r.gets <= maxGets {
			return get(db, key)
		}
		var err error
		if r.it, err = db.NewIter(&pebble.IterOptions{UseL6Filters: true}); err != nil {
			return nil, nil, readError(err)
		}
	}
	found := r.it.SeekPrefixGE(key) // the prefix is the whole key
	if err := r.it.Error(); err != nil {
		return nil, nil, readError(err)
	}
	if found && bytes.Equal(r.it.Key(), key) {
		value, err := r.it.ValueAndErr()
		if err != nil {
			return nil, nil, readError(err)
		}
		return bytes.Clone(value), noCloser, nil // the next look-up moves the iterator
	}
	return nil, nil, storage.ErrNotFound
}

// close ends the reading for the group.
func (r *groupReader) close() {
	if r.it != nil {
		_ = r.it.Close() // a look-up that met an error has returned it
		r.it = nil
	}
}
