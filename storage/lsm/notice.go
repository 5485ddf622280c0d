package lsm

import (
	"fmt"
	"sync/atomic"

	"github.com/jaydb/jay/storage"
)

// notice wakes those that wait for the next commit that readers see. A commit for
// which none waits costs one atomic load.
type notice struct {
	next atomic.Pointer[chan struct{}] // nil if none waits
}

// wait returns the channel that the next send closes.
func (n *notice) wait() <-chan struct{} {
	for {
		if next := n.next.Load(); next != nil {
			return *next
		}
		next := make(chan struct{})
		if n.next.CompareAndSwap(nil, &next) {
			return next
		}
	}
}

// send wakes those that wait. It is called after readers can see the commit:
// who called wait before has then been woken, and who calls it later sees the commit.
func (n *notice) send() {
	if n.next.Load() == nil {
		return
	}
	if next := n.next.Swap(nil); next != nil {
		close(*next)
	}
}

// NextCommit implements storage.Engine.
func (e *Engine) NextCommit() (<-chan struct{}, error) {
	next := e.notice.wait()
	if failure := e.failure.Load(); failure != nil { // after wait: fail sends after it has set failure
		return nil, fmt.Errorf("%w: %w", storage.ErrFailed, *failure)
	}
	return next, nil
}
