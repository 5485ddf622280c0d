package write

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/turns"
)

// locks are the documents, and the values of unique indexes, of commits that the cluster's
// coordinator has not decided yet. Other writes of them wait.
type locks struct {
	held atomic.Int32 // how many; so that a write that meets none takes no lock

	mu     sync.Mutex
	docs   map[string]*lock   // by folded ID. Guarded by mu.
	read   map[string][]*lock // documents that commits have read and do not write. Guarded by mu.
	unique map[string]*lock   // by the key of an index entry. Guarded by mu.
	values map[string][]*lock // by the folded key of a value that commits change. Guarded by mu.
}

// lock is what one commit has locked. It is taken in a transaction of the engine and
// released when what the commit writes can be read, or when it is given up.
type lock struct {
	docs     []lockedDocument
	read     []string
	unique   []string
	values   []string // folded keys of the values that it changes, guards included
	released chan struct{}

	stuck chan struct{} // closed when this process cannot decide the commit any more
	why   error         // the reason; set before stuck is closed. Guarded by locks.mu.
}

type lockedDocument struct{ folded, collection string }

func newLock() *lock {
	return &lock{released: make(chan struct{}), stuck: make(chan struct{})}
}

// take makes the documents and values of l locked.
func (s *locks) take(l *lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.docs == nil {
		s.docs, s.read, s.unique, s.values = make(map[string]*lock), make(map[string][]*lock), make(map[string]*lock), make(map[string][]*lock)
	}
	for _, d := range l.docs {
		s.docs[d.folded] = l
	}
	for _, folded := range l.read {
		s.read[folded] = append(s.read[folded], l)
	}
	for _, key := range l.unique {
		s.unique[key] = l
	}
	for _, key := range l.values {
		s.values[key] = append(s.values[key], l)
	}
	s.held.Add(1)
}

// removeFrom removes a lock from those of a key.
func removeFrom(held map[string][]*lock, key string, l *lock) {
	held[key] = slices.DeleteFunc(held[key], func(other *lock) bool { return other == l })
	if len(held[key]) == 0 {
		delete(held, key)
	}
}

// release ends a lock. Those who wait for it look again.
func (s *locks) release(l *lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range l.docs {
		if s.docs[d.folded] == l {
			delete(s.docs, d.folded)
		}
	}
	for _, folded := range l.read {
		removeFrom(s.read, folded, l)
	}
	for _, key := range l.values {
		removeFrom(s.values, key, l)
	}
	for _, key := range l.unique {
		if s.unique[key] == l {
			delete(s.unique, key)
		}
	}
	s.held.Add(-1)
	close(l.released)
}

// fail notes that this process cannot decide the commit of a lock. The lock stays, since the
// next Open decides; who meets it gets err at once.
func (s *locks) fail(l *lock, err error) {
	if l == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.why == nil {
		l.why = fmt.Errorf("%w: %w", ErrLocked, err)
		close(l.stuck)
	}
}

// Undecided returns how many commits the coordinator has not decided yet.
func (w *Writer) Undecided() int { return int(w.locks.held.Load()) }

// ErrLocked ends a transaction that has met a lock of another commit, t.lockedBy. A call returns it, with the cause, if the lock is not released.
var ErrLocked = errors.New("a cluster-wide transaction of the same documents is not decided yet")

// checkLock returns ErrLocked for a document, about to be written, that another commit
// writes or has read.
func (t *Txn) checkLock(folded string) error {
	if err := t.CheckRead(folded); err != nil {
		return err
	}
	if t.Writer.Cluster == nil || t.Writer.locks.held.Load() == 0 {
		return nil
	}
	s := &t.Writer.locks
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.read[folded] {
		if l != t.owner {
			t.lockedBy = l
			return ErrLocked
		}
	}
	return nil
}

// CheckRead returns an error for a document in the read set of a transaction that another
// commit writes: it may be about to change. The transaction runs again when that is
// decided.
func (t *Txn) CheckRead(folded string) error {
	if t.Writer.Cluster == nil || t.Writer.locks.held.Load() == 0 {
		return nil
	}
	s := &t.Writer.locks
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.docs[folded]; l != nil && l != t.owner {
		t.lockedBy = l
		return ErrLocked
	}
	return nil
}

// CheckReadRange is CheckRead for all locked documents that covers.
func (t *Txn) CheckReadRange(covers func(collection, folded string) bool) error {
	if t.Writer.Cluster == nil || t.Writer.locks.held.Load() == 0 {
		return nil
	}
	s := &t.Writer.locks
	s.mu.Lock()
	defer s.mu.Unlock()
	for folded, l := range s.docs {
		if l == t.owner {
			continue
		}
		for _, d := range l.docs {
			if d.folded == folded && covers(d.collection, folded) {
				t.lockedBy = l
				return ErrLocked
			}
		}
	}
	return nil
}

// checkUnique returns ErrLocked for the key of an entry of a unique index that another
// commit has locked.
func (t *Txn) checkUnique(key []byte) error {
	if t.claiming {
		t.claims = append(t.claims, string(key))
	}
	if t.Writer.Cluster == nil || t.Writer.locks.held.Load() == 0 {
		return nil
	}
	s := &t.Writer.locks
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.unique[string(key)]; l != nil && l != t.owner {
		t.lockedBy = l
		return ErrLocked
	}
	return nil
}

// awaitLock waits until a lock is released.
func (w *Writer) awaitLock(ctx context.Context, l *lock) error {
	ctx, cancel := w.Cluster.Bounded(ctx)
	defer cancel()
	select {
	case <-l.released:
		return nil
	case <-l.stuck:
		return l.why
	case <-ctx.Done():
		return fmt.Errorf("%w: %w: %w", ErrLocked, cluster.ErrNoMajority, ctx.Err())
	case <-w.Cluster.Context().Done():
		return errs.ErrClosed
	}
}

// AwaitValues waits until the commits of this database that change the value of a key, and
// documents with it, are decided, and their documents can be read. Whoever has read a value
// from the coordinator calls it: so no value shows what its documents do not show yet.
// covers selects folded keys.
func (w *Writer) AwaitValues(ctx context.Context, covers func(folded string) bool) error {
	if w.locks.held.Load() == 0 {
		return nil
	}
	var under []*lock
	w.locks.mu.Lock()
	for folded, locks := range w.locks.values {
		if covers(folded) {
			under = append(under, locks...)
		}
	}
	w.locks.mu.Unlock()
	for _, l := range under {
		if err := w.awaitLock(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// AwaitCommits waits until the cluster-wide commits that are under way are decided, and what they
// write can be read. Each changes a value, such as the guard of a document.
func (w *Writer) AwaitCommits(ctx context.Context) error {
	return w.AwaitValues(ctx, func(string) bool { return true })
}

// DocsOf returns the documents that ops write, as far as their IDs are known.
func DocsOf(ops []*Op) iter.Seq[turns.Doc] {
	return func(yield func(turns.Doc) bool) {
		for _, o := range ops {
			if o.Exchanging != nil && !yield(turns.Doc{ID: ExchangeTurn(o.Exchanging.Folded)}) {
				return
			}
			if o.FoldedID != "" && !yield(turns.Doc{ID: o.FoldedID, Collection: o.FoldedCollection}) {
				return
			}
		}
	}
}

// ExchangeTurn returns the name under which transactions stand in line for a
// compare-exchange key: no document has it.
func ExchangeTurn(folded string) string { return "\x00" + folded }

// Yield waits for the exclusive turns that ops would interfere with.
func (w *Writer) Yield(ctx context.Context, ops []*Op) error {
	if !w.Lines.Exclusive() {
		return nil
	}
	return w.Lines.Yield(ctx, DocsOf(ops))
}

// PassTurn ends a turn in which a commit was made without a sync, and waits for the
// disk. The next in line may rest on this commit, which comes before its own in the
// log.
func (w *Writer) PassTurn(ctx context.Context, caller *turns.Caller) error {
	caller.Leave()
	if !w.Env.Synced {
		return nil
	}
	return w.Env.Engine.Sync(ctx)
}
