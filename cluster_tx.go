package jay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jaydb/jay/internal/exchange"
	"github.com/jaydb/jay/internal/write"
)

// commitInCluster draws the numbers of the transaction's identities and commits. A run
// that loses leaves its numbers to the next run.
func (t *Tx) commitInCluster(ctx context.Context, commit func() error) error {
	w := t.db.writer
	if w.IsClusterWide(t.ops) || len(t.exchanges.read) > 0 {
		reads := write.Reads{Indexes: t.exchanges.read, Documents: slices.Sorted(maps.Keys(t.reads.versions)), Check: t.reads.check}
		commit = func() error { return w.CommitClusterWide(ctx, t.ops, reads) }
	}
	err := w.DrawIdentities(ctx, t.ops, t.issued.identities)
	if err == nil {
		err = w.Redrawing(ctx, t.ops, commit)
	}
	if err != nil && !errors.Is(err, ErrUnknownOutcome) {
		w.HoldIdentities(t.ops, t.issued.identities)
		return err
	}
	w.SettleIdentities(t.ops, err)
	return err
}

// baseExchange returns a value as of before the transaction's own changes, or nil. Without
// a cluster that is the value in the snapshot. With a cluster it is the value that the
// first read has found; the commit compares it again.
func (t *Tx) baseExchange(ctx context.Context, folded string) (*exchange.Value, error) {
	if !t.db.inCluster() {
		return exchange.Get(t.snapshot, folded)
	}
	if v, found := t.exchanges.base[folded]; found {
		return v, nil
	}
	found, err := readClusterValues(ctx, t.db, folded)
	if err != nil {
		return nil, err
	}
	if t.exchanges.base == nil {
		t.exchanges.base = make(map[string]*exchange.Value)
	}
	t.exchanges.base[folded] = found[0]
	return found[0], nil
}

// clusterList implements CompareExchange.List in a transaction with a cluster.
func (t *Tx) clusterList(ctx context.Context, prefix, after string, limit int) ([]*CompareExchangeValue, error) {
	if t.writable {
		return nil, fmt.Errorf("%w: with a cluster, a transaction that writes cannot list compare-exchange values: its commit could not see that one was added", ErrUsage)
	}
	return clusterPage(ctx, t.db, prefix, after, limit)
}
