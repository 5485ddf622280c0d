// Package clustertest helps to test coordinators and programs that use them. Run checks
// that a cluster.Coordinator keeps its contract, and Memory is a coordinator in memory
// whose network and majority fail when a test wants it.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jaydb/jay/cluster"
)

// Memory is a coordinator in memory that several nodes share. All of its methods are safe
// for concurrent use. Nothing in it depends on time: a call that finds no majority waits
// until its context ends, there is a majority again, or its Client is closed.
type Memory struct {
	mu      sync.Mutex
	changed chan struct{} // closed when waiting calls should check the state again. Guarded by mu.
	records map[string]cluster.Record
	index   uint64 // of the newest commit
	commits int
	lost    bool // the majority
}

// NewMemory returns a coordinator without records.
func NewMemory() *Memory {
	return &Memory{changed: make(chan struct{}), records: make(map[string]cluster.Record)}
}

// Client is the cluster.Coordinator of one node.
type Client struct {
	memory *Memory

	// Guarded by memory.mu.
	cut      bool
	closed   bool
	faults   []Fault
	before   func(Call)
	withheld []func() // commits that were withheld, see Withhold
}

var _ cluster.Coordinator = (*Client)(nil)

// Call describes a call to the hook of Before.
type Call struct {
	Method     string // "Read", "Page" or "Commit"
	Keys       []string
	Conditions []cluster.Condition
	Changes    []cluster.Change
}

// Fault is the true outcome of one Commit whose caller gets an ErrUnknownOutcome.
type Fault int

// The faults.
const (
	// Happens: the commit takes effect if its conditions hold; only the answer is lost.
	Happens Fault = iota + 1
	// Never: the commit has not happened and never will.
	Never
	// Withhold: the commit takes effect at Deliver, if its conditions hold then.
	Withhold
	// Passes is no fault: the Commit succeeds. It postpones the faults that follow it.
	Passes
)

// Connect returns the Coordinator of another node.
func (m *Memory) Connect() *Client { return &Client{memory: m} }

// LoseMajority takes the majority away from all nodes, until RestoreMajority.
func (m *Memory) LoseMajority() { m.set(func() { m.lost = true }) }

// RestoreMajority undoes LoseMajority. Calls that wait go on.
func (m *Memory) RestoreMajority() { m.set(func() { m.lost = false }) }

// Backup returns a function that restores the records and the index as they are now: all
// later commits are lost then, as with a coordinator that is restored from a backup.
func (m *Memory) Backup() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	records, index := maps.Clone(m.records), m.index
	return func() { m.set(func() { m.records, m.index = maps.Clone(records), index }) }
}

// Accept accepts the restored state: the indexes of all records, and later ones, are far above
// all earlier ones.
func (m *Memory) Accept() {
	m.set(func() {
		m.index += 1 << 40
		for key, r := range m.records {
			r.Index += 1 << 40
			m.records[key] = r
		}
	})
}

// Commits returns the number of commits that have taken effect.
func (m *Memory) Commits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commits
}

// Records returns all records whose keys begin with prefix, in the order of their keys.
func (m *Memory) Records(prefix string) []cluster.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.page(prefix, "", len(m.records))
}

// set changes the state and wakes the waiting calls.
func (m *Memory) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

// Cut separates the node from the majority, until Mend.
func (c *Client) Cut() { c.memory.set(func() { c.cut = true }) }

// Mend undoes Cut. Calls that wait go on.
func (c *Client) Mend() { c.memory.set(func() { c.cut = false }) }

// Fail makes the next commits of the node meet faults, one each, in their order.
func (c *Client) Fail(faults ...Fault) {
	c.memory.set(func() { c.faults = append(c.faults, faults...) })
}

// Deliver carries out the withheld commits and returns their number. A commit whose
// conditions do not hold changes nothing.
func (c *Client) Deliver() int {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	n := len(c.withheld)
	for _, deliver := range c.withheld {
		deliver()
	}
	c.withheld = nil
	return n
}

// Before makes each call of the node begin with fn, in the goroutine of the call and
// without a lock: fn may block, and may use the Memory. A nil fn removes the hook.
func (c *Client) Before(fn func(Call)) { c.memory.set(func() { c.before = fn }) }

// enter waits for a majority and returns with memory.mu held.
func (c *Client) enter(ctx context.Context, call Call) error {
	m := c.memory
	m.mu.Lock()
	if before := c.before; before != nil {
		m.mu.Unlock()
		before(call)
		m.mu.Lock()
	}
	for {
		if c.closed {
			m.mu.Unlock()
			return fmt.Errorf("%s: %w", call.Method, cluster.ErrClosed)
		}
		if !m.lost && !c.cut {
			return nil
		}
		if err := ctx.Err(); err != nil {
			m.mu.Unlock()
			return fmt.Errorf("%s: %w: %w", call.Method, cluster.ErrNoMajority, err)
		}
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		m.mu.Lock()
	}
}

// Read implements cluster.Coordinator.
func (c *Client) Read(ctx context.Context, keys ...string) ([]cluster.Record, error) {
	for _, key := range keys {
		if err := cluster.CheckKey(key); err != nil {
			return nil, err
		}
	}
	if err := c.enter(ctx, Call{Method: "Read", Keys: keys}); err != nil {
		return nil, err
	}
	defer c.memory.mu.Unlock()
	out := make([]cluster.Record, len(keys))
	for i, key := range keys {
		out[i] = c.memory.record(key)
	}
	return out, nil
}

// record returns a copy of the record of a key. mu is held.
func (m *Memory) record(key string) cluster.Record {
	r, found := m.records[key]
	if !found {
		return cluster.Record{Key: key}
	}
	r.Value = append([]byte{}, r.Value...)
	return r
}

// Page implements cluster.Coordinator.
func (c *Client) Page(ctx context.Context, prefix, after string, limit int) ([]cluster.Record, error) {
	if err := cluster.CheckPage(limit); err != nil {
		return nil, err
	}
	if err := c.enter(ctx, Call{Method: "Page", Keys: []string{prefix, after}}); err != nil {
		return nil, err
	}
	defer c.memory.mu.Unlock()
	return c.memory.page(prefix, after, limit), nil
}

// page returns copies of the records: see Page. mu is held.
func (m *Memory) page(prefix, after string, limit int) []cluster.Record {
	var out []cluster.Record
	for key := range m.records {
		if strings.HasPrefix(key, prefix) && key > after {
			out = append(out, m.record(key))
		}
	}
	slices.SortFunc(out, func(a, b cluster.Record) int { return strings.Compare(a.Key, b.Key) })
	return out[:min(limit, len(out))]
}

// Commit implements cluster.Coordinator.
func (c *Client) Commit(ctx context.Context, conditions []cluster.Condition, changes []cluster.Change) (cluster.Result, error) {
	if err := cluster.Check(conditions, changes); err != nil {
		return cluster.Result{}, err
	}
	if n := max(len(conditions), len(changes)); n > cluster.MinTransaction {
		return cluster.Result{}, fmt.Errorf("%w: %d conditions or changes, at most %d", cluster.ErrTooLarge, n, cluster.MinTransaction)
	}
	if err := c.enter(ctx, Call{Method: "Commit", Conditions: conditions, Changes: changes}); err != nil {
		return cluster.Result{}, err
	}
	defer c.memory.mu.Unlock()
	fault := Passes
	if len(c.faults) > 0 {
		fault, c.faults = c.faults[0], c.faults[1:]
	}
	switch fault {
	case Passes:
		return c.memory.commit(conditions, changes), nil
	case Happens:
		c.memory.commit(conditions, changes)
	case Withhold:
		conditions, changes := slices.Clone(conditions), slices.Clone(changes)
		for i := range changes {
			changes[i].Value = slices.Clone(changes[i].Value)
		}
		c.withheld = append(c.withheld, func() { c.memory.commit(conditions, changes) })
	}
	return cluster.Result{}, fmt.Errorf("Commit: %w: %w", cluster.ErrUnknownOutcome, errLost)
}

var errLost = errors.New("the answer was lost")

// commit checks the conditions and makes the changes. mu is held.
func (m *Memory) commit(conditions []cluster.Condition, changes []cluster.Change) cluster.Result {
	for _, condition := range conditions {
		if m.records[condition.Key].Index == condition.Index {
			continue
		}
		var actual []cluster.Record
		for _, condition := range conditions {
			actual = append(actual, m.record(condition.Key))
		}
		return cluster.Result{Actual: actual}
	}
	m.index++
	for _, change := range changes {
		if change.Delete {
			delete(m.records, change.Key)
			continue
		}
		m.records[change.Key] = cluster.Record{Key: change.Key, Index: m.index, Value: append([]byte{}, change.Value...)}
	}
	if len(changes) > 0 {
		m.commits++
	}
	return cluster.Result{Index: m.index}
}

// Close implements cluster.Coordinator.
func (c *Client) Close() error {
	c.memory.set(func() { c.closed = true })
	return nil
}
