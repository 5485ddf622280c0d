package live

import (
	"errors"
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/relay"
	"github.com/jaydb/jay/storage"
)

// dispatch serves the readers that have joined until there are none.
func (h *Queries) dispatch() {
	var err error
	var ending relay.Ending
	defer func() {
		if ending.Returned() && err == nil {
			return // it has ended as there is nothing to do
		}
		h.endAll(err, ending.Panic())
	}()
	ending.Watch(func() { err = h.serve() })
}

// serve reads the feed until there is nothing to do, which is no error.
func (h *Queries) serve() error {
	f, err := h.open()
	if err != nil {
		return err
	}
	defer f.Close()
	var next <-chan struct{}
	expired, reached := 0, uint64(0) // rounds that have read nothing before their snapshot expired, and where
	for {
		if next == nil { // before the snapshot, so that no later commit is missed
			if next, _, err = h.feeds.Hub.Await(); err != nil {
				return err
			}
		}
		begun := time.Now()
		err := h.round(f)
		took := time.Since(begun)
		if isExpired(err) {
			if f.Position() != reached {
				expired, reached = 0, f.Position()
			}
			if expired++; expired == fruitless {
				return err
			}
			if h.rest() {
				return nil
			}
			continue
		}
		expired = 0
		if err != nil || h.rest() {
			return err
		}
		select {
		case <-next:
			next = nil
			h.breathe(restRounds * took)
		case <-h.wake:
		case <-h.ctx.Done():
			return errs.ErrClosed
		}
	}
}

// breathe leaves the processors to the writers for a time, so that a round has the changes of many commits: each has a
// snapshot and iterators. It ends early when a reader wants to join.
func (h *Queries) breathe(pause time.Duration) {
	timer := time.NewTimer(min(pause, longestRest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.wake:
	case <-h.ctx.Done():
	}
}

// open opens the feed of the dispatcher.
func (h *Queries) open() (*feed.Feed, error) {
	if err := h.env.Enter(); err != nil {
		return nil, err
	}
	defer h.env.Exit()
	return h.feeds.Open(h.ctx, feed.Now, feed.Filter{Documents: true, States: true, Choose: h.chooses})
}

// chooses reports whether a change can matter to a watch.
func (h *Queries) chooses(collection, folded []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.finder.watchesOf(collection) || len(h.members.of[string(folded)]) > 0
}

// rest ends the dispatcher if it has nothing to do, and reports whether it has.
func (h *Queries) rest() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.joins) > 0 || h.ready > 0 {
		return false
	}
	h.running = false
	return true
}

// round reads the changes of one snapshot to the newest, and then lets readers join.
func (h *Queries) round(f *feed.Feed) (err error) {
	if err := h.env.Enter(); err != nil {
		return err
	}
	defer h.env.Exit()
	h.invite() // before the snapshot: see join.invited
	snapshot := h.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	for {
		changes, more, err := f.ReadIn(snapshot)
		if err != nil {
			return err
		}
		if err := h.ctx.Err(); err != nil {
			return errs.ErrClosed
		}
		h.apply(changes)
		if !more {
			break
		}
	}
	h.conclude(f.Position())
	for j := h.nextJoin(); j != nil; j = h.nextJoin() {
		h.answer(j, snapshot)
	}
	return nil
}

// invite lets those who wait to join do so at the end of the round.
func (h *Queries) invite() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, j := range h.joins {
		j.invited = true
	}
}

// nextJoin returns a reader that is invited to join, or nil.
func (h *Queries) nextJoin() *join {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.joins) == 0 || !h.joins[0].invited {
		return nil
	}
	j := h.joins[0]
	h.joins[0] = nil
	h.joins = h.joins[1:]
	return j
}

// answer lets a reader join, or says why not. A panic does not leave it waiting.
func (h *Queries) answer(j *join, snapshot storage.Reader) {
	defer close(j.done)
	j.err = errPanicked
	if j.how, j.err = h.admit(j.r, snapshot); isExpired(j.err) {
		j.how, j.err = hasExpired, nil
	}
}

// errPanicked is why readers end that have not joined yet when the dispatcher panics.
var errPanicked = errors.New("the dispatcher of live queries has panicked")

// apply sends the events of changes.
func (h *Queries) apply(changes []feed.Change) {
	if len(changes) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range changes {
		h.change(&changes[i])
	}
}

// change sends the events of one change, and notes of which watches the document is a
// member now. h.mu is held.
func (h *Queries) change(c *feed.Change) {
	h.number++
	folded := h.env.Rules.Fold(c.ID)
	before := h.members.of[folded]
	for _, w := range before {
		w.was = h.number
	}
	now := h.matched[:0]
	if !c.Deleted && !c.Expired {
		h.finder.find(h.env, c.Document, func(w *watch) {
			if w.tried == h.number {
				return
			}
			w.tried = h.number
			is, err := w.decided, error(nil)
			if !is {
				is, err = w.filter.Match(h.ctx, c.Document)
			}
			if err != nil {
				h.broken = append(h.broken, broken{w, err})
			} else if is {
				w.is = h.number
				now = append(now, w)
			}
		})
	}
	h.matched = now
	h.mend()
	before = h.members.of[folded] // mend may have removed some
	same := len(now) == len(before)
	for _, w := range before {
		if w.is != h.number || !w.ready {
			same = false
		}
		if w.is != h.number && w.ready {
			h.send(w, &Event{Kind: Leave, ID: c.ID, Node: c.Node, Etag: c.Etag, bytes: documentBytes})
		}
	}
	for _, w := range now {
		kind := Enter
		if w.was == h.number {
			kind = Change
		}
		e, err := h.eventOf(kind, w.filter, h.ctx, c.Document)
		if err != nil {
			h.broken = append(h.broken, broken{w, err})
			continue
		}
		h.send(w, &e)
	}
	if !same {
		if err := h.members.set(folded, now); err != nil {
			for _, w := range now {
				if w.was != h.number {
					h.broken = append(h.broken, broken{w, err})
				}
			}
			h.mend()
			h.keep(folded)
		}
	}
	h.mend()
	clear(h.matched)
}

// keep takes those watches out of the members of a document that it has left, when there
// was no memory to add others. h.mu is held.
func (h *Queries) keep(folded string) {
	var still []*watch
	for _, w := range h.members.of[folded] {
		if w.ready && w.is == h.number {
			still = append(still, w)
		}
	}
	_ = h.members.set(folded, still) // takes no memory
}

// mend ends the watches that cannot go on. h.mu is held.
func (h *Queries) mend() {
	for _, b := range h.broken {
		h.fail(b.w, b.err)
	}
	h.broken = h.broken[:0]
}

// send sends an event to the readers of a watch. h.mu is held.
func (h *Queries) send(w *watch, e *Event) {
	if !w.touched {
		w.touched = true
		h.touched = append(h.touched, w)
	}
	for r := range w.readers {
		if !r.push(e) {
			delete(w.readers, r)
		}
	}
}

// conclude sends Current to the readers that have had events since the last one and, now
// and then, to all others.
func (h *Queries) conclude(position uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	current := &Event{Kind: Current, Etag: position}
	for _, w := range h.touched {
		h.send(w, current)
	}
	if now := time.Now(); position >= h.told+passedEtags && now.Sub(h.toldAt) >= passedTime {
		h.told, h.toldAt = position, now
		for _, w := range h.watches {
			if w.ready && !w.touched {
				h.send(w, current)
			}
		}
	}
	for _, w := range h.touched {
		w.touched = false
	}
	clear(h.touched)
	h.touched = h.touched[:0]
}

// admit lets a reader join that has seen the changes before, all but a few. The dispatcher
// has seen those of the snapshot.
func (h *Queries) admit(r *Reader, snapshot storage.Reader) (how, error) {
	for range joinBatches {
		if bytesIn(r.pending) > maxQueuedBytes {
			break // it reads the rest alone, when its caller has taken these
		}
		changes, more, err := r.feed.ReadIn(snapshot)
		if err == nil {
			err = r.convert(h.ctx, changes)
		}
		if err != nil {
			return isAlone, err
		}
		if !more {
			return h.attach(r)
		}
	}
	return isAlone, nil
}

// attach adds a reader that has come to the place of the dispatcher.
func (h *Queries) attach(r *Reader) (how, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := r.watch
	switch {
	case w.ended != nil:
		return isAlone, w.ended
	case !w.ready && r.members == nil:
		return needsMembers, nil
	case !w.ready:
		w.ready = true
		h.ready++
		h.finder.add(w)
		for folded := range r.members {
			r.forget(folded) // so that a member is not paid for twice
			if err := h.members.add(folded, w); err != nil {
				h.fail(w, err)
				return isAlone, err
			}
		}
	}
	r.forgetAll()
	if r.open || r.catching {
		r.pending = append(r.pending, Event{Kind: Current, Etag: r.feed.Position()})
	}
	r.catching, r.open = false, false
	w.readers[r] = struct{}{}
	return isJoined, nil
}

// endAll ends all readers that have joined, or are about to, and the dispatcher.
func (h *Queries) endAll(err error, panicked any) {
	if err == nil {
		err = errPanicked
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = false
	for _, w := range h.watches {
		for r := range w.readers {
			if panicked != nil {
				r.relay(panicked)
			}
		}
		h.fail(w, err)
	}
	for _, j := range h.joins {
		j.err = err
		close(j.done)
	}
	h.joins, h.touched, h.broken = nil, nil, nil
	h.members.sweep()
}
