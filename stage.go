package jay

import (
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

func (t *transaction) run(ops []*op) error {
	taken := false
	t.hint, t.ops = uint64(len(ops)), ops
	for _, o := range ops {
		err := t.stage(o)
		if errors.Is(err, errIDInUse) {
			taken = true
			continue
		}
		if _, lost := err.(lostError); lost {
			return err // Update looks for it
		}
		if err != nil {
			return opError(ops, o, err)
		}
	}
	if taken {
		return errIDInUse
	}
	return nil
}

// stage resolves and stages one op.
func (t *transaction) stage(o *op) error {
	o.outcome, o.idInUse, o.header.Etag = unsettled, false, 0 // as an earlier run may have left them
	switch o.verb {
	case verbDelete:
		return t.stageDelete(o)
	case verbPatch:
		return t.stagePatch(o)
	}
	etag := uint64(0)
	var err error
	switch o.strategy {
	case ids.ServerSide:
		o.id, etag, err = t.db.resolver.ServerSide(t, o.resolved)
	case ids.Identity:
		o.id, err = t.db.resolver.Identity(t, o.resolved)
	}
	if err != nil {
		return err
	}
	if o.strategy == ids.ServerSide || o.strategy == ids.Identity {
		t.db.encodeTail(o)
	}
	if etag == 0 {
		if etag, err = t.Sequence(); err != nil {
			return err
		}
	}
	return t.stagePut(o, etag)
}

// stagePut checks the document that is there and stages the new one.
func (t *transaction) stagePut(o *op, etag uint64) error {
	old, found, err := t.old(o)
	if err != nil {
		return err
	}
	if found && !o.exposed && (o.strategy == ids.HiLo || o.strategy == ids.GUID) {
		o.idInUse = true
		return errIDInUse
	}
	if found && o.strategy != ids.Semantic {
		// Server-side IDs and identities were made to be free in this same
		// transaction.
		return fmt.Errorf("made id %q: %w", o.id, ErrExists)
	}
	if !o.named {
		if err := t.adopt(o, old, found); err != nil {
			return err
		}
	}
	if err := t.check(o, old, found); err != nil {
		return err
	}
	return t.stageDocument(o, etag, old, found)
}

// stageDocument stages the document of o and its change, membership and index
// entries.
func (t *transaction) stageDocument(o *op, etag uint64, old oldDocument, found bool) error {
	folded := o.foldedID
	if found { // a missing document is neither in the cache nor about to enter it
		t.change(folded)
	}
	o.header.Etag = etag
	t.key = format.DocumentKey(t.key[:0], folded)
	t.value = append(o.header.AppendHead(t.value[:0]), o.tail...)
	t.tx.Set(t.key, t.value, o.json)
	t.stageChange(format.ChangePut, etag, o.collectionOf(), folded)
	switch {
	case found:
		t.tx.Delete(format.ChangeKey(t.key[:0], old.Node, old.Etag))
	case !format.IsClustered(folded, o.foldedCollection, t.db.env.FoldedSeparator): // a document stays in its collection
		t.key = format.MemberKey(t.key[:0], o.foldedCollection, folded)
		t.tx.Set(t.key, nil, nil)
	}
	if err := t.stageEntries(o, old); err != nil {
		return err
	}
	o.outcome = present
	return nil
}

// stageEntries stages the index entries of o. Entries extracted before the
// transaction are used only if the indexes are still the same: see extractAgain.
func (t *transaction) stageEntries(o *op, old oldDocument) error {
	ci := t.indexes().Of(o.foldedCollection)
	if ci == nil {
		return nil
	}
	if ci != o.indexed {
		if t.entered += len(o.json); t.entered > maxEnteredBytes && !o.late {
			return errIndexesChanged
		}
		o.extract(ci)
	}
	if o.refused != nil {
		return o.refused
	}
	return t.stageIndexes(ci, o.id, o.foldedID, old, o.entries)
}

// indexes returns the indexes that this run of the transaction maintains. An
// engine that several processes share must read them from the store here.
func (t *transaction) indexes() *catalog.Catalog {
	if t.catalog == nil {
		t.catalog = t.db.indexes()
	}
	return t.catalog
}

// change keeps a document out of the cache until the transaction has ended.
func (t *transaction) change(folded string) {
	if t.db.docs.Cache == nil {
		return
	}
	if t.changing == nil {
		t.changing = &changes{cache: t.db.docs.Cache}
		t.changing.hashes = t.changing.first[:0]
	}
	t.changing.hashes = append(t.changing.hashes, t.db.docs.Cache.Begin(folded))
}

func (t *transaction) stageChange(kind byte, etag uint64, collection, folded string) {
	t.key = format.ChangeKey(t.key[:0], t.db.env.Node, etag)
	t.value = format.AppendChange(t.value[:0], kind, collection, folded)
	t.tx.Set(t.key, t.value, nil)
}

func (t *transaction) stageDelete(o *op) error {
	folded := o.foldedID
	old, found, err := t.old(o)
	if err != nil {
		return err
	}
	if err := t.checkVersion(o, old, found); err != nil {
		return err
	}
	if !found {
		o.outcome = absent
		return nil
	}
	if o.inCollection != "" && format.CollectionKey(old.Collection) != o.inCollection {
		return &CollectionError{ID: o.id, Current: orEmpty(old.Collection), Given: o.collection}
	}

	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	collection := old.Collection
	key := format.CollectionKey(collection)
	t.change(folded)
	t.tx.Delete(format.DocumentKey(t.key[:0], folded))
	if !format.IsClustered(folded, key, t.db.env.FoldedSeparator) {
		t.tx.Delete(format.MemberKey(t.key[:0], key, folded))
	}
	t.tx.Delete(format.ChangeKey(t.key[:0], old.Node, old.Etag))
	t.stageChange(format.ChangeDelete, etag, collection, folded)
	if ci := t.indexes().Of(key); ci != nil {
		if err := t.stageIndexes(ci, o.id, folded, old, nil); err != nil {
			return err
		}
	}
	o.outcome, o.header.Etag = absent, etag // results do not report it, but sessions do
	return nil
}

// oldDocument is what a write needs to know of the document that it finds.
type oldDocument struct {
	Node, Etag uint64
	Collection string
	Body       []byte // only if its collection has indexes
	ID         string // as it was written, if there is a body
}

// old finds the document that o replaces, unless it was prefetched and is
// unchanged.
func (t *transaction) old(o *op) (oldDocument, bool, error) {
	t.key = format.DocumentKey(t.key[:0], o.foldedID)
	if o.prefetched && t.ahead != nil && t.ahead.catalog == t.indexes() && t.tx.Unchanged(t.ahead.watch, t.key) {
		if o.before == nil {
			return oldDocument{}, false, nil
		}
		return *o.before, true, nil
	}
	if o.strategy == ids.Semantic {
		if doc := t.db.docs.Cache.Current(format.DocumentID(t.key)); doc != nil {
			// Not the body: readers share it, and a change that one of them made to
			// it would leave the index entries of the stored one behind.
			if old := oldOf(t.db, t.indexes(), o, doc.Header(), doc.JSON()); old.Body == nil {
				return old, true, nil
			}
		}
	}
	value, closer, err := t.tx.Get(t.key)
	if err == storage.ErrNotFound {
		return oldDocument{}, false, nil
	}
	if err != nil {
		return oldDocument{}, false, err
	}
	old, err := decodeOld(t.db, t.indexes(), o, value)
	return old, true, errs.First(err, closer.Close())
}

// check checks the op's conditions on the document found.
func (t *transaction) check(o *op, old oldDocument, found bool) error {
	if err := t.checkVersion(o, old, found); err != nil {
		return err
	}
	switch {
	case o.verb == verbInsert && found:
		return ErrExists
	case o.verb == verbReplace && !found:
		return ErrNotFound
	}
	if found && format.CollectionKey(old.Collection) != o.foldedCollection {
		return &CollectionError{ID: o.id, Current: orEmpty(old.Collection), Given: orEmpty(o.collection)}
	}
	return nil
}

func (t *transaction) checkVersion(o *op, old oldDocument, found bool) error {
	if o.expected == nil {
		return nil
	}
	actual := ""
	if found {
		actual = t.db.env.ChangeVector(old.Node, old.Etag)
	}
	// A delete that expects the document to be missing contradicts itself: RavenDB
	// refuses it, found or not.
	if actual == *o.expected && (o.verb != verbDelete || found) {
		return nil
	}
	return &ConflictError{ID: o.id, Expected: *o.expected, Actual: actual}
}

func orEmpty(collection string) string {
	if collection == "" {
		return metadata.Empty
	}
	return collection
}

// maxEnteredBytes is how many bytes of bodies a transaction extracts the entries
// of, while other writes wait. Beyond it the transaction gives up: see
// extractAgain. A variable for tests.
var maxEnteredBytes = 1 << 20
