package docs

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/invariants"
)

// Cache keeps frequently read documents, decoded, in bounded memory. A document is
// entered when it is read a second time within a while, and evicted by SIEVE (Zhang
// et al., NSDI 2024): the victim is the oldest document that was not read since the
// hand last passed it.
//
// Get must never return what a committed write has replaced. A transaction
// therefore begins by removing the documents that it changes from the cache. Until
// the transaction has ended, no document of the same stripe is entered. A stripe is
// the set of documents that share some bits of their hash.
type Cache struct {
	seed    maphash.Seed
	stripes []stripe
	shards  []cacheShard
}

// stripe records whether a transaction is changing documents of the stripe, and
// whether one did.
type stripe struct {
	writing atomic.Int32  // transactions in progress
	epoch   atomic.Uint32 // raised by each of them
}

// cacheShard is a part of the cache with a lock of its own.
type cacheShard struct {
	mu      sync.Mutex
	entries map[uint64]*cachedDocument // by hash
	oldest  *cachedDocument
	newest  *cachedDocument
	hand    *cachedDocument
	bytes   int
	limit   int
	entered map[uint64]uint64 // by hash: the newest etag ever entered, with invariants only. Guarded by mu.
	seen    [seenSlots]uint16 // fingerprints of recent misses
	_       [64]byte          // shards do not share a cache line
}

// cachedDocument is one entry, in a list from the oldest to the newest.
type cachedDocument struct {
	doc          *Document
	hash         uint64
	older, newer *cachedDocument
	read         bool // since the hand last passed
}

const (
	cacheShards  = 16
	cacheStripes = 4096
	seenSlots    = 4096

	// cachedBytes is what an entry needs beside the document's bytes, about.
	cachedBytes = 320
)

// NewCache returns a cache, or nil for none.
func NewCache(limit int64) *Cache {
	if limit <= 0 {
		return nil
	}
	c := &Cache{seed: maphash.MakeSeed(), stripes: make([]stripe, cacheStripes), shards: make([]cacheShard, cacheShards)}
	for i := range c.shards {
		c.shards[i].entries = make(map[uint64]*cachedDocument)
		c.shards[i].limit = int(limit / cacheShards)
	}
	return c
}

func (c *Cache) shard(hash uint64) *cacheShard { return &c.shards[hash%cacheShards] }

func (c *Cache) stripe(hash uint64) *stripe { return &c.stripes[hash>>32%cacheStripes] }

// ticket permits the reader that missed to enter the document that it then reads.
type ticket struct {
	hash  uint64
	epoch uint32
	Valid bool
}

// Get returns the document with a folded ID, or a ticket for Enter on a miss. It
// does not keep folded.
func (c *Cache) Get(folded []byte) (*Document, ticket) {
	if c == nil {
		return nil, ticket{}
	}
	hash := maphash.Bytes(c.seed, folded)
	s := c.shard(hash)
	s.mu.Lock()
	if e := s.find(hash, folded); e != nil {
		e.read = true
		doc := e.doc
		s.mu.Unlock()
		return doc, ticket{}
	}
	// A first miss only leaves a fingerprint: a document that is read once must not
	// evict one that is read often.
	slot, print := &s.seen[hash>>16%seenSlots], uint16(hash>>48)|1
	again := *slot == print
	*slot = print
	s.mu.Unlock()
	if !again {
		return nil, ticket{}
	}
	stripe := c.stripe(hash)
	// The epoch before the state: a writer that begins in between makes the ticket
	// invalid, here or in Enter.
	t := ticket{hash: hash, epoch: stripe.epoch.Load()}
	t.Valid = stripe.writing.Load() == 0
	return nil, t
}

// Current returns the document if it is cached. Inside a transaction that has not
// changed the document, that is the committed version: a document that another
// transaction changes is out of the cache from before the commit on.
func (c *Cache) Current(folded []byte) *Document {
	if c == nil {
		return nil
	}
	hash := maphash.Bytes(c.seed, folded)
	s := c.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(hash, folded); e != nil {
		return e.doc
	}
	return nil
}

// find returns the entry of a document. s.mu is held.
func (s *cacheShard) find(hash uint64, folded []byte) *cachedDocument {
	if e := s.entries[hash]; e != nil && e.doc.foldedID == string(folded) {
		return e
	}
	return nil
}

// Enter adds a document that was read from the store after Get returned the ticket,
// unless a write may have replaced the document since.
func (c *Cache) Enter(t ticket, doc *Document) {
	if !t.Valid {
		return
	}
	s := c.shard(t.hash)
	size := doc.cacheBytes()
	if size > s.limit/8 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Checked under the lock: a writer that begins later will find the entry and
	// remove it.
	stripe := c.stripe(t.hash)
	if stripe.writing.Load() != 0 || stripe.epoch.Load() != t.epoch {
		return
	}
	if invariants.Enabled {
		s.checkNewer(t.hash, doc)
	}
	if old := s.entries[t.hash]; old != nil {
		s.remove(old)
	}
	// Evict before adding, so that the limit always holds.
	for s.bytes+size > s.limit {
		s.evict()
	}
	e := &cachedDocument{doc: doc, hash: t.hash, older: s.newest}
	if s.newest != nil {
		s.newest.newer = e
	} else {
		s.oldest = e
	}
	s.newest = e
	s.entries[t.hash] = e
	s.bytes += size
}

// checkNewer checks that a document is not older than the one entered before it: a
// committed write may have replaced the older one. s.mu is held.
func (s *cacheShard) checkNewer(hash uint64, doc *Document) {
	etag := doc.etag
	if etag < s.entered[hash] {
		invariants.Broken("etag %d of %q enters the cache behind %d", etag, doc.foldedID, s.entered[hash])
	}
	if s.entered == nil {
		s.entered = make(map[uint64]uint64)
	}
	s.entered[hash] = etag
}

func (d *Document) cacheBytes() int { return len(d.body) + len(d.foldedID) + cachedBytes }

// evict removes the first entry, from the hand on, that was not read since the hand
// last passed.
func (s *cacheShard) evict() {
	e := s.hand
	if e == nil {
		e = s.oldest
	}
	for e.read {
		e.read = false
		if e = e.newer; e == nil {
			e = s.oldest
		}
	}
	s.hand = e.newer
	s.remove(e)
}

func (s *cacheShard) remove(e *cachedDocument) {
	if s.hand == e {
		s.hand = e.newer
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		s.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		s.newest = e.older
	}
	delete(s.entries, e.hash)
	s.bytes -= e.doc.cacheBytes()
	if invariants.Enabled && (s.bytes < 0 || (s.bytes == 0) != (len(s.entries) == 0)) {
		invariants.Broken("%d bytes in %d documents of the cache", s.bytes, len(s.entries))
	}
}

// Begin removes a document from the cache and keeps it out until End. It returns
// the hash to pass to End.
func (c *Cache) Begin(folded string) uint64 {
	hash := maphash.String(c.seed, folded) // the same hash as that of the bytes, in Get
	stripe := c.stripe(hash)
	stripe.writing.Add(1)
	stripe.epoch.Add(1)
	s := c.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[hash]; e != nil {
		s.remove(e)
	}
	return hash
}

// End ends the transactions that began with these hashes, whatever their outcome:
// committed, refused or in doubt.
func (c *Cache) End(hashes []uint64) {
	for _, hash := range hashes {
		writing := c.stripe(hash).writing.Add(-1)
		if invariants.Enabled && writing < 0 {
			invariants.Broken("%d transactions change a document", writing)
		}
	}
}

// Used returns how many bytes the cached documents take, as the cache accounts for them.
func (c *Cache) Used() (n int64) {
	if c == nil {
		return 0
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += int64(s.bytes)
		s.mu.Unlock()
	}
	return n
}

// Bytes returns how many bytes the cached documents take. It is for tests.
func (c *Cache) Bytes() (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for _, e := range s.entries {
			n += e.doc.cacheBytes()
		}
		s.mu.Unlock()
	}
	return n
}
