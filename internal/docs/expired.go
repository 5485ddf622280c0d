package docs

import (
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// With Options.ExactExpiry a reader does not see a document from the instant on at which
// it expires. Reads of one snapshot agree on the instant: it is taken once.

// Moment returns the instant that reads are of which begin now, or the zero time if
// expired documents are shown until they are deleted. It calls the user's clock.
func (r *Reader) Moment() time.Time {
	if !r.env.ExactExpiry {
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
	if err == nil && doc.header.Timed && IsGone(&doc.header, r.Moment()) {
		return nil, errs.ErrNotFound
	}
	return doc, err
}

// AliveAt is Alive for a read of a snapshot, whose moment it is given.
func AliveAt(moment time.Time, doc *Document, err error) (*Document, error) {
	if err == nil && IsGone(&doc.header, moment) {
		return nil, errs.ErrNotFound
	}
	return doc, err
}

// ExistsAlive reports whether r has a document at key that has not expired.
func (r *Reader) ExistsAlive(from Getter, key []byte) (bool, error) {
	if !r.env.ExactExpiry {
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
func EachGone(r storage.Reader, from, moment time.Time, fn func(foldedCollection []byte) bool) (err error) {
	if from.After(moment) {
		return nil
	}
	it, err := r.Iterate(format.TimesFrom(nil, format.DueExpiry, from), format.TimesAfter(nil, format.DueExpiry, moment))
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok && fn(it.Value()); ok = it.Next() {
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
