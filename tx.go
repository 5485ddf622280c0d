package jay

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/txn"
	"github.com/jaydb/jay/internal/write"
)

// Tx is a transaction: the database as it was when the transaction began, with the
// transaction's own writes over it. DB.Update and DB.View pass it to their
// function, and it ends when that function returns: later calls return ErrTxDone.
// Its methods are those of DB. Collection.In provides them for Go values.
//
// A Tx is safe for concurrent use by goroutines that end before the function does.
type Tx txn.Tx

func (t *Tx) inner() *txn.Tx { return (*txn.Tx)(t) }

// TxOption changes one DB.Update: Retry and RequestID return some.
type TxOption interface{ transacts() }

type txOptions struct {
	txn.Options
	id      string // of the request
	given   bool
	misused error
}

type txOption func(*txOptions)

func (txOption) transacts() {}

var _ TxOption = RequestOption{}

// Retry runs the function again, up to n more times, when its transaction lost
// against another one; Retry() goes on until ctx ends. The function must be able to
// run more than once. Before it runs again, the transaction waits for its turn: see
// DB.Update. A run that gives way to transactions in line counts as well. A turn passes
// on after four runs, or when a run in it takes too long; the transaction then waits for
// another one, as the youngest. So no number of runs is sure to suffice. Where 8 to 200
// goroutines increment one document on two processors, with Retry(10), none of 960,000
// transactions gave up with syncs, and 20 of 960,000 under Relaxed durability. What must not
// give up takes Retry().
//
// Update returns ErrUsage if n is negative, or for more than one number.
func Retry(n ...int) TxOption {
	return txOption(func(o *txOptions) {
		switch {
		case len(n) == 0:
			o.Retries = math.MaxInt
		case len(n) > 1:
			o.misused = fmt.Errorf("%w: Retry takes one number, not %d", ErrUsage, len(n))
		case n[0] < 0:
			o.misused = fmt.Errorf("%w: Retry(%d): a function cannot run again fewer than 0 times", ErrUsage, n[0])
		default:
			o.Retries = n[0]
		}
	})
}

// View calls fn with a read-only Tx: everything as it was at one moment. It returns
// fn's error. That state takes disk space as long as fn runs.
func (db *DB) View(ctx context.Context, fn func(*Tx) error) error {
	if db.core.Watch == nil {
		return txn.View(ctx, &db.core, func(t *txn.Tx) error { return fn((*Tx)(t)) })
	}
	return db.core.Watch.Do(ctx, observe.Operation{Verb: "view"}, func(ctx context.Context, _ *observe.Operation) error {
		return txn.View(ctx, &db.core, func(t *txn.Tx) error { return fn((*Tx)(t)) })
	})
}

// Update calls fn with a Tx and, when fn returns nil, commits what it wrote: all of
// it or nothing, in one write, durable as Options.Durability says. If fn returns an
// error, or panics, nothing is changed, and Update returns that error as it is.
//
// Transactions are serializable. Update takes no lock while fn runs; at its end the
// commit checks that nothing in the read set of fn was changed meanwhile: the
// documents that it read, those it found missing, and the ranges that it iterated
// over. Otherwise nothing is changed, and Update returns a *ConflictError. A Put or
// Delete of a document that fn has not read depends on nothing and never conflicts. A
// transaction that wrote nothing needs no check.
//
// Without Retry, fn runs once. With Retry, a transaction that lost waits in line for
// what it lost over, a document or a range, and runs fn again when it has its turn:
// those in line commit one after another, and share the syncs of the disk. A turn is
// for this process only. It passes to the next transaction when fn runs for more than
// a second. A call of Update inside fn never waits for the turn that fn has.
//
// HiLo IDs and GUIDs are final at once, and a run that follows another gets those
// of the first again (unless the function holds one of them itself). Server-side
// IDs and identities are assigned by the commit: until then Metadata.ID is the
// request. Returning and the ID fields of structs hold the final IDs when Update
// returns nil.
//
// With RequestID the writes are committed once: Update returns nil, and does not call fn, if an Update with the ID was
// committed before. What fn does cannot be compared, so another fn gets the same answer, and what the first call
// has returned through variables is to be read from the database. Of two calls at a time one commits; fn of the other one may have run, and its
// writes, with the IDs that it was given, are dropped. A transaction that wrote nothing leaves no result.
//
// A transaction holds its writes in memory: a write past 1 GiB, where each counts
// 512 bytes beside its document, is refused with ErrTooLarge. ctx is checked again
// before the commit: once it is cancelled, nothing is committed.
func (db *DB) Update(ctx context.Context, fn func(*Tx) error, opts ...TxOption) error {
	var o txOptions
	for _, option := range opts {
		switch option := option.(type) { // without a dynamic call, which would move options to the heap
		case txOption:
			option(&o)
		case RequestOption:
			o.id, o.given = strings.Clone(option.id), true
		}
	}
	if o.misused != nil {
		return o.misused
	}
	if o.given {
		if err := requests.CheckID(o.id); err != nil {
			return fmt.Errorf("update: %w", err)
		}
		o.Once = &write.Once{Request: &requests.Request{ID: o.id, Call: "update"}, Result: func() any { return nil }}
	}
	issued := txn.NewIssued()
	if db.core.Watch == nil {
		return txn.Update(ctx, &db.core, func(t *txn.Tx) error { return fn((*Tx)(t)) }, o.Options, issued)
	}
	return db.core.Watch.Do(ctx, observe.Operation{Verb: "update"}, func(ctx context.Context, seen *observe.Operation) error {
		err := txn.Update(ctx, &db.core, func(t *txn.Tx) error { return fn((*Tx)(t)) }, o.Options, issued)
		seen.Documents = issued.Written
		return err
	})
}

var _ access = (*Tx)(nil)

// Get is DB.Get.
func (t *Tx) Get(ctx context.Context, id string) (*Document, error) {
	doc, err := t.inner().Get(ctx, id)
	return (*Document)(doc), err
}

// GetMany is DB.GetMany.
func (t *Tx) GetMany(ctx context.Context, ids ...string) ([]*Document, error) {
	out := make([]*Document, len(ids))
	if err := t.inner().LookupMany(ctx, ids, func(i int, doc *docs.Document) { out[i] = (*Document)(doc) }); err != nil {
		return nil, err
	}
	return out, nil
}

// Exists is DB.Exists.
func (t *Tx) Exists(ctx context.Context, id string) (bool, error) { return t.inner().Exists(ctx, id) }

// Put is DB.Put.
func (t *Tx) Put(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, t, newOp(write.Put, id, body, opts))
}

// Insert is DB.Insert.
func (t *Tx) Insert(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, t, newOp(write.Insert, id, body, opts))
}

// Store is DB.Store.
func (t *Tx) Store(ctx context.Context, collection string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, t, newStore(collection, body, opts))
}

// Replace is DB.Replace.
func (t *Tx) Replace(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, t, newOp(write.Replace, id, body, opts))
}

// Delete is DB.Delete.
func (t *Tx) Delete(ctx context.Context, id string, opts ...WriteOption) error {
	_, err := writeOne(ctx, t, newOp(write.Delete, id, nil, opts))
	return err
}

// Apply is DB.Apply, with patches as Tx.Patch makes them. b can be used again
// at once.
func (t *Tx) Apply(ctx context.Context, b *Batch) ([]Metadata, error) {
	if b == nil {
		return nil, fmt.Errorf("%w: nil batch", ErrUsage)
	}
	slab := make([]op, len(b.ops))
	ops := make([]*op, len(b.ops))
	for i, o := range b.ops {
		slab[i] = *o
		slab[i].Tail, slab[i].Written = nil, nil
		ops[i] = &slab[i]
	}
	if err := t.write(ctx, ops); err != nil {
		return nil, err
	}
	return results(t, ops), nil
}

// source implements access.
func (t *Tx) source() builder.Source { return t.inner() }

// write implements access: it stages ops, all of them or none. The results
// are what is known before the commit.
func (t *Tx) write(ctx context.Context, ops []*op) error { return t.inner().Write(ctx, ops) }

func (t *Tx) result(o *op) Metadata { return t.inner().Database().Writer.ResultOf(o) }

// Savepoint calls fn, and undoes what the transaction has written since if fn returns
// an error, which Savepoint returns as it is, or panics. So a part of a transaction can
// fail without the rest:
//
//	err := tx.Savepoint(ctx, func() error { return book(tx, second) })
//
// What fn has read stays in the read set: the transaction is serializable with all that
// it has seen. HiLo IDs that fn was given stay unused. Structs and Returning keep what
// the writes of fn have put there. Savepoints can be nested. What other goroutines write
// through the transaction while fn runs is undone, too.
func (t *Tx) Savepoint(ctx context.Context, fn func() error) error {
	return t.inner().Savepoint(ctx, fn)
}

// Documents is DB.Documents. The iteration includes what the transaction had
// written when it began, except documents whose ID the commit will make. The range
// joins the read set, as far as the loop went; but documents of @hilo, which
// drawing IDs writes at any time, only count in an iteration over that collection
// or over a prefix.
func (t *Tx) Documents(ctx context.Context, s Scan) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		w, err := t.inner().Walk(ctx, s.documents())
		if err != nil {
			yield(nil, fmt.Errorf("documents: %w", err))
			return
		}
		defer w.Close()
		for n := 0; s.Limit <= 0 || n < s.Limit; n++ {
			doc, err := w.Next(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("documents: %w", err))
				return
			}
			if doc == nil {
				return
			}
			if !yield((*Document)(doc), nil) {
				return
			}
		}
	}
}
