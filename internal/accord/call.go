package accord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/knobs"
)

// callRecord is the value of a slot's record. It names the attempt that changed the slot
// last.
type callRecord struct {
	Call string `json:"call"`
	// Open has the numbers of an identity that were reserved and whose fate is recorded
	// nowhere else yet.
	Open []span `json:"open,omitempty"`
	// Taken is the run that has recovered the slot from the run that made it, and At the index
	// of the record before. Normally the run that made it is dead. If it was only stopped, and
	// the other one is that of a copy of its directory, it finds here what became of its last
	// attempt.
	Taken string `json:"taken,omitempty"`
	At    uint64 `json:"at,omitempty"`
}

// slot is a record of the coordinator that makes commits idempotent. Only this run writes
// it, one commit at a time.
//
// Every commit that goes through a slot changes the slot's record, on the condition that
// the record still has the index that the commit before gave it. So a commit that is sent
// twice takes effect at most once, and after a lost answer the record shows whether the
// commit happened.
//
// Only prepare creates the record. A commit must never be conditional on the record being
// absent: such a condition could hold again after the record was deleted, and a late copy
// of the commit would then take effect.
type slot struct {
	key   string
	index uint64 // of the record at the coordinator; 0 before prepare
}

func (n *Node) newSlot(name string) slot {
	return slot{key: cluster.CallPrefix + n.own.ID + "/" + n.run + "/" + name}
}

// attempt is one commit through a slot. The same attempt may be sent several times.
type attempt struct {
	call       string
	conditions []cluster.Condition
	changes    []cluster.Change
	inDoubt    bool          // it may have been committed, or may still be
	kept       []span        // spans in the slot before the commit
	added      []span        // spans that the commit adds
	passed     []span        // spans that the commit skips: no caller gets their numbers
	again      []span        // spans of kept that draws get which an earlier one has given back
	counter    counterRecord // the identity's counter after the commit
}

// prepare creates the record of a slot, unless it exists.
func (n *Node) prepare(ctx context.Context, s *slot) error {
	for s.index == 0 {
		change, err := record(s.key, callRecord{})
		if err != nil {
			return err
		}
		result, err := n.c.Commit(ctx, []cluster.Condition{{Key: s.key}}, []cluster.Change{change})
		if errors.Is(err, cluster.ErrUnknownOutcome) && ctx.Err() == nil {
			continue // if this commit created the record, the next one finds it
		}
		if err != nil {
			return err
		}
		if s.index = result.Index; !result.Committed() {
			s.index = result.Actual[0].Index
		}
	}
	return nil
}

// newAttempt returns an attempt through a slot that was prepared. After its commit the
// slot's record has the spans of kept and of added.
func (n *Node) newAttempt(s *slot, conditions []cluster.Condition, changes []cluster.Change, kept, added []span) (*attempt, error) {
	call, err := randomName(n.env.Random())
	if err != nil {
		return nil, err
	}
	own, err := record(s.key, callRecord{Call: call, Open: append(slices.Clip(kept), added...)})
	if err != nil {
		return nil, err
	}
	return &attempt{
		call:       call,
		conditions: append([]cluster.Condition{{Key: s.key, Index: s.index}}, conditions...),
		changes:    append([]cluster.Change{own}, changes...),
		kept:       kept,
		added:      added,
	}, nil
}

// try sends an attempt and returns its outcome. After an error the caller may try the
// same attempt again: a.inDoubt says whether its outcome is still open; if not, it has
// not happened. Without an error the slot is ready for the next attempt.
//
// A Result that is not committed has the records of the attempt's conditions, without
// that of the slot. They may satisfy the conditions by now; then a new attempt may
// succeed.
func (n *Node) try(ctx context.Context, s *slot, a *attempt) (cluster.Result, error) {
	result, err := n.c.Commit(ctx, a.conditions, a.changes)
	if err != nil {
		a.inDoubt = a.inDoubt || errors.Is(err, cluster.ErrUnknownOutcome)
		return cluster.Result{}, err
	}
	if result.Committed() {
		s.index = result.Index
		return result, nil
	}
	now := result.Actual[0]
	// The slot is unchanged, so the attempt has not happened: another condition did not
	// hold.
	if now.Index == s.index {
		// An earlier copy of the attempt may still arrive, and its other conditions may
		// hold by then. Changing the slot makes that copy fail.
		if a.inDoubt {
			if err := n.fence(ctx, s, a); err != nil {
				return cluster.Result{}, err
			}
		}
		return cluster.Result{Actual: result.Actual[1:]}, nil
	}
	c, err := decode[callRecord](now)
	if err != nil {
		return cluster.Result{}, err
	}
	// An earlier fence was committed, and its answer was lost.
	if c.Call == fenced+a.call {
		s.index, a.inDoubt = now.Index, false
		return cluster.Result{Actual: result.Actual[1:]}, nil
	}
	if now.Index == 0 || c.Call != a.call {
		return cluster.Result{}, n.lostSlot(ctx, s, a, now.Index)
	}
	s.index = now.Index // an earlier try was committed, and only its answer was lost
	return cluster.Result{Index: cmp.Or(c.At, now.Index)}, nil
}

// lostSlot returns the error for a slot whose record another run has changed or removed: that
// of a copy of the database, for which this run was dead. Its record has the given index now;
// 0 for none. The slot can be used again, and the attempt will not happen any more.
//
// If the attempt is in doubt, the record says whether it has happened, unless it is gone: then
// the error is an ErrUndecidable.
func (n *Node) lostSlot(ctx context.Context, s *slot, a *attempt, index uint64) error {
	_ = n.Beat(ctx) // reads the tag's records, which show the cause: a copied database or a restored coordinator
	if err := n.watch.err(); err != nil {
		return err
	}
	s.index = index
	err := fmt.Errorf("%w: %w", ErrSlotLost, errs.First(n.CheckTag(), &cluster.TagError{Tag: n.own.Tag, Reason: cluster.TagCopied}))
	if a.inDoubt && index == 0 {
		return fmt.Errorf("%w: %w", ErrUndecidable, err)
	}
	a.inDoubt = false
	return err
}

// ErrSlotLost means that another run has taken a slot of this one. The commit has not happened,
// unless the error is an ErrUndecidable, too, and may be made anew.
var ErrSlotLost = errors.New("another run of the database has taken over a call of this one")

// ErrUndecidable means that this run cannot find out any more whether a commit in doubt has
// happened, however often it tries.
var ErrUndecidable = errors.New("only the next Open may find out whether it has happened")

// fence changes the slot, so that a copy of a that arrives later fails.
func (n *Node) fence(ctx context.Context, s *slot, a *attempt) error {
	change, err := record(s.key, callRecord{Call: fenced + a.call, Open: a.kept})
	if err != nil {
		return err
	}
	result, err := n.c.Commit(ctx, []cluster.Condition{{Key: s.key, Index: s.index}}, []cluster.Change{change})
	if err != nil {
		return err
	}
	if !result.Committed() {
		return fmt.Errorf("%w: the commit has happened meanwhile", cluster.ErrUnknownOutcome) // the next try reports the commit
	}
	s.index, a.inDoubt = result.Index, false
	return nil
}

// fenced is the prefix of the call in a slot that fence has changed.
const fenced = "never/"

// Pause waits before the next try: an exponential back-off with the number of tries.
func Pause(ctx context.Context, tries int) {
	timer := time.NewTimer(min(100*time.Microsecond<<min(tries, 12), cmp.Or(knobs.ClusterPause, 250*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Outcome resolves an in-doubt commit of an earlier run. key is its slot, before the
// index of the slot's record before the commit, and call the name of the attempt. It
// returns an index above 0, or 0 if the commit has not happened. In the second
// case Outcome has changed the slot's record if needed, so that the commit cannot happen
// later either. known is false, and index 0, if another commit has changed the record since:
// then a commit whose slot was kept for it has not happened, and of another one nobody knows.
//
// A copy of the database with a tag of its own has commits of its original: it only looks,
// since the original decides about them, too.
func (n *Node) Outcome(ctx context.Context, key string, before uint64, call string) (index uint64, known bool, err error) {
	for {
		found, err := n.c.Read(ctx, key)
		if err != nil {
			return 0, false, err
		}
		c, err := decode[callRecord](found[0])
		if err != nil {
			return 0, false, err
		}
		if c.Call == call {
			return cmp.Or(c.At, found[0].Index), true, nil
		}
		if found[0].Index != before || !n.isOwn(key) {
			return 0, c.Call == fenced+call, nil // the slot has changed or is gone, so the commit's condition on it never holds again
		}
		change, err := record(key, callRecord{Call: fenced + call, Taken: n.run})
		if err != nil {
			return 0, false, err
		}
		_, err = n.c.Commit(ctx, []cluster.Condition{{Key: key, Index: before}}, []cluster.Change{change})
		if err != nil && !errors.Is(err, cluster.ErrUnknownOutcome) {
			return 0, false, err
		}
		if ctx.Err() != nil { // the commit may have come before the fence: the next call sees that
			return 0, false, errs.First(err, ctx.Err())
		}
	}
}

// Forget takes the slot of a commit of an earlier run, once the outcome is recorded.
func (n *Node) Forget(ctx context.Context, key string) error {
	if !n.isOwn(key) {
		return nil
	}
	found, err := n.c.Read(ctx, key)
	if err != nil {
		return err
	}
	c, err := decode[callRecord](found[0])
	if err != nil || found[0].Index == 0 || c.Taken != "" {
		return err
	}
	return n.take(ctx, found[0], c)
}

// isOwn reports whether a slot is that of a run of this database, and not of the one that it
// was copied from.
func (n *Node) isOwn(slot string) bool {
	return strings.HasPrefix(slot, cluster.CallPrefix+n.own.ID+"/")
}

// take records that this run has recovered a slot of an earlier one, whose record is r. The
// record stays until another run finds it so: if the earlier run was only stopped, it can still
// learn what became of its last attempt.
func (n *Node) take(ctx context.Context, r cluster.Record, c callRecord) error {
	change, err := record(r.Key, callRecord{Call: c.Call, Taken: n.run, At: r.Index})
	if err != nil {
		return err
	}
	_, err = n.c.Commit(ctx, []cluster.Condition{{Key: r.Key, Index: r.Index}}, []cluster.Change{change})
	return err
}
