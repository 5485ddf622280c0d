package jay

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// A write that names no collection keeps that of the document which it finds. A new
// document then is in @empty, or, with Options.PrefixCollections, in the collection
// that the prefix of its ID suggests. Only the transaction knows which document it
// finds, so that it has the last word: see transaction.adopt.

// adopts reports whether o takes the collection of the document that it finds. An
// insert finds none, and made IDs are new.
func (o *op) adopts() bool {
	return !o.named && o.strategy == ids.Semantic && (o.verb == verbPut || o.verb == verbReplace)
}

// takeCollection puts o into a collection that it does not name.
func (o *op) takeCollection(db *DB, collection string) {
	if string(o.header.Collection) == collection {
		return
	}
	o.header.Collection = []byte(collection)
	o.foldedCollection = format.CollectionKey(collection)
	db.encodeTail(o)
}

// adopt puts o, which names no collection, into that of the document found, or else
// into the suggested one. Its index entries are then extracted anew: see
// stageEntries.
func (t *transaction) adopt(o *op, old oldDocument, found bool) error {
	collection := o.suggested
	if found {
		collection = old.Collection
	}
	if o.seen != nil && format.CollectionKey(collection) != o.foldedCollection {
		now := version{}
		if found {
			now = version{old.Node, old.Etag}
		}
		return lostError{&ConflictError{ID: o.id, Expected: t.db.versionText(*o.seen), Actual: t.db.versionText(now)}}
	}
	o.takeCollection(t.db, collection)
	return nil
}

// adopt puts o into the collection that its document has for the transaction. That
// is no read of the document: the commit only checks that the collection is the
// same, which takes a deletion to change.
func (t *Tx) adopt(o *op) error {
	if !o.adopts() {
		return nil
	}
	collection := o.suggested
	if i, found := t.staged[o.foldedID]; found {
		if before := t.ops[i]; before.verb != verbDelete {
			collection = string(before.header.Collection)
		}
	} else {
		seen, _, err := t.db.collectionAt(t.snapshot, o, &collection)
		if err != nil {
			return err
		}
		o.seen = &seen
	}
	o.takeCollection(t.db, collection)
	o.extract(t.db.indexes().Of(o.foldedCollection))
	return o.refused
}

// supposeCollections puts the ops that name no collection into that of the document
// which they will probably find, and extracts their index entries, so that the
// transaction, which other writers wait for, need not. For a few small documents
// the look-ups would cost more than they save.
func (db *DB) supposeCollections(ctx context.Context, ops []*op) error {
	if len(db.indexes().ByCollection) == 0 {
		return nil
	}
	size := 0
	for _, o := range ops {
		if o.adopts() {
			size += len(o.json)
		}
	}
	if size <= maxAdoptedBytes {
		return nil
	}
	var earlier map[string]*op // by folded ID, the newest op before
	if len(ops) > 1 {
		earlier = make(map[string]*op)
	}
	for _, o := range ops {
		if o.adopts() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := db.supposeCollection(o, earlier[o.foldedID]); err != nil {
				return opError(ops, o, err)
			}
		}
		if earlier != nil && o.foldedID != "" && o.verb != verbPatch {
			earlier[o.foldedID] = o
		}
	}
	return nil
}

// maxAdoptedBytes is how many bytes of bodies a transaction may extract the index
// entries of because their writes named no collection. A variable for tests.
var maxAdoptedBytes = 16 << 10

// supposeCollection is supposeCollections for one op. The op before it may write the
// document that it finds.
func (db *DB) supposeCollection(o, before *op) error {
	collection := o.suggested
	switch {
	case before == nil:
		_, found, err := db.collectionAt(db.env.Engine, o, &collection)
		if err != nil || !found {
			return err
		}
	case before.verb != verbDelete:
		collection = string(before.header.Collection)
	}
	o.takeCollection(db, collection)
	if ci := db.indexes().Of(o.foldedCollection); ci != o.indexed {
		o.extract(ci)
	}
	return nil
}

// collectionAt reads the version of the document that o finds, and its collection.
func (db *DB) collectionAt(r docs.Getter, o *op, collection *string) (v version, found bool, err error) {
	var scratch [128]byte
	record, closer, err := r.Get(format.DocumentKey(scratch[:0], o.foldedID))
	if err == storage.ErrNotFound {
		return v, false, nil
	}
	if err != nil {
		return v, false, err
	}
	h, _, err := metadata.Decode(record)
	if err == nil && string(h.Collection) != *collection {
		*collection = string(h.Collection)
	}
	return version{h.Node, h.Etag}, true, errs.First(err, closer.Close())
}

// intendedCollection returns the collection that o names, or else the one that the
// prefix of its ID suggests.
func (db *DB) intendedCollection(o *op, last *collectionNaming) (string, error) {
	o.suggested, o.seen = "", nil
	if o.named {
		return o.collection, nil
	}
	if !db.prefixCollections {
		return "", nil
	}
	name := suggestedCollection(o.resolved, o.strategy, db.env.Rules.Separator)
	if name == "" {
		return "", nil
	}
	if last.suggestion != name {
		spelled, err := db.spelling(name)
		if err != nil {
			return "", err
		}
		last.suggestion, last.spelled = name, spelled
	}
	o.suggested = last.spelled
	return o.suggested, nil
}

// suggestedCollection returns the collection that the prefix of a requested ID
// suggests, or "": the text before its first separator, or before the pipe of an
// identity, with an upper-case first letter. A prefix that does not begin with a
// letter suggests nothing, and neither does that of the system's documents.
func suggestedCollection(request string, strategy ids.Strategy, separator string) string {
	name, _, found := strings.Cut(request, separator)
	if !found {
		if strategy != ids.Identity {
			return ""
		}
		name = strings.TrimSuffix(request, "|")
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

// spelling returns the name of a collection as one of its documents spells it, or
// name if there is none.
func (db *DB) spelling(name string) (_ string, err error) {
	w, err := db.docs.Scan(docs.Range{Collection: name}, db.env.Engine.Snapshot)
	if err != nil {
		return "", err
	}
	defer w.Close()
	doc, err := w.Next(context.Background())
	if err != nil || doc == nil {
		return name, err
	}
	return doc.Collection(), nil
}
