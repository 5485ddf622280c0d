package sqlkv

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/jaydb/jay/storage"
)

// member is a call of Update, or of Sync, which waits for the leader.
type member struct {
	sync bool
	fn   func(storage.Tx) error
	keys [][]byte // that fn will probably read

	answer chan answer // gets one

	mu     sync.Mutex
	phase  phase              // Guarded by mu.
	left   bool               // its caller has returned, or will: the function must not run again. Guarded by mu.
	stop   context.CancelFunc // ends the reads of the function that runs. Guarded by mu.
	result answer             // of the run. Only the leader uses it.
	tx     *transaction       // of the run. Only the leader uses it.
}

// phase is how far a member has come.
type phase uint8

const (
	queued     phase = iota // waits for the leader
	running                 // its function runs
	ran                     // and has returned
	committing              // its group is being committed
)

// answer is what a call returns.
type answer struct {
	err      error
	panicked any  // what its function has panicked with
	exited   bool // its function has called runtime.Goexit
}

// returns does in the caller's goroutine what the function has done.
func (a answer) returns() error {
	if a.panicked != nil {
		panic(a.panicked)
	}
	if a.exited {
		runtime.Goexit()
	}
	return a.err
}

// newMember returns a member for a call.
func newMember(sync bool, fn func(storage.Tx) error, keys [][]byte) *member {
	return &member{sync: sync, fn: fn, keys: keys, answer: make(chan answer, 1)}
}

// wait waits for the answer, or until the context ends.
func (m *member) wait(ctx context.Context) error {
	select {
	case a := <-m.answer:
		return a.returns()
	case <-ctx.Done():
	}
	m.mu.Lock()
	at := m.phase
	m.left = true // if its group must run again, it runs without it: the function uses what belongs to the caller
	if at == running {
		m.stop()
	}
	m.mu.Unlock()
	switch at {
	case running: // the function may use what belongs to the caller
		a := <-m.answer
		if a.panicked != nil || a.exited {
			return a.returns()
		}
	case committing:
		select {
		case a := <-m.answer:
			return a.returns()
		default:
			return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, ctx.Err())
		}
	}
	return ctx.Err()
}

// moves goes to a phase; stop ends the reads of one that runs. It reports false if the caller has left.
func (m *member) moves(to phase, stop context.CancelFunc) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left {
		return false
	}
	m.phase, m.stop = to, stop
	return true
}

// returned notes that the function has returned. If the caller has left meanwhile, it gets its
// answer, and returned reports false.
func (m *member) returned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phase, m.stop = ran, nil
	if m.left {
		m.answer <- m.result
	}
	return !m.left
}

// ends answers the caller, after all that waits for the decision of the run was told.
func (m *member) ends(a answer) {
	if m.tx != nil {
		m.tx.decided()
	}
	m.answer <- a
}

// run calls the function in a goroutine of its own, as it may end that.
func (m *member) run(tx *transaction) (a answer) {
	done := make(chan struct{})
	go func() {
		a.exited = true
		defer func() {
			tx.over = true
			if p := recover(); p != nil {
				a = answer{panicked: p}
				tx.engine.log.Error("jay: a transaction's function panics", "panic", p, "stack", string(debug.Stack()))
			}
			close(done)
		}()
		err := m.fn(tx)
		a = answer{err: err}
	}()
	<-done
	return a
}

// line is the queue of members.
type line struct {
	mu      sync.Mutex
	waiting []*member // Guarded by mu.
	led     bool      // there is a leader. Guarded by mu.
}

// push appends m, and reports whether there is no leader, so that one must begin.
func (l *line) push(m *member) (lead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, m)
	lead = !l.led
	l.led = true
	return lead
}

// pop returns the next member, or nil.
func (l *line) pop() *member {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil
	}
	m := l.waiting[0]
	l.waiting[0] = nil
	if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	return m
}

// pushFront puts members back, before all others.
func (l *line) pushFront(members ...*member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range members {
		m.moves(queued, nil)
	}
	l.waiting = append(members[:len(members):len(members)], l.waiting...)
}

// first returns up to n members that wait, in their order.
func (l *line) first(n int) []*member {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.waiting[:min(n, len(l.waiting))])
}

// length returns how many members wait.
func (l *line) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// rest ends the leader if no member waits.
func (l *line) rest() (ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 {
		return false
	}
	l.led = false
	return true
}
