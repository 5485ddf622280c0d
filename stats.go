package jay

import (
	"context"
	"errors"
	"slices"

	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Stats are figures about a database at one moment.
type Stats struct {
	Separator     string            `json:"separator"`
	NodeTag       string            `json:"nodeTag"`
	CaseSensitive bool              `json:"caseSensitive"`
	Collections   []CollectionStats `json:"collections"`
	Counters      Counters          `json:"counters"`
	Engine        EngineStats       `json:"engine"`
}

// CollectionStats are figures about one collection. Bytes count IDs, metadata
// and bodies as they are stored, before compression.
type CollectionStats struct {
	Name      string `json:"name"`
	Documents int64  `json:"documents"`
	Bytes     int64  `json:"bytes"`
}

// EngineStats are figures about the storage engine: bytes on disk and in
// memory, commits and syncs since Open. Fewer syncs than commits means that
// concurrent writes shared them.
type EngineStats = storage.Stats

// Stats counts the documents of every collection, which reads them all, and
// returns the counters and the engine's figures. progress, if not nil, is
// called now and then with the number of documents seen so far.
func (db *DB) Stats(ctx context.Context, progress func(documents int64)) (Stats, error) {
	s := Stats{Separator: db.rules.Separator, NodeTag: db.rules.NodeTag, CaseSensitive: db.rules.CaseSensitive}
	byName := make(map[string]*CollectionStats)
	seen := int64(0)
	err := db.eachRecord(ctx, func(id string, h metadata.Header, size int) {
		key := db.collectionKey(string(h.Collection))
		c := byName[key]
		if c == nil {
			c = &CollectionStats{Name: orEmpty(string(h.Collection))}
			byName[key] = c
		}
		c.Documents++
		c.Bytes += int64(len(id) + size)
		if seen++; progress != nil && seen%8192 == 0 {
			progress(seen)
		}
	})
	if err != nil {
		return Stats{}, err
	}
	for _, c := range byName {
		s.Collections = append(s.Collections, *c)
	}
	slices.SortFunc(s.Collections, func(a, b CollectionStats) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})

	if s.Counters, err = db.Counters(ctx); err != nil {
		return Stats{}, err
	}
	if err := db.enter(); err != nil {
		return Stats{}, err
	}
	defer db.exit()
	s.Engine = db.engine.Stats()
	return s, nil
}

// eachRecord calls fn with the header and the stored size of every document.
func (db *DB) eachRecord(ctx context.Context, fn func(id string, h metadata.Header, size int)) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.exit()
	it, err := db.engine.Iterate([]byte{spaceDocument}, []byte{spaceDocument + 1})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, it.Close())
		}
		h, _, err := metadata.Decode(it.Value())
		if err != nil {
			return errors.Join(err, it.Close())
		}
		key := it.Key()
		fn(string(key[1:len(key)-1]), h, len(it.Value()))
	}
	return errors.Join(it.Error(), it.Close())
}
