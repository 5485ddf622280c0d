package lsm

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// durability tracks which commits are on disk, and keeps the newest state of
// which that is known.
//
// Pebble shows a commit before it is synced. While a commit is in doubt, a reader
// that must not see what a crash can undo reads a view, a snapshot taken right
// after the last durable commit: it neither waits nor sees too much. If no commit
// is in doubt, it reads Pebble's newest state, at the cost of two atomic loads.
//
// Commits are numbered from 1 in the order in which Pebble gets them. A sync
// makes all commits up to its own durable.
type durability struct {
	keepViews bool          // Options.DurableReads
	applying  atomic.Uint64 // newest commit that a reader of Pebble's newest state may see
	promised  atomic.Uint64 // newest commit whose call may have returned early, maybe before applying shows it
	durable   atomic.Uint64 // every commit up to this one is on disk

	mu       sync.Mutex
	current  *view     // state after the commit durable; nil before the first commit. Guarded by mu.
	unsynced []*view   // of commits that wait for their sync, oldest first. Guarded by mu.
	unused   []*view   // without users, to be closed, oldest first. Guarded by mu.
	deciders []decider // of commits that are not durable yet, oldest first. Guarded by mu.
}

// view is the state after one commit. The last user closes it.
type view struct {
	snapshot *pebble.Snapshot
	commit   uint64
	users    int // Guarded by durability.mu.
}

// decider is called when a commit is durable.
type decider struct {
	commit uint64
	call   storage.Decider
}

// allDurable reports whether every commit that can be seen is on disk. A reader
// asks after it has read: if the answer is true, what it read is durable.
func (d *durability) allDurable() bool { return d.applying.Load() <= d.durable.Load() }

// begin is called by the leader before it hands a commit to Pebble.
func (d *durability) begin(db *pebble.DB, commit uint64) {
	if d.keepViews {
		d.mu.Lock()
		if d.current == nil { // the first commit: the state before it is durable
			d.current = &view{snapshot: db.NewSnapshot(), commit: d.durable.Load(), users: 1}
		}
		d.mu.Unlock()
	}
	d.applying.Store(commit)
}

// applied is called by the leader when Pebble has a commit that will be synced,
// before it hands over the next one.
func (d *durability) applied(db *pebble.DB, commit uint64) {
	if !d.keepViews {
		return
	}
	v := &view{snapshot: db.NewSnapshot(), commit: commit, users: 1}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unsynced = append(d.unsynced, v)
}

// onDurable calls c when commit is durable: now, or on another goroutine.
func (d *durability) onDurable(commit uint64, c storage.Decider) {
	d.mu.Lock()
	if commit > d.durable.Load() {
		d.deciders = append(d.deciders, decider{commit, c})
		c = nil
	}
	d.mu.Unlock()
	if c != nil {
		c.Decided()
	}
}

// reached notes that all commits up to this one are on disk. closeUnused should
// follow when the calls that wait for the commit have been answered.
func (d *durability) reached(commit uint64) {
	d.mu.Lock()
	if commit <= d.durable.Load() {
		d.mu.Unlock()
		return
	}
	d.durable.Store(commit)
	for len(d.unsynced) > 0 && d.unsynced[0].commit <= commit {
		d.releaseLocked(d.current)
		d.current = d.unsynced[0]
		d.unsynced[0] = nil
		d.unsynced = d.unsynced[1:]
	}
	var decided []decider
	for len(d.deciders) > 0 && d.deciders[0].commit <= commit {
		decided = append(decided, d.deciders[0])
		d.deciders[0] = decider{}
		d.deciders = d.deciders[1:]
	}
	d.mu.Unlock()

	// A decider may take locks: d.mu is not held.
	for _, one := range decided {
		one.call.Decided()
	}
}

// acquire returns the view of the newest durable state, to be released, or nil
// if there has been no commit: Pebble's newest state is durable then.
func (d *durability) acquire() *view {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil {
		d.current.users++
	}
	return d.current
}

// syncing reports whether a sync of the newest commits is under way.
func (d *durability) syncing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.unsynced)
	return n > 0 && d.unsynced[n-1].commit == d.applying.Load()
}

// release gives a view back. An unused one is closed at once: its reader may have
// kept it for long, so that it keeps much from being deleted.
func (d *durability) release(v *view) {
	d.mu.Lock()
	v.users--
	unused := v.users == 0
	d.mu.Unlock()
	if unused {
		_ = v.snapshot.Close() // it never fails
	}
}

// releaseLocked takes one user from v. If that was the last, closeUnused will
// close v. d.mu is held.
func (d *durability) releaseLocked(v *view) {
	if v == nil {
		return
	}
	if v.users--; v.users == 0 {
		d.unused = append(d.unused, v)
	}
}

// maxUnused is how many unused views may wait to be closed. To close one makes
// Pebble look for a compaction, which costs more than the view; and what two
// consecutive views keep from being deleted is little.
const maxUnused = 16

// closeUnused closes the unused views, if there are so many, the newest first: Pebble
// looks for a compaction when the oldest of all snapshots is closed, and so only
// once. d.mu is not held meanwhile, as Pebble takes locks of its own.
func (d *durability) closeUnused(least int) {
	var unused []*view
	d.mu.Lock()
	if len(d.unused) >= least {
		unused, d.unused = d.unused, nil
	}
	d.mu.Unlock()
	closeViews(unused)
}

func closeViews(views []*view) {
	for _, v := range slices.Backward(views) {
		_ = v.snapshot.Close() // it never fails
	}
}

// end releases all views, for Close: there are no readers left.
func (d *durability) end() {
	d.mu.Lock()
	d.releaseLocked(d.current)
	for _, v := range d.unsynced {
		d.releaseLocked(v)
	}
	unused := d.unused
	d.current, d.unsynced, d.deciders, d.unused = nil, nil, nil, nil
	d.mu.Unlock()
	closeViews(unused)
}

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
