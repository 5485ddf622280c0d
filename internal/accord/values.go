package accord

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exchange"
	"github.com/jaydb/jay/internal/format"
)

// mostCommits bounds the commits of values that are under way at a time. Others wait.
const mostCommits = 64

// values holds the slots for commits of compare-exchange values. The free slots are a
// stack, so that a node that commits little uses few of them.
type values struct {
	underWay chan struct{} // a semaphore: one element per commit under way

	mu   sync.Mutex
	free []*slot // Guarded by mu.
	made int     // slots that were made so far. Guarded by mu.
}

func (n *Node) openValues() {
	n.values.underWay = make(chan struct{}, mostCommits)
	for i := range mostCommits {
		s := n.newSlot(fmt.Sprintf("values/%d", mostCommits-1-i))
		n.values.free = append(n.values.free, &s)
	}
	n.values.made = mostCommits
}

// takeSlot returns a free slot and waits for one if necessary. giveSlot returns it.
func (n *Node) takeSlot(ctx context.Context) (*slot, error) {
	select {
	case n.values.underWay <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", cluster.ErrNoMajority, ctx.Err())
	case <-n.group.Context().Done():
		return nil, errs.ErrClosed
	}
	n.values.mu.Lock()
	defer n.values.mu.Unlock()
	last := len(n.values.free) - 1
	s := n.values.free[last]
	n.values.free = n.values.free[:last]
	return s, nil
}

func (n *Node) giveSlot(s *slot) {
	n.values.mu.Lock()
	n.values.free = append(n.values.free, s)
	n.values.mu.Unlock()
	<-n.values.underWay
}

// decodeValue decodes the record of the value with a folded key. It returns nil if there
// is none.
func decodeValue(folded string, r cluster.Record) (*exchange.Value, error) {
	if r.Index == 0 {
		return nil, nil
	}
	x, err := format.DecodeExchange(r.Value)
	if err != nil {
		return nil, fmt.Errorf("record %.200q of the cluster's coordinator: %w", r.Key, err)
	}
	v := &exchange.Value{Folded: folded, Key: folded, Index: r.Index, Value: x.Value, Metadata: x.Metadata}
	if x.Key != nil {
		v.Key = string(x.Key)
	}
	return v, nil
}

// Get returns the values of folded keys as of one moment; nil for a key without a value.
func (n *Node) Get(ctx context.Context, folded ...string) ([]*exchange.Value, error) {
	ctx, cancel := n.Bounded(ctx)
	defer cancel()
	if err := n.checkMember(); err != nil {
		return nil, err
	}
	keys := make([]string, len(folded))
	for i, name := range folded {
		keys[i] = cluster.ValuePrefix + name
	}
	records, err := n.c.Read(ctx, keys...)
	if err != nil {
		return nil, err
	}
	out := make([]*exchange.Value, len(records))
	for i, r := range records {
		if out[i], err = decodeValue(folded[i], r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Page returns, in the order of their folded keys, the first limit values whose folded
// keys begin with prefix and are greater than after.
func (n *Node) Page(ctx context.Context, prefix, after string, limit int) (out []*exchange.Value, err error) {
	ctx, cancel := n.Bounded(ctx)
	defer cancel()
	if err := n.checkMember(); err != nil {
		return nil, err
	}
	if after != "" {
		after = cluster.ValuePrefix + after
	}
	for len(out) < limit {
		page, err := n.c.Page(ctx, cluster.ValuePrefix+prefix, after, limit-len(out))
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			after = r.Key
			v, err := decodeValue(r.Key[len(cluster.ValuePrefix):], r)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
	}
	return out, nil
}

// Change is a change of a compare-exchange value.
type Change struct {
	Folded string
	Key    string // as the caller spelt it
	Delete bool
	Value  []byte
	Custom []byte // metadata
}

// Condition is the index that a value must have; 0 for none.
type Condition struct {
	Folded string
	Index  uint64
}

// Commit is one commit of compare-exchange values. Begin makes it, Try or Decide sends
// it, and End or Keep must follow.
type Commit struct {
	n          *Node
	slot       *slot
	attempt    *attempt
	conditions []cluster.Condition
	changes    []cluster.Change
}

// Begin prepares a commit. It waits while mostCommits others are under way. An error
// means that nothing was changed.
func (n *Node) Begin(ctx context.Context, conditions []Condition, changes []Change) (*Commit, error) {
	if err := n.checkMember(); err != nil {
		return nil, err
	}
	c := &Commit{n: n}
	for _, condition := range conditions {
		c.conditions = append(c.conditions, cluster.Condition{Key: cluster.ValuePrefix + condition.Folded, Index: condition.Index})
	}
	for _, change := range changes {
		to := cluster.Change{Key: cluster.ValuePrefix + change.Folded, Delete: change.Delete}
		if !change.Delete {
			record := format.Exchange{Index: 1, Metadata: change.Custom} // not used: the index is that of the coordinator's record
			if change.Key != change.Folded {
				record.Key = []byte(change.Key)
			}
			to.Value = append(record.AppendHead(nil), change.Value...)
		}
		c.changes = append(c.changes, to)
	}
	var err error
	if c.slot, err = n.takeSlot(ctx); err != nil {
		return nil, err
	}
	if err = n.prepare(ctx, c.slot); err == nil {
		err = c.renew()
	}
	if err != nil {
		c.End()
		if errors.Is(err, cluster.ErrUnknownOutcome) { // only the slot's creation is in doubt, no value
			err = fmt.Errorf("%w: %w", cluster.ErrNoMajority, WithoutOutcome(err))
		}
		return nil, err
	}
	return c, nil
}

// WithoutOutcome returns err without ErrUnknownOutcome: it is passed to callers whose own
// writes are not in doubt.
func WithoutOutcome(err error) error {
	if !errors.Is(err, cluster.ErrUnknownOutcome) {
		return err
	}
	return withoutOutcome{err}
}

// withoutOutcome hides that an error is an ErrUnknownOutcome.
type withoutOutcome struct{ err error }

func (w withoutOutcome) Error() string { return w.err.Error() }

// Is matches what the hidden error matches, except ErrUnknownOutcome.
func (w withoutOutcome) Is(target error) bool {
	return target != cluster.ErrUnknownOutcome && errors.Is(w.err, target)
}

// renew gives the commit a new attempt.
func (c *Commit) renew() (err error) {
	c.attempt, err = c.n.newAttempt(c.slot, c.conditions, c.changes, nil, nil)
	return err
}

// Intent returns what the database must store to resolve this commit in a later run.
func (c *Commit) Intent() format.Intent {
	return format.Intent{Slot: c.slot.key, Before: c.slot.index, Call: c.attempt.call}
}

// Try sends the commit. If it was committed, Try returns the index of the values that it
// has put. If a condition does not hold, Try returns the actual values, in the order of
// the conditions.
//
// After an ErrUnknownOutcome the outcome is open: call Try again, unless it is an
// ErrUndecidable, too. After any other error the commit has not happened.
func (c *Commit) Try(ctx context.Context) (index uint64, actual []*exchange.Value, err error) {
	result, err := c.n.try(ctx, c.slot, c.attempt)
	if err != nil {
		if c.attempt.inDoubt && !errors.Is(err, cluster.ErrUnknownOutcome) {
			err = fmt.Errorf("%w: %w", cluster.ErrUnknownOutcome, err)
		}
		if c.attempt.inDoubt && c.n.watch.err() != nil { // a coordinator that has gone back is not asked any more
			err = fmt.Errorf("%w: %w", ErrUndecidable, err)
		}
		return 0, nil, err
	}
	if result.Committed() {
		return result.Index, nil, nil
	}
	actual = make([]*exchange.Value, len(result.Actual))
	for i, r := range result.Actual {
		if actual[i], err = decodeValue(r.Key[len(cluster.ValuePrefix):], r); err != nil {
			return 0, nil, err
		}
	}
	return 0, actual, nil
}

// Decide sends the commit again until its outcome is known, or cannot be found out any more,
// or the node is stopped.
func (c *Commit) Decide() (index uint64, actual []*exchange.Value, err error) {
	ctx := c.n.group.Context()
	for tries := 0; ; tries++ {
		limited, cancel := context.WithTimeout(ctx, c.n.options.Limit)
		index, actual, err = c.Try(limited)
		cancel()
		if err == nil || !errors.Is(err, cluster.ErrUnknownOutcome) || errors.Is(err, ErrUndecidable) || ctx.Err() != nil {
			return index, actual, err
		}
		Pause(ctx, tries)
	}
}

// Go runs fn in a goroutine of the node, which Stop waits for.
func (n *Node) Go(fn func()) { n.group.Go(fn) }

// End frees the slot. The outcome must be known, and the database must not need it any more.
func (c *Commit) End() {
	c.attempt = nil
	c.n.giveSlot(c.slot)
}

// Keep ends a commit that the next run has to bring to its end: this run does not use the slot
// again, whose record shows the next one what became of the commit.
func (c *Commit) Keep() {
	c.attempt = nil
	v := &c.n.values
	v.mu.Lock()
	another := c.n.newSlot(fmt.Sprintf("values/%d", v.made))
	v.made++
	v.mu.Unlock()
	c.n.giveSlot(&another)
}

// Context returns a context that ends when the node is stopped.
func (n *Node) Context() context.Context { return n.group.Context() }

// checkValues refuses to join with a database that has compare-exchange values of its
// own: the cluster's values would hide them.
func (n *Node) checkValues() error {
	lo, hi := format.ExchangeBounds("")
	it, err := n.env.Engine.Iterate(lo, hi)
	if err != nil {
		return err
	}
	found := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil || !found {
		return err
	}
	return fmt.Errorf("%w: Cluster: the database has compare-exchange values of its own: export them, delete them, and import them when it has joined", errs.ErrOption)
}
