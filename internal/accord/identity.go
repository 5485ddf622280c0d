package accord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/storage"
)

// identityCall is the prefix of the names of the slots of identities.
const identityCall = "identity/"

// Bounds of reservations.
const (
	mostReserved = 1 << 20 // numbers that one commit may reserve
	mostOpen     = 8192    // spans of an identity whose numbers have no recorded fate yet
	mostFree     = 64      // spans of an identity that were given back
)

// span is a range of reserved numbers, both ends included.
type span struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Request and Call identify the call of NextIdentity that has a request ID, if there
	// was one.
	Request string `json:"request,omitempty"`
	Call    string `json:"is,omitempty"`

	set uint64 // counterRecord.Set when the numbers were drawn
}

// identities holds every identity of which this process has reserved numbers.
type identities struct {
	recording sync.Mutex // held while lost numbers are written to disk; taken before mu

	mu    sync.Mutex
	names map[string]*sequence // by folded request. Guarded by mu.
}

// sequence is one identity. While callers wait for numbers, a goroutine, the leader,
// reserves numbers in group commits: one commit at a time, for all callers that wait when
// it begins.
type sequence struct {
	name   string
	record func() // begins to record what is lost

	// Guarded by identities.mu.
	waiting []*draw
	leading bool
	open    []span // reserved, sorted by number; their fate is not recorded yet
	lost    []span // of open: no document will have them; recordLost has to store that
	free    []span // of open: no document has them, and the next draws get them; at most mostFree

	// Used by the leader only.
	slot         slot
	known        bool
	fresh        bool          // the counter was read for the draws that wait
	counter      counterRecord // the counter, if known
	index        uint64        // index of its record at the coordinator
	pending      *attempt      // the attempt under way, until its outcome is known; or nil
	pendingDraws []*draw       // the draws that pending serves
}

// draw is the request of one caller, for numbers or for a new value of the counter.
type draw struct {
	numbers int64 // how many; 0 to set the counter
	above   int64 // the numbers must be greater than above
	set     int64 // the new value of the counter, if numbers is 0
	force   bool  // set the counter even if its value is greater

	request, call string

	done  chan struct{} // closed when err and first are final
	first int64         // the first number, or after a seed the counter's last number
	err   error
	left  bool // the caller has stopped waiting. Guarded by identities.mu.
}

// Draw reserves consecutive numbers of an identity, all greater than above, and returns
// the first of them. No other call on any node gets them. For each number the caller must
// report by Settle, once, whether a document has it.
//
// Numbers that an earlier draw of this run has given back come first: see giveBack.
//
// If ctx ends first, or no majority answers within Options.Limit, the error is a
// cluster.ErrNoMajority. The caller then has no numbers, though some may be used up.
func (n *Node) Draw(ctx context.Context, name string, numbers, above int64) (first int64, err error) {
	return n.await(ctx, name, &draw{numbers: numbers, above: above})
}

// Next is Draw of one number for DB.NextIdentity. r is its request; nil for a call
// without a request ID. If an earlier run has drawn a number for the same request, the
// error is a *requests.Repeated, which has that number.
func (n *Node) Next(ctx context.Context, name string, above int64, r *requests.Request) (int64, error) {
	d := &draw{numbers: 1, above: above}
	if r != nil {
		d.request, d.call = r.ID, r.Call
	}
	first, err := n.await(ctx, name, d)
	if err != nil {
		return 0, err
	}
	// The number leaves the database, and no document may ever show it. So the newest
	// index must be on disk first: without it, a restored coordinator that gives the
	// number again would go unnoticed.
	if err := n.keepSeen(ctx, n.env.Synced); err != nil {
		n.Settle(name, first, first, Unwritten)
		return 0, err
	}
	return first, nil
}

// Seed sets the last number of an identity to value, unless it is greater already and
// force is false. It returns the last number.
func (n *Node) Seed(ctx context.Context, name string, value int64, force bool, r *requests.Request) (last int64, err error) {
	d := &draw{set: value, force: force}
	if r != nil {
		d.request, d.call = r.ID, r.Call
	}
	return n.await(ctx, name, d)
}

// Raise makes the last number of an identity at least n.
func (n *Node) Raise(ctx context.Context, name string, last int64) error {
	ctx, cancel := n.Bounded(ctx)
	defer cancel()
	if err := n.raise(ctx, name, last); err != nil {
		return fmt.Errorf("identity %.100q: %w", name, err)
	}
	return nil
}

// NeedsFloors reports whether an identity needs a floor, a first number that is safe,
// before its first use. That is so in a database that was copied from one outside the
// cluster.
func (n *Node) NeedsFloors() bool { return n.floors.Load() }

// SettleRequest reports that the database has stored the result of a call with a request
// ID.
func (n *Node) SettleRequest(name string, r *requests.Request) {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.names[name]; s != nil && r != nil {
		s.open = slices.DeleteFunc(s.open, func(o span) bool { return o.Request == r.ID })
	}
}

// Identities returns the last number of every identity of the cluster.
func (n *Node) Identities(ctx context.Context) (map[string]int64, error) {
	ctx, cancel := n.Bounded(ctx)
	defer cancel()
	payer := budget.NewPayer(ctx)
	out := make(map[string]int64)
	for after := ""; ; {
		page, err := n.c.Page(ctx, cluster.IdentityPrefix, after, cluster.MaxPage)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return out, nil
		}
		for _, r := range page {
			after = r.Key
			c, err := decodeCounter(r)
			if err == nil {
				err = payer.PayNamed(r.Key)
			}
			if err != nil {
				return nil, err
			}
			out[strings.TrimPrefix(r.Key, cluster.IdentityPrefix)] = c.Last
		}
	}
}

// Recovered makes sure that the numbers and slots that earlier runs left with the
// coordinator have been recovered. It waits for that if necessary.
func (n *Node) Recovered(ctx context.Context) error {
	if n.recovered.Load() {
		return nil
	}
	ctx, cancel := n.Bounded(ctx)
	defer cancel()
	if !n.isClaimed() {
		if err := n.join(ctx, true); err != nil {
			return err
		}
	}
	return n.recover(ctx)
}

// await queues a draw for the leader, which it starts if there is none, and waits for the
// result.
func (n *Node) await(ctx context.Context, name string, d *draw) (int64, error) {
	ctx, cancel := n.Bounded(ctx)
	defer cancel()
	if err := n.checkMember(); err != nil {
		return 0, err
	}
	d.done = make(chan struct{})
	m := &n.identities
	m.mu.Lock()
	s := m.names[name]
	if s == nil {
		s = &sequence{name: name, slot: n.newSlot(identityCall + name)}
		s.record = func() { n.group.Go(func() { n.recordLost(n.group.Context(), s) }) }
		m.names[name] = s
	}
	if len(s.open) > mostOpen {
		m.mu.Unlock()
		return 0, fmt.Errorf("%w: identity %.100q: more than %d spans of its numbers are in use by writes that have not ended", storage.ErrTooLarge, name, mostOpen)
	}
	s.waiting = append(s.waiting, d)
	if !s.leading {
		s.leading = true
		n.group.Go(func() { n.lead(s) })
	}
	m.mu.Unlock()

	select {
	case <-d.done:
		return d.first, d.err
	case <-ctx.Done():
	case <-n.group.Context().Done():
	}
	m.mu.Lock()
	d.left = true
	select {
	case <-d.done: // finished between the two selects
		m.mu.Unlock()
		return d.first, d.err
	default:
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(other *draw) bool { return other == d })
	m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("%w: %w", cluster.ErrNoMajority, err)
	}
	return 0, errs.ErrClosed
}

// lead is the leader's goroutine. It reserves numbers until no caller waits.
func (n *Node) lead(s *sequence) {
	ctx := n.group.Context()
	m := &n.identities
	for tries := 0; ; tries++ {
		m.mu.Lock()
		waits := len(s.waiting) > 0 || slices.ContainsFunc(s.pendingDraws, func(d *draw) bool { return !d.left })
		if !waits || ctx.Err() != nil {
			s.leading = false
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		limited, cancel := context.WithTimeout(ctx, n.options.Limit)
		err := n.reserve(limited, s)
		cancel()
		switch {
		case err == nil:
			tries = 0
		// No majority, or an outcome in doubt: try again until the callers' deadlines.
		case n.watch.err() == nil && (errors.Is(err, cluster.ErrNoMajority) || errors.Is(err, cluster.ErrUnknownOutcome)):
			Pause(ctx, tries)
		default:
			m.mu.Lock()
			waiting := s.waiting
			s.waiting = nil
			if gone := n.watch.err(); gone != nil { // no later try can resolve the draws in doubt either
				err = gone
				waiting = append(waiting, slices.DeleteFunc(s.pendingDraws, func(d *draw) bool { return d.left })...)
				s.pendingDraws = nil
			}
			for _, d := range waiting {
				d.finish(0, err)
			}
			m.mu.Unlock()
			Pause(ctx, tries) // a draw in doubt may still wait
		}
	}
}

// finish completes a draw and wakes its caller. identities.mu is held.
func (d *draw) finish(first int64, err error) {
	d.first, d.err = first, err
	close(d.done)
}

// reserve commits one reservation for the waiting draws, or resolves the one that is in
// doubt.
func (n *Node) reserve(ctx context.Context, s *sequence) error {
	if s.pending == nil {
		s.fresh = false
		if err := n.lookUp(ctx, s); err != nil {
			return err
		}
		if err := n.propose(s); err != nil || s.pending == nil {
			return err
		}
	}
	result, err := n.try(ctx, &s.slot, s.pending)
	if errors.Is(err, ErrSlotLost) {
		// Numbers of an attempt that nobody can decide any more are given to no caller. The
		// draws get others: identities go on in a database of which a copy has run.
		s.known = false
		n.withdraw(s)
		n.identities.mu.Lock()
		s.loseFree()
		n.identities.mu.Unlock()
		return nil
	}
	if err != nil {
		// The attempt was not committed. A new one can also serve draws that arrive
		// meanwhile.
		if !s.pending.inDoubt {
			n.withdraw(s)
		}
		return err
	}
	if !result.Committed() {
		s.index = result.Actual[0].Index
		if s.counter, err = decodeCounter(result.Actual[0]); err != nil {
			s.known = false
		}
		n.withdraw(s)
		return err
	}
	n.handOut(s, result.Index)
	return nil
}

// lookUp reads the counter, unless it is known, and prepares the slot.
func (n *Node) lookUp(ctx context.Context, s *sequence) error {
	if !s.known {
		records, err := n.c.Read(ctx, cluster.IdentityPrefix+s.name)
		if err != nil {
			return err
		}
		if s.counter, err = decodeCounter(records[0]); err != nil {
			return err
		}
		s.index, s.known, s.fresh = records[0].Index, true, true
	}
	return n.prepare(ctx, &s.slot)
}

// propose makes the next attempt from the head of the queue: one seed, or all draws
// before the next seed, as far as mostReserved numbers go. It leaves s.pending nil if no
// draw needs a commit.
func (n *Node) propose(s *sequence) error {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	s.retire()
	counter := s.counter
	var added, passed, again []span
	for len(s.waiting) > 0 {
		d := s.waiting[0]
		if d.numbers == 0 && len(s.pendingDraws) > 0 {
			break // a seed has a commit of its own
		}
		if d.numbers == 0 {
			s.waiting, s.pendingDraws = s.waiting[1:], append(s.pendingDraws, d)
			s.loseFree() // the next document gets a number above the seed
			if counter.Last = max(counter.Last, d.set); d.force {
				counter.Last = d.set
			}
			if counter.Last != s.counter.Last {
				counter.Set++
			}
			if d.first = counter.Last; d.request != "" {
				added = append(added, span{First: counter.Last, Last: counter.Last - 1, Request: d.request, Call: d.call})
			}
			break
		}
		if given, found := s.takeFree(d); found {
			again = append(again, given)
			s.waiting, s.pendingDraws = s.waiting[1:], append(s.pendingDraws, d)
			continue
		}
		// A draw takes the next numbers above both the counter and its own bound.
		above := max(counter.Last, d.above)
		if d.numbers > mostReserved || above > math.MaxInt64-d.numbers {
			s.waiting = s.waiting[1:]
			err := fmt.Errorf("identity %.100q: %w", s.name, ids.ErrExhausted)
			if d.numbers > mostReserved {
				err = fmt.Errorf("%w: %d numbers of an identity at once, at most %d", storage.ErrTooLarge, d.numbers, mostReserved)
			}
			d.finish(0, err)
			continue
		}
		// The draw would make the commit too large: it waits for the next one.
		if len(s.pendingDraws) > 0 && above+d.numbers-s.counter.Last > mostReserved {
			break
		}
		// Numbers between the counter and the draw's bound are skipped, and so become
		// lost.
		if above > counter.Last {
			passed = append(passed, span{First: counter.Last + 1, Last: above})
		}
		d.first, counter.Last = above+1, above+d.numbers
		added = appendSpan(added, span{First: d.first, Last: counter.Last, Request: d.request, Call: d.call, set: counter.Set})
		s.waiting, s.pendingDraws = s.waiting[1:], append(s.pendingDraws, d)
	}
	if len(s.pendingDraws) == 0 {
		return nil
	}
	if counter == s.counter && s.index > 0 && len(again) == 0 { // the seed leaves the counter as it is: no commit needed
		if !s.fresh { // another node may have changed it: the coordinator is asked
			s.waiting, s.pendingDraws = append(s.pendingDraws, s.waiting...), nil
			s.known = false
			return nil
		}
		for _, d := range s.pendingDraws {
			d.finish(d.first, nil)
		}
		s.pendingDraws = nil
		return nil
	}
	// The commit is conditional on the counter, and its slot keeps all numbers without a
	// recorded fate. It changes the counter's record also if it only gives numbers again: so
	// the counter was not set since they were drawn, and no other process has them.
	a, err := n.newAttempt(&s.slot, []cluster.Condition{{Key: cluster.IdentityPrefix + s.name, Index: s.index}}, []cluster.Change{counterChange(s.name, counter)}, slices.Clone(s.open), append(slices.Clip(added), passed...))
	if err != nil {
		s.waiting, s.pendingDraws = append(s.pendingDraws, s.waiting...), nil
		s.free = append(s.free, again...)
		return err
	}
	a.counter, a.added, a.passed, a.again = counter, added, passed, again
	s.pending = a
	return nil
}

// takeFree gives a draw numbers that were given back, if there are as many one after the
// other. identities.mu is held.
func (s *sequence) takeFree(d *draw) (given span, found bool) {
	if d.request != "" {
		return given, false // the slot must show which request has which numbers
	}
	for _, f := range s.free {
		if f.Last <= d.above {
			continue
		}
		given = f
		if given.First = max(f.First, d.above+1); given.Last-given.First < d.numbers-1 {
			continue
		}
		given.Last = given.First + d.numbers - 1
		s.free = cutSpan(s.free, given.First, given.Last)
		d.first = given.First
		return given, true
	}
	return given, false
}

// retire gives up the free numbers that were drawn before the counter was set. identities.mu
// is held.
func (s *sequence) retire() {
	for _, f := range slices.Clone(s.free) {
		if f.set != s.counter.Set || f.Last > s.counter.Last {
			s.free = cutSpan(s.free, f.First, f.Last)
			s.lose(f.First, f.Last)
		}
	}
}

// withdraw puts the draws of an attempt that was not committed back at the head of the
// queue, and its numbers that were free.
func (n *Node) withdraw(s *sequence) {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	back := slices.DeleteFunc(s.pendingDraws, func(d *draw) bool { return d.left })
	s.waiting = append(back, s.waiting...)
	s.free = append(s.free, s.pending.again...)
	mergeSpans(&s.free)
	s.pending, s.pendingDraws = nil, nil
}

// handOut gives the numbers of a committed attempt to its draws. No caller gets a number
// before the commit is certain. Numbers of callers that have left become lost.
func (n *Node) handOut(s *sequence, index uint64) {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	s.counter, s.index = s.pending.counter, index
	s.open = append(append(s.open, s.pending.added...), s.pending.passed...)
	mergeSpans(&s.open)
	for _, d := range s.pendingDraws {
		if !d.left {
			d.finish(d.first, nil)
		} else if d.numbers > 0 {
			s.giveBack(d.first, d.first+d.numbers-1)
		}
	}
	for _, p := range s.pending.passed {
		s.lose(p.First, p.Last)
	}
	s.pending, s.pendingDraws = nil, nil
}

// Fate says whether a document has a number.
type Fate uint8

// The fates.
const (
	// Written: a document has or had the number, or the database has recorded it
	// otherwise.
	Written Fate = iota
	// Unwritten: no document has the number, or ever will.
	Unwritten
	// Unknown: the write with the number is in doubt. The number stays open, and the next
	// run decides.
	Unknown
)

// Settle reports the fate of the numbers first to last of an identity. Unwritten ones go to
// the next draws of this run.
func (n *Node) Settle(name string, first, last int64, fate Fate) {
	if fate == Unknown {
		return
	}
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.names[name]
	if s == nil {
		return
	}
	if fate == Unwritten {
		s.giveBack(first, last)
		return
	}
	s.open = cutSpan(s.open, first, last)
}

// giveBack makes numbers free for the next draws of this run. It is certain that no document
// had them, and no caller: a later run, which does not know that, gives them to nobody.
//
// Numbers that were drawn for a request are lost: a repetition may ask for them. So are those
// that are too many. identities.mu is held.
func (s *sequence) giveBack(first, last int64) {
	for _, o := range s.open {
		back := o
		back.First, back.Last = max(o.First, first), min(o.Last, last)
		switch {
		case back.First > back.Last || overlaps(s.free, back) || overlaps(s.lost, back):
		case o.Request != "" || len(s.free) >= mostFree:
			s.lose(back.First, back.Last)
		default:
			s.free = append(s.free, back)
		}
	}
	mergeSpans(&s.free)
}

// loseFree gives up the free numbers. identities.mu is held.
func (s *sequence) loseFree() {
	for _, f := range s.free {
		s.lose(f.First, f.Last)
	}
	s.free = nil
}

// Free returns how many numbers of each identity wait for the next draws of this run, because
// their writes have failed.
func (n *Node) Free() map[string]int64 {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]int64)
	for name, s := range m.names {
		for _, f := range s.free {
			out[name] += f.Last - f.First + 1
		}
	}
	return out
}

// lose notes that no document has the numbers, and starts recording that. identities.mu
// is held.
func (s *sequence) lose(first, last int64) {
	s.lost = append(s.lost, span{First: first, Last: last})
	if len(s.lost) == 1 {
		s.record()
	}
}

// recordLost writes the lost numbers of an identity to the database. They stay open until
// that is durable.
func (n *Node) recordLost(ctx context.Context, s *sequence) {
	m := &n.identities
	m.recording.Lock()
	defer m.recording.Unlock()
	m.mu.Lock()
	lost := slices.Clone(s.lost)
	m.mu.Unlock()
	if len(lost) == 0 {
		return
	}
	err := n.env.Engine.Update(ctx, true, func(tx storage.Tx) error { return AddLost(tx, s.name, lost) })
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		s.lost = nil // the numbers stay open, so the next run recovers them
		return
	}
	for _, l := range lost {
		s.open = cutSpan(s.open, l.First, l.Last)
	}
	if s.lost = slices.Delete(s.lost, 0, len(lost)); len(s.lost) > 0 {
		n.group.Go(func() { n.recordLost(ctx, s) })
	}
}

// AddLost stages the record that no document has these numbers of an identity.
func AddLost(tx storage.Tx, name string, lost []span) error {
	key := format.LostKey(name)
	var l format.Lost
	value, closer, err := tx.Get(key)
	if err == nil {
		l, err = format.DecodeLost(value)
		err = errs.First(err, closer.Close())
	} else if err == storage.ErrNotFound {
		err = nil
	}
	if err != nil {
		return err
	}
	for _, s := range lost {
		l.Add(s.First, s.Last)
	}
	return env.SetJSON(tx, key, l)
}

// AddLostNumber is AddLost of one number.
func AddLostNumber(tx storage.Tx, name string, number int64) error {
	return AddLost(tx, name, []span{{First: number, Last: number}})
}

// closeIdentities records the lost numbers, and deletes the slots that have no open
// number.
func (n *Node) closeIdentities(ctx context.Context) {
	m := &n.identities
	m.mu.Lock()
	names := slices.Sorted(maps.Keys(m.names))
	m.mu.Unlock()
	for _, name := range names {
		if ctx.Err() != nil {
			return
		}
		s := m.names[name]
		m.mu.Lock()
		s.loseFree()
		m.mu.Unlock()
		n.recordLost(ctx, s)
		if s.pending != nil || len(s.open) > 0 || s.slot.index == 0 || len(names) > cluster.MaxPage {
			continue // the next run recovers this slot
		}
		if _, err := n.c.Commit(ctx, []cluster.Condition{{Key: s.slot.key, Index: s.slot.index}}, []cluster.Change{{Key: s.slot.key, Delete: true}}); err != nil {
			return
		}
	}
}

// recoverIdentity looks for documents with the numbers that an earlier run left open, and
// records the numbers without one as lost. r is the record of that run's slot.
func (n *Node) recoverIdentity(ctx context.Context, name string, r cluster.Record) error {
	c, err := decode[callRecord](r)
	if err != nil {
		return err
	}
	var lost []span
	for _, s := range c.Open {
		if s.Request != "" {
			if err := n.recoverRequest(ctx, s); err != nil {
				return err
			}
		}
		if lost, err = n.missing(ctx, lost, name, s); err != nil {
			return err
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return n.env.Engine.Update(ctx, true, func(tx storage.Tx) error { return AddLost(tx, name, lost) })
}

// missing appends to lost the numbers of a span that no document has.
func (n *Node) missing(ctx context.Context, lost []span, name string, s span) ([]span, error) {
	var key []byte
	for number := s.First; number <= s.Last; number++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		id := fmt.Sprintf("%s%s%d", strings.TrimSuffix(name, ids.IdentityMark), n.env.FoldedSeparator, number)
		key = format.DocumentKey(key[:0], id)
		found, err := docs.Exists(n.env.Engine, key)
		if err != nil {
			return nil, err
		}
		if !found {
			lost = appendSpan(lost, span{First: number, Last: number})
		}
	}
	return lost, nil
}

// recoverRequest stores the number that a call with a request ID had reserved as the
// call's result, so that repeating the call returns the same number.
func (n *Node) recoverRequest(ctx context.Context, s span) error {
	r := &requests.Request{ID: s.Request, Call: s.Call}
	return n.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		switch err := r.Find(tx); {
		case errors.As(err, new(*requests.Repeated)):
			return nil // the result is stored already
		case err != nil:
			return err
		}
		return r.Keep(tx, s.First)
	})
}

// appendSpan appends a span, or extends the last one if s follows it directly, neither
// belongs to a request, and the counter was not set between them.
func appendSpan(list []span, s span) []span {
	if len(list) > 0 {
		before := &list[len(list)-1]
		if before.Last+1 == s.First && before.Request == "" && s.Request == "" && before.set == s.set {
			before.Last = s.Last
			return list
		}
	}
	return append(list, s)
}

// mergeSpans sorts spans and joins neighbours.
func mergeSpans(list *[]span) {
	slices.SortStableFunc(*list, func(a, b span) int { return cmp.Compare(a.First, b.First) })
	merged := (*list)[:0:0]
	for _, s := range *list {
		merged = appendSpan(merged, s)
	}
	*list = merged
}

// overlaps reports whether a span has numbers of list.
func overlaps(list []span, s span) bool {
	return slices.ContainsFunc(list, func(l span) bool { return l.First <= s.Last && s.First <= l.Last })
}

// cutSpan returns list without the numbers first to last.
func cutSpan(list []span, first, last int64) []span {
	out := make([]span, 0, len(list)+1)
	for _, s := range list {
		if s.Last < first || s.First > last {
			out = append(out, s)
			continue
		}
		if s.First < first {
			left := s
			left.Last = first - 1
			out = append(out, left)
		}
		if s.Last > last {
			right := s
			right.First = last + 1
			out = append(out, right)
		}
	}
	return out
}

// Waiting returns the number of draws of an identity that wait, including those of the
// attempt under way. For tests.
func (n *Node) Waiting(name string) int {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.names[name]
	if s == nil {
		return 0
	}
	return len(s.waiting) + len(s.pendingDraws)
}

// AwaitLost gives up the free numbers, and waits until all that are lost so far are on disk.
// For tests.
func (n *Node) AwaitLost() {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.names {
		s.loseFree()
		for len(s.lost) > 0 {
			m.mu.Unlock()
			n.recordLost(context.Background(), s)
			m.mu.Lock()
		}
	}
}
