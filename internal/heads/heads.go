// Package heads remembers, in bounded memory, what a write must know of a document that
// it replaces or deletes, of documents that were written lately. So an update need not
// look for the old document in the store.
//
// It holds plain documents only: those of this node, with no attachments, no instants
// and no revision number.
package heads

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
)

// Head is what is known of the newest committed version of a document.
type Head struct {
	Etag       uint64
	Size       int    // of its record
	Collection string // as it is stored
	Spelling   Spelling
}

// Spelling says how the ID of a document was written, as far as two bits can.
type Spelling uint8

const (
	AnyhowSpelled Spelling = iota // look into the store
	AsFolded
	LastCapital // as it is folded, but for a capital at its end: the tag of an ID of HiLo

	spellingShift = 6
	lengthBits    = 1<<spellingShift - 1 // longestID has no more
)

// SpellingOf returns how an ID was written, by its folded form; nil is as that.
func SpellingOf(folded string, id []byte) Spelling {
	last := len(folded) - 1
	switch {
	case id == nil || string(id) == folded:
		return AsFolded
	case last < 0 || len(id) != len(folded) || string(id[:last]) != folded[:last]:
		return AnyhowSpelled
	case 'A' <= id[last] && id[last] <= 'Z' && folded[last] == id[last]+'a'-'A':
		return LastCapital
	}
	return AnyhowSpelled
}

// WrittenID returns the ID of the document as it was written, or false if that must be looked up.
func (h *Head) WrittenID(folded string) (string, bool) {
	switch h.Spelling {
	case AsFolded:
		return folded, true
	case LastCapital:
		last := len(folded) - 1
		return folded[:last] + string(folded[last]-'a'+'A'), true
	}
	return "", false
}

// Table maps folded IDs to heads. It must never return the head of a version that a
// committed write has replaced. Transactions are serial, and it goes along with them:
//
//   - Inside the transaction, Forget or Reserve makes the head unknown. From then on a
//     transaction looks into the store, where it finds what others have staged.
//   - When the commit has succeeded, Set enters the new head under the token that
//     Reserve gave out, unless another transaction has come to the document since.
//
// A transaction that fails enters nothing. A nil Table remembers nothing. All methods
// are safe for concurrent use.
type Table struct {
	seed   maphash.Seed
	shards []shard

	names  atomic.Pointer[[]string] // of collections, by number
	naming sync.Mutex
	byName map[string]uint16 // Guarded by naming.
}

const (
	leastShards = 16
	mostShards  = 512
	shardBytes  = 512 << 10 // that one grows to, as its lock is held while it does
	perBucket   = 8
	slotBytes   = 64
	firstSlots  = 64 // of a shard
	longestID   = 41

	// mostBytes is the most that a table takes.
	mostBytes = 256 << 20
	mostNames = 1 << 16
)

// shard is a part of the table with a lock of its own: buckets of eight slots. A slot is
// as large as a cache line.
type shard struct {
	mu      sync.Mutex
	tags    []uint64 // for each bucket, a byte of each slot's hash; 0 for a free slot
	slots   []slot
	used    int
	most    int    // slots that there can be
	counter uint64 // the last token
	_       [64]byte
}

type slot struct {
	etag       uint64 // 0 if the head is unknown
	token      uint64 // of the last Reserve or Forget
	size       uint32
	collection uint16
	n          uint8           // the length of id, and the Spelling above it
	id         [longestID]byte // folded
}

// folded returns the folded ID.
func (e *slot) folded() []byte { return e.id[:e.n&lengthBits] }

// New returns a table that takes about limit bytes when it is full, or nil for none.
func New(limit int64) *Table {
	limit = min(limit, mostBytes)
	shards := leastShards
	for shards < mostShards && limit > int64(shards)*shardBytes {
		shards *= 2
	}
	most := int(limit) / shards / slotBytes / perBucket * perBucket
	if most <= 0 {
		return nil
	}
	t := &Table{seed: maphash.MakeSeed(), shards: make([]shard, shards), byName: make(map[string]uint16)}
	for i := range t.shards {
		t.shards[i].most = most
	}
	t.names.Store(new([]string))
	return t
}

// Ref is a place that Reserve has given out. The zero Ref is none.
type Ref struct {
	index uint32 // of the slot in its shard
	shard uint16
	token uint64
}

func (t *Table) shard(hash uint64) (*shard, uint16) {
	i := uint16(hash % uint64(len(t.shards)))
	return &t.shards[i], i
}

// buckets returns the two buckets that a document can be in: with one, some were full
// long before the others. s.mu is held.
func (s *shard) buckets(hash uint64) (first, second int) {
	hi, lo := bits.Mul64(hash, uint64(len(s.tags)))
	other, _ := bits.Mul64(lo*0x9e3779b97f4a7c15, uint64(len(s.tags)))
	return int(hi), int(other)
}

// tagOf returns the tag of a hash, which is not 0.
func tagOf(hash uint64) uint64 { return hash>>16&0x7f | 0x80 }

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// find returns the index of the slot of a document, or -1. s.mu is held.
func (s *shard) find(hash uint64, folded string) int {
	if len(s.tags) == 0 {
		return -1
	}
	first, second := s.buckets(hash)
	if i := s.findIn(first, hash, folded); i >= 0 {
		return i
	}
	return s.findIn(second, hash, folded)
}

func (s *shard) findIn(b int, hash uint64, folded string) int {
	x := s.tags[b] ^ tagOf(hash)*lows
	for m := (x - lows) &^ x & highs; m != 0; m &= m - 1 {
		i := b*perBucket + bits.TrailingZeros64(m)/8
		if e := &s.slots[i]; string(e.folded()) == folded {
			return i
		}
	}
	return -1
}

// Bytes returns about how many bytes the table takes.
func (t *Table) Bytes() (n int64) {
	if t == nil {
		return 0
	}
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += int64(len(s.slots)) * slotBytes
		s.mu.Unlock()
	}
	return n
}

// Find returns the head of a document. Inside a transaction that has not changed the
// document, that is the head of the committed version.
func (t *Table) Find(folded string) (Head, bool) {
	if t == nil || len(folded) > longestID {
		return Head{}, false
	}
	hash := maphash.String(t.seed, folded)
	s, _ := t.shard(hash)
	s.mu.Lock()
	i := s.find(hash, folded)
	if i < 0 || s.slots[i].etag == 0 {
		s.mu.Unlock()
		return Head{}, false
	}
	e := &s.slots[i]
	etag, size, collection, spelling := e.etag, e.size, e.collection, Spelling(e.n>>spellingShift)
	s.mu.Unlock()
	return Head{Etag: etag, Size: int(size), Collection: (*t.names.Load())[collection], Spelling: spelling}, true
}

// Forget makes the head of a document unknown.
func (t *Table) Forget(folded string) {
	if t == nil || len(folded) > longestID {
		return
	}
	hash := maphash.String(t.seed, folded)
	s, _ := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(hash, folded); i >= 0 {
		s.counter++
		s.slots[i].etag, s.slots[i].token = 0, s.counter
	}
}

// Reserve makes the head of a document unknown, and returns its place for Set.
func (t *Table) Reserve(folded string) Ref {
	if t == nil || len(folded) > longestID {
		return Ref{}
	}
	hash := maphash.String(t.seed, folded)
	s, number := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(hash, folded)
	if i < 0 {
		i = s.take(t, hash)
		e := &s.slots[i]
		e.n = uint8(copy(e.id[:], folded))
	}
	s.counter++
	s.slots[i].etag, s.slots[i].token = 0, s.counter
	return Ref{uint32(i), number, s.counter}
}

// take returns a slot for a document that has none, and may evict another's. s.mu is
// held.
func (s *shard) take(t *Table, hash uint64) int {
	if 8*s.used >= 7*len(s.slots) && len(s.slots) < s.most {
		s.grow(t)
	}
	first, second := s.buckets(hash)
	b, free := first, ^s.tags[first]&highs
	if other := ^s.tags[second] & highs; bits.OnesCount64(other) > bits.OnesCount64(free) {
		b, free = second, other
	}
	at := int(hash>>24) % perBucket // the one to go: by chance, as any order has updates for which it is the worst
	if free != 0 {
		at = bits.TrailingZeros64(free) / 8
		s.used++
	}
	s.tags[b] = s.tags[b]&^(0xff<<(8*at)) | tagOf(hash)<<(8*at)
	return b*perBucket + at
}

// grow doubles the slots. Places that were given out are none any more. s.mu is held.
func (s *shard) grow(t *Table) {
	old := s.slots
	n := min(max(firstSlots, 2*len(old)), s.most)
	s.slots, s.tags, s.used = make([]slot, n), make([]uint64, n/perBucket), 0
	for i := range old {
		if e := &old[i]; e.etag != 0 {
			s.slots[s.take(t, maphash.Bytes(t.seed, e.folded()))] = *e
		}
	}
}

// Set enters the head that was committed, unless the place is another's by now.
func (t *Table) Set(r Ref, etag uint64, size int, collection uint16, spelling Spelling) {
	if r.token == 0 || size >= 1<<32 {
		return
	}
	s := &t.shards[r.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := &s.slots[r.index]; e.token == r.token {
		e.etag, e.size, e.collection = etag, uint32(size), collection
		e.n = e.n&lengthBits | uint8(spelling)<<spellingShift
	}
}

// Name returns the number of a collection for Set, or false if there are too many.
func (t *Table) Name(collection string) (uint16, bool) {
	t.naming.Lock()
	defer t.naming.Unlock()
	if n, found := t.byName[collection]; found {
		return n, true
	}
	names := *t.names.Load()
	if len(names) == mostNames {
		return 0, false
	}
	n := uint16(len(names))
	collection = strings.Clone(collection) // it may be part of a document
	names = append(names, collection)
	t.byName[collection] = n
	t.names.Store(&names)
	return n, true
}
