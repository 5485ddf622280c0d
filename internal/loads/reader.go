package loads

import (
	"bytes"
	"io"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// From returns the Load that reads the documents of r, whether they have expired or not.
func From(r interface {
	Get(key []byte) ([]byte, io.Closer, error)
}) Load {
	return func(folded string) ([]byte, error) {
		record, closer, err := r.Get(format.NewDocumentKey(folded))
		if err == storage.ErrNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		_, body, err := metadata.Decode(record)
		body = bytes.Clone(body)
		return body, errs.First(err, closer.Close())
	}
}

// Instead returns the Load that has another body of one document, nil for none, and the others of load.
func (load Load) Instead(folded string, body []byte) Load {
	return func(id string) ([]byte, error) {
		if id == folded {
			return body, nil
		}
		return load(id)
	}
}

// Reader is a storage.Reader in which documents are expanded. It is safe for concurrent use if the one that it reads is.
type Reader struct {
	storage.Reader

	spec *Spec
	fold func(string) string
	load Load
}

// NewReader returns a Reader of the documents of r, with what load loads.
func NewReader(r storage.Reader, s *Spec, fold func(string) string, load Load) *Reader {
	return &Reader{r, s, fold, load}
}

// expand returns the record of a document, expanded.
func (r *Reader) expand(record []byte) ([]byte, error) {
	_, body, err := metadata.Decode(record)
	if err != nil {
		return record, nil // who reads it says what is wrong with it
	}
	e, err := r.spec.Expand(body, r.fold, r.load)
	if err != nil || len(e.Body) == len(body) {
		return record, err
	}
	head := record[:len(record)-len(body)]
	return append(head[:len(head):len(head)], e.Body...), nil
}

// Get implements storage.Reader.
func (r *Reader) Get(key []byte) ([]byte, io.Closer, error) {
	record, closer, err := r.Reader.Get(key)
	if err != nil || key[0] != format.SpaceDocument {
		return record, closer, err
	}
	expanded, err := r.expand(record)
	if err != nil {
		return nil, nil, errs.First(err, closer.Close())
	}
	return expanded, closer, nil
}

// Iterate implements storage.Reader.
func (r *Reader) Iterate(lo, hi []byte) (storage.Iterator, error) {
	it, err := r.Reader.Iterate(lo, hi)
	if err != nil || len(lo) == 0 || lo[0] != format.SpaceDocument {
		return it, err
	}
	return &iterator{Iterator: it, of: r}, nil
}

// iterator is an iterator over documents, which are expanded. One that cannot be is an error where the iterator comes to it.
type iterator struct {
	storage.Iterator

	of     *Reader
	record []byte
	failed error
}

// at expands the document under the iterator, if it stands on one.
func (it *iterator) at(valid bool) bool {
	if it.record = nil; !valid || it.failed != nil {
		return false
	}
	if key := it.Iterator.Key(); len(key) == 0 || key[0] != format.SpaceDocument {
		it.record = it.Iterator.Value()
		return true
	}
	it.record, it.failed = it.of.expand(it.Iterator.Value())
	return it.failed == nil
}

func (it *iterator) First() bool          { return it.at(it.Iterator.First()) }
func (it *iterator) Last() bool           { return it.at(it.Iterator.Last()) }
func (it *iterator) SeekGE(k []byte) bool { return it.at(it.Iterator.SeekGE(k)) }
func (it *iterator) SeekLT(k []byte) bool { return it.at(it.Iterator.SeekLT(k)) }
func (it *iterator) Next() bool           { return it.at(it.Iterator.Next()) }
func (it *iterator) Prev() bool           { return it.at(it.Iterator.Prev()) }
func (it *iterator) Valid() bool          { return it.failed == nil && it.Iterator.Valid() }
func (it *iterator) Value() []byte        { return it.record }
func (it *iterator) Error() error         { return errs.First(it.failed, it.Iterator.Error()) }
