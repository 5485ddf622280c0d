package jay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// DiskUsage is about how much space the parts of a database take on disk, in bytes: after
// compression, and with what was deleted and overwritten and is not freed yet. The parts
// are estimates, and do not cover what was written last, which is in the log and in
// memory (EngineStats.MemTableBytes).
type DiskUsage struct {
	TotalBytes int64 `json:"totalBytes"` // all files
	LogBytes   int64 `json:"logBytes"`   // of those, the log
	FreeBytes  int64 `json:"freeBytes"`  // free on the disk; -1 if that is not known, as of a database in memory

	Collections []CollectionDiskUsage `json:"collections"` // documents with IDs that begin with the collection's name; the largest first
	Indexes     []IndexDiskUsage      `json:"indexes"`     // the largest first

	OtherDocuments int64 `json:"otherDocuments"` // documents with other IDs, of all collections
	Revisions      int64 `json:"revisions"`
	Attachments    int64 `json:"attachments"`
	Changes        int64 `json:"changes"` // the order of the writes, for subscriptions and feeds
	Other          int64 `json:"other"`   // counters, settings, what is due, subscriptions
}

// CollectionDiskUsage is the space that a collection takes.
type CollectionDiskUsage struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// IndexDiskUsage is the space that an index takes.
type IndexDiskUsage struct {
	Collection string `json:"collection"`
	Name       string `json:"name"`
	Bytes      int64  `json:"bytes"`
}

// DiskUsage returns how much space collections, indexes and the rest take on disk. It reads
// no documents, but some blocks of tables for each collection and index: call it now and
// then, not every second.
func (db *DB) DiskUsage(ctx context.Context) (DiskUsage, error) {
	indexes, err := db.Indexes(ctx, "")
	if err != nil {
		return DiskUsage{}, fmt.Errorf("disk usage: %w", err)
	}
	u, err := measureDisk(ctx, db, indexes)
	if err != nil {
		return DiskUsage{}, fmt.Errorf("disk usage: %w", err)
	}
	return u, nil
}

// measureDisk is DiskUsage inside the gate.
func measureDisk(ctx context.Context, db *DB, indexes []IndexInfo) (u DiskUsage, err error) {
	if err := db.env.Enter(); err != nil {
		return u, err
	}
	defer db.env.Exit()
	measurer, ok := db.env.Engine.(storage.SpaceMeasurer)
	if !ok {
		return u, errors.New("the storage engine does not know how much space keys take")
	}
	m := measure{ctx: ctx, of: measurer}
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	kept, err := counts.Read(snapshot)
	if err != nil {
		return u, err
	}

	u.Collections, u.Indexes = []CollectionDiskUsage{}, []IndexDiskUsage{} // [] in JSON, not null
	u.OtherDocuments = m.space(format.SpaceDocument)
	for folded := range kept.Collections {
		name, err := nameOf(db, snapshot, folded, moment{})
		if err != nil {
			return u, err
		}
		documents := m.prefix([]byte(string(format.SpaceDocument) + folded + db.env.FoldedSeparator))
		u.OtherDocuments -= documents
		u.Collections = append(u.Collections, CollectionDiskUsage{name, documents + m.prefix(format.AppendKey(nil, format.SpaceMembers, folded))})
	}
	u.OtherDocuments = max(0, u.OtherDocuments) // each is an estimate of its own
	for _, ix := range indexes {
		// An index that replaces another one has its name: their space is added up.
		one := IndexDiskUsage{Collection: ix.Collection, Name: ix.Name}
		for _, open := range db.indexes.Load().Named(ix.Collection, ix.Name) {
			one.Bytes += m.prefix(format.AppendIndexPrefix(nil, open.Number))
		}
		u.Indexes = append(u.Indexes, one)
	}
	u.Revisions = m.space(format.SpaceRevisions)
	u.Attachments = m.space(format.SpaceAttachments) + m.space(format.SpaceChunks)
	u.Changes = m.space(format.SpaceChanges)
	for _, space := range []byte{format.SpaceHiLo, format.SpaceIdentity, format.SpaceCounts, format.SpaceMeta, format.SpaceNode, format.SpaceTimes, format.SpaceSubscription, format.SpaceExchange, format.SpaceCluster, format.SpaceRequests, format.SpaceIndexState} {
		u.Other += m.space(space)
	}

	slices.SortFunc(u.Collections, func(a, b CollectionDiskUsage) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(u.Indexes, func(a, b IndexDiskUsage) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Collection, b.Collection), cmp.Compare(a.Name, b.Name))
	})
	stats := db.env.Engine.Stats()
	u.TotalBytes, u.LogBytes, u.FreeBytes = int64(stats.DiskBytes), int64(stats.LogBytes), -1
	if spacer, ok := db.env.Engine.(storage.FreeSpacer); ok {
		if free, err := spacer.FreeBytes(); err == nil { // a file system in memory has no answer
			u.FreeBytes = int64(free)
		}
	}
	return u, m.err
}

// measure adds up space. It keeps the first error.
type measure struct {
	ctx context.Context
	of  storage.SpaceMeasurer
	err error
}

// prefix returns the space of all keys with a prefix.
func (m *measure) prefix(prefix []byte) int64 {
	if m.err == nil {
		m.err = m.ctx.Err()
	}
	if m.err != nil {
		return 0
	}
	n, err := m.of.DiskBytes(prefix, format.PrefixEnd(prefix))
	m.err = err
	return int64(n)
}

// space returns the space of all keys that begin with a byte.
func (m *measure) space(b byte) int64 { return m.prefix([]byte{b}) }
