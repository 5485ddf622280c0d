package revisions

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Reader reads revisions. It is safe for concurrent use.
type Reader struct {
	Env  *env.Env
	Docs *docs.Reader
}

// Revision is a copy of a version of a document, or of its deletion.
type Revision struct {
	docs.Document
	Deletion bool
	Foreign  string // the change vector of an imported one, or ""
	Number   uint64 // 0 for a document's present version that is no revision
	Current  bool   // it is the document's present version, in its own record
}

// ChangeVector returns the change vector of the version.
func (r *Revision) ChangeVector() string {
	if r.Foreign != "" {
		return r.Foreign
	}
	return r.Document.ChangeVector()
}

// Flags returns the value of @flags.
func (r *Revision) Flags() metadata.Flags {
	switch {
	case r.Number == 0:
		return 0
	case r.Deletion:
		return metadata.HasRevisions | metadata.DeleteRevision
	}
	return metadata.HasRevisions | metadata.Revision
}

// Metadata returns the metadata of the revision.
func (r *Revision) Metadata() metadata.Metadata {
	m := r.Document.Metadata()
	m.ChangeVector, m.Flags = r.ChangeVector(), r.Flags()
	return m
}

// MarshalJSON returns the body with its @metadata.
func (r *Revision) MarshalJSON() ([]byte, error) {
	m := r.Metadata()
	body := r.JSON()
	return metadata.AppendDocument(make([]byte, 0, len(body)+256), body, &m), nil
}

// copyRevision decodes a copy of a revision, which is one of from.
func (r *Reader) copyRevision(from storage.Reader, foldedID string, number uint64, value []byte) (*Revision, error) {
	head, record, err := format.SplitRevision(value)
	if err != nil {
		return nil, err
	}
	doc, err := r.Docs.CopyDocument([]byte(foldedID), record)
	if err != nil {
		return nil, fmt.Errorf("revision %d: %w", number, err)
	}
	doc.SetRevision(number)
	s := Stored{RevisionHead: head, Header: doc.Header()}
	if s.isUndated() {
		at, err := dateOf(from, foldedID, number)
		if err != nil {
			return nil, err
		}
		doc.SetModified(at)
	}
	return &Revision{Document: *doc, Deletion: head.Deletion, Foreign: string(head.Foreign), Number: number}, nil
}

// current returns the document's present version as a revision, or nil if there is no
// document.
func (r *Reader) current(from storage.Reader, foldedID string) (*Revision, error) {
	doc, err := r.Docs.ReadFolded(from, foldedID)
	if err == errs.ErrNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Revision{Document: *doc, Number: doc.Header().Revision, Current: true}, nil
}

// history opens an iterator over the revisions of a document under 'r'.
func history(from storage.Reader, foldedID string) (storage.Iterator, error) {
	lo := format.RevisionKey(nil, foldedID, 1)
	return from.Iterate(lo, format.PrefixEnd(format.HistoryKey(nil, foldedID)))
}

// numberAt returns the number of the revision under the iterator.
func numberAt(it storage.Iterator) (uint64, error) {
	_, number, err := format.SplitRevisionKey(it.Key())
	return number, err
}

// Bounds of a page. docs/limits.md has them.
const (
	pageRevisions = 64
	pageBytes     = 1 << 20
)

// Page returns revisions of a document with numbers less than below, the newest first,
// including the document's present version if it is a revision. It returns up to 64, or
// about 1 MiB of them. An empty page means that there are no more.
func (r *Reader) Page(from storage.Reader, foldedID string, below uint64) (page []*Revision, err error) {
	now, err := r.current(from, foldedID)
	if err != nil {
		return nil, err
	}
	size := 0
	if now != nil && now.Number > 0 && now.Number < below {
		page, size = append(page, now), len(now.JSON())
	}
	it, err := history(from, foldedID)
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	key := format.RevisionKey(nil, foldedID, below)
	for ok := it.SeekLT(key); ok && len(page) < pageRevisions && size < pageBytes; ok = it.Prev() {
		number, err := numberAt(it)
		if err != nil {
			return nil, err
		}
		rev, err := r.copyRevision(from, foldedID, number, it.Value())
		if err != nil {
			return nil, err
		}
		page, size = append(page, rev), size+len(it.Value())
	}
	return page, it.Error()
}

// Get returns a revision by its change vector, or ErrNotFound. The document's present
// version counts if it is a revision. As numbers and etags rise together, Get bisects.
func (r *Reader) Get(from storage.Reader, foldedID, changeVector string) (_ *Revision, err error) {
	etag, err := EtagOf(changeVector)
	if err != nil {
		return nil, err
	}
	now, err := r.current(from, foldedID)
	if err != nil {
		return nil, err
	}
	if now != nil && now.Number > 0 && now.ChangeVector() == changeVector {
		return now, nil
	}
	it, err := history(from, foldedID)
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	found, err := bisect(it, foldedID, etag)
	if err != nil || !found {
		return nil, errs.First(err, errs.ErrNotFound)
	}
	number, err := numberAt(it)
	if err != nil {
		return nil, err
	}
	rev, err := r.copyRevision(from, foldedID, number, it.Value())
	if err == nil && rev.ChangeVector() != changeVector {
		err = errs.ErrNotFound
	}
	return rev, err
}

// bisect moves an iterator over the revisions of a document to the one with an etag,
// and reports whether it is there.
func bisect(it storage.Iterator, foldedID string, etag uint64) (found bool, err error) {
	if !it.First() {
		return false, it.Error()
	}
	first, err := numberAt(it)
	if err != nil || !it.Last() {
		return false, errs.First(err, it.Error())
	}
	last, err := numberAt(it)
	if err != nil {
		return false, err
	}
	// at returns the etag of the first revision with this number or a higher one: there
	// may be gaps after a loss that was accepted.
	at := func(number uint64) uint64 {
		if err != nil || !it.SeekGE(format.RevisionKey(nil, foldedID, number)) {
			err = errs.First(err, it.Error())
			return ever
		}
		s, e := decode(it.Value(), number)
		err = errs.First(err, e)
		return s.Header.Etag
	}
	i := sort.Search(int(last-first+1), func(i int) bool { return at(first+uint64(i)) >= etag })
	return at(first+uint64(i)) == etag && err == nil, err
}

// EtagOf returns the etag in a change vector, or errs.ErrNotFound for a text that no
// version can have.
func EtagOf(changeVector string) (uint64, error) {
	_, rest, _ := strings.Cut(changeVector, ":")
	digits, id, found := strings.Cut(rest, "-")
	etag, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || !found || id == "" || etag == 0 {
		return 0, errs.ErrNotFound
	}
	return etag, nil
}

// AsOf returns the version that a document had at a time, in ticks: the newest one written
// at that time or before. It returns errs.ErrNotFound if there was none, or if the
// document was deleted then. It reads the revisions written since, the newest first.
func (r *Reader) AsOf(ctx context.Context, from storage.Reader, foldedID string, ticks uint64) (_ *Revision, err error) {
	now, err := r.current(from, foldedID)
	if err != nil {
		return nil, err
	}
	if now != nil && now.Header().Modified <= ticks {
		return now, nil
	}
	it, err := history(from, foldedID)
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.Last(); ok; ok = it.Prev() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		number, err := numberAt(it)
		if err != nil {
			return nil, err
		}
		s, err := decode(it.Value(), number)
		if err != nil {
			return nil, err
		}
		modified := s.Header.Modified
		if s.isUndated() {
			if modified, err = dateOf(from, foldedID, number); err != nil {
				return nil, err
			}
		}
		if modified > ticks {
			continue
		}
		if s.Deletion {
			return nil, errs.ErrNotFound
		}
		return r.copyRevision(from, foldedID, number, it.Value())
	}
	return nil, errs.First(it.Error(), errs.ErrNotFound)
}

// newest returns the newest revision of a deleted document, or nil.
func (r *Reader) newest(from storage.Reader, foldedID string) (_ *Revision, err error) {
	it, err := history(from, foldedID)
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	if !it.Last() {
		return nil, it.Error()
	}
	number, err := numberAt(it)
	if err != nil {
		return nil, err
	}
	return r.copyRevision(from, foldedID, number, it.Value())
}

// Deleted returns the newest revisions of up to 64 deleted documents, in the order of
// their IDs, and the ID after which to continue. There are no more if next is "".
func (r *Reader) Deleted(ctx context.Context, from storage.Reader, after string) (page []*Revision, next string, err error) {
	lo := format.DeletedBounds[0]
	if after != "" {
		lo = append(format.DeletedKey(nil, after), 0)
	}
	it, err := from.Iterate(lo, format.DeletedBounds[1])
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	seen := 0
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		if seen++; seen > pageRevisions {
			return page, next, nil
		}
		if next, err = format.DeletedID(it.Key()); err != nil {
			return nil, "", err
		}
		// If the document was created again while no rule applied, its entry is still
		// there.
		there, err := docs.Exists(from, format.DocumentKey(nil, next))
		if err != nil {
			return nil, "", err
		}
		if there {
			continue
		}
		rev, err := r.newest(from, next)
		if err != nil {
			return nil, "", err
		}
		if rev != nil {
			page = append(page, rev)
		}
	}
	return page, "", it.Error()
}

// Position is a position in the walk over all revisions: after the revision with this
// number.
type Position struct {
	FoldedID string
	Number   uint64
}

// All returns the next revisions under 'r', in the order of IDs and the oldest first, of
// one collection or of all: up to 64, or about 1 MiB of them. Its result says whether
// there are no more. The present versions of documents are not among them.
func (r *Reader) All(ctx context.Context, from storage.Reader, at *Position, foldedCollection string) (page []*Revision, more bool, err error) {
	lo := format.HistoryBounds[0]
	if at.FoldedID != "" {
		lo = format.RevisionKey(nil, at.FoldedID, at.Number+1)
	}
	it, err := from.Iterate(lo, format.HistoryBounds[1])
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	size := 0
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if len(page) == pageRevisions || size >= pageBytes {
			return page, true, nil
		}
		id, number, err := format.SplitRevisionKey(it.Key())
		if err != nil {
			return nil, false, err
		}
		if number == 0 {
			continue
		}
		if string(id) != at.FoldedID {
			at.FoldedID = string(id)
		}
		at.Number = number
		size += len(it.Value()) / 16 // skipped revisions cost a read too
		s, err := decode(it.Value(), number)
		if err != nil {
			return nil, false, err
		}
		if foldedCollection != "" && !docs.SameCollection(s.Header.Collection, foldedCollection) {
			continue
		}
		rev, err := r.copyRevision(from, at.FoldedID, number, it.Value())
		if err != nil {
			return nil, false, err
		}
		page, size = append(page, rev), size+len(it.Value())
	}
	return page, false, it.Error()
}

// Count is the number of revisions of a collection.
type Count struct {
	Collection string // folded
	Revisions  int64
}

// Counts returns the number of revisions under 'r' by collection, in the order of
// collections. The present versions of documents are not counted. payer pays for the list
// while it grows.
func Counts(from storage.Reader, payer *budget.Payer) ([]Count, error) {
	it, err := from.Iterate(format.RevisionCountBounds[0], format.RevisionCountBounds[1])
	if err != nil {
		return nil, err
	}
	var all []Count
	for ok := it.First(); ok; ok = it.Next() {
		collection, n, err := format.DecodeRevisionCount(it.Key(), it.Value())
		if err == nil {
			err = payer.PayNamed(collection)
		}
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		all = append(all, Count{collection, n})
	}
	return all, errs.First(it.Error(), it.Close())
}
