package lsm

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// memTableSpace accounts for the space left in the memtable that Pebble writes
// to, to know which commits do not make Pebble begin a new one: that is where
// Pebble creates a log, and where a write stall blocks writers.
//
// Pebble makes each memtable twice as large as the one before, up to the size
// asked for (DB.newMemTable). The size of the first depends on the logs that were
// replayed. An entry takes about 40 bytes beside its own, three of which are in
// its batch; the number varies, as the height of a skip list's node is random, and
// up to 200 must be free for the entry to be accepted. The estimate is slightly
// above what many entries take. If it is wrong, one caller, whose goroutine makes
// the commit, waits for the disk, and no other.
type memTableSpace struct {
	firstBytes int64        // size of the memtable after Open
	begun      atomic.Int32 // memtables begun since Open
	seen       int32        // value of begun when used was last reset
	used       int64        // bytes in the newest memtable
	lastCommit int64        // bytes of the last commit
	maxBytes   int64        // size that memtables grow to
}

const (
	leastTableBytes = 256 << 10
	entryBytes      = 37  // that an entry takes beside its bytes in the batch, on average
	freeBytes       = 220 // that must be free for an entry
	spareBytes      = 32 << 10
)

// listen makes l count memtables: each begins with a log of its own.
func (s *memTableSpace) listen(l *pebble.EventListener, full int64) {
	s.maxBytes = full
	created := l.WALCreated
	l.WALCreated = func(info pebble.WALCreateInfo) {
		s.begun.Add(1)
		created(info)
	}
}

// fits reports whether entries of so many bytes are certain to fit into the
// memtable.
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

// use accounts for entries that Pebble is about to get.
func (s *memTableSpace) use(size, entries int) {
	s.refresh()
	s.lastCommit = int64(size + entries*entryBytes)
	s.used += s.lastCommit
}

// refresh notices a new memtable. Pebble began it with the last commit, for which
// the one before had no space.
func (s *memTableSpace) refresh() {
	if n := s.begun.Load(); n != s.seen {
		s.seen, s.used = n, s.lastCommit
	}
}

// start makes the present memtable, that of Open, the first.
func (s *memTableSpace) start(db *pebble.DB) {
	s.begun.Store(0)
	s.firstBytes = leastTableBytes
	if m := db.Metrics().MemTable; m.Count == 1 {
		s.firstBytes = int64(m.Size)
	}
}
