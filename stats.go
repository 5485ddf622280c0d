package jay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
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
}

// AttachmentStats are figures about attachments. A content that several attachments
// have is stored once.
type AttachmentStats struct {
	Attachments int64 `json:"attachments"` // of all documents
	Bytes       int64 `json:"bytes"`       // of all of them
	Contents    int64 `json:"contents"`    // different ones
	StoredBytes int64 `json:"storedBytes"` // of these
	Removing    int64 `json:"removing"`    // contents and broken uploads whose chunks are still to be removed
}

// CollectionStats are figures about one collection. Bytes count IDs, metadata
// and bodies as they are stored, before compression.
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
type EngineStats = storage.Stats

// Stats counts the documents of every collection, which reads them all, and
// returns the counters and the engine's figures; documents are counted as they
// were when the call began. DB.Collections has their numbers without reading. progress, if not nil, is called now and then with
// the number of documents seen so far.
func (db *DB) Stats(ctx context.Context, progress func(documents int64)) (Stats, error) {
	s := Stats{Separator: db.env.Rules.Separator, NodeTag: db.env.Rules.NodeTag, CaseSensitive: db.env.Rules.CaseSensitive, PrefixCollections: db.prefixCollections}
	var err error
	if s.Collections, err = measureCollections(ctx, db, &s.Expiry, progress); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	if s.Counters, err = db.Counters(ctx); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	if s.Revisions, err = db.Revisions().Counts(ctx); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	s.Gaps = db.writer.Unused.Clone()
	if err := db.env.Enter(); err != nil {
		return Stats{}, err
	}
	defer db.env.Exit()
	s.Expiry.Deleted, s.Expiry.Refreshed = db.expiry.Done()
	state, err := db.expiry.State()
	if err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	s.Expiry.Kept = state.Overdue + state.Invalid
	s.Engine = db.env.Engine.Stats()
	if s.Attachments, err = measureAttachments(ctx, db); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	if s.Subscriptions, err = measureSubscriptions(db); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	return s, nil
}

// measureAttachments reads the record of every content. The caller is inside the gate.
func measureAttachments(ctx context.Context, db *DB) (_ AttachmentStats, err error) {
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	f, err := attachments.Measure(ctx, snapshot)
	return AttachmentStats(f), err
}

// measureCollections reads the header of every document, and counts in due when
// something is due for it.
func measureCollections(ctx context.Context, db *DB, due *ExpiryStats, progress func(documents int64)) ([]CollectionStats, error) {
	w, err := db.startScan(docs.Range{}, db.env.Engine.Snapshot)
	if err != nil {
		return nil, err
	}
	defer w.Close()

	now := db.env.Now()
	byName := make(map[string]*CollectionStats)
	seen := int64(0)
	for more := true; more; {
		more, err = w.Headers(ctx, 8192, func(id []byte, h *metadata.Header, size int) {
			due.add(h, now)
			if db.env.ExactExpiry && docs.IsGone(h, now) {
				return
			}
			c := byName[string(h.Collection)]
			if c == nil {
				c = statsOf(byName, string(h.Collection))
			}
			c.Documents++
			c.Bytes += int64(len(id) + size)
			seen++
		})
		if err != nil {
			return nil, err
		}
		if progress != nil {
			progress(seen)
		}
	}

	var out []CollectionStats
	for name, c := range byName {
		if write.OrEmpty(name) == c.Name {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b CollectionStats) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// statsOf returns the figures of a collection under a new case variant of its name.
func statsOf(byName map[string]*CollectionStats, name string) *CollectionStats {
	for other, c := range byName {
		if format.CollectionKey(other) == format.CollectionKey(name) {
			byName[name] = c
			return c
		}
	}
	c := &CollectionStats{Name: write.OrEmpty(name)}
	byName[name] = c
	return c
}
