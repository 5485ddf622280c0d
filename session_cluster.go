package jay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/exchange"
	"github.com/jaydb/jay/internal/write"
)

// ClusterWide makes SaveChanges a cluster-wide transaction, as RavenDB calls it: beside
// the documents it writes compare-exchange values (Session.PutCompareExchange), and it
// compares and replaces the AtomicGuard of each document that it writes. Of two sessions
// that have loaded the same document only one can save, whichever node or program it is
// in. A document that the session has not loaded must be new, and have no guard.
//
// It implies OptimisticConcurrency, so that a write without a guard in between is a
// conflict, too. Such a session stores and deletes documents whose IDs the commit does not
// make; attachments and revisions are refused with ErrUsage.
func ClusterWide() SessionOption {
	return func(s *Session) {
		s.cluster = new(clusterSession)
		s.cluster.clear()
		s.optimistic = true
	}
}

// clusterSession is what a cluster-wide session has beside others.
type clusterSession struct {
	guards  map[string]uint64 // indexes of guards by folded ID, read with the document; 0 for none
	changes []*exchangeChange // in the order of the first one of each key
}

// exchangeChange is a change of a compare-exchange value that SaveChanges makes.
type exchangeChange struct {
	folded string
	op     op // without results
}

func (c *clusterSession) clear() { c.guards, c.changes = make(map[string]uint64), nil }

// PutCompareExchange makes SaveChanges put a compare-exchange value, in one commit with
// the documents: see CompareExchange.Put. A later call for the same key takes its place.
// The session must be one with ClusterWide. If the value does not have the index,
// SaveChanges returns a *CompareExchangeError and writes nothing.
func (s *Session) PutCompareExchange(key string, value any, index uint64, opts ...CompareExchangeOption) error {
	change, err := s.exchangeChange(key, index)
	if err != nil {
		return err
	}
	setExchange(&change.op, value, opts)
	return s.addChange(change)
}

// DeleteCompareExchange makes SaveChanges delete a compare-exchange value: see
// PutCompareExchange and CompareExchange.Delete.
func (s *Session) DeleteCompareExchange(key string, index uint64) error {
	change, err := s.exchangeChange(key, index)
	if err != nil {
		return err
	}
	removeExchange(&change.op)
	return s.addChange(change)
}

func (s *Session) exchangeChange(key string, index uint64) (*exchangeChange, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.cluster == nil {
		return nil, fmt.Errorf("%w: compare-exchange values in a session need OpenSession(ClusterWide())", ErrUsage)
	}
	folded, err := exchange.CheckKey(s.db.env.Rules, key)
	if err != nil {
		return nil, err
	}
	if exchange.IsGuard(folded) {
		return nil, fmt.Errorf("%w: the session keeps the guard %.100q itself", ErrUsage, key)
	}
	change := &exchangeChange{folded: folded}
	initExchange(&change.op, key, index)
	return change, nil
}

// addChange adds a change, in the place of one of the same key.
func (s *Session) addChange(change *exchangeChange) error {
	if err := change.op.UsageError; err != nil {
		return err
	}
	for i, other := range s.cluster.changes {
		if other.folded == change.folded {
			s.cluster.changes[i] = change
			return nil
		}
	}
	s.cluster.changes = append(s.cluster.changes, change)
	return nil
}

// readGuards reads the guards of documents that were read through tx, or found missing
// there.
func (s *Session) readGuards(ctx context.Context, tx *Tx, ids []string, found []*docs.Document) error {
	if s.cluster == nil {
		return nil
	}
	if s.db.inCluster() {
		return s.readClusterGuards(ctx, ids, found)
	}
	read := func(folded string) error {
		index, err := exchange.IndexAt(tx.snapshot, write.GuardKey(folded))
		if err == nil {
			s.cluster.guards[folded] = index
		}
		return err
	}
	for _, id := range ids {
		if err := read(s.db.env.Rules.Fold(id)); err != nil {
			return err
		}
	}
	for _, doc := range found {
		if err := read(doc.FoldedID()); err != nil {
			return err
		}
	}
	return nil
}

// readClusterGuards is readGuards with a cluster: the coordinator has the guards.
func (s *Session) readClusterGuards(ctx context.Context, ids []string, found []*docs.Document) error {
	var folded, keys []string
	for _, id := range ids {
		folded = append(folded, s.db.env.Rules.Fold(id))
	}
	for _, doc := range found {
		folded = append(folded, doc.FoldedID())
	}
	for _, id := range folded {
		keys = append(keys, write.GuardKey(id))
	}
	values, err := readClusterValues(ctx, s.db, keys...)
	if err != nil {
		return err
	}
	for i, v := range values {
		if s.cluster.guards[folded[i]] = 0; v != nil {
			s.cluster.guards[folded[i]] = v.Index
		}
	}
	return nil
}

// clusterOps gives the writes of a save their guards, and returns the changes of
// compare-exchange values that belong to it.
func (s *Session) clusterOps(writes []*saving) []*op {
	if s.cluster == nil {
		return nil
	}
	for _, w := range writes {
		index, known := s.cluster.guards[w.foldedID()]
		// A document of a query was read without its guard: its version is compared. What
		// is deleted by its ID is deleted whatever it is.
		read := w.entity != nil && w.entity.doc != nil || w.deletion != nil
		w.op.Guard = &write.Guard{Index: index, Any: read && !known}
	}
	ops := make([]*op, len(s.cluster.changes))
	for i, change := range s.cluster.changes {
		o := change.op
		x := *o.Exchanging
		o.Exchanging = &x
		ops[i] = &o
	}
	return ops
}

// foldedID returns the ID of the document that w writes; "" if the commit makes it.
func (w *saving) foldedID() string {
	if w.deletion != nil {
		return w.deletion.foldedID
	}
	return w.entity.foldedID
}

// clusterSaved keeps the guards of what was saved.
func (s *Session) clusterSaved(writes []*saving) {
	if s.cluster == nil {
		return
	}
	for _, w := range writes {
		s.cluster.guards[w.op.FoldedID] = w.op.Guard.Index
	}
	s.cluster.changes = nil
}

// clusterResolved forgets what a save in doubt may have changed: the next save compares
// versions. done says that the save survived. Of a save that had only deletions and is not
// known to have survived, those are not repeated whose value is missing.
func (s *Session) clusterResolved(ctx context.Context, a *inDoubtSave, done bool) error {
	if s.cluster == nil {
		return nil
	}
	for _, w := range a.writes {
		delete(s.cluster.guards, w.foldedID())
	}
	if done {
		s.cluster.changes = nil
		return nil
	}
	if !a.onlyDeletes() {
		return nil
	}
	for _, o := range a.exchanges {
		found, err := s.db.CompareExchange().GetMany(ctx, o.RequestID)
		if err != nil {
			return err
		}
		if found[0] == nil {
			s.cluster.changes = slices.DeleteFunc(s.cluster.changes, func(c *exchangeChange) bool {
				return c.folded == o.Exchanging.Folded && c.op.Exchanging.Delete
			})
		}
	}
	return nil
}

// onlyDeletes reports whether a save had only deletions.
func (a *inDoubtSave) onlyDeletes() bool {
	return !slices.ContainsFunc(a.writes, func(w *saving) bool { return w.entity != nil }) &&
		!slices.ContainsFunc(a.exchanges, func(o *op) bool { return !o.Exchanging.Delete })
}

// exchangesSurvived reports whether a save in doubt was written, by the indexes that it
// would have given to compare-exchange values: no other write can have them.
func (s *Session) exchangesSurvived(ctx context.Context, a *inDoubtSave) (bool, error) {
	for _, o := range a.exchanges {
		if o.Outcome != write.Present {
			continue
		}
		v, err := s.db.CompareExchange().Get(ctx, o.RequestID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return false, err
		}
		if err == nil && v.Index == o.Header.Etag {
			return true, nil
		}
	}
	return false, nil
}
