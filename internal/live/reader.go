package live

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Start runs a query of whole documents. It calls seen with the snapshot that the run reads,
// before the first row. The run also finds documents that have expired and are not deleted
// yet, as their deletion comes later. It enters the gate of the database by itself.
type Start func(ctx context.Context, q *query.Query, seen func(storage.Reader) error) (*exec.Run, error)

// Reader reads one live query. It is used by one goroutine at a time, outside the gate.
type Reader struct {
	queries *Queries
	watch   *watch
	start   Start
	filter  *exec.Filter
	feed    *feed.Feed

	run      *exec.Run           // of the answers at the beginning; nil later
	silent   bool                // the run only lists the members
	moment   time.Time           // of the run; answers that have expired by then are no events
	members  map[string]struct{} // folded IDs of the answers, while the reader is alone; nil if they are not known
	claimed  int                 // bytes of members
	catching bool                // events are told again perhaps: see Event.CatchingUp
	pending  []Event             // come next
	few      [2]Event            // holds pending when there are no more: an event, and Current
	expired  int                 // tries to join that have read nothing, one after the other, before the snapshot expired
	taken    int                 // bytes of those that are from the queue
	told     uint64              // etag of the last Current that was returned
	open     bool                // there were events since the last Current
	joined   bool                // the dispatcher has served it since; the rest is from the queue
	ended    error

	mu       sync.Mutex
	queue    []*Event // what the dispatcher has sent. Guarded by mu, as all below.
	queued   int      // bytes of the queue
	full     bool     // the queue was full, and is empty since
	failed   error
	panicked any
	ready    chan struct{} // holds one when there is something to look at
}

// Open opens a reader of a query that [Check] accepts, from the beginning for the empty
// token, and otherwise after it. The caller must close it.
func (h *Queries) Open(ctx context.Context, q *query.Query, token string, start Start) (_ *Reader, err error) {
	w, err := h.pin(q)
	if err != nil {
		return nil, err
	}
	r := &Reader{queries: h, watch: w, start: start, ready: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	since := feed.Now
	if token != "" {
		if since, err = parseToken(w, token); err != nil {
			return nil, err
		}
	}
	if r.filter, err = exec.NewFilter(h.env, q); err != nil {
		return nil, err
	}
	if err = h.env.Enter(); err != nil {
		return nil, err
	}
	r.feed, err = h.feeds.Open(ctx, since, feed.Filter{Documents: true, States: true, Choose: r.chooses})
	h.env.Exit()
	if err != nil {
		return nil, err
	}
	if r.told = r.feed.Position(); token != "" {
		r.catching = true
		return r, nil
	}
	return r, r.list(ctx, false)
}

// list begins to run the query. If silent, the rows are no events.
func (r *Reader) list(ctx context.Context, silent bool) error {
	plain := *r.watch.query
	plain.Select = nil // the filter projects
	moment := r.queries.feeds.Docs.Moment()
	var newest uint64
	run, err := r.start(ctx, &plain, func(snapshot storage.Reader) (err error) {
		newest, _, err = r.queries.feeds.NewestIn(snapshot)
		return err
	})
	if err != nil {
		return err
	}
	r.run, r.silent, r.moment, r.members = run, silent, moment, make(map[string]struct{})
	if !silent {
		r.feed.Skip(newest) // the answers are of there
	}
	return nil
}

// chooses reports whether the feed of a reader that is alone needs a change. While it is
// not known what the caller has, any document may be one that has left the answers.
func (r *Reader) chooses(collection, folded []byte) bool {
	if r.catching || r.members == nil || r.watch.collection == "" || docs.SameCollection(collection, r.watch.collection) {
		return true
	}
	_, is := r.members[string(folded)]
	return is
}

// Next returns the next event, and waits for it. It is valid for as long as the caller
// wants. After an error it returns the error again.
func (r *Reader) Next(ctx context.Context) (Event, error) {
	for r.ended == nil {
		if err := ctx.Err(); err != nil {
			return Event{}, err
		}
		if len(r.pending) > 0 {
			e := r.pending[0]
			r.pending[0] = Event{}
			if r.pending = r.pending[1:]; e.Kind == Current {
				r.told = e.Etag
				r.feed.Skip(e.Etag)
				e.Token = r.queries.tokenOf(r.watch, e.Etag)
			}
			return e, nil
		}
		var err error
		switch {
		case r.run != nil:
			err = r.nextRow(ctx)
		case r.joined:
			err = r.receive(ctx)
		default:
			err = r.catchUp(ctx)
		}
		if err != nil && ctx.Err() == nil {
			r.ended = err
		}
		if err != nil {
			return Event{}, err
		}
	}
	return Event{}, r.ended
}

// nextRow takes the next answer at the beginning.
func (r *Reader) nextRow(ctx context.Context) error {
	row, err := r.run.Next(ctx)
	if err != nil {
		return err
	}
	if row == nil {
		r.run.Close()
		if r.run = nil; !r.silent {
			r.pending = append(r.pending[:0], Event{Kind: Current, Etag: r.feed.Position()})
		}
		return nil
	}
	d := row.Document
	if err := r.remember(d.FoldedID()); err != nil || r.silent || d.IsGone(r.moment) {
		return err
	}
	e, err := r.queries.eventOf(Enter, r.filter, ctx, d)
	r.pending = append(r.pending[:0], e)
	return err
}

// remember notes that a document is an answer.
func (r *Reader) remember(folded string) error {
	if _, is := r.members[folded]; is {
		return nil
	}
	n := bytesOf(folded, 1)
	if err := r.queries.memory.claim(n); err != nil {
		return err
	}
	r.claimed += n
	r.members[folded] = struct{}{}
	return nil
}

// forget notes that a document is no answer, and reports whether it was one.
func (r *Reader) forget(folded string) (was bool) {
	if _, was = r.members[folded]; was {
		delete(r.members, folded)
		n := bytesOf(folded, 1)
		r.queries.memory.release(n)
		r.claimed -= n
	}
	return was
}

// forgetAll forgets which documents are answers.
func (r *Reader) forgetAll() {
	r.queries.memory.release(r.claimed)
	r.claimed, r.members = 0, nil
}

// catchUp reads the next changes alone, and joins the dispatcher when there are no more.
func (r *Reader) catchUp(ctx context.Context) error {
	more, err := r.readChanges(ctx)
	if err != nil || more {
		return err
	}
	position := r.feed.Position()
	how, err := r.queries.join(ctx, r)
	switch {
	case err != nil:
	case how == needsMembers:
		err = r.list(ctx, true)
	case how != hasExpired || r.feed.Position() != position:
		r.expired = 0
	default:
		if r.expired++; r.expired == fruitless {
			err = storage.ErrSnapshotExpired
		}
	}
	r.joined = how == isJoined
	return err
}

// readChanges appends to pending the events of the next batch of changes.
func (r *Reader) readChanges(ctx context.Context) (more bool, err error) {
	if err := r.queries.env.Enter(); err != nil {
		return false, err
	}
	defer r.queries.env.Exit()
	changes, more, err := r.feed.Read()
	if err != nil {
		return false, err
	}
	return more, r.convert(ctx, changes)
}

// convert appends to pending the events of changes.
func (r *Reader) convert(ctx context.Context, changes []feed.Change) error {
	for i := range changes {
		c := &changes[i]
		folded := r.queries.env.Rules.Fold(c.ID)
		is := false
		if !c.Deleted && !c.Expired {
			var err error
			if is, err = r.filter.Match(ctx, c.Document); err != nil {
				return err
			}
		}
		was := false
		if !is {
			was = r.forget(folded)
		} else if _, was = r.members[folded]; !was && r.members != nil {
			if err := r.remember(folded); err != nil {
				return err
			}
		}
		e := Event{Kind: Leave, ID: c.ID, Node: c.Node, Etag: c.Etag}
		switch {
		case is:
			kind := Enter
			if was && !r.catching {
				kind = Change
			}
			var err error
			if e, err = r.queries.eventOf(kind, r.filter, ctx, c.Document); err != nil {
				return err
			}
		case !was && !r.catching:
			continue
		}
		e.CatchingUp, r.open = r.catching, true
		r.pending = append(r.pending, e)
	}
	return nil
}

// bytesIn returns about how many bytes events take.
func bytesIn(all []Event) (n int) {
	for i := range all {
		n += max(all[i].bytes, documentBytes)
	}
	return n
}

// eventOf returns the event of a document that is an answer.
func (h *Queries) eventOf(kind Kind, filter *exec.Filter, ctx context.Context, d *docs.Document) (e Event, err error) {
	e = Event{Kind: kind, ID: d.ID(), Document: d}
	e.Node, e.Etag = d.Version()
	if e.Row, err = filter.Project(ctx, d); err != nil {
		return e, err
	}
	e.bytes = len(d.JSON()) + len(e.Row) + documentBytes
	return e, nil
}

// receive takes what the dispatcher has sent. It waits for it.
func (r *Reader) receive(ctx context.Context) error {
	r.queries.memory.release(r.taken) // the caller has had them
	r.taken = 0
	for {
		r.mu.Lock()
		queue, full, failed, panicked := r.queue, r.full, r.failed, r.panicked
		r.taken = r.queued
		r.queue, r.queued, r.full = nil, 0, false
		r.mu.Unlock()
		switch {
		case panicked != nil:
			panic(panicked)
		case failed != nil:
			return failed
		case full:
			r.joined, r.catching = false, true
			return nil
		case len(queue) > 0:
			r.pending = r.few[:0]
			for _, e := range queue {
				r.pending = append(r.pending, *e)
			}
			return nil
		}
		select {
		case <-r.ready:
		case <-ctx.Done():
			return ctx.Err()
		case <-r.queries.ctx.Done():
			return errs.ErrClosed
		}
	}
}

// push sends an event to the reader. It reports whether there was room for it. If not, what
// has not been taken yet is dropped: the reader will read the changes itself.
func (r *Reader) push(e *Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) < knobs.LiveQueued && r.queued+e.bytes <= max(maxQueuedBytes, e.bytes) && r.queries.memory.claim(e.bytes) == nil {
		r.queue = append(r.queue, e)
		if r.queued += e.bytes; e.Kind == Current || len(r.queue) == knobs.LiveQueued/2 {
			r.notify()
		}
		return true
	}
	r.queries.memory.release(r.queued)
	r.queue, r.queued, r.full = nil, 0, true
	r.notify()
	return false
}

// fail ends the reader with an error.
func (r *Reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = err
	r.notify()
}

// relay ends the reader with a panic.
func (r *Reader) relay(value any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.panicked = value
	r.notify()
}

func (r *Reader) notify() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// Close closes the reader, and gives back what it holds.
func (r *Reader) Close() {
	h := r.queries
	h.mu.Lock()
	delete(r.watch.readers, r)
	h.mu.Unlock()
	h.unpin(r.watch)
	if r.run != nil {
		r.run.Close()
	}
	if r.feed != nil {
		r.feed.Close()
	}
	r.forgetAll()
	r.mu.Lock()
	defer r.mu.Unlock()
	h.memory.release(r.queued + r.taken)
	r.queue, r.queued, r.taken = nil, 0, 0
}

// how is how a try to join has ended.
type how int

const (
	isAlone      how = iota // there are more changes that the reader lacks
	isJoined                // the dispatcher serves it
	needsMembers            // the members of the query are not known
	hasExpired              // the snapshot has expired before the reader had read its changes
)

// join is a reader that waits for the dispatcher, which meanwhile has it for its own.
type join struct {
	r *Reader

	// invited says that it has waited since before the snapshot of the round. A reader that
	// came later may have read changes that the snapshot does not show, and would be told of
	// them again. Guarded by Queries.mu.
	invited bool

	how  how
	err  error
	done chan struct{}
}

// join has the dispatcher serve the reader.
func (h *Queries) join(ctx context.Context, r *Reader) (how, error) {
	j := &join{r: r, done: make(chan struct{})}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return isAlone, errs.ErrClosed
	}
	h.joins = append(h.joins, j)
	if !h.running {
		h.running = true
		h.group.Go(h.dispatch)
	}
	h.mu.Unlock()
	h.nudge()
	select {
	case <-j.done:
		return j.how, j.err
	case <-ctx.Done():
	}
	h.mu.Lock()
	at := slices.Index(h.joins, j)
	if at >= 0 {
		h.joins = slices.Delete(h.joins, at, at+1)
	}
	h.mu.Unlock()
	if at < 0 {
		<-j.done // the dispatcher is about to answer
	}
	return j.how, errors.Join(ctx.Err(), j.err)
}
