// Package docs reads decoded documents: one by its ID, many with a Cursor, and
// those that are read often from a cache.
package docs

import (
	"io"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Reader reads the documents of a database.
type Reader struct {
	env   *env.Env
	Cache *Cache // or nil
}

// NewReader returns a Reader with a cache of cacheBytes, or without one if that is
// not above 0.
func NewReader(e *env.Env, cacheBytes int64) *Reader {
	return &Reader{env: e, Cache: NewCache(cacheBytes)}
}

// Current returns a document as it is now, from the cache if it is there, or
// ErrNotFound unwrapped. It does not keep foldedID.
func (r *Reader) Current(foldedID []byte) (*Document, error) {
	doc, ticket := r.Cache.Get(foldedID)
	if doc != nil {
		return doc, nil
	}
	doc, err := r.ReadKey(r.env.Engine, format.NewDocumentKey(foldedID))
	if err == nil {
		r.Cache.Enter(ticket, doc)
	}
	return doc, err
}

// Own is Current for a document that becomes part of a write. It bypasses the
// cache: a cached document is shared, and another reader might have changed its
// bytes.
func (r *Reader) Own(foldedID string) (*Document, error) {
	return r.ReadFolded(r.env.Engine, foldedID)
}

// Read returns a document by its ID from a snapshot or a transaction, or
// ErrNotFound unwrapped.
func (r *Reader) Read(from Getter, id string) (*Document, error) {
	return r.ReadFolded(from, r.env.Rules.Fold(id))
}

// ReadFolded is Read for a folded ID.
func (r *Reader) ReadFolded(from Getter, foldedID string) (*Document, error) {
	return r.ReadKey(from, format.NewDocumentKey(foldedID))
}

// ReadKey returns the document at a key, or ErrNotFound unwrapped.
func (r *Reader) ReadKey(from Getter, key []byte) (*Document, error) {
	record, closer, err := ReadRecord(from, key)
	if err != nil {
		return nil, err
	}
	doc, err := r.CopyDocument(format.DocumentID(key), record)
	return doc, errs.First(err, closer.Close())
}

// ReadRecord returns the stored record at a key, in the memory of r and valid until
// closer is closed, or ErrNotFound unwrapped.
func ReadRecord(r Getter, key []byte) (record []byte, closer io.Closer, err error) {
	record, closer, err = r.Get(key)
	if err == storage.ErrNotFound {
		err = errs.ErrNotFound
	}
	return record, closer, err
}

// Getter is the part of a storage.Reader or Tx that reads one key.
type Getter interface {
	Get(key []byte) ([]byte, io.Closer, error)
}

// Exists reports whether r has the key.
func Exists(r Getter, key []byte) (bool, error) {
	_, closer, err := r.Get(key)
	if err == storage.ErrNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, closer.Close()
}
