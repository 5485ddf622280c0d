package jay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// CollectionCount says how many documents a collection has.
type CollectionCount struct {
	Name      string `json:"name"` // as its first document has it; "@empty" for documents without a collection
	Documents int64  `json:"documents"`
}

// Collections returns all collections that have documents, sorted by name, and how
// many. The numbers are exact, those of one moment, and kept by every commit: no
// document but the first of each collection is read. Names that begin with @ belong to
// the system: @empty has the documents without a collection, and @hilo those of HiLo.
//
// A database that an older Jay has written is counted in the background when it is
// opened. Until that is done, Collections reads the metadata of all documents.
func (db *DB) Collections(ctx context.Context) ([]CollectionCount, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all, err := keptCollections(ctx, db)
	if errors.Is(err, counts.ErrNotReady) {
		all, err = walkCollections(ctx, db)
	}
	if err != nil {
		return nil, fmt.Errorf("collections: %w", err)
	}
	return all, nil
}

// keptCollections returns the numbers that the database keeps, or counts.ErrNotReady.
func keptCollections(ctx context.Context, db *DB) (_ []CollectionCount, err error) {
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	begun := beginMoment(db)
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	at := endMoment(db, begun)
	byName, err := countsAt(ctx, snapshot, at)
	if err != nil {
		return nil, err
	}
	all := make([]CollectionCount, 0, len(byName))
	for folded, n := range byName {
		name, err := nameOf(db, snapshot, folded, at)
		if err != nil {
			return nil, err
		}
		all = append(all, CollectionCount{name, n})
	}
	sortCollections(all)
	return all, nil
}

// Collections is DB.Collections as the transaction sees it, with its own writes, except
// documents whose ID the commit will make. In a transaction of Update all documents join
// the read set, as with Documents, so that any write of another one is a conflict: View
// has no such cost.
func (t *Tx) Collections(ctx context.Context) ([]CollectionCount, error) {
	all, err := t.collections(ctx)
	if errors.Is(err, counts.ErrNotReady) {
		all, err = t.walkCollections(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("collections: %w", err)
	}
	return all, nil
}

// collections returns the numbers that the snapshot keeps, and what the transaction has
// changed since, or counts.ErrNotReady.
func (t *Tx) collections(ctx context.Context) ([]CollectionCount, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	byName, err := countsAt(ctx, t.snapshot, t.moment)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string) // of the transaction's own documents
	for folded, i := range t.staged {
		before, err := t.db.docs.ReadFolded(t.snapshot, folded)
		before, err = docs.AliveAt(t.moment.at, before, err)
		switch {
		case err == nil:
			byName[format.CollectionKey(before.Collection())]--
		case err != ErrNotFound:
			return nil, err
		}
		if after, err := t.peek(t.ops[i]); err == nil {
			key := format.CollectionKey(after.Collection())
			byName[key]++
			names[key] = after.Collection()
		}
	}
	all := make([]CollectionCount, 0, len(byName))
	for folded, n := range byName {
		if n == 0 {
			continue
		}
		name, err := nameOf(t.db, t.snapshot, folded, t.moment)
		if own := names[folded]; errors.Is(err, ErrCorrupt) && own != "" {
			name, err = own, nil // the snapshot has none
		}
		if err != nil {
			return nil, err
		}
		all = append(all, CollectionCount{name, n})
	}
	if t.writable {
		t.reads.walks = append(t.reads.walks, &rangeRead{})
	}
	sortCollections(all)
	return all, nil
}

// walkCollections is Collections by reading all documents.
func (t *Tx) walkCollections(ctx context.Context) ([]CollectionCount, error) {
	byName := make(map[string]*CollectionCount)
	for doc, err := range t.Documents(ctx, Scan{}) {
		if err != nil {
			return nil, err
		}
		key := format.CollectionKey(doc.Collection())
		if byName[key] == nil {
			byName[key] = &CollectionCount{Name: doc.Collection()}
		}
		byName[key].Documents++
	}
	all := make([]CollectionCount, 0, len(byName))
	for _, c := range byName {
		all = append(all, *c)
	}
	sortCollections(all)
	return all, nil
}

func sortCollections(all []CollectionCount) {
	slices.SortFunc(all, func(a, b CollectionCount) int { return strings.Compare(a.Name, b.Name) })
}

// nameOf returns the name of a collection as its first document has it.
func nameOf(db *DB, snapshot storage.Reader, folded string, at moment) (name string, err error) {
	w, err := db.docs.NewCursor(docs.Range{Collection: folded, Moment: at.at}, snapshot)
	if err != nil {
		return "", err
	}
	defer w.Close()
	found := false
	w.Want = func(_ []byte, h *metadata.Header, _ []byte) bool {
		if !found {
			found, name = true, write.OrEmpty(string(h.Collection))
		}
		return true
	}
	if _, err := w.Next(context.Background()); err != nil {
		return "", err
	}
	if !found {
		return "", fmt.Errorf("collection %q has a number of documents, and none: %w", folded, ErrCorrupt)
	}
	return name, nil
}

// walkCollections is Collections by reading the metadata of all documents.
func walkCollections(ctx context.Context, db *DB) ([]CollectionCount, error) {
	w, err := db.startScan(docs.Range{}, db.env.Engine.Snapshot)
	if err != nil {
		return nil, err
	}
	defer w.Close()

	at := db.docs.Moment()
	byName := make(map[string]*CollectionCount) // by folded name
	for more := true; more; {
		more, err = w.Headers(ctx, 8192, func(_ []byte, h *metadata.Header, _ int) {
			if docs.IsGone(h, at) {
				return
			}
			key := format.CollectionKey(string(h.Collection))
			if byName[key] == nil {
				byName[key] = &CollectionCount{Name: write.OrEmpty(string(h.Collection))}
			}
			byName[key].Documents++
		})
		if err != nil {
			return nil, err
		}
	}
	all := make([]CollectionCount, 0, len(byName))
	for _, c := range byName {
		all = append(all, *c)
	}
	sortCollections(all)
	return all, nil
}

// countOf returns how many documents a collection has in a snapshot, or
// counts.ErrNotReady; "" is all documents.
func countOf(ctx context.Context, snapshot storage.Reader, collection string, at moment) (int64, error) {
	if err := metadata.CheckCollection(collection); err != nil {
		return 0, err
	}
	if collection != "" {
		return countAt(ctx, snapshot, format.CollectionKey(collection), at)
	}
	all, err := countsAt(ctx, snapshot, at)
	sum := int64(0)
	for _, n := range all {
		sum += n
	}
	return sum, err
}

// DropCollection deletes the documents of a collection, and then drops its indexes. It
// returns how many documents it has deleted.
//
// The documents are deleted as by Query.Delete, in batches: meanwhile others see a
// collection that shrinks, and documents that are written after DropCollection began
// stay, with the collection but without its indexes. If ctx ends or there is an error,
// the rest of the collection and all its indexes remain: call DropCollection again to
// go on. Dropping a collection that is not there does nothing.
//
// Each deletion keeps a revision if the collection has a rule, and those that are there
// stay: Revisions.Purge removes them.
//
// The numbers of HiLo IDs go on: no ID of a dropped document is given to another one.
// So @hilo, which has the documents of those numbers, cannot be dropped (ErrUsage).
func (db *DB) DropCollection(ctx context.Context, name string, opts ...CollectionChange) (documents int64, err error) {
	if err := metadata.CheckCollection(name); err != nil {
		return 0, fmt.Errorf("drop collection: %w", err)
	}
	if name == "" || format.CollectionKey(name) == format.HiLoCollection {
		return 0, fmt.Errorf("drop collection: %w: %q cannot be dropped", ErrUsage, name)
	}
	c := newCollectionChange(opts)
	done, err := db.Query(name).Progress(func(n Changed) { c.progress(n.Documents) }).Delete(ctx)
	if err == nil {
		err = dropIndexes(ctx, db, name)
	}
	if err != nil {
		return done.Documents, fmt.Errorf("drop collection %q: %w", name, err)
	}
	return done.Documents, nil
}

// dropIndexes drops all indexes of a collection.
func dropIndexes(ctx context.Context, db *DB, collection string) error {
	indexes, err := db.Indexes(ctx, collection)
	for _, ix := range indexes {
		if err == nil {
			err = db.DropIndex(ctx, collection, ix.Name)
		}
		if errors.Is(err, ErrIndex) {
			err = nil // another call has dropped it meanwhile
		}
	}
	return err
}

// Count returns how many documents the collection has. On a database it is a look-up;
// in a transaction of Update, the whole collection joins the read set.
func (c *Collection[T]) Count(ctx context.Context) (int64, error) { return c.Query().Count(ctx) }

// checkCounts compares all numbers that are kept with what they count, in one snapshot,
// unless not everything is counted yet.
func checkCounts(ctx context.Context, db *DB) (err error) {
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	if err := counts.Check(snapshot); !errors.Is(err, counts.ErrNotReady) {
		return err
	}
	return nil
}
