package sqlkv

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/jaydb/jay/storage"
)

// Update implements storage.Engine.
func (e *Engine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.readOnly {
		return storage.ErrReadOnly
	}
	return e.update(ctx, newMember(sync, fn, storage.Expected(ctx)))
}

// update has the leader commit a call, and waits for the answer.
func (e *Engine) update(ctx context.Context, m *member) error {
	if e.line.push(m) {
		e.workers.Go(e.lead)
	}
	return m.wait(ctx)
}

// Sync implements storage.Engine.
func (e *Engine) Sync(ctx context.Context) error {
	if e.readOnly {
		return nil // it has committed nothing
	}
	err := ctx.Err()
	if err == nil { // it reads no key, whatever ctx expects of another transaction
		err = e.update(ctx, newMember(true, func(storage.Tx) error { return nil }, nil))
	}
	if err != nil && !errors.Is(err, storage.ErrUnknownOutcome) {
		err = fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, err)
	}
	return err
}

// StartSequence implements storage.Engine.
func (e *Engine) StartSequence(n uint64) { raise(&e.sequence, n) }

// A group that meets a conflict so often runs while it holds the lock; and after so many refusals
// by the server, its calls fail.
const (
	lockedAttempt = 2
	maxAttempts   = 10
)

// lead commits groups until no member waits.
func (e *Engine) lead() {
	for e.doubt != nil && e.ctx.Err() == nil || !e.line.rest() {
		e.awaitFollowers()
		if e.expected = e.commitGroup(); e.doubt != nil {
			e.pause()
		}
	}
}

// pause waits before the server is asked again.
func (e *Engine) pause() {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-e.ctx.Done():
	}
}

// maxCommitDelay is how long the leader waits for callers that have just been answered: goroutines
// that write one document after another come back at once, and share the next commit.
const maxCommitDelay = 200 * time.Microsecond

func (e *Engine) awaitFollowers() {
	if e.line.length() >= e.expected {
		return
	}
	for until := time.Now().Add(maxCommitDelay); e.line.length() < e.expected && time.Now().Before(until); {
		runtime.Gosched()
	}
}

// errAgain is returned for a group whose functions must run again: nothing was committed.
var errAgain = errors.New("run again")

// commitGroup takes members from the queue, commits them and answers them. It returns how many they were.
func (e *Engine) commitGroup() int {
	var members []*member
	losses := 0
	for attempt := range maxAttempts {
		g, err := e.openGroup(attempt >= lockedAttempt)
		if err == nil {
			if members, err = g.runAll(members, attempt == 0); err == nil {
				err = g.commit()
			}
		}
		switch {
		case err == nil:
			e.sequence.Store(max(e.sequence.Load(), g.sequence))
			e.learn(g)
			for _, m := range g.members {
				m.ends(m.result)
			}
			e.finish()
			return len(g.members)
		case err == errAgain || again(err):
			continue
		case isOfServer(err) && lost(err):
			e.drop()
			if losses++; losses == 1 && g != nil {
				continue // the connection had been lost before, such as when the server was restarted
			}
		}
		e.refuse(members, e.refusal(err))
		return 0
	}
	e.refuse(members, &Error{Address: e.address.String(), Kind: storage.ErrConflict, Do: "try again"})
	return 0
}

// learn notes what a group has read, for the next ones.
func (e *Engine) learn(g *group) {
	if len(g.staged) == 0 {
		return
	}
	e.asked = g.asked
	for key, c := range g.staged {
		if c.add != nil {
			g.reads[key] = struct{}{} // the numbers that it has added to
		}
	}
	e.hot.note(g.reads)
}

// isOfServer reports whether the server, or the network, caused the error.
func isOfServer(err error) bool {
	explained := errors.As(err, new(*Error))
	format := errors.As(err, new(*storage.FormatError))
	return !explained && !format && !errors.Is(err, storage.ErrUnknownOutcome)
}

// refusal returns the error of calls whose group was not committed.
func (e *Engine) refusal(err error) error {
	if isOfServer(err) {
		return e.address.explain(err)
	}
	return err
}

// refuse answers members with an error; without any, all that wait in the queue.
func (e *Engine) refuse(members []*member, err error) {
	e.finish()
	if len(members) == 0 {
		for m := e.line.pop(); m != nil; m = e.line.pop() {
			members = append(members, m)
		}
	}
	for _, m := range members {
		switch {
		case m.result.panicked != nil || m.result.exited:
			m.ends(m.result)
		case errors.Is(err, storage.ErrUnknownOutcome):
			m.answer <- answer{err: err} // it is decided later
		default:
			m.ends(answer{err: err})
		}
	}
}

// runAll runs the functions of members, and then of those in the queue that can share their commit,
// if others may join. It returns all that are to be answered.
func (g *group) runAll(members []*member, join bool) ([]*member, error) {
	for i := 0; ; i++ {
		if i == len(members) {
			if !join || i >= maxMembers || g.bytes >= maxGroupBytes || g.begun && !g.locked && len(g.staged) == 0 {
				// Others may have committed since an unlocked group began. If it stages nothing, it does not find out, and a call that came
				// later would be answered by an older state than its caller has seen.
				return members, nil
			}
			m := g.engine.line.pop()
			if m == nil {
				return members, nil
			}
			members = append(members, m)
		}
		m := members[i]
		if err := g.readAhead(members[i:], join); err != nil {
			return members, err
		}
		switch err := g.run(m); {
		case err == errFirst:
			g.engine.line.pushFront(slices.Clone(members[i:])...)
			return members[:i], nil
		case err == errGone:
			members = slices.Delete(members, i, i+1)
			i--
		case err != nil:
			return members, err
		}
	}
}

// errGone is returned for a member whose caller has left.
var errGone = errors.New("the caller has left")

// run runs the function of a member, and stages what it did.
func (g *group) run(m *member) error {
	ctx, cancel := g.engine.bounded()
	defer cancel()
	if m.tx != nil {
		m.tx.decided()
	}
	if !m.moves(running, cancel) {
		return errGone
	}
	tx := &transaction{engine: g.engine, group: g, ctx: ctx, staged: make(map[string]change), sequence: g.sequence}
	m.tx = tx
	m.result = m.run(tx)
	clean := m.result == answer{}
	if clean {
		m.result.err = tx.check()
	}
	switch stays := m.returned(); {
	case !stays && tx.failed != nil: // its reads were stopped, and with them the connection
		tx.decided()
		g.engine.drop()
		return errAgain
	case !stays:
		tx.decided()
		return errGone
	case tx.failed != nil:
		return tx.failed
	case tx.first:
		return errFirst
	}
	g.members = append(g.members, m)
	if clean && m.result.err == nil {
		g.join(tx)
	}
	return nil
}
