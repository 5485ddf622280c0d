package write

import (
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Run stages ops, in their order. It returns errIDInUse when all are looked at, so
// that every ID that is in use is marked.
func (t *Txn) Run(ops []*Op) error {
	var once *Once
	if len(ops) > 0 {
		once = ops[0].Once
	}
	if once != nil {
		if err := once.Request.Find(t.Tx); err != nil {
			return err
		}
	}
	if err := t.run(ops); err != nil || once == nil {
		return err
	}
	return once.keep(t.Writer.Env, t.Tx)
}

// run is Run without a request.
func (t *Txn) run(ops []*Op) error {
	taken := false
	t.hint, t.ops = uint64(len(ops)), ops
	for _, o := range ops {
		err := t.stage(o)
		if errors.Is(err, errIDInUse) {
			taken = true
			continue
		}
		if _, lost := err.(LostError); lost {
			return err // Update looks for it
		}
		if errors.Is(err, errInTheWay) {
			return t.meetOthers(ops)
		}
		if err != nil {
			return OpError(ops, o, err)
		}
	}
	if taken {
		return errIDInUse
	}
	return nil
}

// stage resolves and stages one op.
func (t *Txn) stage(o *Op) error {
	o.Outcome, o.idInUse, o.Header.Etag = Unstaged, false, 0 // as an earlier run may have left them
	if o.FoldedID != "" {
		if err := t.checkLock(o.FoldedID); err != nil {
			return err
		}
	}
	switch o.Verb {
	case Put, Insert, Replace:
		return t.stageGiven(o)
	case Delete:
		return t.stageDelete(o)
	case Patch:
		return t.stagePatch(o)
	case Attach:
		return t.stageAttach(o)
	case Keep:
		return t.stageKeep(o)
	case Exchange:
		return t.stageExchange(o)
	}
	panic(fmt.Sprintf("verb %d is not staged", o.Verb))
}

// stageGiven makes the ID of a put, if the transaction makes it, and stages the put.
func (t *Txn) stageGiven(o *Op) error {
	etag := uint64(0)
	var err error
	if o.Strategy.MadeByCommit() {
		if etag, err = t.makeID(o); err != nil {
			return err
		}
	}
	if etag == 0 {
		if etag, err = t.Sequence(); err != nil {
			return err
		}
	}
	return t.StagePut(o, etag)
}

// makeID makes the ID of an op that gets it in the transaction, and returns the etag that
// the ID holds, or 0. In a cluster the numbers of counters were reserved before.
func (t *Txn) makeID(o *Op) (etag uint64, err error) {
	if o.Strategy.FromCounter() && t.Writer.Cluster != nil {
		return 0, t.stageReserved(o)
	}
	if o.Strategy.FromEtag() {
		if err := t.Writer.Cluster.CheckTag(); err != nil {
			return 0, err
		}
	}
	if o.ID, etag, err = t.Writer.Resolver.Make(o.Strategy, t, o.Resolved); err != nil {
		return 0, err
	}
	t.Writer.EncodeTail(o)
	return etag, nil
}

// StagePut checks the document that is there and stages the new one.
func (t *Txn) StagePut(o *Op, etag uint64) error {
	if err := t.checkLock(o.FoldedID); err != nil {
		return err
	}
	old, found, err := t.old(o)
	if err != nil {
		return err
	}
	if found && (!o.Exposed && o.Strategy.Drawn() || o.number != 0) {
		o.idInUse = true
		return errIDInUse
	}
	if found && o.Strategy.Made() {
		// Resolver.Make has made one that is free in this same transaction.
		return fmt.Errorf("made id %q: %w", o.ID, errs.ErrExists)
	}
	if o.due != nil {
		if holds, err := o.due.holds(t, &old, found); err != nil || !holds {
			return err
		}
	}
	if found && t.hasExpired(&old) {
		return t.meet(o.FoldedID, old.Times.Expires)
	}
	if !o.Named {
		if err := t.adopt(o, &old, found); err != nil {
			return err
		}
	}
	if err := t.check(o, &old, found); err != nil {
		return err
	}
	if o.KeepsDue() {
		if err := t.Writer.KeepDue(o, old.Times); err != nil {
			return err
		}
	}
	if o.Guard != nil {
		if err := t.stageGuard(o, etag); err != nil {
			return err
		}
	}
	return t.stageDocument(o, etag, &old, found)
}

// stageDocument stages the document of o and its change, membership and index
// entries.
func (t *Txn) stageDocument(o *Op, etag uint64, old *OldDocument, found bool) error {
	folded := o.FoldedID
	ci := t.indexes().Of(o.FoldedCollection)
	if ci != nil && ci.Unknown != nil {
		return ci.Unknown
	}
	if err := t.stageFit(o); err != nil {
		return err
	}
	if found { // a missing document is neither in the cache nor about to enter it
		t.uncache(folded)
	}
	if o.Header.Etag = etag; !o.moves {
		o.Header.Attachments = old.Attachments
	}
	if o.Attaching != nil {
		if err := t.stageAttachments(o); err != nil {
			return err
		}
	}
	if err := t.stageRevision(o, old, found); err != nil {
		return err
	}
	entries := !o.keepsEntries(ci)
	var loaded *changed
	if entries {
		var err error
		if loaded, err = (Loads{t}).change(o, ci, old, found, o.JSON); err != nil {
			return err
		}
	}
	t.key = format.DocumentKey(t.key[:0], folded)
	t.value = append(o.Header.AppendHead(t.value[:0]), o.Tail...)
	if !t.applying { // the room was there when it was checked
		if err := t.Writer.Env.Room.Spend(len(t.key) + len(t.value) + len(o.JSON)); err != nil {
			return err
		}
	}
	t.Tx.Set(t.key, t.value, o.JSON)
	if found { // the head of a missing one is unknown
		t.changeHead(o, etag, len(t.value)+len(o.JSON))
	}
	documents, bytes := int64(0), int64(len(t.value)+len(o.JSON)-old.Size)
	if !found {
		documents, bytes = 1, bytes+int64(len(folded))
	}
	if err := t.count(o.FoldedCollection, folded, documents, bytes); err != nil {
		return err
	}
	t.stageChange(etag, o.collectionOf(), folded)
	switch {
	case found:
		t.Tx.Delete(format.ChangeKey(t.key[:0], old.Node, old.Etag))
	case !format.IsClustered(folded, o.FoldedCollection, t.Writer.Env.FoldedSeparator): // a document stays in its collection
		t.key = format.MemberKey(t.key[:0], o.FoldedCollection, folded)
		t.Tx.Set(t.key, nil, nil)
	}
	if o.Header.Timed || old.Times != nil {
		t.stageTimes(folded, o.FoldedCollection, old.Times, o.Header.Times())
	}
	if entries {
		if err := t.stageEntries(o, ci, old); err != nil {
			return err
		}
	}
	if loaded != nil {
		if err := (Loads{t}).stage(loaded, ci, !o.moves); err != nil {
			return err
		}
	}
	o.Outcome = Present
	return nil
}

// keepsEntries reports whether the entries of a document stay as they are, as its body does. While an index is being built, the document may not have
// entries yet, and the build leaves out what was written since it has read it: whoever writes stages them.
func (o *Op) keepsEntries(ci *catalog.Collection) bool {
	if !o.Verb.KeepsBody() {
		return false
	}
	if ci.IsBuilt() {
		return true
	}
	o.Late = true // there was no time before the transaction for them
	return false
}

// stageEntries stages the entries of o in the indexes of its collection, which may be nil. Entries
// extracted before the transaction are used only if the indexes are still the same: see extractAgain.
func (t *Txn) stageEntries(o *Op, ci *catalog.Collection, old *OldDocument) error {
	if ci == nil {
		return nil
	}
	if ci != o.indexed {
		if t.entered += len(o.JSON); t.entered > MaxEnteredBytes && !o.Late {
			return errIndexesChanged
		}
		o.extract(ci)
	}
	if o.refused != nil {
		return o.refusal()
	}
	return t.StageIndexes(ci, o.ID, o.FoldedID, old, o.entries)
}

// indexes returns the indexes that this run of the transaction maintains. On a shared store
// they are those of its moment: see package shared.
func (t *Txn) indexes() *catalog.Catalog {
	if t.catalog == nil {
		t.catalog = t.Writer.Indexes.Load()
	}
	return t.catalog
}

// change is uncache, and makes the head of the document unknown.
func (t *Txn) change(folded string) {
	t.Writer.Heads.Forget(folded)
	t.uncache(folded)
}

// uncache keeps a document out of the cache until the transaction has ended.
func (t *Txn) uncache(folded string) {
	if t.Writer.Docs.Cache == nil {
		return
	}
	if t.changing == nil {
		t.changing = &changes{cache: t.Writer.Docs.Cache}
		t.changing.hashes = t.changing.first[:0]
	}
	t.changing.hashes = append(t.changing.hashes, t.Writer.Docs.Cache.Begin(folded))
}

// stageChange stages the change of a put.
func (t *Txn) stageChange(etag uint64, collection, folded string) {
	t.key = format.ChangeKey(t.key[:0], t.Writer.Env.Node, etag)
	t.value = format.AppendChange(t.value[:0], format.ChangePut, collection, folded)
	t.Tx.Set(t.key, t.value, nil)
}

// stageDeletion stages the change of the deletion of a document whose ID was written as id.
func (t *Txn) stageDeletion(etag uint64, collection, folded, id string) {
	if id != folded {
		t.Tx.RequireFeature(storage.FeatureDeletedIDs)
	}
	t.key = format.ChangeKey(t.key[:0], t.Writer.Env.Node, etag)
	t.value = format.AppendDeletion(t.value[:0], collection, folded, id)
	t.Tx.Set(t.key, t.value, nil)
}

func (t *Txn) stageDelete(o *Op) error {
	folded := o.FoldedID
	old, found, err := t.old(o)
	if err != nil {
		return err
	}
	if o.due != nil {
		if holds, err := o.due.holds(t, &old, found); err != nil || !holds || o.due.due.Kind != format.DueExpiry {
			o.Outcome = Absent
			return err
		}
	} else if found && t.hasExpired(&old) {
		old, found = OldDocument{}, false
	}
	if err := t.checkVersion(o, &old, found); err != nil {
		return err
	}
	if o.Guard != nil {
		if err := t.stageGuard(o, 0); err != nil {
			return err
		}
	}
	if !found {
		o.Outcome = Absent
		return nil
	}
	if o.InCollection != "" && format.CollectionKey(old.Collection) != o.InCollection {
		return &metadata.CollectionError{ID: o.ID, Current: OrEmpty(old.Collection), Given: o.Collection}
	}

	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	collection := old.Collection
	key := format.CollectionKey(collection)
	ci := t.indexes().Of(key)
	if ci != nil && ci.Unknown != nil {
		return ci.Unknown
	}
	if err := t.stageDeletionRevision(o, &old, key, etag); err != nil { // while the document is there
		return err
	}
	loaded, err := (Loads{t}).change(o, ci, &old, true, nil)
	if err != nil {
		return err
	}
	t.change(folded)
	t.Tx.Delete(format.DocumentKey(t.key[:0], folded))
	if !format.IsClustered(folded, key, t.Writer.Env.FoldedSeparator) {
		t.Tx.Delete(format.MemberKey(t.key[:0], key, folded))
	}
	t.Tx.Delete(format.ChangeKey(t.key[:0], old.Node, old.Etag))
	t.stageDeletion(etag, collection, folded, old.ID)
	if err := t.count(key, folded, -1, -int64(len(folded)+old.Size)); err != nil {
		return err
	}
	t.Writer.Horizon.Staged(etag)
	t.deletions++
	if old.Attachments != nil && !o.moves {
		if err := t.releaseAttachments(old.Attachments); err != nil {
			return err
		}
	}
	if old.Times != nil {
		t.stageTimes(folded, key, old.Times, metadata.Times{})
	}
	if ci != nil {
		if err := t.StageIndexes(ci, o.ID, folded, &old, nil); err != nil {
			return err
		}
	}
	if loaded != nil {
		if err := (Loads{t}).stage(loaded, ci, !o.moves); err != nil {
			return err
		}
	}
	o.Outcome, o.Header.Etag = Absent, etag
	return nil
}

// OldDocument is what a write needs to know of the document that it finds.
type OldDocument struct {
	Node, Etag uint64
	Collection string
	Modified   uint64 // in ticks
	Revision   uint64 // its number, see metadata.Header
	Size       int    // of its record; 0 for none
	Body       []byte // only if its collection has indexes
	ID         string // as it was written, if there is a body or a past, or the document is to be deleted
	past       past   // only if it is to become a revision: see Op.keeps

	Attachments []byte // as they are stored; nil for none

	Times *metadata.Times // when something is due for it; nil for nothing
}

// old finds the document that o replaces, unless it was prefetched and is
// unchanged.
func (t *Txn) old(o *Op) (OldDocument, bool, error) {
	t.key = format.DocumentKey(t.key[:0], o.FoldedID)
	if o.prefetched && t.prefetched != nil && t.prefetched.catalog == t.indexes() && t.prefetched.rules == t.rules() && t.Tx.Unchanged(t.prefetched.watch, t.key) {
		if o.Before == nil {
			return OldDocument{}, false, nil
		}
		return *o.Before, true, nil
	}
	if old, known := t.knownHead(o); known {
		return old, true, nil
	}
	if !o.Strategy.Made() {
		if doc := t.Writer.Docs.Cache.Current(format.DocumentID(t.key)); doc != nil {
			// Not the body: readers share it, and a change that one of them made to
			// it would leave the index entries of the stored one behind.
			h := doc.Header()
			if old := oldOf(t.indexes(), o, &h, doc.JSON()); old.Body == nil {
				return old, true, nil
			}
		}
	}
	begun := time.Now()
	value, closer, err := t.Tx.Get(t.key)
	if !t.Writer.Env.Engine.Shared() { // of a shared store, the leader asks for the documents of all at once
		t.Writer.disk.took(1, time.Since(begun))
	}
	if err == storage.ErrNotFound {
		return OldDocument{}, false, nil
	}
	if err != nil {
		return OldDocument{}, false, err
	}
	old, err := decodeOld(t.indexes(), t.rules(), o, value)
	return old, true, errs.First(err, closer.Close())
}

// check checks the op's conditions on the document found.
func (t *Txn) check(o *Op, old *OldDocument, found bool) error {
	if err := t.checkVersion(o, old, found); err != nil {
		return err
	}
	switch {
	case o.Verb.MustBeNew() && found:
		return errs.ErrExists
	case o.Verb.MustExist() && !found:
		return errs.ErrNotFound
	}
	if found && format.CollectionKey(old.Collection) != o.FoldedCollection {
		return &metadata.CollectionError{ID: o.ID, Current: OrEmpty(old.Collection), Given: OrEmpty(o.Collection)}
	}
	return nil
}

func (t *Txn) checkVersion(o *Op, old *OldDocument, found bool) error {
	if o.Expected == nil {
		return nil
	}
	actual := ""
	if found {
		actual = t.Writer.Env.ChangeVector(old.Node, old.Etag)
	}
	// A delete that expects the document to be missing contradicts itself: RavenDB
	// refuses it, found or not.
	if actual == *o.Expected && (!o.Verb.Deletes() || found) {
		return nil
	}
	return &metadata.ConflictError{ID: o.ID, Expected: *o.Expected, Actual: actual}
}

// OrEmpty returns the name that a collection is reported under.
func OrEmpty(collection string) string {
	if collection == "" {
		return metadata.Empty
	}
	return collection
}

// MaxEnteredBytes is how many bytes of bodies a transaction extracts the entries
// of, while other writes wait. Beyond it the transaction gives up: see
// extractAgain. A variable for tests.
var MaxEnteredBytes = 1 << 20

// StageIndexes replaces the index entries of a document. before is the old
// document, without a body if it did not exist; after is nil if the document is
// deleted.
func (t *Txn) StageIndexes(ci *catalog.Collection, id, folded string, before *OldDocument, after *catalog.Entries) error {
	var kept []bool // by position in after: the entry is there already
	if before.Body != nil {
		if after != nil {
			kept = make([]bool, len(after.List))
		}
		err := ci.EachStored(before.Body, func(old *catalog.Entries) error {
			for i := range old.List {
				e := &old.List[i]
				if e.Index.Stager != nil {
					continue
				}
				if same := after.Like(e); same >= 0 {
					kept[same] = after.List[same].Covering == e.Covering
				} else if err := t.stageRemoval(e, folded); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("old entries of %q: %w", folded, err)
		}
	}
	if ci != nil {
		for _, ix := range ci.Stagers {
			if t.Writer.Withheld.Has(ix.Number) {
				continue
			}
			stage := ix.Stager.Stage
			if n, ok := ix.Stager.(catalog.NewStager); ok && before.Size == 0 && before.Body == nil && ix.Info.State == index.Ready {
				stage = n.StageNew // a build knows nothing of what was there
			}
			if err := stage(t.Tx, folded, after.Of(ix)); err != nil {
				return fmt.Errorf("index %q: %w", ix.Info.Name, err)
			}
			if ix.Settler != nil {
				t.unsettled = true
				if ix.Throttled.Load() {
					t.throttled++
				}
			}
		}
	}
	if after == nil {
		return nil
	}
	for i := range after.List {
		e := &after.List[i]
		if e.Index.Stager != nil {
			continue
		}
		if kept != nil && kept[i] && before.ID == id && e.Index.Info.State == index.Ready {
			continue // a build may not have added the document yet, and will not: the document changes
		}
		if err := t.stageEntry(e, id, folded); err != nil {
			return err
		}
	}
	for _, f := range after.Flags {
		if err := t.stageFlags(f); err != nil {
			return err
		}
	}
	return nil
}

// stageRemoval stages the removal of an index entry of a document. In a unique
// index under construction the document may not have the entry yet, and another
// document may have it: of two with the same values, one may be removed before the
// build reaches it.
func (t *Txn) stageRemoval(e *catalog.Entry, folded string) error {
	t.key = e.AppendKey(t.key[:0], folded)
	if e.Unique && e.Index.Info.State == index.Building {
		value, closer, err := t.Tx.Get(t.key)
		if err == storage.ErrNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		owner, _ := catalog.SplitValue(value, true)
		mine := string(owner) == folded
		if err := closer.Close(); err != nil || !mine {
			return err
		}
	}
	t.Tx.Delete(t.key)
	return nil
}

func (t *Txn) stageEntry(e *catalog.Entry, id, folded string) error {
	t.key = e.AppendKey(t.key[:0], folded)
	t.value = e.AppendValue(t.value[:0], id, folded)
	if !e.Unique {
		t.Tx.Set(t.key, t.value, nil)
		return nil
	}
	if err := t.checkUnique(t.key); err != nil {
		return err
	}
	value, closer, err := t.Tx.Get(t.key)
	if err == nil {
		taken, _ := catalog.SplitValue(value, true)
		other := string(taken)
		if err := closer.Close(); err != nil {
			return err
		}
		if other != folded {
			if err := t.refuseTaken(e, id, other); err != nil {
				return err
			}
		}
	} else if err != storage.ErrNotFound {
		return err
	}
	if e.Index.Info.State == index.Building {
		if err := t.checkHidden(e, id, folded); err != nil {
			return err
		}
	}
	t.Tx.Set(t.key, t.value, nil)
	return nil
}

// refuseTaken returns the error of a value of a unique index that another document has.
func (t *Txn) refuseTaken(e *catalog.Entry, id, other string) error {
	if e.Index.Info.State == index.Building {
		if has, err := t.gives(other, e); err != nil || !has {
			return err // the entry is out of date: see hidden.go
		}
	}
	if err := t.MeetExpired(other); err != nil {
		return err
	}
	return &index.UniqueError{Index: e.Index.Info.Name, Collection: e.Index.Info.Collection, Value: e.Text(), ID: id, Other: t.Written(other)}
}

// Written returns the ID of a document as it was written.
func (t *Txn) Written(folded string) string { return WrittenIn(t.Tx, folded) }

// WrittenIn is Txn.Written for any reader.
func WrittenIn(r docs.Getter, folded string) string {
	record, closer, err := r.Get(format.DocumentKey(nil, folded))
	if err != nil {
		return folded
	}
	defer closer.Close() // only the text of an error depends on it
	if h, _, err := metadata.Decode(record); err == nil && h.ID != nil {
		return string(h.ID)
	}
	return folded
}

// stageFlags adds to the flags of an index.
func (t *Txn) stageFlags(f catalog.Flag) error {
	if t.flags[f.Number]&f.Flags == f.Flags {
		return nil
	}
	known, err := catalog.ReadFlags(t.Tx, f.Number)
	if err != nil {
		return err
	}
	if known&f.Flags != f.Flags {
		t.Tx.Set(format.IndexFlagsKey(f.Number), []byte{known | f.Flags}, nil)
	}
	if t.flags == nil {
		t.flags = make(map[uint32]byte)
	}
	t.flags[f.Number] = known | f.Flags
	return nil
}
