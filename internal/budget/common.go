package budget

import (
	"fmt"
	"sync"

	"github.com/jaydb/jay/storage"
)

// Common is memory that several databases share: the work of all of them draws on one Pool, and each has caches of its own, for which it
// makes a claim when it is opened. It is safe for concurrent use.
type Common struct {
	bound  int64 // all together
	work   int64 // of Pool
	caches int64 // for the caches of all databases, with the garbage beside them
	pool   *Pool
	whole  bool // a claim gets all that is left, and not half of it
	yields bool // a claim that does not fit is granted, with the least caches

	mu     sync.Mutex
	left   int64 // of caches. Guarded by mu; may be below 0 if yields.
	shared any   // see Shared. Guarded by mu.
}

// cachesPart is the part of a Common that caches have, in eighths. The work, and its garbage, have the rest.
const cachesPart = 5

// LeastCommon is the least bound of a Common.
const LeastCommon = Least

// NewCommon returns memory of so many bytes.
func NewCommon(bound int64) (*Common, error) {
	if bound < LeastCommon {
		return nil, fmt.Errorf("%w: MaxMemory must be at least %d, got %d", ErrBound, LeastCommon, bound)
	}
	return newCommon(bound), nil
}

func newCommon(bound int64) *Common {
	c := &Common{bound: bound, caches: bound / 8 * cachesPart}
	c.left = c.caches
	c.work = (bound - c.caches) / 2
	c.pool = NewPool(c.work)
	return c
}

// Process returns the memory of the databases of this process that have no other: a quarter of what Machine says at the first call, and at
// least LeastCommon. It refuses no claim: a database for which too little is left has the least caches.
var Process = sync.OnceValue(func() *Common { return processOf(Machine()) })

// processOf is Process on a machine with so many bytes.
func processOf(machine int64) *Common {
	c := newCommon(max(machine/4, LeastCommon))
	c.yields = true
	return c
}

// Bound returns the bytes of all together.
func (c *Common) Bound() int64 { return c.bound }

// Shared returns what else the databases share: what the first call has made.
func (c *Common) Shared(first func() any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared == nil {
		c.shared = first()
	}
	return c.shared
}

// HeapBytes is what the bound leaves to Go's heap at least, however it is claimed.
func (c *Common) HeapBytes() int64 {
	s := cachesWithin(c.caches, Asked{})
	if s.Bound == 0 {
		return c.bound
	}
	return c.bound - int64(float64(c.caches)*float64(s.OutsideBytes())/float64(s.Bound))
}

// Load returns what databases have claimed of the caches, and how much there is.
func (c *Common) Load() (claimed, most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caches - c.left, c.caches
}

// Claim is the memory of one database. End gives it back.
type Claim struct {
	Shares
	Pool *Pool // which has Shares.Work

	common *Common // or nil
	bytes  int64   // of common
	end    sync.Once
}

// End gives the memory back. It is idempotent, and a nil Claim has none.
func (c *Claim) End() {
	if c == nil || c.common == nil {
		return
	}
	c.end.Do(func() {
		c.common.mu.Lock()
		defer c.common.mu.Unlock()
		c.common.left += c.bytes
	})
}

// Others returns what the bound leaves to the caches of other databases, and what these have claimed.
func (c *Claim) Others() (most, claimed int64) {
	if c.common == nil {
		return 0, 0
	}
	claimed, most = c.common.Load()
	return max(0, most-c.bytes), max(0, claimed-c.bytes)
}

// Own returns the claim of a database with a bound of its own, which asked.Bound is.
func Own(asked Asked) (*Claim, error) {
	s, err := Divide(asked)
	if err != nil {
		return nil, err
	}
	return &Claim{Shares: s, Pool: NewPool(s.Work)}, nil
}

// Claim claims the caches of a database: what was asked for, and for the rest what a bound of 512 MiB gives, or half of what is left if
// that is less. If the least does not fit, it is a *storage.MemoryError, and ErrBound if it never will.
func (c *Common) Claim(asked Asked) (*Claim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := c.left
	if !c.whole {
		room /= 2
	}
	s := cachesWithin(room, asked)
	if c.yields { // what was asked for comes on top
		s = cachesWithin(room, Asked{OtherEngine: asked.OtherEngine})
		s.replace(&asked, s)
		s.sum()
	}
	claim := &Claim{Pool: c.pool, common: c, bytes: s.Bound}
	switch {
	case c.yields:
		claim.bytes = s.withoutAsked(&asked)
		c.pool.raise(asked.Query)
	case asked.Query > c.work:
		return nil, fmt.Errorf("%w: MaxQueryBytes is %d, and all work that shares the memory may have %d", ErrBound, asked.Query, c.work)
	case s.Bound > c.caches:
		return nil, fmt.Errorf("%w: all caches that share %d bytes may have %d, and %s at least %d: raise the bound, or leave the others to it", ErrBound, c.bound, c.caches, asked.names(), s.Bound)
	case s.Bound > c.left:
		return nil, &storage.MemoryError{What: storage.MemoryOfDatabase, Wanted: s.Bound, Used: c.caches - c.left, Most: c.caches}
	}
	c.left -= claim.bytes
	s.Work = c.work
	s.sum()
	s.Bound = c.bound
	if c.yields {
		_, _, s.Work = c.pool.Load()
		s.sum()
		s.Bound = max(c.bound, s.Bound)
	}
	claim.Shares = s
	return claim, nil
}

// Part claims memory for a database whose engine another one has open. The caller has the engine: its shares are those of the claim. The
// database gets the Common, and the claim of that is for what is not the engine's.
func (c *Common) Part(asked Asked) (*Claim, *Common, error) {
	claim, err := c.Claim(asked)
	if err != nil {
		return nil, nil, err
	}
	rest := Shares{Documents: claim.Documents, Heads: claim.Heads}
	rest.sum()
	return claim, &Common{bound: c.bound, work: c.work, caches: rest.Bound, left: rest.Bound, pool: c.pool, whole: true, yields: true}, nil
}

// cachesWithin returns the shares of caches, without work, that take at most so many bytes together with their garbage, which is their Bound.
// They take more if what was asked for, and the least of the rest, does.
func cachesWithin(n int64, asked Asked) Shares {
	usual := int64(usualBound)
	if !Outside {
		usual = usual / 2 * 3 // see caches
	}
	for bound := min(max(0, 16*n), usual); ; bound -= bound/16 + 1 {
		s := caches(max(0, bound))
		s.replace(&asked, s)
		s.sum()
		if s.Bound <= n || bound <= 0 {
			return s
		}
	}
}

// withoutAsked returns what the shares take without those that were asked for.
func (s *Shares) withoutAsked(asked *Asked) int64 {
	left := *s
	if asked.Blocks != 0 {
		left.Blocks, left.Heads = 0, 0
	}
	if asked.MemTable != 0 {
		left.MemTable = 0
	}
	if asked.Documents != 0 {
		left.Documents = 0
	}
	left.Work = 0
	left.sum()
	return left.Bound
}
