package jay

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/storage"
)

// Stats are figures about a database.
type Stats struct {
	Separator     string `json:"separator"`
	NodeTag       string `json:"nodeTag"`
	CaseSensitive bool   `json:"caseSensitive"`

	// PrefixCollections is true if prefixes of IDs suggest collections: see
	// Options.PrefixCollections.
	PrefixCollections bool `json:"prefixCollections"`

	Collections []CollectionStats `json:"collections"`
	Revisions   []RevisionCount   `json:"revisions,omitempty"` // see Revisions.Counts
	Counters    Counters          `json:"counters"`
	Gaps        map[string]int64  `json:"gaps,omitempty"` // HiLo numbers that were drawn since Open and not used, by tag
	Expiry      ExpiryStats       `json:"expiry"`
	Engine      EngineStats       `json:"engine"`

	Attachments   AttachmentStats   `json:"attachments"`
	Subscriptions SubscriptionStats `json:"subscriptions"`

	// Memory is the division of Options.MaxMemory, and the use of each share. It is empty for a database from
	// Look: the memory belongs to the program that has the database open, whose Stats shows it.
	Memory MemoryStats `json:"memory"`

	// SchemaWarnings lists the collections into which documents that violate the schema were written since
	// Open: see SchemaRules.
	SchemaWarnings []SchemaWarning `json:"schemaWarnings,omitempty"`

	// DiskFull is true while writes other than deletions are refused: see Options.MinFreeBytes.
	DiskFull bool `json:"diskFull,omitempty"`

	// Cluster is the state of the database as a member of a cluster; nil without Options.Cluster.
	Cluster *ClusterStats `json:"cluster,omitempty"`

	// Counting is true while the documents of a database of an older Jay are counted in the background. Until
	// then, documents that were not counted yet, or their bytes, are missing in Collections.
	Counting bool `json:"counting,omitempty"`
}

// SchemaWarning counts documents of a collection that violate its schema.
type SchemaWarning struct {
	Collection string `json:"collection"`
	Documents  int64  `json:"documents"` // that were written since Open by this process
}

// MemoryStats are figures about the memory of a database: see Options.MaxMemory.
type MemoryStats struct {
	BoundBytes int64         `json:"boundBytes"` // Options.MaxMemory, or the bound of the Memory that the database shares
	Shares     []MemoryShare `json:"shares"`     // they add up to BoundBytes, except for some bytes

	// OutsideBytes is the memory that the database uses outside of Go's heap, which GOMEMLIMIT does not count:
	// blocks and write buffers, if the program is built with cgo; 0 without cgo.
	OutsideBytes int64 `json:"outsideBytes"`

	// HeapBytes is the part of the bound that is left for Go's heap. A program with one database stays near the
	// bound if its GOMEMLIMIT, or debug.SetMemoryLimit, is HeapBytes plus three times the largest document.
	HeapBytes int64 `json:"heapBytes"`
}

// MemoryShare is a share of the memory of a database.
type MemoryShare struct {
	Name      string `json:"name"`      // "blocks", "write buffers", "documents", "heads", "work", "garbage", and of a shared Memory "other databases", with what these have claimed for their caches
	Bytes     int64  `json:"bytes"`     // the size of the share
	UsedBytes int64  `json:"usedBytes"` // in use; 0 for "garbage", which only Go's runtime knows
}

// memoryStats returns the figures of the memory.
func memoryStats(of *core.Database, s *budget.Claim, engine *EngineStats) MemoryStats {
	work, _, _ := of.Env.Work.Load()
	buffers := int64(engine.MemTableBytes)
	m := MemoryStats{BoundBytes: s.Bound, HeapBytes: s.Bound - s.OutsideBytes(), Shares: []MemoryShare{
		{"blocks", s.Blocks, engine.CacheBytes},
		{"write buffers", s.MemTablesBytes(), buffers},
		{"documents", max(0, s.Documents), of.Docs.Cache.Used()},
		{"heads", s.Heads, of.Writer.Heads.Bytes()},
		{"work", s.Work, work},
		{"garbage", s.Collector, 0},
	}}
	if most, claimed := s.Others(); most > 0 {
		m.Shares = append(m.Shares, MemoryShare{"other databases", most, claimed})
	}
	if budget.Outside {
		m.OutsideBytes = engine.CacheBytes + buffers
	}
	return m
}

// AttachmentStats are figures about attachments. Attachments with the same content share one stored copy.
type AttachmentStats struct {
	Attachments int64 `json:"attachments"` // of all documents
	Bytes       int64 `json:"bytes"`       // of all attachments
	Contents    int64 `json:"contents"`    // different contents
	StoredBytes int64 `json:"storedBytes"` // of the different contents
	Removing    int64 `json:"removing"`    // contents and broken uploads whose chunks are still to be removed; at most 10,000 are counted
}

// CollectionStats are figures about one collection. Bytes count stored IDs, metadata and bodies, before
// compression; with Options.ExactExpiry they include documents that have expired and were not deleted yet.
type CollectionStats struct {
	Name      string `json:"name"`
	Documents int64  `json:"documents"`
	Bytes     int64  `json:"bytes"`
}

// EngineStats are figures about the storage engine. Fewer syncs than commits mean that concurrent writes shared
// syncs. Its fields (see package storage):
//
//	DiskBytes        uint64  all files: tables, log, manifests
//	CacheBytes       int64   blocks in the cache
//	MemTableBytes    uint64  committed data that is not in tables yet
//	LogSyncs         uint64  syncs of the log since Open
//	Commits          uint64  successful writes since Open
//	ReclaimableBytes uint64  the part of DiskBytes that Compact would free, as far as known
//
//	LogBytes      uint64         the part of DiskBytes in the log, with files that are kept for reuse
//	LogSyncTime   time.Duration  total time of the syncs, since Open
//	CacheHits     uint64         blocks that were found in the cache, since Open
//	CacheMisses   uint64         blocks that were read from the disk, since Open
//	Tables        uint64         files of tables
//	ReadDepth     uint64         tables that a look-up may have to read
//	Flushes       uint64         flushes of memory to tables, since Open
//	Compactions   uint64         merges of tables, since Open
//	DebtBytes     uint64         approximate number of bytes still to be merged
//	Stalls        uint64         times that writers had to wait for flushes or compactions, since Open
//	StallTime     time.Duration  total time that writers waited
//	Stalled       bool           writers are waiting now
//	WrittenBytes  uint64         bytes written to the log and to tables, since Open
//	Failed        bool           writes are refused: see ErrFailed
//	Encrypted     bool           the engine encrypts its files
//	OlderKeys     uint64         files that need another encryption key than the newest one: see keys.Rotate
type EngineStats = storage.Stats

// Stats returns figures about the database. All figures but those of the engine come from one snapshot. Stats
// is cheap, for any number of documents, because every commit maintains the numbers. It takes some microseconds
// for each collection, each HiLo tag and each identity, and can be called every second. DB.DiskUsage returns
// sizes on disk.
//
// Open counts a database of an older Jay in the background. Until that is done, Stats.Counting is true.
func (db *DB) Stats(ctx context.Context) (Stats, error) {
	if err := ctx.Err(); err != nil {
		return Stats{}, err
	}
	s := Stats{Separator: db.core.Env.Rules.Separator, NodeTag: db.core.Env.Rules.NodeTag, CaseSensitive: db.core.Env.Rules.CaseSensitive, PrefixCollections: db.core.PrefixCollections}
	if err := readStats(ctx, db, &s); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	return s, nil
}

// readStats adds what the database keeps.
func readStats(ctx context.Context, db *DB, s *Stats) (err error) {
	now := db.core.Env.Now()
	if err := db.core.Env.Enter(); err != nil {
		return err
	}
	defer db.core.Env.Exit()
	begun := db.core.BeginMoment()
	snapshot := db.core.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	at := db.core.EndMoment(begun)

	payer := budget.NewPayer(ctx)
	kept, err := counts.Read(snapshot, &payer)
	if err != nil {
		return err
	}
	s.Counting = !kept.State.IsAll()
	if s.Collections, err = collectionStats(ctx, db, snapshot, kept.Collections, at, &payer); err != nil {
		return err
	}
	c := kept.Contents
	s.Attachments = AttachmentStats{Attachments: c.References, Bytes: c.Bytes, Contents: c.Contents, StoredBytes: c.StoredBytes}
	if s.Attachments.Removing, err = attachments.Removing(snapshot); err != nil {
		return err
	}
	s.Expiry = ExpiryStats{Expiring: kept.Times.Expiring, Refreshing: kept.Times.Refreshing}
	s.Expiry.Disabled, s.Expiry.RefreshDisabled = db.core.Env.ExpirationDisabled.Load(), db.core.Env.RefreshDisabled.Load()
	if s.Expiry.Due, s.Expiry.DueSince, err = db.core.Expiry.Due(snapshot, now); err != nil {
		return err
	}
	state, err := db.core.Expiry.State()
	if err != nil {
		return err
	}
	s.Expiry.Kept = state.Overdue + state.Invalid
	s.Expiry.Deleted, s.Expiry.Refreshed = db.core.Expiry.Done()

	counters, err := db.core.ReadCounters(ctx, snapshot, &payer)
	if err != nil {
		return err
	}
	s.Counters = Counters(counters)
	if s.Subscriptions, err = measureSubscriptions(db, snapshot); err != nil {
		return err
	}
	if s.Revisions, err = revisionCounts(snapshot, &payer); err != nil {
		return err
	}
	if s.Gaps, err = db.core.Writer.Unused.Clone(&payer); err != nil {
		return err
	}
	s.Engine = db.core.Env.Engine.Stats()
	if db.core.Owner == nil {
		s.Memory = memoryStats(&db.core, db.memory, &s.Engine)
	}
	for _, w := range db.core.Schemas.Warned() {
		s.SchemaWarnings = append(s.SchemaWarnings, SchemaWarning(w))
	}
	s.DiskFull = db.core.Env.Room.IsLow()
	s.Cluster = clusterStats(db)
	return nil
}

// collectionStats returns the figures of the collections, without documents that have
// expired: at is the moment of the snapshot. payer pays for them while the list grows.
func collectionStats(ctx context.Context, db *DB, snapshot storage.Reader, kept map[string]format.Tally, at core.Moment, payer *budget.Payer) ([]CollectionStats, error) {
	if !at.At.IsZero() {
		err := core.EachGone(ctx, snapshot, at, func(collection []byte) {
			t := kept[string(collection)]
			t.Documents--
			kept[string(collection)] = t
		})
		if err != nil {
			return nil, err
		}
	}
	all := make([]CollectionStats, 0, len(kept))
	for folded, t := range kept {
		if t.Documents <= 0 { // all have expired, or none is counted yet
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name, err := db.core.NameOf(snapshot, folded, at)
		if err == nil {
			err = payer.PayNamed(name)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, CollectionStats{name, t.Documents, t.Bytes})
	}
	slices.SortFunc(all, func(a, b CollectionStats) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// DiskUsage is the approximate space that the parts of a database take on disk, in bytes: after compression,
// and including deleted and overwritten data that is not freed yet. The parts are estimates, and do not include
// the newest data, which is in the log and in memory (EngineStats.MemTableBytes).
type DiskUsage struct {
	TotalBytes int64 `json:"totalBytes"` // all files
	LogBytes   int64 `json:"logBytes"`   // the part of TotalBytes in the log
	FreeBytes  int64 `json:"freeBytes"`  // free on the disk; -1 if unknown, as for a database in memory

	Collections []CollectionDiskUsage `json:"collections"` // documents with IDs that begin with the collection's name; the largest first
	Indexes     []IndexDiskUsage      `json:"indexes"`     // the largest first

	OtherDocuments int64 `json:"otherDocuments"` // documents with other IDs, of all collections
	Revisions      int64 `json:"revisions"`
	Attachments    int64 `json:"attachments"`
	Changes        int64 `json:"changes"` // the change records, for subscriptions and feeds
	Other          int64 `json:"other"`   // counters, settings, expiry and refresh, subscriptions
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

// DiskUsage returns the space that collections, indexes and other data take on disk. It reads no documents, but
// some blocks of tables for each collection and index: call it now and then, not every second.
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
	if err := db.core.Env.Enter(); err != nil {
		return u, err
	}
	defer db.core.Env.Exit()
	measurer, ok := db.core.OnDisk().(storage.SpaceMeasurer)
	if !ok {
		return u, errors.New("the storage engine does not know how much space keys take")
	}
	m := measure{ctx: ctx, of: measurer}
	snapshot := db.core.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	payer := budget.NewPayer(ctx)
	kept, err := counts.Read(snapshot, &payer)
	if err != nil {
		return u, err
	}

	u.Collections, u.Indexes = []CollectionDiskUsage{}, []IndexDiskUsage{} // [] in JSON, not null
	u.OtherDocuments = m.heading(format.DiskDocuments)
	for folded := range kept.Collections {
		name, err := db.core.NameOf(snapshot, folded, core.Moment{})
		if err == nil {
			err = payer.PayNamed(name)
		}
		if err != nil {
			return u, err
		}
		documents := m.heading(format.DiskDocuments, []byte(folded+db.core.Env.FoldedSeparator)...)
		u.OtherDocuments -= documents
		u.Collections = append(u.Collections, CollectionDiskUsage{name, documents + m.heading(format.DiskCollections, []byte(folded+"\x00")...)})
	}
	u.OtherDocuments = max(0, u.OtherDocuments) // each is an estimate of its own
	for _, ix := range indexes {
		// An index that replaces another one has its name: their space is added up.
		one := IndexDiskUsage{Collection: ix.Collection, Name: ix.Name}
		for _, open := range db.core.Indexes.Load().Named(ix.Collection, ix.Name) {
			one.Bytes += m.heading(format.DiskIndexes, binary.BigEndian.AppendUint32(nil, open.Number)...)
		}
		u.Indexes = append(u.Indexes, one)
	}
	u.Revisions, u.Attachments = m.heading(format.DiskRevisions), m.heading(format.DiskAttachments)
	u.Changes, u.Other = m.heading(format.DiskChanges), m.heading(format.DiskOther)

	slices.SortFunc(u.Collections, func(a, b CollectionDiskUsage) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(u.Indexes, func(a, b IndexDiskUsage) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Collection, b.Collection), cmp.Compare(a.Name, b.Name))
	})
	stats := db.core.Env.Engine.Stats()
	u.TotalBytes, u.LogBytes, u.FreeBytes = int64(stats.DiskBytes), int64(stats.LogBytes), -1
	if spacer, ok := db.core.OnDisk().(storage.FreeSpacer); ok {
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

// heading returns the space of the keys under a heading, of those in which rest follows the
// first byte.
func (m *measure) heading(h format.DiskHeading, rest ...byte) (n int64) {
	for _, s := range format.Spaces {
		if s.Disk == h {
			n += m.prefix(append([]byte{s.First}, rest...))
		}
	}
	return n
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

// Compact frees the disk space of deleted and overwritten documents at once, which the database otherwise does
// gradually: it removes the records of deletions that no transaction needs, and rewrites all tables. It takes
// about as long as a copy of the database, and up to as much free space. Reads and writes continue during
// Compact.
//
// If ctx ends first, Compact returns the error of ctx; space that was freed until then stays free. Compact
// merges tables in pieces of about 256 MiB, and the current piece is finished in the background: Close, and
// another Compact, wait for it. Close ends Compact with ErrClosed. The next Open removes files of the log that
// are kept for reuse.
func (db *DB) Compact(ctx context.Context) error {
	run := func(ctx context.Context, _ *observe.Operation) error {
		if err := db.core.Compact(ctx); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
		return nil
	}
	if db.core.Watch == nil {
		return run(ctx, nil)
	}
	return db.core.Watch.Do(ctx, observe.Operation{Verb: "compact"}, run)
}
