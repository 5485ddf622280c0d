package budget

import (
	"errors"
	"fmt"
	"strings"
)

// MemTables is how many write buffers there can be at a time. It must be the number that package lsm gives Pebble.
const MemTables = 4

// The sizes that Divide goes by.
const (
	// Least is the least bound of a database.
	Least = 32 << 20

	leastBlocks    = 4 << 20
	leastMemTable  = 1 << 20
	leastDocuments = 512 << 10
	leastWork      = 2 << 20

	mostMemTable = 32 << 20

	// usualBound is the bound up to which all caches grow alike. Beyond, half of the rest goes to the cache of blocks. A database
	// without a bound of its own has the caches of this one, if there is room for them: see Common.
	usualBound = 512 << 20

	mostHeads = 256 << 20
	headsPart = 8 // the heads take this part of the cache of blocks, in addition to it
)

// ErrBound is returned by Divide for a bound that is too small, or too small for what was asked for.
var ErrBound = errors.New("memory")

// Asked is what the options of a database ask for. A zero field asks for nothing.
type Asked struct {
	Bound     int64 // of all, for Divide
	Blocks    int64
	MemTable  int64 // of each write buffer
	Documents int64 // below 0: neither a cache of documents nor heads
	Query     int64 // for one query

	OtherEngine bool // which has caches and write buffers of its own
}

// Shares are the parts of the memory of a database.
type Shares struct {
	Bound     int64 // all together
	Blocks    int64 // the cache of blocks
	MemTable  int64 // one of MemTables write buffers
	Documents int64 // the cache of documents; below 0 for none
	Heads     int64 // what updates need to know of documents that were written lately
	Work      int64 // what queries, builds and bulk writers draw on

	// Collector is what Go's heap may hold beside what is in use: garbage that is not collected yet. With GOGC=100, the default, the
	// heap grows to twice of what is in use, so it is as large as all shares on the heap.
	Collector int64
}

// MemTablesBytes is the size of all write buffers.
func (s *Shares) MemTablesBytes() int64 { return MemTables * s.MemTable }

// OutsideBytes is what lies outside of Go's heap, where GOMEMLIMIT does not count it: the blocks and the write buffers, if C's allocator has
// them.
func (s *Shares) OutsideBytes() int64 {
	if !Outside {
		return 0
	}
	return s.Blocks + s.MemTablesBytes()
}

// sum fills in Collector and Bound.
func (s *Shares) sum() {
	all := s.Blocks + s.MemTablesBytes() + max(0, s.Documents) + s.Heads + s.Work
	s.Collector = all - s.OutsideBytes()
	s.Bound = all + s.Collector
}

// Loads is how many blocks with documents of at most so many bytes may be loaded at a time within a bound, as each is in memory compressed and
// not: they take a quarter of it. It is at least two, so that one slow read does not hold up all others.
func (s *Shares) Loads(documentBytes int64) int {
	copies := int64(2)
	if !Outside {
		copies = 4 // and as much that is garbage
	}
	return int(max(2, s.Bound/4/(copies*documentBytes)))
}

// QueryBytes is how much one query may hold, if it was not asked for: half of the work, and at most 64 MiB.
func (s *Shares) QueryBytes() int64 { return min(64<<20, s.Work/2) }

// SortBytes is the memory of one sort of a build. There are two at most, so that they take half of the work.
func (s *Shares) SortBytes() int64 { return min(32<<20, s.Work/4) }

// caches returns the shares of the caches in a bound of n bytes.
func caches(n int64) (s Shares) {
	if !Outside {
		n = n / 3 * 2 // as the caches are on Go's heap, which may grow to twice their size
	}
	usual := min(n, usualBound)
	s.Blocks = max(usual/8, leastBlocks) + max(0, n-usualBound)/2
	s.MemTable = min(max(n/16, leastMemTable), mostMemTable)
	s.Documents = max(n/32, leastDocuments)
	return s
}

// Divide returns the shares of a database with a bound of its own. What was asked for is taken out first, and the rest is divided.
func Divide(asked Asked) (Shares, error) {
	if asked.Bound < Least {
		return Shares{}, fmt.Errorf("%w: MaxMemory must be at least %d, got %d", ErrBound, Least, asked.Bound)
	}
	fixed := Shares{}
	fixed.replace(&asked, Shares{})
	fixed.sum()
	rest := asked.Bound - fixed.Bound
	s := caches(max(0, rest))
	s.replace(&asked, s)
	s.sum()
	s.Work = (asked.Bound - s.Bound) / 2 // it is on Go's heap
	if least := max(leastWork, asked.Query); s.Work < least {
		s.Work = least
		s.sum()
		return Shares{}, fmt.Errorf("%w: MaxMemory is %d, and %s at least %d: raise MaxMemory, or leave the others to it", ErrBound, asked.Bound, asked.names(), s.Bound)
	}
	s.sum()
	s.Bound = asked.Bound
	return s, nil
}

// most is as much as is counted of one part: more is without bound.
const most = 1 << 50

// replace sets the caches that were asked for, and the heads, which go along with the blocks. Where nothing was asked for, it is what
// otherwise has.
func (s *Shares) replace(asked *Asked, otherwise Shares) {
	s.Blocks, s.MemTable, s.Documents = otherwise.Blocks, otherwise.MemTable, otherwise.Documents
	if asked.Blocks != 0 {
		s.Blocks = min(asked.Blocks, most)
	}
	if asked.MemTable != 0 {
		s.MemTable = asked.MemTable
	}
	if asked.Documents != 0 {
		s.Documents = min(asked.Documents, most)
	}
	s.Heads = min(s.Blocks/headsPart, mostHeads)
	if s.Documents < 0 {
		s.Heads = 0
	}
	if asked.OtherEngine {
		s.Blocks, s.MemTable = 0, 0
	}
}

// names lists the options that were asked for, for an error.
func (a *Asked) names() string {
	var list []string
	for _, one := range []struct {
		name  string
		bytes int64
	}{{"CacheBytes", a.Blocks}, {"MemTableBytes, four times", a.MemTable}, {"DocumentCacheBytes", a.Documents}, {"MaxQueryBytes", a.Query}} {
		if one.bytes > 0 {
			list = append(list, fmt.Sprintf("%s (%d)", one.name, one.bytes))
		}
	}
	if list == nil {
		return "what a database needs takes"
	}
	return strings.Join(list, ", ") + " and the rest take"
}
