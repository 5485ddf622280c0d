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
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/storage"
)

// identityCall begins the names of the slots of identities.
const identityCall = "identity/"

// Bounds of reservations.
const (
	mostReserved = 1 << 20 // numbers that one commit reserves
	mostOpen     = 8192    // spans of numbers of an identity of which it is not known what has become of them
)

// span is a range of numbers that was reserved.
type span struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Request and Call are those of a call of NextIdentity with a request ID.
	Request string `json:"request,omitempty"`
	Call    string `json:"is,omitempty"`
}

// identities are the identities of which this process reserves numbers.
type identities struct {
	recording sync.Mutex // held while lost numbers are recorded; before mu

	mu    sync.Mutex
	names map[string]*sequence // by folded request. Guarded by mu.
}

// sequence is one identity. A goroutine, its leader, reserves numbers as long as callers
// wait for some: one commit at a time, for all who wait at that time.
type sequence struct {
	name string

	// Guarded by identities.mu.
	waiting []*draw
	leading bool
	open    []span // handed out, sorted: it is not recorded yet what has become of them
	lost    []span // of open: no document has them, and that is to be recorded

	// Only the leader uses them.
	slot    slot
	known   bool
	last    int64  // the counter's
	index   uint64 // of the counter's record
	doubt   *attempt
	doubted []*draw // those of doubt
}

// draw is what a caller waits for.
type draw struct {
	numbers int64 // how many; 0 to set the counter
	above   int64 // they are to be greater
	set     int64
	force   bool

	request, call string

	done  chan struct{} // closed when err and first are final
	first int64         // of the numbers, or the counter's last one after a seed
	err   error
	left  bool // the caller waits no more. Guarded by identities.mu.
}

// Draw reserves n consecutive numbers of an identity, all greater than above, and returns
// the first. No other call on any node gets one of them. The caller says with Settle what
// has become of each.
//
// If ctx ends first, or no majority answers within the limit of the database, the error is
// a cluster.ErrNoMajority, and the caller has no numbers, though some may have been used up.
func (n *Node) Draw(ctx context.Context, name string, numbers, above int64) (first int64, err error) {
	return n.await(ctx, name, &draw{numbers: numbers, above: above})
}

// Next is Draw of one number for a call of DB.NextIdentity. With a request that has been
// recovered it is a *requests.Repeated.
func (n *Node) Next(ctx context.Context, name string, above int64, r *requests.Request) (int64, error) {
	d := &draw{numbers: 1, above: above}
	if r != nil {
		d.request, d.call = r.ID, r.Call
	}
	first, err := n.await(ctx, name, d)
	if err != nil {
		return 0, err
	}
	// The caller may keep the number anywhere: so a coordinator that forgets it must be
	// found out.
	if err := n.keepSeen(ctx, n.env.Synced); err != nil {
		n.Settle(name, first, first, Unwritten)
		return 0, err
	}
	return first, nil
}

// Seed sets the last number of an identity to value, or leaves it if it is greater and
// force is not set, and returns it.
func (n *Node) Seed(ctx context.Context, name string, value int64, force bool, r *requests.Request) (last int64, err error) {
	d := &draw{set: value, force: force}
	if r != nil {
		d.request, d.call = r.ID, r.Call
	}
	return n.await(ctx, name, d)
}

// Raise makes the last number of an identity at least n.
func (n *Node) Raise(ctx context.Context, name string, last int64) error {
	ctx, cancel := n.bounded(ctx)
	defer cancel()
	if err := n.raise(ctx, name, last); err != nil {
		return fmt.Errorf("identity %.100q: %w", name, err)
	}
	return nil
}

// NeedsFloors reports whether each identity waits for a number from which it is safe to
// count: the database was copied from one that does not belong to the cluster.
func (n *Node) NeedsFloors() bool { return n.floors.Load() }

// SettleRequest says that the result of a call with a request ID is kept in the database.
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
	ctx, cancel := n.bounded(ctx)
	defer cancel()
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
			if out[strings.TrimPrefix(r.Key, cluster.IdentityPrefix)], err = decodeCounter(r); err != nil {
				return nil, err
			}
		}
	}
}

// Recovered returns when what earlier runs have left with the coordinator is recorded.
func (n *Node) Recovered(ctx context.Context) error {
	if n.recovered.Load() {
		return nil
	}
	ctx, cancel := n.bounded(ctx)
	defer cancel()
	if !n.isClaimed() {
		if err := n.join(ctx, true); err != nil {
			return err
		}
	}
	return n.recover(ctx)
}

// await gives a draw to the leader, and waits for it.
func (n *Node) await(ctx context.Context, name string, d *draw) (int64, error) {
	ctx, cancel := n.bounded(ctx)
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
	case <-d.done: // just now
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

// lead reserves numbers until no caller waits.
func (n *Node) lead(s *sequence) {
	ctx := n.group.Context()
	m := &n.identities
	for tries := 0; ; tries++ {
		m.mu.Lock()
		waits := len(s.waiting) > 0 || slices.ContainsFunc(s.doubted, func(d *draw) bool { return !d.left })
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
		case n.watch.err() == nil && (errors.Is(err, cluster.ErrNoMajority) || errors.Is(err, cluster.ErrUnknownOutcome)):
			pause(ctx, tries) // those who wait leave when their time is over
		default:
			m.mu.Lock()
			waiting := s.waiting
			s.waiting = nil
			if gone := n.watch.err(); gone != nil { // no further try decides those in doubt
				err = gone
				waiting = append(waiting, slices.DeleteFunc(s.doubted, func(d *draw) bool { return d.left })...)
				s.doubted = nil
			}
			for _, d := range waiting {
				d.finish(0, err)
			}
			m.mu.Unlock()
		}
	}
}

// finish ends a draw. identities.mu is held.
func (d *draw) finish(first int64, err error) {
	d.first, d.err = first, err
	close(d.done)
}

// reserve makes one commit for those who wait, or finds out what became of the one before.
func (n *Node) reserve(ctx context.Context, s *sequence) error {
	if s.doubt == nil {
		if err := n.lookUp(ctx, s); err != nil {
			return err
		}
		if err := n.propose(s); err != nil || s.doubt == nil {
			return err
		}
	}
	result, err := n.try(ctx, &s.slot, s.doubt)
	if err != nil {
		if !s.doubt.doubtful { // it surely has not happened: those who come meanwhile can join
			n.withdraw(s)
		}
		return err
	}
	if !result.Committed() {
		s.index = result.Actual[0].Index
		if s.last, err = decodeCounter(result.Actual[0]); err != nil {
			s.known = false
		}
		n.withdraw(s)
		return err
	}
	n.handOut(s, result.Index)
	return nil
}

// lookUp reads the counter, if it is not known, and makes the slot.
func (n *Node) lookUp(ctx context.Context, s *sequence) error {
	if !s.known {
		records, err := n.c.Read(ctx, cluster.IdentityPrefix+s.name)
		if err != nil {
			return err
		}
		if s.last, err = decodeCounter(records[0]); err != nil {
			return err
		}
		s.index, s.known = records[0].Index, true
	}
	return n.prepare(ctx, &s.slot)
}

// propose makes the commit for those who wait: for a seed, or for draws up to the next
// seed. s.doubt is nil afterwards if no caller waits.
func (n *Node) propose(s *sequence) error {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	last := s.last
	var added, passed []span
	for len(s.waiting) > 0 {
		d := s.waiting[0]
		if d.numbers == 0 && len(s.doubted) > 0 {
			break // a seed has a commit of its own
		}
		if d.numbers == 0 {
			s.waiting, s.doubted = s.waiting[1:], append(s.doubted, d)
			if last = max(last, d.set); d.force {
				last = d.set
			}
			if d.first = last; d.request != "" {
				added = append(added, span{First: last, Last: last - 1, Request: d.request, Call: d.call})
			}
			break
		}
		above := max(last, d.above)
		if d.numbers > mostReserved || above > math.MaxInt64-d.numbers {
			s.waiting = s.waiting[1:]
			err := fmt.Errorf("identity %.100q: %w", s.name, ids.ErrExhausted)
			if d.numbers > mostReserved {
				err = fmt.Errorf("%w: %d numbers of an identity at once, at most %d", storage.ErrTooLarge, d.numbers, mostReserved)
			}
			d.finish(0, err)
			continue
		}
		if len(s.doubted) > 0 && above+d.numbers-s.last > mostReserved {
			break
		}
		if above > last {
			passed = append(passed, span{First: last + 1, Last: above})
		}
		d.first, last = above+1, above+d.numbers
		added = appendSpan(added, span{First: d.first, Last: last, Request: d.request, Call: d.call})
		s.waiting, s.doubted = s.waiting[1:], append(s.doubted, d)
	}
	if len(s.doubted) == 0 {
		return nil
	}
	if last == s.last && s.index > 0 { // a seed that changes nothing
		for _, d := range s.doubted {
			d.finish(d.first, nil)
		}
		s.doubted = nil
		return nil
	}
	a, err := n.newAttempt(&s.slot, []cluster.Condition{{Key: cluster.IdentityPrefix + s.name, Index: s.index}}, []cluster.Change{counterChange(s.name, last)}, slices.Clone(s.open), append(slices.Clip(added), passed...))
	if err != nil {
		s.waiting, s.doubted = append(s.doubted, s.waiting...), nil
		return err
	}
	a.last, a.added, a.passed = last, added, passed
	s.doubt = a
	return nil
}

// withdraw has those of a commit that has not happened wait for the next one.
func (n *Node) withdraw(s *sequence) {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	back := slices.DeleteFunc(s.doubted, func(d *draw) bool { return d.left })
	s.waiting = append(back, s.waiting...)
	s.doubt, s.doubted = nil, nil
}

// handOut gives the numbers of a commit that has happened to those who wait. Only here do
// callers get numbers.
func (n *Node) handOut(s *sequence, index uint64) {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	s.last, s.index = s.doubt.last, index
	s.open = append(append(s.open, s.doubt.added...), s.doubt.passed...)
	mergeSpans(&s.open)
	for _, d := range s.doubted {
		if !d.left {
			d.finish(d.first, nil)
		} else if d.numbers > 0 {
			n.lose(s, d.first, d.first+d.numbers-1)
		}
	}
	for _, p := range s.doubt.passed {
		n.lose(s, p.First, p.Last)
	}
	s.doubt, s.doubted = nil, nil
}

// Fate is what has become of a number.
type Fate uint8

// The fates.
const (
	// Written: a document has it, or had it, or the number is recorded otherwise.
	Written Fate = iota
	// Unwritten: no document has it or will have it.
	Unwritten
	// Unknown: a write that may be lost has it. It stays open until the next run looks.
	Unknown
)

// Settle says what has become of the numbers from first to last of an identity.
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
		n.lose(s, first, last)
		return
	}
	s.open = cutSpan(s.open, first, last)
}

// lose notes that no document has the numbers, and has that recorded. identities.mu is
// held.
func (n *Node) lose(s *sequence, first, last int64) {
	s.lost = append(s.lost, span{First: first, Last: last})
	if len(s.lost) == 1 {
		n.group.Go(func() { n.recordLost(n.group.Context(), s) })
	}
}

// recordLost records the lost numbers of an identity in the database. They stay open until
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
		s.lost = nil // they stay open: the next run records them
		return
	}
	for _, l := range lost {
		s.open = cutSpan(s.open, l.First, l.Last)
	}
	if s.lost = slices.Delete(s.lost, 0, len(lost)); len(s.lost) > 0 {
		n.group.Go(func() { n.recordLost(ctx, s) })
	}
}

// AddLost stages that numbers of an identity have no document.
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

// closeIdentities records the lost numbers, and removes the slots in which no number is
// open.
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
		n.recordLost(ctx, s)
		if s.doubt != nil || len(s.open) > 0 || s.slot.index == 0 || len(names) > cluster.MaxPage {
			continue // the next run looks into it
		}
		if _, err := n.c.Commit(ctx, []cluster.Condition{{Key: s.slot.key, Index: s.slot.index}}, []cluster.Change{{Key: s.slot.key, Delete: true}}); err != nil {
			return
		}
	}
}

// recoverIdentity records what has become of the numbers that an earlier run has reserved.
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

// missing appends the numbers of a span that no document has.
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

// recoverRequest keeps the number that a call with a request ID has reserved as its result,
// so that the call returns it when it is made again.
func (n *Node) recoverRequest(ctx context.Context, s span) error {
	r := &requests.Request{ID: s.Request, Call: s.Call}
	return n.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		switch err := r.Find(tx); {
		case errors.As(err, new(*requests.Repeated)):
			return nil // it was kept
		case err != nil:
			return err
		}
		return r.Keep(tx, s.First)
	})
}

// appendSpan appends a span, as a part of the last one if it follows that.
func appendSpan(list []span, s span) []span {
	if len(list) > 0 {
		before := &list[len(list)-1]
		if before.Last+1 == s.First && before.Request == "" && s.Request == "" {
			before.Last = s.Last
			return list
		}
	}
	return append(list, s)
}

// mergeSpans sorts spans, and joins those that follow one another.
func mergeSpans(list *[]span) {
	slices.SortStableFunc(*list, func(a, b span) int { return cmp.Compare(a.First, b.First) })
	merged := (*list)[:0:0]
	for _, s := range *list {
		merged = appendSpan(merged, s)
	}
	*list = merged
}

// cutSpan removes numbers from spans.
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

// Waiting returns how many callers wait for numbers of an identity, those of the commit
// under way included.
func (n *Node) Waiting(name string) int {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.names[name]
	if s == nil {
		return 0
	}
	return len(s.waiting) + len(s.doubted)
}

// AwaitLost returns when the lost numbers that are known are recorded.
func (n *Node) AwaitLost() {
	m := &n.identities
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.names {
		for len(s.lost) > 0 {
			m.mu.Unlock()
			n.recordLost(context.Background(), s)
			m.mu.Lock()
		}
	}
}
