// Package checks looks into an open database for tests: at index entries as they lie in
// storage, at builds of indexes between two commits, and at the numbers of documents
// that are kept. Nothing but tests imports it. Every db is a *jay.DB.
package checks

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// SetBuildChunks makes builds enter, and drops remove, fewer at a time, so that
// there is a middle of them, and returns what undoes that. Nothing may be built
// or dropped meanwhile.
func SetBuildChunks(build, drop int) (restore func()) {
	oldBuild, oldDrop := indexer.BuildChunk, indexer.DropChunk
	indexer.BuildChunk, indexer.DropChunk = build, drop
	return func() { indexer.BuildChunk, indexer.DropChunk = oldBuild, oldDrop }
}

// OnBuildChunk calls fn before each commit of a build or a drop, outside of the
// gate and with the context that Close ends, and returns what undoes that. Nothing
// may be built or dropped when it is called, and when it is undone.
func OnBuildChunk(fn func(ctx context.Context, state index.State)) (restore func()) {
	indexer.OnChunk = fn
	return func() { indexer.OnChunk = nil }
}

// SetBuildTables makes builds use tables from so many documents on, with so little memory
// and tables that small that there are several runs and tables, and returns what
// undoes that. Nothing may be built meanwhile.
func SetBuildTables(documents, sortBytes int, tableBytes uint64) (restore func()) {
	oldDocuments, oldSort, oldTable := indexer.TableDocuments, indexer.SortBytes, indexer.TableBytes
	indexer.TableDocuments, indexer.SortBytes, indexer.TableBytes = documents, sortBytes, tableBytes
	return func() {
		indexer.TableDocuments, indexer.SortBytes, indexer.TableBytes = oldDocuments, oldSort, oldTable
	}
}

// TableStep is a step of a build by tables.
type TableStep = indexer.TableStep

// The steps.
const (
	TablesRead    = indexer.TablesRead
	TablesWritten = indexer.TablesWritten
	TablesTaken   = indexer.TablesTaken
)

// OnBuildTables calls fn in the steps of builds by tables, and returns what undoes that. Nothing
// may be built when it is called, and when it is undone.
func OnBuildTables(fn func(step TableStep)) (restore func()) {
	indexer.OnTables = func(_ context.Context, step indexer.TableStep) { fn(step) }
	return func() { indexer.OnTables = nil }
}

// HoldBuild makes the next build wait before its first commit, when it has read
// its documents. building is closed when it waits, release lets it go on, once or
// more often. Like OnBuildChunk it is undone with restore.
func HoldBuild() (building <-chan struct{}, release, restore func()) {
	waits, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	restore = OnBuildChunk(func(_ context.Context, state index.State) {
		if state == index.Building {
			once.Do(func() { close(waits); <-goOn })
		}
	})
	return waits, sync.OnceFunc(func() { close(goOn) }), restore
}

// WaitIndexTasks returns when no index is being made, built or dropped any
// more.
func WaitIndexTasks(db any) {
	parts.Of(db).Indexer.Wait()
}

// Indexes compares the entries of all indexes that are ready with what
// every document has to have in them, at one moment, and makes sure that there
// are no entries and no state of indexes that are gone.
func Indexes(db any) (err error) {
	p := parts.Of(db)
	if err := p.Env.Enter(); err != nil {
		return err
	}
	defer p.Env.Exit()
	c, snapshot, err := p.View(p.Env.Engine.Snapshot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()

	want, flags, err := expectedEntries(c, snapshot, p.Env.Rules.Fold)
	if err != nil {
		return err
	}
	var problems []error
	known := make(map[uint32]*catalog.Index)
	for _, ix := range c.All {
		known[ix.Number] = ix
		got, err := storedKeys(snapshot, format.AppendIndexPrefix(nil, ix.Number))
		if err != nil {
			return err
		}
		has, err := catalog.ReadFlags(snapshot, ix.Number)
		if err != nil {
			return err
		}
		if ix.Info.State != index.Ready || ix.Stager != nil { // Verify compares what a Stager keeps
			continue
		}
		if missing := flags[ix.Number] &^ has; missing != 0 {
			problems = append(problems, fmt.Errorf("index %q lacks the flags %b", ix.Info.Name, missing))
		}
		problems = append(problems, compareEntries(ix, got, want[ix.Number])...)
	}
	for _, space := range []byte{format.SpaceIndex, format.SpaceIndexState} {
		stored, err := storedKeys(snapshot, []byte{space})
		if err != nil {
			return err
		}
		for key := range stored {
			if number := binary.BigEndian.Uint32([]byte(key[1:5])); known[number] == nil {
				problems = append(problems, fmt.Errorf("%q is left of index %d, which is gone", key, number))
			}
		}
	}
	return errors.Join(problems[:min(len(problems), 10)]...)
}

func compareEntries(ix *catalog.Index, got, want map[string]string) (problems []error) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, found := got[key]; !found || value != want[key] {
			problems = append(problems, fmt.Errorf("index %q lacks %q → %q; there: %v, %q", ix.Info.Name, key, want[key], found, value))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, found := want[key]; !found {
			problems = append(problems, fmt.Errorf("index %q has %q → %q, which no document gives", ix.Info.Name, key, got[key]))
		}
	}
	return problems
}

// entriesOf is entries, whose name is that of a result here.
type entriesOf = catalog.Entries

// expectedEntries extracts the entries of all documents, and their references in indexes that load others.
func expectedEntries(c *catalog.Catalog, snapshot storage.Reader, fold func(string) string) (entries map[uint32]map[string]string, flags map[uint32]byte, err error) {
	entries, flags = make(map[uint32]map[string]string), make(map[uint32]byte)
	single := make(map[*catalog.Index]*catalog.Collection)
	for _, ix := range c.All {
		entries[ix.Number] = make(map[string]string)
		single[ix] = &catalog.Collection{Indexes: []*catalog.Index{ix}}
		single[ix].Prepare()
	}
	it, err := snapshot.Iterate([]byte{format.SpaceDocument}, []byte{format.SpaceDocument + 1})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, it.Error(), it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		folded := string(it.Key()[1 : len(it.Key())-1])
		h, body, err := metadata.Decode(bytes.Clone(it.Value()))
		if err != nil {
			return nil, nil, err
		}
		for _, ix := range c.All {
			if ix.Collection != format.CollectionKey(string(h.Collection)) {
				continue
			}
			id := folded
			if h.ID != nil {
				id = string(h.ID)
			}
			body := body
			if ix.Loads != nil {
				e, err := ix.Loads.Expand(body, fold, loads.From(snapshot))
				if err != nil {
					return nil, nil, fmt.Errorf("document %q: %w", folded, err)
				}
				for _, referenced := range e.References {
					entries[ix.Number][string(catalog.AppendReferenceKey(nil, ix.Number, referenced, folded))] = ""
				}
				body = e.Body
			}
			err := single[ix].EachStored(body, func(es *entriesOf) error {
				for i := range es.List {
					key, value := string(es.List[i].AppendKey(nil, folded)), string(es.List[i].AppendValue(nil, id, folded))
					if other, twice := entries[ix.Number][key]; twice && es.List[i].Unique {
						return fmt.Errorf("index %q: documents %q and %q have the same entry", ix.Info.Name, other, folded)
					}
					entries[ix.Number][key] = value
				}
				for _, f := range es.Flags {
					flags[ix.Number] |= f.Flags
				}
				return nil
			})
			if err != nil {
				return nil, nil, fmt.Errorf("document %q: %w", folded, err)
			}
		}
	}
	return entries, flags, nil
}

func storedKeys(r storage.Reader, prefix []byte) (_ map[string]string, err error) {
	it, err := r.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Error(), it.Close()) }()
	keys := make(map[string]string)
	for ok := it.First(); ok; ok = it.Next() {
		keys[string(it.Key())] = string(it.Value())
	}
	return keys, nil
}

// FirstEntry returns the first entry of all indexes.
func FirstEntry(db any) (key, value []byte) {
	it, err := parts.Of(db).Env.Engine.Iterate([]byte{format.SpaceIndex}, []byte{format.SpaceIndex + 1})
	if err != nil || !it.First() {
		panic(fmt.Sprint("no entry: ", err))
	}
	key, value = bytes.Clone(it.Key()), bytes.Clone(it.Value())
	if err := it.Close(); err != nil {
		panic(err)
	}
	return key, value
}

// SetEntry writes an entry, synced, past all that keeps them right.
func SetEntry(db any, key, value []byte) {
	err := parts.Of(db).Env.Engine.Update(context.Background(), true, func(tx storage.Tx) error {
		tx.Set(key, value, nil)
		return nil
	})
	if err != nil {
		panic(err)
	}
}

// RemoveEntry removes an entry, synced, past all that keeps them right.
func RemoveEntry(db any, key []byte) {
	err := parts.Of(db).Env.Engine.Update(context.Background(), true, func(tx storage.Tx) error {
		tx.Delete(key)
		return nil
	})
	if err != nil {
		panic(err)
	}
}

// Entries returns the entries of all indexes.
func Entries(db any) map[string]string {
	entries, err := storedKeys(parts.Of(db).Env.Engine, []byte{format.SpaceIndex})
	if err != nil {
		panic(err)
	}
	return entries
}

// EditIndexes replaces the record of all indexes. The database must be opened again after that.
func EditIndexes(db any, edit func(record []byte) []byte) {
	key := format.AppendKey(nil, format.SpaceMeta, format.IndexesName)
	stored, closer, err := parts.Of(db).Env.Engine.Get(key)
	if err != nil {
		panic(err)
	}
	record := edit(bytes.Clone(stored))
	if err := closer.Close(); err != nil {
		panic(err)
	}
	SetEntry(db, key, record)
}

// IndexKeys returns how many entries, and records of the state of indexes, are
// stored.
func IndexKeys(db any) (n int, err error) {
	for _, space := range []byte{format.SpaceIndex, format.SpaceIndexState} {
		keys, err := storedKeys(parts.Of(db).Env.Engine, []byte{space})
		if err != nil {
			return 0, err
		}
		n += len(keys)
	}
	return n, nil
}
