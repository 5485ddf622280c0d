package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/budget"
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
	Name      string // as its first document has it; "@empty" for documents without a collection
	Documents int64
}

// Collections returns how many documents each collection has, sorted by name.
func (db *Database) Collections(ctx context.Context) ([]CollectionCount, error) {
	all, err := db.keptCollections(ctx)
	if errors.Is(err, counts.ErrNotReady) {
		all, err = db.walkCollections(ctx)
	}
	return all, err
}

// keptCollections returns the numbers that the database keeps, or counts.ErrNotReady.
func (db *Database) keptCollections(ctx context.Context) (_ []CollectionCount, err error) {
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	begun := db.BeginMoment()
	snapshot := db.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	at := db.EndMoment(begun)
	payer := budget.NewPayer(ctx)
	byName, err := CountsAt(ctx, snapshot, at, &payer)
	if err != nil {
		return nil, err
	}
	all := make([]CollectionCount, 0, len(byName))
	for folded, n := range byName {
		name, err := db.NameOf(snapshot, folded, at)
		if err != nil {
			return nil, err
		}
		if err := payer.PayNamed(name); err != nil {
			return nil, err
		}
		all = append(all, CollectionCount{name, n})
	}
	SortCollections(all)
	return all, nil
}

// NameOf returns the name of a collection as its first document has it.
func (db *Database) NameOf(snapshot storage.Reader, folded string, at Moment) (name string, err error) {
	w, err := db.Docs.NewCursor(docs.Range{Collection: folded, Moment: at.At}, snapshot)
	if err != nil {
		return "", err
	}
	defer w.Close()
	found, err := w.Peek(context.Background(), func(h *metadata.Header) { name = write.OrEmpty(string(h.Collection)) })
	if err != nil {
		return "", err
	}
	if !found {
		return "", fmt.Errorf("collection %q has a number of documents, and none: %w", folded, storage.ErrCorrupt)
	}
	return name, nil
}

// walkCollections is Collections by reading the metadata of all documents.
func (db *Database) walkCollections(ctx context.Context) ([]CollectionCount, error) {
	w, err := db.Scan(docs.Range{}, db.Env.Engine.Snapshot)
	if err != nil {
		return nil, err
	}
	defer w.Close()

	at := db.Docs.Moment()
	payer := budget.NewPayer(ctx)
	byName := make(map[string]*CollectionCount) // by folded name
	var paid error
	for more := true; more && paid == nil; {
		more, err = w.Headers(ctx, 8192, func(_ []byte, h *metadata.Header, _ int) {
			if docs.IsGone(h, at) {
				return
			}
			key := format.CollectionKey(string(h.Collection))
			if byName[key] == nil {
				byName[key] = &CollectionCount{Name: write.OrEmpty(string(h.Collection))}
				paid = errs.First(paid, errs.First(payer.PayNamed(key), payer.PayNamed(key))) // in the map and in the list
			}
			byName[key].Documents++
		})
		if err != nil {
			return nil, err
		}
	}
	if paid != nil {
		return nil, paid
	}
	return SortedCollections(byName), nil
}

// SortedCollections returns the values of byName, sorted by name.
func SortedCollections(byName map[string]*CollectionCount) []CollectionCount {
	all := make([]CollectionCount, 0, len(byName))
	for _, c := range byName {
		all = append(all, *c)
	}
	SortCollections(all)
	return all
}

// SortCollections sorts by name.
func SortCollections(all []CollectionCount) {
	slices.SortFunc(all, func(a, b CollectionCount) int { return strings.Compare(a.Name, b.Name) })
}

// CountOf returns how many documents a collection has in a snapshot, or
// counts.ErrNotReady; "" is all documents.
func CountOf(ctx context.Context, snapshot storage.Reader, collection string, at Moment) (int64, error) {
	if err := metadata.CheckCollection(collection); err != nil {
		return 0, err
	}
	if collection != "" {
		return CountAt(ctx, snapshot, format.CollectionKey(collection), at)
	}
	payer := budget.NewPayer(ctx)
	all, err := CountsAt(ctx, snapshot, at, &payer)
	sum := int64(0)
	for _, n := range all {
		sum += n
	}
	return sum, err
}

// CountOf returns how many documents a collection has now, or counts.ErrNotReady; "" is all documents.
func (db *Database) CountOf(ctx context.Context, collection string) (_ int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := db.Env.Enter(); err != nil {
		return 0, err
	}
	defer db.Env.Exit()
	begun := db.BeginMoment()
	snapshot := db.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return CountOf(ctx, snapshot, collection, db.EndMoment(begun))
}
