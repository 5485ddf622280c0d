package write

import (
	"context"
	"errors"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// HeldNumbers are numbers of identities that runs of one transaction were given and have
// not used, by folded request: the next run gets them again.
type HeldNumbers map[string][]int64

// DrawIdentities reserves the numbers of the identities that ops ask for, if the database
// belongs to a cluster: all of one name together. Without a cluster it does nothing: the
// transaction makes the IDs. SettleIdentities follows, also after an error.
func (w *Writer) DrawIdentities(ctx context.Context, ops []*Op, held HeldNumbers) error {
	if w.Cluster == nil {
		return nil
	}
	var byName map[string][]*Op
	for _, o := range ops {
		if o.Strategy.FromCounter() {
			if byName == nil {
				byName = make(map[string][]*Op)
			}
			o.number = 0
			name := w.Env.Rules.Fold(o.Resolved)
			byName[name] = append(byName[name], o)
		}
	}
	for _, o := range ops { // in their order
		if !o.Strategy.FromCounter() || o.number != 0 {
			continue
		}
		name := w.Env.Rules.Fold(o.Resolved)
		if err := w.drawIdentity(ctx, name, byName[name], held); err != nil {
			return OpError(ops, o, err)
		}
	}
	return nil
}

// drawIdentity gives ops of one name their numbers.
func (w *Writer) drawIdentity(ctx context.Context, name string, ops []*Op, held HeldNumbers) error {
	for len(ops) > 0 && len(held[name]) > 0 {
		number := held[name][0]
		held[name] = held[name][1:]
		if err := w.takeNumber(ops[0], number); err != nil {
			return err
		}
		ops = ops[1:]
	}
	if len(ops) == 0 {
		return nil
	}
	if err := w.CheckFloor(name); err != nil {
		return err
	}
	first, err := w.Cluster.Draw(ctx, name, int64(len(ops)), 0)
	if err != nil {
		return err
	}
	for i, o := range ops {
		if bad := w.takeNumber(o, first+int64(i)); bad != nil && err == nil {
			err = bad
		}
	}
	return err
}

// takeNumber makes the ID of an op of a number.
func (w *Writer) takeNumber(o *Op, number int64) error {
	o.number, o.ID = number, w.Resolver.IdentityID(o.Resolved, number)
	if err := w.Env.Rules.Check(o.ID); err != nil {
		return err
	}
	w.EncodeTail(o)
	return nil
}

// redrawIdentity draws another number for an op whose ID a document has: one whose ID is
// free here, as far as is known.
func (w *Writer) redrawIdentity(ctx context.Context, o *Op) error {
	name, taken := w.Env.Rules.Fold(o.Resolved), o.number
	w.Cluster.Settle(name, taken, taken, accord.Written) // there is a document
	o.number, o.ID = 0, ""
	number, err := w.DrawFree(ctx, name, o.Resolved, taken, func(above int64) (int64, error) { return w.Cluster.Draw(ctx, name, 1, above) })
	if err != nil {
		return err
	}
	return w.takeNumber(o, number)
}

// DrawFree calls draw for a number of an identity until no document has its ID. taken is
// the number that was drawn before and is in use; 0 for none.
func (w *Writer) DrawFree(ctx context.Context, name, request string, taken int64, draw func(above int64) (int64, error)) (int64, error) {
	exists := func(number int64) (bool, error) {
		return docs.Exists(w.Env.Engine, format.DocumentKey(nil, w.Env.Rules.Fold(w.Resolver.IdentityID(request, number))))
	}
	for {
		above := int64(0)
		if taken > 0 {
			free, err := ids.NextFree(taken-1, exists)
			if err != nil {
				return 0, err
			}
			above = free - 1
		}
		number, err := draw(above)
		if err != nil {
			return 0, err
		}
		found, err := exists(number)
		if err != nil {
			w.Cluster.Settle(name, number, number, accord.Unwritten)
			return 0, err
		}
		if !found {
			return number, nil
		}
		w.Cluster.Settle(name, number, number, accord.Written)
		taken = number
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
}

// CheckFloor returns ErrNeedsFloor for an identity of a copy, if its original does not
// belong to the cluster and no floor was given.
func (w *Writer) CheckFloor(name string) error {
	if !w.Cluster.NeedsFloors() {
		return nil
	}
	record := format.Identity{}
	value, closer, err := w.Env.Engine.Get(format.AppendKey(nil, format.SpaceIdentity, name))
	switch {
	case err == nil:
		record, err = format.DecodeIdentity(value)
		err = errs.First(err, closer.Close())
	case err == storage.ErrNotFound:
		err = nil
	}
	if err == nil && record.Node != w.Env.Node {
		err = errs.ErrNeedsFloor
	}
	return err
}

// SettleIdentities says what has become of the numbers that ops were given: err is that of
// their write.
func (w *Writer) SettleIdentities(ops []*Op, err error) {
	if w.Cluster == nil {
		return
	}
	fate := accord.Written
	switch {
	case errors.Is(err, storage.ErrUnknownOutcome):
		fate = accord.Unknown
	case err != nil:
		fate = accord.Unwritten
	}
	for _, o := range ops {
		if o.number != 0 {
			w.Cluster.Settle(w.Env.Rules.Fold(o.Resolved), o.number, o.number, fate)
		}
	}
}

// settled returns the error of a write; one that ended without one and was not written has
// met a panic.
func settled(written bool, err error) error {
	if !written && err == nil {
		return errPanicked
	}
	return err
}

var errPanicked = errors.New("the write ended in a panic")

// HoldIdentities keeps the numbers of ops for the next run of their transaction.
func (w *Writer) HoldIdentities(ops []*Op, held HeldNumbers) {
	for _, o := range ops {
		if o.number != 0 {
			name := w.Env.Rules.Fold(o.Resolved)
			held[name] = append(held[name], o.number)
			o.number = 0
		}
	}
}

// ReleaseIdentities says that held numbers are not used.
func (w *Writer) ReleaseIdentities(held HeldNumbers) {
	for name, numbers := range held {
		for _, number := range numbers {
			w.Cluster.Settle(name, number, number, accord.Unwritten)
		}
	}
}

// Redrawing calls commit again, with other numbers, as long as the ID of an op is in use.
func (w *Writer) Redrawing(ctx context.Context, ops []*Op, commit func() error) error {
	for {
		err := commit()
		if !errors.Is(err, errIDInUse) {
			return err
		}
		if err := w.redrawTaken(ctx, ops); err != nil {
			return err
		}
	}
}

// stageReserved stages the number of an op that was reserved from the cluster: the local
// counter follows it.
func (t *Txn) stageReserved(o *Op) error {
	if _, err := t.RaiseIdentity(t.Writer.Env.Rules.Fold(o.Resolved), o.number); err != nil {
		return err
	}
	return t.Writer.Cluster.StageSeen(t.Tx)
}
