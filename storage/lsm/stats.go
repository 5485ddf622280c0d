package lsm

import (
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/jaydb/jay/storage"
)

// Stats implements storage.Engine.
func (e *Engine) Stats() storage.Stats {
	e.reservation.adjust()
	m := e.db.Metrics()
	var syncs dto.Metric
	if err := m.LogWriter.FsyncLatency.Write(&syncs); err != nil {
		e.log.Debug("jay: reading the log's sync histogram", "err", err)
	}
	s := storage.Stats{
		DiskBytes:        m.DiskSpaceUsage(),
		ReclaimableBytes: m.Table.Garbage.PointDeletionsBytesEstimate + m.Table.Garbage.RangeDeletionsBytesEstimate,
		CacheBytes:       m.BlockCache.Size,
		MemTableBytes:    m.MemTable.Size,
		LogSyncs:         syncs.GetHistogram().GetSampleCount(),
		LogSyncTime:      time.Duration(syncs.GetHistogram().GetSampleSum()),
		Commits:          e.commits.Load(),
		LogBytes:         m.WAL.PhysicalSize + m.WAL.ObsoletePhysicalSize,
		CacheHits:        uint64(m.BlockCache.Hits),
		CacheMisses:      uint64(m.BlockCache.Misses),
		ReadDepth:        uint64(m.ReadAmp()),
		Flushes:          uint64(m.Flush.Count),
		Compactions:      uint64(m.Compact.Count),
		DebtBytes:        m.Compact.EstimatedDebt,
		WrittenBytes:     m.WAL.BytesWritten,
		Failed:           e.failure.Load() != nil,
		Encrypted:        e.sealFS.ring != nil,
	}
	if s.Encrypted {
		s.OlderKeys = e.rotation.count(m.WAL.Files)
	}
	if e.logFS != nil { // of a database that is written
		grown := e.logFS.grown()
		s.DiskBytes += grown
		s.LogBytes += grown
	}
	for i := range m.Levels {
		l := &m.Levels[i]
		s.Tables += uint64(l.TablesCount)
		s.WrittenBytes += l.TableBytesFlushed + l.TableBytesCompacted + l.BlobBytesFlushed + l.BlobBytesCompacted
	}
	e.stalls.report(&s)
	return s
}

// stalls accounts for the times in which Pebble lets writers wait.
type stalls struct {
	mu    sync.Mutex
	n     uint64        // Guarded by mu.
	time  time.Duration // of those that have ended. Guarded by mu.
	since time.Time     // when the present one has begun; zero for none. Guarded by mu.
}

// begin begins a stall. It reports whether none was there.
func (s *stalls) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() {
		return false
	}
	s.n++
	s.since = time.Now()
	return true
}

// end ends the stall, and returns how long it was.
func (s *stalls) end() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return 0
	}
	took := time.Since(s.since)
	s.time, s.since = s.time+took, time.Time{}
	return took
}

func (s *stalls) report(to *storage.Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.Stalls, to.StallTime = s.n, s.time
	if !s.since.IsZero() {
		to.Stalled = true
		to.StallTime += time.Since(s.since)
	}
}
