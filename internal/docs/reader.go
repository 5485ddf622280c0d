// Package docs reads decoded documents: one by its ID, many with a Cursor, and
// those that are read often from a cache.
package docs

import (
	"context"
	"io"
	"time"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Reader reads the documents of a database.
type Reader struct {
	env   *env.Env
	Cache *Cache      // or nil
	need  budget.Take // is called before a long record is copied; or nil
}

// NewReader returns a Reader with a cache of cacheBytes, or without one if that is
// not above 0.
func NewReader(e *env.Env, cacheBytes int64) *Reader {
	return &Reader{env: e, Cache: NewCache(cacheBytes)}
}

// For returns a Reader whose long documents the caller of a context pays for.
func (r *Reader) For(ctx context.Context) *Reader {
	need := budget.ReadingOf(ctx)
	if need == nil {
		return r
	}
	return &Reader{env: r.env, Cache: r.Cache, need: need}
}

// pay pays for the copy of a record.
func (r *Reader) pay(record []byte) error {
	if r.need == nil || len(record) < budget.LeastRead {
		return nil
	}
	return r.need(int64(len(record)))
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

// Getter reads one key.
type Getter = env.Getter

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

// With Options.ExactExpiry a reader does not see a document from the instant on at which
// it expires. Reads of one snapshot agree on the instant: it is taken once.

// Moment returns the instant that reads are of which begin now, or the zero time if
// expired documents are shown until they are deleted. It calls the user's clock.
func (r *Reader) Moment() time.Time {
	if !r.env.HidesExpired() {
		return time.Time{}
	}
	return r.env.Now()
}

// IsGone reports whether a document has expired at a moment.
func IsGone(h *metadata.Header, moment time.Time) bool {
	return h.Timed && !moment.IsZero() && h.IsExpired(moment)
}

// Alive passes on what a read of the current state has returned, but for a document that
// has expired: that is ErrNotFound.
func (r *Reader) Alive(doc *Document, err error) (*Document, error) {
	if err == nil && doc.timed && doc.IsGone(r.Moment()) {
		return nil, errs.ErrNotFound
	}
	return doc, err
}

// AliveAt is Alive for a read of a snapshot, whose moment it is given.
func AliveAt(moment time.Time, doc *Document, err error) (*Document, error) {
	if err == nil && doc.IsGone(moment) {
		return nil, errs.ErrNotFound
	}
	return doc, err
}

// ExistsAlive reports whether r has a document at key that has not expired.
func (r *Reader) ExistsAlive(from Getter, key []byte) (bool, error) {
	if !r.env.HidesExpired() {
		return Exists(from, key)
	}
	moment := r.Moment() // the clock is called without the record
	record, closer, err := ReadRecord(from, key)
	if err == errs.ErrNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h, _, err := metadata.Decode(record)
	alive := err == nil && !IsGone(&h, moment)
	return alive, errs.First(err, closer.Close())
}

// EachGone calls fn with the folded collections of the documents in a snapshot that have
// expired at a moment, none of them before from, until fn returns false.
func EachGone(r storage.Reader, from, moment time.Time, fn func(foldedCollection []byte) bool) error {
	return eachGone(r, from, moment, func(_, value []byte) (bool, error) { return fn(value), nil })
}

// EachGoneID calls fn with the folded IDs of these documents, of all collections.
func EachGoneID(r storage.Reader, from, moment time.Time, fn func(folded string)) error {
	return eachGone(r, from, moment, func(key, value []byte) (bool, error) {
		due, err := format.DecodeDue(key, value)
		if err != nil {
			return false, err
		}
		fn(due.FoldedID)
		return true, nil
	})
}

// eachGone calls fn with the entries of these documents, until it returns false or an error.
func eachGone(r storage.Reader, from, moment time.Time, fn func(key, value []byte) (more bool, err error)) (err error) {
	if from.After(moment) {
		return nil
	}
	it, err := r.Iterate(format.TimesFrom(nil, format.DueExpiry, from), format.TimesAfter(nil, format.DueExpiry, moment))
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if more, err := fn(it.Key(), it.Value()); !more || err != nil {
			return err
		}
	}
	return it.Error()
}

// AnyGone reports whether there are such documents.
func AnyGone(r storage.Reader, from, moment time.Time) (any bool, err error) {
	err = EachGone(r, from, moment, func([]byte) bool {
		any = true
		return false
	})
	return any, err
}
