package accord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/knobs"
)

// callRecord is the record of a slot: it says which commit has changed it last.
type callRecord struct {
	Call string `json:"call"`
	// Open are the numbers that an identity's commits have reserved, of which it is not
	// recorded elsewhere what has become of them.
	Open []span `json:"open,omitempty"`
}

// slot is a record of the coordinator that only this run writes, one commit at a time. Each
// commit changes it, on the condition that it is as the one before has left it: so it says
// what became of a commit whose answer was lost, and no commit happens twice. It is never
// put where there is none but by prepare, since a condition that there is none could come
// to hold again.
type slot struct {
	key   string
	index uint64 // 0 before prepare
}

func (n *Node) newSlot(name string) slot {
	return slot{key: cluster.CallPrefix + n.own.ID + "/" + n.run + "/" + name}
}

// attempt is one commit through a slot, with its outcome if that is known.
type attempt struct {
	call       string
	conditions []cluster.Condition
	changes    []cluster.Change
	doubtful   bool   // the coordinator may have it, or come to have it
	kept       []span // in the slot before
	added      []span // in the slot afterwards, in addition
	passed     []span // as well, of which no caller gets a number
	last       int64  // of an identity, afterwards
}

// prepare makes the record of a slot, if there is none.
func (n *Node) prepare(ctx context.Context, s *slot) error {
	for s.index == 0 {
		change, err := record(s.key, callRecord{})
		if err != nil {
			return err
		}
		result, err := n.c.Commit(ctx, []cluster.Condition{{Key: s.key}}, []cluster.Change{change})
		if errors.Is(err, cluster.ErrUnknownOutcome) && ctx.Err() == nil {
			continue // it has made the record, or the next one does
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

// newAttempt returns a commit through a slot that was prepared. The commit adds added to
// the spans that are kept in the slot.
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

// try makes one attempt, and returns what became of it. It can be made again, with the same
// attempt, after any error: then the outcome is still open if a.doubtful, and else it
// surely has not happened. Without an error the slot is ready for the next attempt.
//
// A Result that is not committed has the records of the conditions without the slot's. They
// may be as the conditions want them: then another attempt may succeed.
func (n *Node) try(ctx context.Context, s *slot, a *attempt) (cluster.Result, error) {
	result, err := n.c.Commit(ctx, a.conditions, a.changes)
	if err != nil {
		a.doubtful = a.doubtful || errors.Is(err, cluster.ErrUnknownOutcome)
		return cluster.Result{}, err
	}
	if result.Committed() {
		s.index = result.Index
		return result, nil
	}
	now := result.Actual[0]
	if now.Index == s.index {
		// It has not happened. An earlier try of it may still be on its way, and its
		// conditions may come to hold: one that a record is not there. The slot is changed,
		// so that it cannot.
		if a.doubtful {
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
	if c.Call == fenced+a.call {
		s.index, a.doubtful = now.Index, false
		return cluster.Result{Actual: result.Actual[1:]}, nil
	}
	if now.Index == 0 || c.Call != a.call {
		_ = n.Beat(ctx) // the records of the tag say why: a copy, or a coordinator that has gone back
		if err := n.watch.err(); err != nil {
			return cluster.Result{}, err
		}
		return cluster.Result{}, fmt.Errorf("record %.200q of the cluster's coordinator was changed by another: %w", s.key, errs.ErrCorrupt)
	}
	s.index = now.Index // an earlier try of it has happened
	return cluster.Result{Index: now.Index}, nil
}

// fence changes the slot, so that no try of a that is on its way can happen any more.
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
		return fmt.Errorf("%w: the commit has happened meanwhile", cluster.ErrUnknownOutcome) // the next try finds it
	}
	s.index, a.doubtful = result.Index, false
	return nil
}

// fenced begins the call in a slot that was changed so that an attempt cannot happen.
const fenced = "never/"

// pause waits a little before a try is made again.
func pause(ctx context.Context, tries int) {
	timer := time.NewTimer(min(100*time.Microsecond<<min(tries, 12), cmp.Or(knobs.ClusterPause, 250*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Outcome returns what became of a commit of an earlier run: its index, or 0 if it has not
// happened, and then it never will.
func (n *Node) Outcome(ctx context.Context, key string, before uint64, call string) (uint64, error) {
	for {
		found, err := n.c.Read(ctx, key)
		if err != nil {
			return 0, err
		}
		c, err := decode[callRecord](found[0])
		if err != nil {
			return 0, err
		}
		if c.Call == call {
			return found[0].Index, nil
		}
		if found[0].Index != before {
			return 0, nil // the record has changed since, or is gone: its condition never holds again
		}
		_, err = n.c.Commit(ctx, []cluster.Condition{{Key: key, Index: before}}, []cluster.Change{{Key: key, Delete: true}})
		if err != nil && !errors.Is(err, cluster.ErrUnknownOutcome) {
			return 0, err
		}
		if ctx.Err() != nil {
			return 0, err
		}
	}
}

// Forget removes the record of a call of an earlier run, whose outcome is recorded.
func (n *Node) Forget(ctx context.Context, key string) error {
	_, err := n.c.Commit(ctx, nil, []cluster.Change{{Key: key, Delete: true}})
	return err
}
