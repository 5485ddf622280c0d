package lsm

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// pebbleFormat is the version of Pebble's own files under Format. It is pinned, so
// that a newer Pebble does not change a database whose format number stays.
// Part of the on-disk format. Must not change.
const pebbleFormat = pebble.FormatValueSeparation

// pebbleOptions returns Pebble's options, and makes the cache. They bound memory
// by a small cache and four memtables, have bloom filters on every level, and
// make tables so large that a million documents are a few hundred files.
func (e *Engine) pebbleOptions(opts Options) *pebble.Options {
	cacheBytes := opts.CacheBytes
	if cacheBytes == 0 {
		cacheBytes = DefaultCacheBytes
	}
	memTableBytes := opts.MemTableBytes
	if memTableBytes == 0 {
		memTableBytes = defaultMemTableBytes
	}
	e.reservation = newCacheReservation(cacheBytes, memTableBytes)
	listener := e.listener()
	e.reservation.listen(listener)
	e.memTable.listen(listener, memTableBytes)
	e.states.listen(listener)

	o := &pebble.Options{
		Cache:                       e.reservation.cache,
		FS:                          e.fs,
		Lock:                        e.lock.engine, // nil of one that only reads
		FormatMajorVersion:          pebbleFormat,
		MemTableSize:                uint64(memTableBytes),
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       8, // merges begin at half of it: four tables deep
		L0StopWritesThreshold:       24,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                1000,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      pebbleLogger{e},
		EventListener:               listener,
		LoadBlockSema:               opts.Loads.of(),
	}
	if e.controlFS.tinyTables >= manyTinyTables {
		o.L0CompactionFileThreshold = fewTables
	}
	o.Experimental.SpanPolicyFunc = func(start []byte) (pebble.SpanPolicy, []byte, error) {
		return pebble.SpanPolicy{}, nextBound(opts.TableBounds, start), nil
	}
	// Tables that are ingested over what is in memory must not go through the log, where
	// checkDirectory and Salvage do not know their records.
	o.Experimental.DisableIngestAsFlushable = func() bool { return true }
	for i := range o.Levels {
		l := &o.Levels[i]
		l.BlockSize = 16 << 10
		l.IndexBlockSize = 64 << 10
		l.FilterPolicy = bloom.FilterPolicy(10)
		l.FilterType = pebble.TableFilter
	}
	return o
}

// Each Open writes what the log holds to one table for each part of the key space
// (Options.TableBounds). The tables of short runs are tiny, and mostly do not
// overlap, so that only their number makes Pebble merge them: at 500, its default,
// which is right for the tables of full memtables, since merging those early would
// make a load slower. An Open that finds manyTinyTables has Pebble merge tables
// on level 0 from fewTables on, in the background; Close waits for a merge that
// has begun.
const (
	manyTinyTables = 16
	fewTables      = 4
)

// nextBound returns the first of bounds above start, nil if there is none.
func nextBound(bounds [][]byte, start []byte) []byte {
	for _, bound := range bounds {
		if bytes.Compare(start, bound) < 0 {
			return bound
		}
	}
	return nil
}
