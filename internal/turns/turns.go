// Package turns lets callers that lost against other writers run one after another,
// instead of competing with all others again.
//
// A [Caller] that lost joins a line for each [Key] that it lost over: a document or a
// range of documents. It gets its turn when it is the first in all of its lines, and
// keeps the turn until it has committed. Callers are ordered by age, which is when they
// first waited, and join all of their lines at once. So waiting callers cannot deadlock.
//
// A turn is a courtesy among the writers of one process; correctness never depends on
// it. A caller that has not lost takes no place and no lock. Before it commits, it gives
// way to the lines that its writes would interfere with ([Caller.Meets]). A writer that
// does not give way may overtake the holder of a turn. After two such losses the turn is
// exclusive: other writers wait until it has ended ([Lines.Yield]).
//
// The holder runs a function of the user's, which may make calls that need a turn
// themselves, on any goroutine, and wait for them. A call that began during the function
// may be one of these: it does not wait for this holder, but in an inner line with
// others of its kind. A turn also has a limit ([Lines.Limit]), in case a function hangs
// or waits through the user's own locks for a caller that waits for the turn.
//
// A Lines is safe for concurrent use, a Caller is not.
package turns

import (
	"context"
	"hash/maphash"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultLimit is used if Lines.Limit is 0.
	DefaultLimit = time.Second

	// MaxRuns is the number of runs after which the turn passes to the next caller.
	MaxRuns = 4

	// MaxKeys bounds the lines in which a call of a user's function waits. A loss over a
	// further key costs it another run.
	MaxKeys = 16

	// maxOvertaken is the number of losses in a turn after which it becomes exclusive.
	maxOvertaken = 2
)

// minExclusive is the least time that an exclusive run may take. A variable for tests.
var minExclusive = 20 * time.Millisecond

// Caller is a call that may have to wait for its turn. It must end with Leave.
type Caller struct {
	lines  *Lines
	called uint64 // Lines.runs when the call began
	worker bool   // it runs no function of the user's
	ticket uint64 // its age: a lower ticket is older; 0 before it waits
	lost   []Key  // newest first
	place  *place // nil if it stands in no line
}

// Caller returns a Caller that runs a function of the user's.
func (l *Lines) Caller() Caller { return Caller{lines: l, called: l.runs.Load()} }

// Worker returns a Caller that runs no function of the user's. Its work is bounded, so
// its turn needs no limit.
func (l *Lines) Worker() Caller { return Caller{lines: l, called: l.runs.Load(), worker: true} }

// Held reports whether the caller has its turn.
func (c *Caller) Held() bool { return c.place != nil && !c.place.gone.Load() }

// Meets returns a key whose line a write of the document would interfere with. The
// caller should then wait for its turn. If there is no such line, Meets takes no lock.
func (c *Caller) Meets(d Doc) (Key, bool) {
	l := c.lines
	if key := Document(d.ID); l.mayHave(d.ID) && l.blocks(key, c.called) {
		return key, true
	}
	if ranges := l.ranges.Load(); ranges != nil {
		for key := range *ranges {
			if key.covers(d, false) && l.blocks(key, c.called) {
				return key, true
			}
		}
	}
	return Key{}, false
}

// Wait returns when the caller, which has lost over the keys lost, has its turn, or with
// the error of ctx. Keys of more join the turn as far as MaxKeys allows. A caller that
// was overtaken in its turn keeps it, and Wait returns at once.
func (c *Caller) Wait(ctx context.Context, lost []Key, more []Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p := c.place; p != nil {
		again, used := c.lines.runAgain(p, lost)
		if again {
			return nil
		}
		if used {
			c.ticket = 0 // its age ends: it is younger than all that wait now
		}
		c.Leave()
	}
	c.lost = distinct(lost, c.lost, c.mostKeys())
	if c.place = c.lines.join(c, distinct(c.lost, more, max(MaxKeys, len(c.lost)))); c.place == nil {
		return nil
	}
	select {
	case <-c.place.turn:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		c.Leave()
		return err
	}
	return nil
}

// mostKeys bounds the keys that a caller keeps. Those of a worker are bounded by its
// work, while a function may lose over others in each run.
func (c *Caller) mostKeys() int {
	if c.worker {
		return math.MaxInt
	}
	return MaxKeys
}

// distinct returns the different keys of a and b, up to n of them, in order.
func distinct(a, b []Key, n int) []Key {
	var out []Key
	seen := make(map[Key]bool)
	for _, keys := range [][]Key{a, b} {
		for _, k := range keys {
			if !seen[k] && len(out) < n {
				seen[k] = true
				out = append(out, k)
			}
		}
	}
	return out
}

// Leave ends the caller's turn, or its wait. It is idempotent.
func (c *Caller) Leave() {
	if c.place != nil {
		c.lines.leave(c.place)
		c.place = nil
	}
}

// Key is an object of contention: a document, or a range of documents.
type Key struct {
	isRange    bool
	collection string // of a range: folded, "" for all
	text       string // the folded ID of the document, or the prefix of the range
}

// Document is the key of a document.
func Document(foldedID string) Key { return Key{text: foldedID} }

// Range is the key of the documents of a collection ("" for all) whose IDs have a
// prefix. Both are folded.
func Range(collection, prefix string) Key {
	return Key{isRange: true, collection: collection, text: prefix}
}

// Doc is a document that is about to be written.
type Doc struct {
	ID         string // folded
	Collection string // folded; "" if unknown
}

// covers reports whether a range has a document. mayBe is the answer for a range of a
// collection and a document whose collection is unknown.
func (k Key) covers(d Doc, mayBe bool) bool {
	if !k.isRange || !strings.HasPrefix(d.ID, k.text) {
		return false
	}
	if k.collection != "" && d.Collection == "" {
		return mayBe
	}
	return k.collection == "" || k.collection == d.Collection
}

// appliesTo reports whether the write of d would disturb the holder of a turn for k.
func (k Key) appliesTo(d Doc) bool { return k == Document(d.ID) || k.covers(d, true) }

// Lines has the lines of waiting callers of one database. The zero value is ready for
// use.
type Lines struct {
	// Limit is how long one run of a turn's holder may take before the turn passes to the
	// next caller; the run continues without the turn. An exclusive run may take 20 ms
	// plus four times the duration of the run before it, but at most Limit. 0 means
	// DefaultLimit. It must not be changed once there are callers.
	Limit time.Duration

	runs       atomic.Uint64                  // runs of users' functions that began in a turn
	places     atomic.Int64                   // places in all lines
	byID       [filterSize]atomic.Int32       // places in lines of documents, by hash of the ID
	ranges     atomic.Pointer[map[Key]uint32] // places in lines of ranges, or nil; copied when written
	exclusives atomic.Int64                   // len(exclusive)

	mu        sync.Mutex
	lines     map[lineKey]*line   // Guarded by mu.
	exclusive map[*place]struct{} // the holders of exclusive turns. Guarded by mu.
	tickets   uint64              // the last ticket drawn. Guarded by mu.
	dissolved bool                // callers no longer wait. Guarded by mu.
}

// filterSize is the size of the filter of documents with lines: well above the number of
// documents that are contended at a time.
const filterSize = 1 << 8

var seed = maphash.MakeSeed()

// lineKey identifies a line. An inner line, with within set, is for callers that may be
// part of the run of another line's holder.
type lineKey struct {
	Key
	within uint64 // place.run of the holder, or 0
}

// line is the line of one key. The first place may have its turn; all others wait.
type line []*place

// place is one caller's place, in all of its lines. Its fields are guarded by Lines.mu,
// except for turn and gone.
type place struct {
	turn chan struct{} // closed when the caller has its turn
	gone atomic.Bool   // it has left its lines

	lines     []lineKey
	ticket    uint64
	ahead     int  // number of its lines in which it is not the first
	granted   bool // it has or had its turn
	worker    bool
	run       uint64 // number of the run, of Lines.runs; 0 before the first, and for a worker
	began     time.Time
	runs      int
	overtaken int           // runs in the turn that were lost over one of its keys
	ended     chan struct{} // closed when an exclusive turn ends; nil if it is not exclusive
	timer     *time.Timer
}

// Len returns the number of callers that have a place.
func (l *Lines) Len() int { return int(l.places.Load()) }

// Exclusive reports whether any turn is exclusive.
func (l *Lines) Exclusive() bool { return l.exclusives.Load() > 0 }

// Yield waits until the exclusive turns with which writes of docs would interfere have
// ended, or returns the error of ctx. It does not wait for turns that become exclusive
// later. A caller that has a turn must not yield.
func (l *Lines) Yield(ctx context.Context, docs iter.Seq[Doc]) error {
	for _, ended := range l.exclusiveOver(docs) {
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (l *Lines) exclusiveOver(docs iter.Seq[Doc]) (ends []chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.exclusive {
		for d := range docs {
			if slices.ContainsFunc(p.lines, func(k lineKey) bool { return k.appliesTo(d) }) {
				ends = append(ends, p.ended)
				break
			}
		}
	}
	return ends
}

// Dissolve gives all waiting callers their turns at once. Later callers do not wait.
func (l *Lines) Dissolve() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dissolved = true
	all := make(map[*place]struct{})
	for _, n := range l.lines {
		for _, p := range *n {
			all[p] = struct{}{}
		}
	}
	for p := range all {
		l.remove(p)
	}
	for p := range all {
		if !p.granted {
			p.granted = true
			close(p.turn)
		}
	}
}

// mayHave reports whether the document may have a line, without a lock. False is
// certain.
func (l *Lines) mayHave(id string) bool { return l.filter(id).Load() > 0 }

func (l *Lines) filter(id string) *atomic.Int32 {
	return &l.byID[maphash.String(seed, id)%filterSize]
}

// count updates the lock-free counters for a place that joins or leaves a line of the
// key. l.mu is held.
func (l *Lines) count(key Key, by int) {
	if !key.isRange {
		l.filter(key.text).Add(int32(by))
		return
	}
	next := make(map[Key]uint32)
	if now := l.ranges.Load(); now != nil {
		maps.Copy(next, *now)
	}
	if next[key] += uint32(by); next[key] == 0 {
		delete(next, key)
	}
	if len(next) == 0 {
		l.ranges.Store(nil)
	} else {
		l.ranges.Store(&next)
	}
}

// blocks reports whether a call that began at called would have to wait for the key.
func (l *Lines) blocks(key Key, called uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[l.lineFor(key, called)] != nil
}

// lineFor returns the line in which a call that began at called waits for the key: the
// outermost one whose holder's run the call cannot be part of. l.mu is held.
func (l *Lines) lineFor(key Key, called uint64) lineKey {
	k := lineKey{Key: key}
	for {
		n := l.lines[k]
		if n == nil {
			return k
		}
		holder := (*n)[0]
		if !holder.granted || holder.worker || holder.ended != nil || called < holder.run {
			return k
		}
		k.within = holder.run
	}
}

// join gives a caller a place in the lines of keys. It returns nil if the lines are
// dissolved.
func (l *Lines) join(c *Caller, keys []Key) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dissolved {
		return nil
	}
	if c.ticket == 0 {
		l.tickets++
		c.ticket = l.tickets
	}
	p := &place{turn: make(chan struct{}), ticket: c.ticket, worker: c.worker}
	l.places.Add(1)
	for _, key := range keys {
		k := l.lineFor(key, c.called)
		p.lines = append(p.lines, k)
		l.insert(k, p)
	}
	if p.ahead == 0 {
		l.grant(p)
	}
	return p
}

// insert puts p into a line, before the younger callers that wait. l.mu is held.
func (l *Lines) insert(k lineKey, p *place) {
	n := l.lines[k]
	if n == nil {
		if l.lines == nil {
			l.lines = make(map[lineKey]*line)
		}
		n = new(line)
		l.lines[k] = n
	}
	i := len(*n)
	for i > 0 && !(*n)[i-1].granted && p.ticket < (*n)[i-1].ticket {
		i--
	}
	*n = slices.Insert(*n, i, p)
	if i > 0 {
		p.ahead++
	} else if len(*n) > 1 {
		(*n)[1].ahead++ // the caller that was first waits in another line too, or it would have its turn
	}
	l.count(k.Key, 1)
}

// grant gives p its turn. l.mu is held.
func (l *Lines) grant(p *place) {
	p.granted = true
	l.begin(p, l.limit())
	close(p.turn)
}

func (l *Lines) limit() time.Duration {
	if l.Limit > 0 {
		return l.Limit
	}
	return DefaultLimit
}

// begin starts a run of the holder p and its timer. l.mu is held.
func (l *Lines) begin(p *place, limit time.Duration) {
	p.runs++
	if p.worker {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.run, p.began = l.runs.Add(1), time.Now()
	run := p.run
	p.timer = time.AfterFunc(limit, func() { l.expire(p, run) })
}

// expire takes the turn from p if it is still in this run.
func (l *Lines) expire(p *place, run uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.run == run {
		l.remove(p)
	}
}

// runAgain begins another run of p in its turn, after a loss over keys of the turn. If
// it does not, used reports whether the turn has passed to others.
func (l *Lines) runAgain(p *place, lost []Key) (again, used bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.gone.Load() || p.runs >= MaxRuns {
		return false, true
	}
	for _, key := range lost {
		if !slices.ContainsFunc(p.lines, func(k lineKey) bool { return k.Key == key }) {
			return false, false
		}
	}
	limit := l.limit()
	if p.overtaken++; p.overtaken >= maxOvertaken {
		limit = min(limit, minExclusive+4*time.Since(p.began))
		l.exclude(p)
	}
	l.begin(p, limit)
	return true, false
}

// exclude makes the turn of p exclusive. l.mu is held.
func (l *Lines) exclude(p *place) {
	if p.ended != nil {
		return
	}
	p.ended = make(chan struct{})
	if l.exclusive == nil {
		l.exclusive = make(map[*place]struct{})
	}
	l.exclusive[p] = struct{}{}
	l.exclusives.Add(1)
}

// leave ends the turn or the wait of p.
func (l *Lines) leave(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(p)
}

// remove takes p out of its lines and gives a turn to each caller that it was the last
// to block. It is idempotent. l.mu is held.
func (l *Lines) remove(p *place) {
	if p.gone.Load() {
		return
	}
	p.gone.Store(true)
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.ended != nil {
		delete(l.exclusive, p)
		l.exclusives.Add(-1)
		close(p.ended)
	}
	l.places.Add(-1)
	for _, k := range p.lines {
		n := l.lines[k]
		i := slices.Index(*n, p)
		*n = slices.Delete(*n, i, i+1)
		l.count(k.Key, -1)
		switch {
		case len(*n) == 0:
			delete(l.lines, k)
		case i == 0:
			next := (*n)[0]
			if next.ahead--; next.ahead == 0 {
				l.grant(next)
			}
		}
	}
}
