package turns

import (
	"context"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

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
