package env

import (
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/invariants"
)

// Enter begins a call, or returns ErrClosed. Exit ends it. User code must not run
// in between: Close waits for the calls inside.
func (e *Env) Enter() error {
	if !e.gate.enter() {
		return errs.ErrClosed
	}
	return nil
}

// Exit ends a call that Enter began.
func (e *Env) Exit() { e.gate.exit() }

// callGate is the lifecycle lock: it counts the calls inside a database, so that
// Close can refuse new ones and wait for those. Its zero value is open.
type callGate struct {
	state atomic.Int64 // calls inside, and gateClosed
	once  sync.Once
	empty chan struct{} // closed when the gate is closed and no call is inside. Made by init.
}

// gateClosed is far above any number of calls.
const gateClosed = 1 << 62

func (g *callGate) init() { g.empty = make(chan struct{}) }

// enter begins a call, or reports false if the gate is closed. exit must follow if
// it reports true.
func (g *callGate) enter() bool {
	if g.state.Add(1) < gateClosed {
		return true
	}
	g.exit()
	return false
}

// emptied is called when the gate is closed and the last call has ended.
func (g *callGate) emptied() { g.once.Do(func() { close(g.empty) }) }

// exit ends a call.
func (g *callGate) exit() {
	state := g.state.Add(-1)
	if state == gateClosed {
		g.emptied()
	}
	if invariants.Enabled && (state < 0 || state >= gateClosed/2 && state < gateClosed) {
		invariants.Broken("a call has ended that was not inside: the gate is at %d", state)
	}
}

// CloseGate refuses new calls, and returns when those inside have ended.
func (e *Env) CloseGate() {
	e.gate.close()
	<-e.gate.empty
}

// close refuses new calls. The channel empty is closed when those inside have
// ended. It may be called once.
func (g *callGate) close() {
	if g.state.Add(gateClosed) == gateClosed {
		g.emptied()
	}
}
