package lsm

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// space keeps account of how much is left in the table in memory that Pebble
// writes to, to know which commits do not make Pebble begin a new one: that is
// where Pebble makes a new log and where a write stall holds writers up.
//
// Pebble makes each table twice as large as the one before, up to the size asked
// for (DB.newMemTable); how large the first is depends on the logs that it found. An
// entry takes some 40 bytes beside its own, of which its batch has three, a number drawn by chance, and as much
// as 200 must be free for it; over many entries space counts more than they take
// with a certainty that is good enough: a commit that was wrongly thought to fit
// holds up the one caller whose goroutine it runs on, and nobody else.
type memTableSpace struct {
	firstBytes int64        // size of the table that there was after Open
	begun      atomic.Int32 // tables, since Open
	seen       int32        // of them, when used was set anew
	used       int64        // bytes of the newest table
	lastCommit int64        // of them, of the last commit
	maxBytes   int64        // size that tables reach
}

const (
	leastTableBytes = 256 << 10
	entryBytes      = 37  // what an entry takes beside its own bytes, on average
	freeBytes       = 220 // that must be free for an entry
	spareBytes      = 32 << 10
)

// watch counts tables: each begins with a log of its own.
func (s *memTableSpace) listen(l *pebble.EventListener, full int64) {
	s.maxBytes = full
	created := l.WALCreated
	l.WALCreated = func(info pebble.WALCreateInfo) {
		s.begun.Add(1)
		created(info)
	}
}

// fits reports whether some entries, with so many bytes, certainly have room.
func (s *memTableSpace) fits(size, entries int) bool {
	if size > smallBytes {
		return false
	}
	s.refresh()
	table := s.firstBytes
	for n := int32(0); n < s.seen && table < s.maxBytes; n++ {
		table *= 2
	}
	return s.used+int64(size+entries*freeBytes)+spareBytes <= min(table, s.maxBytes)
}

// use counts entries that Pebble is about to get.
func (s *memTableSpace) use(size, entries int) {
	s.refresh()
	s.lastCommit = int64(size + entries*entryBytes)
	s.used += s.lastCommit
}

// look notices that Pebble has begun a new table, with the last commit, for which
// the one before had no room.
func (s *memTableSpace) refresh() {
	if n := s.begun.Load(); n != s.seen {
		s.seen, s.used = n, s.lastCommit
	}
}

// opened says that the table that there is now is the first.
func (s *memTableSpace) start(db *pebble.DB) {
	s.begun.Store(0)
	s.firstBytes = leastTableBytes
	if m := db.Metrics().MemTable; m.Count == 1 {
		s.firstBytes = int64(m.Size)
	}
}
