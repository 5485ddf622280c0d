package jay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/expiry"
	"github.com/jaydb/jay/internal/format"
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
	Gaps        map[string]int64  `json:"gaps,omitempty"` // HiLo numbers drawn and not used since Open, by tag
	Expiry      ExpiryStats       `json:"expiry"`
	Engine      EngineStats       `json:"engine"`

	Attachments   AttachmentStats   `json:"attachments"`
	Subscriptions SubscriptionStats `json:"subscriptions"`

	// DiskFull is true while writes are refused, but for deletions: see Options.MinFreeBytes.
	DiskFull bool `json:"diskFull,omitempty"`

	// Cluster is what the database knows of itself as a member of a cluster; nil without
	// Options.Cluster.
	Cluster *ClusterStats `json:"cluster,omitempty"`

	// Counting is true as long as a database of an older Jay is counted, in the
	// background. Documents that were not counted yet are missing in Collections then, or
	// their bytes are.
	Counting bool `json:"counting,omitempty"`
}

// AttachmentStats are figures about attachments. A content that several attachments
// have is stored once.
type AttachmentStats struct {
	Attachments int64 `json:"attachments"` // of all documents
	Bytes       int64 `json:"bytes"`       // of all of them
	Contents    int64 `json:"contents"`    // different ones
	StoredBytes int64 `json:"storedBytes"` // of these
	Removing    int64 `json:"removing"`    // contents and broken uploads whose chunks are still to be removed; at most 10,000 are counted
}

// CollectionStats are figures about one collection. Bytes count IDs, metadata
// and bodies as they are stored, before compression; with Options.ExactExpiry also those
// of documents that have expired and were not deleted yet.
type CollectionStats struct {
	Name      string `json:"name"`
	Documents int64  `json:"documents"`
	Bytes     int64  `json:"bytes"`
}

// EngineStats are figures about the storage engine. Fewer syncs than commits means
// that concurrent writes shared them. Its fields (see package storage):
//
//	DiskBytes        uint64  all files: tables, log, manifests
//	CacheBytes       int64   blocks in the cache
//	MemTableBytes    uint64  committed data that is not in tables yet
//	LogSyncs         uint64  syncs of the log since Open
//	Commits          uint64  successful writes since Open
//	ReclaimableBytes uint64  of DiskBytes, what Compact would free, as far as is known
//
//	LogBytes      uint64         of DiskBytes, the log
//	LogSyncTime   time.Duration  that the syncs took, since Open
//	CacheHits     uint64         blocks that were found in the cache, since Open
//	CacheMisses   uint64         blocks that were read from the disk, since Open
//	Tables        uint64         files of tables
//	ReadDepth     uint64         tables that a look-up may have to ask
//	Flushes       uint64         of memory to tables, since Open
//	Compactions   uint64         merges of tables, since Open
//	DebtBytes     uint64         about how much is still to be merged
//	Stalls        uint64         times that writers had to wait for flushes or compactions, since Open
//	StallTime     time.Duration  that they waited
//	Stalled       bool           they wait now
//	WrittenBytes  uint64         to the log and to tables, since Open
//	Failed        bool           writes are refused: see ErrFailed
type EngineStats = storage.Stats

// Stats returns figures about the database, all but those of the engine as of one moment.
// It is cheap, however many documents there are: every commit keeps the numbers. It takes
// some microseconds for each collection, each HiLo tag and each identity, and can be
// called every second. DB.DiskUsage has what they take on disk.
//
// A database that an older Jay has written is counted in the background when it is
// opened. Until that is done, Stats.Counting is true.
func (db *DB) Stats(ctx context.Context) (Stats, error) {
	if err := ctx.Err(); err != nil {
		return Stats{}, err
	}
	s := Stats{Separator: db.env.Rules.Separator, NodeTag: db.env.Rules.NodeTag, CaseSensitive: db.env.Rules.CaseSensitive, PrefixCollections: db.prefixCollections}
	if err := readStats(ctx, db, &s); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	return s, nil
}

// readStats adds what the database keeps.
func readStats(ctx context.Context, db *DB, s *Stats) (err error) {
	now := db.env.Now()
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	begun := beginMoment(db)
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	at := endMoment(db, begun)

	kept, err := counts.Read(snapshot)
	if err != nil {
		return err
	}
	s.Counting = !kept.State.IsAll()
	if s.Collections, err = collectionStats(ctx, db, snapshot, kept.Collections, at); err != nil {
		return err
	}
	c := kept.Contents
	s.Attachments = AttachmentStats{Attachments: c.References, Bytes: c.Bytes, Contents: c.Contents, StoredBytes: c.StoredBytes}
	if s.Attachments.Removing, err = attachments.Removing(snapshot); err != nil {
		return err
	}
	s.Expiry = ExpiryStats{Expiring: kept.Times.Expiring, Refreshing: kept.Times.Refreshing}
	if s.Expiry.Due, s.Expiry.DueSince, err = expiry.Due(snapshot, now); err != nil {
		return err
	}
	state, err := db.expiry.State()
	if err != nil {
		return err
	}
	s.Expiry.Kept = state.Overdue + state.Invalid
	s.Expiry.Deleted, s.Expiry.Refreshed = db.expiry.Done()

	if s.Counters, err = readCounters(ctx, db, snapshot); err != nil {
		return err
	}
	if s.Subscriptions, err = measureSubscriptions(db, snapshot); err != nil {
		return err
	}
	if s.Revisions, err = revisionCounts(snapshot); err != nil {
		return err
	}
	s.Gaps = db.writer.Unused.Clone()
	s.Engine = db.env.Engine.Stats()
	s.DiskFull = db.env.Room.IsLow()
	s.Cluster = clusterStats(db)
	return nil
}

// collectionStats returns the figures of the collections, without documents that have
// expired: at is the moment of the snapshot.
func collectionStats(ctx context.Context, db *DB, snapshot storage.Reader, kept map[string]format.Tally, at moment) ([]CollectionStats, error) {
	if !at.at.IsZero() {
		err := eachGone(ctx, snapshot, at, func(collection []byte) {
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
		name, err := nameOf(db, snapshot, folded, at)
		if err != nil {
			return nil, err
		}
		all = append(all, CollectionStats{name, t.Documents, t.Bytes})
	}
	slices.SortFunc(all, func(a, b CollectionStats) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
