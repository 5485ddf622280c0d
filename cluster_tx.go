package jay

import (
	"context"
	"errors"
)

// commitInCluster gives the transaction's identities their numbers, and commits. A run
// that loses leaves its numbers to the next one.
func (t *Tx) commitInCluster(ctx context.Context, commit func() error) error {
	w := t.db.writer
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
