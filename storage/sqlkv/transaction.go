package sqlkv

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/jaydb/jay/storage"
)

// change is what is staged for a key: a value, its removal, or numbers that are added to those that it has.
type change struct {
	value []byte
	gone  bool
	add   []int64 // nil for none
}

// over returns c on top of what was there before.
func (c change) over(before change, changed bool) change {
	if c.add == nil || !changed {
		return c
	}
	if before.add == nil {
		return c.addedTo(before.value)
	}
	return change{add: plus(before.add, c.add)}
}

// addedTo returns what an addition makes of a value, which is nil for a key that is not there.
func (c change) addedTo(value []byte) change {
	value = sum(value, c.add)
	return change{value: value, gone: value == nil}
}

// size is that of the value that it stages.
func (c change) size() int { return max(len(c.value), 8*len(c.add)) }

// plus returns the sums of two lists of numbers.
func plus(a, b []int64) []int64 {
	out := slices.Clone(a)
	for i, n := range b {
		if i == len(out) {
			out = append(out, 0)
		}
		out[i] += n
	}
	return out
}

// sum returns numbers with deltas added to them, or nil if all have become 0.
func sum(numbers []byte, deltas []int64) []byte {
	out := make([]byte, max(len(numbers), 8*len(deltas)))
	copy(out, numbers)
	for i, n := range deltas {
		at := out[8*i:]
		binary.BigEndian.PutUint64(at, binary.BigEndian.Uint64(at)+uint64(n))
	}
	if len(bytes.Trim(out, "\x00")) == 0 {
		return nil
	}
	return out
}

// transaction is one run of a member's function.
type transaction struct {
	engine *Engine
	group  *group
	ctx    context.Context // ends the reads

	staged   map[string]change
	bytes    int64 // that were staged, also of values that were replaced
	sequence uint64
	sync     bool
	needs    storage.Needs
	deciders []storage.Decider
	first    bool  // it must be the first of its group, and runs again
	failed   error // of the server: the run is void
	over     bool
}

// mustRun panics if the function has returned: its transaction is over then.
func (tx *transaction) mustRun() {
	if tx.over {
		panic("jay: a transaction is used after its function has returned")
	}
}

// Get implements storage.Tx.
func (tx *transaction) Get(key []byte) ([]byte, io.Closer, error) {
	tx.mustRun()
	own, changed := tx.staged[string(key)]
	if changed && own.add == nil {
		return own.got()
	}
	value, err := tx.group.value(tx.ctx, key)
	if err != nil && err != storage.ErrNotFound {
		tx.failed = err
		return nil, nil, err
	}
	if changed {
		return own.addedTo(value).got()
	}
	return withCloser(value, err)
}

// got returns the value that is staged.
func (c change) got() ([]byte, io.Closer, error) {
	if c.gone {
		return nil, nil, storage.ErrNotFound
	}
	return c.value, nothing{}, nil
}

// Unchanged implements storage.Tx.
func (tx *transaction) Unchanged(w storage.WriteTracker, key []byte) bool {
	tx.mustRun()
	if _, changed := tx.staged[string(key)]; changed {
		return false
	}
	return tx.group.unchanged(tx.ctx, w.(*tracker), key)
}

// Iterate implements storage.Tx.
func (tx *transaction) Iterate(lo, hi []byte) (storage.Iterator, error) {
	tx.mustRun()
	if tx.group.stagedIn(lo, hi) {
		tx.first = true
		return nil, errFirst
	}
	if err := tx.group.begin(tx.ctx, nil, false); err != nil {
		tx.failed = err
		return nil, err
	}
	tx.group.walked(lo, hi)
	return newIterator(&txPager{tx}, lo, hi, nil), nil
}

// txPager reads what was committed before.
type txPager struct{ tx *transaction }

func (p *txPager) page(part pageOf) (pairs []pair, all bool, err error) {
	p.tx.mustRun()
	pairs, all, err = p.tx.group.page(p.tx.ctx, part)
	if err != nil {
		p.tx.failed = err
	}
	return pairs, all, err
}

func (p *txPager) value(key []byte) ([]byte, error) {
	p.tx.mustRun()
	value, err := p.tx.group.committed(p.tx.ctx, key)
	if err != nil && err != storage.ErrNotFound {
		p.tx.failed = err
	}
	return value, err
}

// stage stages a change on top of what the transaction has staged. What is above the limits is not held.
func (tx *transaction) stage(key []byte, c change) {
	tx.bytes += int64(len(key) + c.size())
	if tx.bytes > tx.engine.limits.TxBytes {
		c.value = nil
	}
	before, changed := tx.staged[string(key)]
	tx.staged[string(key)] = c.over(before, changed)
}

// Set implements storage.Tx.
func (tx *transaction) Set(key, head, tail []byte) {
	tx.mustRun()
	if tx.bytes > tx.engine.limits.TxBytes {
		tx.bytes += int64(len(key) + len(head) + len(tail))
		return
	}
	value := append(make([]byte, 0, len(head)+len(tail)), head...) // not nil, which the server would take for null
	tx.stage(key, change{value: append(value, tail...)})
}

// Delete implements storage.Tx.
func (tx *transaction) Delete(key []byte) {
	tx.mustRun()
	tx.stage(key, change{gone: true})
}

// Add implements storage.Tx.
func (tx *transaction) Add(key []byte, deltas ...int64) {
	tx.mustRun()
	tx.stage(key, change{add: append([]int64{}, deltas...)})
}

// Sequence implements storage.Tx.
func (tx *transaction) Sequence() (uint64, error) {
	tx.mustRun()
	if tx.sequence >= math.MaxInt64 {
		return 0, storage.ErrSequenceExhausted
	}
	tx.sequence++
	return tx.sequence, nil
}

// RequireFeature implements storage.Tx.
func (tx *transaction) RequireFeature(f storage.Feature) {
	tx.mustRun()
	tx.needs.Add(tx.engine.known, f)
}

// RequireSync implements storage.Tx.
func (tx *transaction) RequireSync() {
	tx.mustRun()
	tx.sync = true
}

// OnDecided implements storage.Tx.
func (tx *transaction) OnDecided(d storage.Decider) {
	tx.mustRun()
	tx.deciders = append(tx.deciders, d)
}

// decided tells those who wait that the run is decided.
func (tx *transaction) decided() {
	for _, d := range tx.deciders {
		d.Decided()
	}
	tx.deciders = nil
}

// check returns an error for what the transaction may not commit.
func (tx *transaction) check() error {
	var sizes storage.Sizes
	for key, c := range tx.staged {
		sizes.Add(len(key), c.size())
	}
	sizes.Tx = tx.bytes
	if err := tx.engine.limits.Check(sizes); err != nil {
		return err
	}
	return tx.needs.Err()
}
