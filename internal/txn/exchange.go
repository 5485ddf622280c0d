package txn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/exchange"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// check lists the page again and compares it with the one that was read.
func (p *exchangePage) check(in *write.Txn) error {
	sum, count := newPageSum(), 0
	err := exchange.EachIndex(context.Background(), in.Tx, p.prefix, p.after, func(folded string, index uint64) bool {
		if p.last != "" && folded > p.last {
			return false
		}
		sum.add(folded, index)
		count++
		return folded != p.last && count <= p.count
	})
	if err != nil || bytes.Equal(sum.Sum(nil), p.sum) {
		return err
	}
	what := "all keys"
	if p.prefix != "" {
		what = fmt.Sprintf("keys that begin with %.100q", p.prefix)
	}
	return write.LostError{Cause: &metadata.CompareExchangeError{Range: what}, Over: turns.Range("", write.ExchangeTurn(p.prefix))}
}

// check compares the present values with the read set.
func (x *exchanges) check(in *write.Txn) error {
	if len(x.read)+len(x.pages) == 0 || in.Writer.Cluster != nil { // with a cluster the coordinator compares
		return nil
	}
	for _, folded := range slices.Sorted(maps.Keys(x.read)) {
		now, err := in.IndexOf(folded)
		if err != nil {
			return err
		}
		if seen := x.read[folded]; now != seen {
			return write.LostError{Cause: &metadata.CompareExchangeError{Key: folded, Expected: seen, Actual: now}, Over: turns.Document(write.ExchangeTurn(folded))}
		}
	}
	for _, page := range x.pages {
		if err := page.check(in); err != nil {
			return err
		}
	}
	return nil
}

// undoExchanges rebuilds staged after ops were removed from Tx.ops.
func (t *Tx) undoExchanges() {
	if len(t.exchanges.staged) == 0 {
		return
	}
	clear(t.exchanges.staged)
	for i, o := range t.ops {
		if o.Exchanging != nil {
			t.exchanges.staged[o.Exchanging.Folded] = i
		}
	}
}

// addExchange records the position in Tx.ops of a key's newest op.
func (t *Tx) addExchange(folded string, at int) {
	if t.exchanges.staged == nil {
		t.exchanges.staged = make(map[string]int)
	}
	t.exchanges.staged[folded] = at
}

// expectIndex compares the index that o expects of a compare-exchange value or of a guard
// with the one from before the transaction, and adds it to the read set. The commit checks
// the read set, so it need not compare again.
func (t *Tx) expectIndex(ctx context.Context, o *write.Op) error {
	key, folded, expected := o.RequestID, "", uint64(0)
	if x := o.Exchanging; x != nil {
		folded, expected = x.Folded, x.Index
	} else {
		key, folded, expected = format.GuardPrefix+o.ID, write.GuardKey(o.FoldedID), o.Guard.Index
	}
	if o.Guard == nil || !o.Guard.Any {
		base, err := t.baseExchange(ctx, folded)
		if err != nil {
			return err
		}
		now := uint64(0)
		if base != nil {
			now = base.Index
		}
		t.sawIndex(folded, now)
		if i, found := t.exchanges.staged[folded]; found && t.ops[i].Exchanging.Delete && expected == 0 {
			now = 0 // the transaction has deleted it
		}
		if now != expected {
			return &metadata.CompareExchangeError{Key: key, Expected: expected, Actual: now}
		}
	}
	o.Compared = true
	return nil
}

// ExchangeList returns compare-exchange values as the transaction sees them, at most limit of
// those whose keys begin with prefix and come after the key after, both folded.
func (t *Tx) ExchangeList(ctx context.Context, prefix, after string, limit int) ([]*exchange.Value, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	if t.db.InCluster() {
		return t.clusterList(ctx, prefix, after, limit)
	}
	var own []string // keys that the transaction has changed, in their order
	for _, folded := range slices.Sorted(maps.Keys(t.exchanges.staged)) {
		if strings.HasPrefix(folded, prefix) && folded > after {
			own = append(own, folded)
		}
	}
	var out []*exchange.Value
	page, sum := exchangePage{prefix: prefix, after: after}, newPageSum()
	before := func(folded string) { // appends own values whose keys are before folded
		for len(own) > 0 && (folded == "" || own[0] < folded) && len(out) < limit {
			if v := pendingExchange(t.ops[t.exchanges.staged[own[0]]], 0); v != nil {
				out = append(out, v)
			}
			own = own[1:]
		}
	}
	err := exchange.Each(ctx, t.snapshot, prefix, after, func(v *exchange.Value) bool {
		sum.add(v.Folded, v.Index)
		page.count++
		page.last = v.Folded
		before(v.Folded)
		if len(out) == limit {
			return false
		}
		if len(own) > 0 && own[0] == v.Folded {
			if v := pendingExchange(t.ops[t.exchanges.staged[own[0]]], v.Index); v != nil {
				out = append(out, v)
			}
			own = own[1:]
		} else {
			out = append(out, v)
		}
		if len(out) == limit {
			return false
		}
		page.last = ""
		return true
	})
	if err != nil {
		return nil, err
	}
	if page.last == "" {
		before("")
	}
	if t.writable {
		page.sum = sum.Sum(nil)
		t.exchanges.pages = append(t.exchanges.pages, page)
	}
	return out, nil
}

// pendingExchange returns the value that o will write, with the index that it replaces,
// or nil for a deletion.
func pendingExchange(o *write.Op, index uint64) *exchange.Value {
	if o.Exchanging.Delete {
		return nil
	}
	return &exchange.Value{Key: o.RequestID, Index: index, Value: slices.Clone(o.JSON), Metadata: slices.Clone(o.Header.Custom)}
}

// sawIndex adds the index of a value to the read set.
func (t *Tx) sawIndex(folded string, index uint64) {
	if !t.writable {
		return
	}
	if t.exchanges.read == nil {
		t.exchanges.read = make(map[string]uint64)
	}
	t.exchanges.read[folded] = index
}

// exchangeOf returns the value of a folded key as the transaction sees it, or nil.
func (t *Tx) exchangeOf(ctx context.Context, folded string) (*exchange.Value, error) {
	base, err := t.baseExchange(ctx, folded)
	if err != nil {
		return nil, err
	}
	index := uint64(0)
	if base != nil {
		index = base.Index
	}
	t.sawIndex(folded, index)
	if i, found := t.exchanges.staged[folded]; found {
		return pendingExchange(t.ops[i], index), nil
	}
	return base, nil
}

// ExchangeValues returns the compare-exchange values of keys as the transaction sees them;
// nil for a key without one.
func (t *Tx) ExchangeValues(ctx context.Context, keys []string) ([]*exchange.Value, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	out := make([]*exchange.Value, len(keys))
	for i, key := range keys {
		folded, err := exchange.CheckKey(t.db.Env.Rules, key)
		if err != nil {
			return nil, err
		}
		if out[i], err = t.exchangeOf(ctx, folded); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s pageSum) add(folded string, index uint64) {
	var scratch [64]byte
	text := append(append(scratch[:0], folded...), 0)
	s.Write(binary.BigEndian.AppendUint64(text, index)) // a hash returns no error
}

func newPageSum() pageSum { return pageSum{sha256.New()} }

// pageSum is the hash of the keys and indexes of a page.
type pageSum struct{ hash.Hash }

// exchangePage is a page of values in the read set. The commit lists it again and
// compares.
type exchangePage struct {
	prefix, after string
	last          string // the last key; "" if the list reached the end
	count         int    // number of values
	sum           []byte // hash of their keys and indexes
}

// exchanges is the compare-exchange part of a transaction: its reads and its writes.
type exchanges struct {
	read   map[string]uint64 // indexes in the read set, by folded key; 0 for none
	pages  []exchangePage    // lists in the read set
	staged map[string]int    // position in Tx.ops of the newest op of a folded key

	base map[string]*exchange.Value // values as first read, by folded key; only with a cluster, which has no snapshot
}

// baseExchange returns a value as of before the transaction's own changes, or nil. Without
// a cluster that is the value in the snapshot. With a cluster it is the value that the
// first read has found; the commit compares it again.
func (t *Tx) baseExchange(ctx context.Context, folded string) (*exchange.Value, error) {
	if !t.db.InCluster() {
		return exchange.Get(t.snapshot, folded)
	}
	if v, found := t.exchanges.base[folded]; found {
		return v, nil
	}
	found, err := t.db.ClusterValues(ctx, folded)
	if err != nil {
		return nil, err
	}
	if t.exchanges.base == nil {
		t.exchanges.base = make(map[string]*exchange.Value)
	}
	t.exchanges.base[folded] = found[0]
	return found[0], nil
}

// clusterList is ExchangeList with a cluster.
func (t *Tx) clusterList(ctx context.Context, prefix, after string, limit int) ([]*exchange.Value, error) {
	if t.writable {
		return nil, fmt.Errorf("%w: with a cluster, a transaction that writes cannot list compare-exchange values: its commit could not see that one was added", ids.ErrUsage)
	}
	return t.db.ClusterPage(ctx, prefix, after, limit)
}

// GuardIndex returns the index of the guard of a document in the snapshot; 0 if it has none.
func (t *Tx) GuardIndex(folded string) (uint64, error) {
	return exchange.IndexAt(t.snapshot, write.GuardKey(folded))
}
