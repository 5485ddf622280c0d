package write

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// A write that names no collection keeps that of the document which it finds. A new
// document then is in @empty, or, with Options.PrefixCollections, in the collection
// that the prefix of its ID suggests. Only the transaction knows which document it
// finds, so that it has the last word: see Txn.adopt.

// Adopts reports whether o takes the collection of the document that it finds. An
// insert finds none, and made IDs are new.
func (o *Op) Adopts() bool {
	return !o.Named && !o.Strategy.Made() && o.Verb.GivesBody() && !o.Verb.MustBeNew()
}

// TakeCollection puts o into a collection that it does not name.
func (o *Op) TakeCollection(w *Writer, collection string) {
	if string(o.Header.Collection) == collection {
		return
	}
	o.Header.Collection = []byte(collection)
	o.FoldedCollection = format.CollectionKey(collection)
	w.EncodeTail(o)
}

// adopt puts o, which names no collection, into that of the document found, or else
// into the suggested one. Its index entries are then extracted anew: see
// stageEntries.
func (t *Txn) adopt(o *Op, old *OldDocument, found bool) error {
	collection := o.Suggested
	if found {
		collection = old.Collection
	}
	if o.Seen != nil && format.CollectionKey(collection) != o.FoldedCollection {
		now := Version{}
		if found {
			now = Version{Node: old.Node, Etag: old.Etag}
		}
		conflict := &metadata.ConflictError{ID: o.ID, Expected: t.Writer.VersionText(*o.Seen), Actual: t.Writer.VersionText(now)}
		return LostError{Cause: conflict, Over: turns.Document(o.FoldedID)}
	}
	o.TakeCollection(t.Writer, collection)
	return nil
}

// SupposeCollections puts the ops that name no collection into that of the document
// which they will probably find, and extracts their index entries, so that the
// transaction, which other writers wait for, need not. For a few small documents
// the look-ups would cost more than they save.
func (w *Writer) SupposeCollections(ctx context.Context, ops []*Op) error {
	ruled := w.Schemas.Load() != nil
	if len(w.Indexes.Load().ByCollection) == 0 && !ruled {
		return nil
	}
	size := 0
	for _, o := range ops {
		if o.Adopts() {
			size += len(o.JSON)
		}
	}
	if size == 0 || size <= maxAdoptedBytes && !ruled {
		return nil
	}
	var earlier map[string]*Op // by folded ID, the newest op before
	if len(ops) > 1 {
		earlier = make(map[string]*Op)
	}
	for _, o := range ops {
		if o.Adopts() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := w.supposeCollection(o, earlier[o.FoldedID]); err != nil {
				return OpError(ops, o, err)
			}
		}
		if earlier != nil && o.FoldedID != "" && !o.Verb.Edits() {
			earlier[o.FoldedID] = o
		}
	}
	return nil
}

// maxAdoptedBytes is how many bytes of bodies a transaction may extract the index
// entries of because their writes named no collection. A variable for tests.
var maxAdoptedBytes = 16 << 10

// supposeCollection is SupposeCollections for one op. The op before it may write the
// document that it finds.
func (w *Writer) supposeCollection(o, before *Op) error {
	collection := o.Suggested
	switch {
	case before == nil:
		_, found, err := w.CollectionAt(w.Env.Engine, o, &collection)
		if err != nil || !found {
			return err
		}
	case !before.Verb.Deletes():
		collection = string(before.Header.Collection)
	}
	o.TakeCollection(w, collection)
	if ci := w.Indexes.Load().Of(o.FoldedCollection); ci != o.indexed {
		o.extract(ci)
	}
	if w.Schemas.Load().Of(o.FoldedCollection) != o.rule {
		o.fit(w)
	}
	return nil
}

// CollectionAt reads the version of the document that o finds, and its collection.
func (w *Writer) CollectionAt(r docs.Getter, o *Op, collection *string) (v Version, found bool, err error) {
	var scratch [128]byte
	moment := w.Docs.Moment() // the clock is called without the record
	record, closer, err := r.Get(format.DocumentKey(scratch[:0], o.FoldedID))
	if err == storage.ErrNotFound {
		return v, false, nil
	}
	if err != nil {
		return v, false, err
	}
	h, _, err := metadata.Decode(record)
	if err == nil && docs.IsGone(&h, moment) {
		return v, false, closer.Close()
	}
	if err == nil && string(h.Collection) != *collection {
		*collection = string(h.Collection)
	}
	return Version{Node: h.Node, Etag: h.Etag}, true, errs.First(err, closer.Close())
}

// intendedCollection returns the collection that o names, or else the one that the
// prefix of its ID suggests.
func (w *Writer) intendedCollection(o *Op, last *CollectionNaming) (string, error) {
	o.Suggested, o.Seen = "", nil
	if o.Named {
		return o.Collection, nil
	}
	if !w.PrefixCollections {
		return "", nil
	}
	name := suggestedCollection(w.Resolver.Stem(o.Resolved, o.Strategy), w.Env.Rules.Separator, o.Strategy.Made())
	if name == "" {
		return "", nil
	}
	if last.suggestion != name {
		spelled, err := w.storedName(name)
		if err != nil {
			return "", err
		}
		last.suggestion, last.spelled = name, spelled
	}
	o.Suggested = last.spelled
	return o.Suggested, nil
}

// suggestedCollection returns the collection that the stem of a requested ID
// suggests, or "": the text before its first separator, which may follow the stem of an
// ID that is made, with an upper-case first letter. A prefix that does not begin with a
// letter suggests nothing, and neither does that of the system's documents.
func suggestedCollection(stem, separator string, made bool) string {
	name, _, found := strings.Cut(stem, separator)
	if !found && !made {
		return ""
	}
	first, size := utf8.DecodeRuneInString(name)
	if !unicode.IsLetter(first) || format.FoldName(name) == systemPrefix || metadata.CheckCollection(name) != nil {
		return ""
	}
	return string(unicode.ToUpper(first)) + name[size:]
}

// systemPrefix is the folded prefix of the documents that RavenDB and Jay keep for
// themselves, such as Raven/HiLo/users.
const systemPrefix = "raven"

// storedName returns the name of a collection as one of its documents spells it, or
// name if there is none.
func (w *Writer) storedName(name string) (_ string, err error) {
	cursor, err := w.Docs.Scan(docs.Range{Collection: name}, w.Env.Engine.Snapshot)
	if err != nil {
		return "", err
	}
	defer cursor.Close()
	doc, err := cursor.Next(context.Background())
	if err != nil || doc == nil {
		return name, err
	}
	return doc.Collection(), nil
}
