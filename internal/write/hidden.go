package write

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Unique indexes while tables are ingested
//
// The tables of a build (internal/indexer/tables.go) have the entries of documents as a
// snapshot shows them, and hide the entries that writers have made since. Until the build has
// corrected that, of one value of a unique index:
//
//   - the entry may name a document that has the value no more. So a writer believes an
//     entry of an index that is being built only if the document that it names gives it;
//   - the entry of the document that has the value now may be hidden. So a writer also
//     looks at what was there before the tables.
//
// A document that had the value in the snapshot and was not changed since is in the
// tables; one that got it before the tables came is in the state before them; and one that got it
// after them has hidden nothing. Thus a writer finds every document that has the value.

// Hidden holds, for indexes whose tables are being corrected, the state before the
// tables. It is safe for concurrent use.
type Hidden struct {
	any     atomic.Int32 // how many there are
	mu      sync.RWMutex
	readers map[uint32]storage.Snapshot // Guarded by mu.
}

// Show makes the state before the tables of an index known to writers. Hidden owns it
// from then on.
func (h *Hidden) Show(number uint32, before storage.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers == nil {
		h.readers = make(map[uint32]storage.Snapshot)
	}
	h.readers[number] = before
	h.any.Add(1)
}

// With calls fn with the state before the tables of an index, which Show has made known
// and only the caller of With ends.
func (h *Hidden) With(number uint32, fn func(before storage.Reader) error) error {
	h.mu.RLock()
	before := h.readers[number]
	h.mu.RUnlock()
	return fn(before)
}

// End closes the state before the tables of an index, if there is one.
func (h *Hidden) End(number uint32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.readers[number]
	if before == nil {
		return nil
	}
	delete(h.readers, number)
	h.any.Add(-1)
	return before.Close()
}

// owner returns the document whose entry in a unique index was at key before the tables,
// "" if there was none.
func (h *Hidden) owner(number uint32, key []byte) (folded string, err error) {
	if h.any.Load() == 0 {
		return "", nil
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	before := h.readers[number]
	if before == nil {
		return "", nil
	}
	value, closer, err := before.Get(key)
	if err == storage.ErrNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	owner, _ := catalog.SplitValue(value, true)
	folded = string(owner)
	return folded, closer.Close()
}

// checkHidden refuses an entry of a unique index at t.key that another document has, but for the
// tables that hide its entry.
func (t *Txn) checkHidden(e *catalog.Entry, id, folded string) error {
	other, err := t.Writer.Hidden.owner(e.Index.Number, t.key)
	if err != nil || other == "" || other == folded {
		return err
	}
	return t.refuseTaken(e, id, other)
}

// gives reports whether a document, as the transaction sees it, gives an entry of a unique
// index.
func (t *Txn) gives(folded string, e *catalog.Entry) (bool, error) {
	record, closer, err := t.Tx.Get(format.NewDocumentKey(folded))
	if err == storage.ErrNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer closer.Close() // the record was read
	h, body, err := metadata.Decode(record)
	if err != nil || !docs.SameCollection(h.Collection, e.Index.Collection) {
		return false, err
	}
	found := false
	err = catalog.Only(e.Index).EachStored(body, func(all *catalog.Entries) error {
		for i := range all.List {
			found = found || all.List[i].Unique && bytes.Equal(all.List[i].Values, e.Values)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return false, nil // it is beyond the bounds of indexes, and has no entry
	}
	return found, err
}
