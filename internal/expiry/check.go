package expiry

import (
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// ErrEntries means that the entries under 't' do not match the documents.
var ErrEntries = errors.New("the entries of what is due are wrong")

// Check compares the entries under 't' with the documents of one snapshot: each instant
// of a document must have an entry, and there must be no other entry. It holds all of
// them in memory, for tests and for builds with invariants.
func Check(r storage.Reader) error {
	wanted, err := entriesOf(r)
	if err != nil {
		return err
	}
	it, err := r.Iterate([]byte{format.SpaceTimes}, []byte{format.SpaceTimes + 1})
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if collection, found := wanted[string(it.Key())]; !found || collection != string(it.Value()) {
			err = fmt.Errorf("%w: %q → %q is of no document", ErrEntries, it.Key(), it.Value())
		}
		delete(wanted, string(it.Key()))
	}
	if err = errs.First(errs.First(err, it.Error()), it.Close()); err != nil {
		return err
	}
	for key := range wanted {
		return fmt.Errorf("%w: %q is missing", ErrEntries, key)
	}
	return nil
}

// entriesOf returns the entries that the documents must have.
func entriesOf(r storage.Reader) (map[string]string, error) {
	it, err := r.Iterate([]byte{format.SpaceDocument}, []byte{format.SpaceDocument + 1})
	if err != nil {
		return nil, err
	}
	wanted := make(map[string]string)
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var h metadata.Header
		if _, err = h.Decode(it.Value()); err != nil || !h.Timed {
			continue
		}
		id, times := string(format.DocumentID(it.Key())), h.Times()
		if (times == metadata.Times{}) {
			err = fmt.Errorf("%w: %q has none, and is marked as one that has", ErrEntries, id)
		}
		collection := format.CollectionKey(string(h.Collection))
		if !times.Expires.IsZero() {
			wanted[string(format.TimeKey(nil, times.Expires, format.DueExpiry, id))] = collection
		}
		if !times.Refresh.IsZero() {
			wanted[string(format.TimeKey(nil, times.Refresh, format.DueRefresh, id))] = collection
		}
	}
	return wanted, errs.First(errs.First(err, it.Error()), it.Close())
}
