package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/exchange"
	"github.com/jaydb/jay/internal/txn"
	"github.com/jaydb/jay/internal/write"
)

// clusterSession is what a cluster-wide session has beside others.
type clusterSession struct {
	guards  map[string]uint64 // indexes of guards by folded ID, read with the document; 0 for none
	changes []*exchangeChange // in the order of the first one of each key
}

// exchangeChange is a change of a compare-exchange value that SaveChanges makes.
type exchangeChange struct {
	folded string
	op     write.Op // without results
}

func (c *clusterSession) clear() { c.guards, c.changes = make(map[string]uint64), nil }

// changesValues reports whether the next save changes compare-exchange values. c may be nil.
func (c *clusterSession) changesValues() bool { return c != nil && len(c.changes) > 0 }

// forget drops the guard of a document that was read anew without it: the next save compares its version. c may be
// nil.
func (c *clusterSession) forget(folded string) {
	if c != nil {
		delete(c.guards, folded)
	}
}

// ChangeExchange makes SaveChanges change a compare-exchange value as o says.
func (s *Session) ChangeExchange(o *write.Op) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.cluster == nil {
		return fmt.Errorf("%w: compare-exchange values in a session need OpenSession(ClusterWide())", ids.ErrUsage)
	}
	folded, err := exchange.CheckKey(s.db.Env.Rules, o.RequestID)
	if err != nil {
		return err
	}
	if exchange.IsGuard(folded) {
		return fmt.Errorf("%w: the session keeps the guard %.100q itself", ids.ErrUsage, o.RequestID)
	}
	return s.addChange(&exchangeChange{folded: folded, op: *o})
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
func (s *Session) readGuards(ctx context.Context, tx *txn.Tx, ids []string, found []*docs.Document) error {
	if s.cluster == nil {
		return nil
	}
	if s.db.InCluster() {
		return s.readClusterGuards(ctx, ids, found)
	}
	read := func(folded string) error {
		index, err := tx.GuardIndex(folded)
		if err == nil {
			s.cluster.guards[folded] = index
		}
		return err
	}
	for _, id := range ids {
		if err := read(s.db.Env.Rules.Fold(id)); err != nil {
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
		folded = append(folded, s.db.Env.Rules.Fold(id))
	}
	for _, doc := range found {
		folded = append(folded, doc.FoldedID())
	}
	for _, id := range folded {
		keys = append(keys, write.GuardKey(id))
	}
	values, err := s.db.ClusterValues(ctx, keys...)
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
func (s *Session) clusterOps(writes []*saving) []*write.Op {
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
	ops := make([]*write.Op, len(s.cluster.changes))
	for i, change := range s.cluster.changes {
		o := change.op
		x := *o.Exchanging
		o.Exchanging, o.Loaded = &x, x.Index != 0 // like an entity that was loaded: a repeated save has another value and index
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
		s.cluster.changes = slices.DeleteFunc(s.cluster.changes, func(c *exchangeChange) bool { return slices.Contains(a.changes, c) })
		return nil
	}
	if !a.onlyDeletes() {
		return nil
	}
	for _, o := range a.exchanges {
		found, err := s.db.ExchangeValues(ctx, o.RequestID)
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
		!slices.ContainsFunc(a.exchanges, func(o *write.Op) bool { return !o.Exchanging.Delete })
}
