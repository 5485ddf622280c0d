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

// Tx is a transaction: a snapshot of the database from the beginning of the transaction, with the transaction's
// own writes over it. DB.Update and DB.View pass a Tx to their function. The transaction ends when that
// function returns: later calls return ErrTxDone. The methods of Tx work like the methods of DB. Collection.In
// provides them for Go values.
//
// A Tx is safe for concurrent use by goroutines that end before the function returns.
type Tx txn.Tx

func (t *Tx) inner() *txn.Tx { return (*txn.Tx)(t) }

// TxOption is an option of DB.Update: Retry or RequestID.
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

// Retry runs the function again, up to n more times, after its transaction lost a conflict; Retry() retries
// until ctx ends. The function must be safe to run more than once. Before each further run, the transaction
// waits for its turn: see DB.Update. A run that yields to waiting transactions counts, too. A turn passes to
// the next transaction after four runs, or when a run takes too long; the transaction then waits for another
// turn, at the end of the queue. So no n guarantees success. In a test, 8 to 200 goroutines incremented one
// document on two processors with Retry(10): none of 960,000 transactions gave up with syncs, and 20 of 960,000
// under Relaxed durability. Use Retry() for a transaction that must not give up.
//
// Update returns ErrUsage if n is negative, or if Retry has more than one argument.
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

// View calls fn with a read-only Tx on one snapshot, and returns the error of fn. The snapshot takes disk space
// as long as fn runs.
func (db *DB) View(ctx context.Context, fn func(*Tx) error) error {
	if db.core.Watch == nil {
		return txn.View(ctx, &db.core, func(t *txn.Tx) error { return fn((*Tx)(t)) })
	}
	return db.core.Watch.Do(ctx, observe.Operation{Verb: "view"}, func(ctx context.Context, _ *observe.Operation) error {
		return txn.View(ctx, &db.core, func(t *txn.Tx) error { return fn((*Tx)(t)) })
	})
}

// Update calls fn with a Tx. When fn returns nil, Update commits all writes of fn atomically, in one write,
// durable as Options.Durability says. If fn returns an error or panics, nothing is changed, and Update returns
// that error unchanged.
//
// Transactions are serializable. Update takes no lock while fn runs. The commit checks that no other write has
// changed the read set of fn: the documents that fn read, the documents that it found missing, and the ranges
// that it iterated over. If the read set has changed, Update changes nothing and returns a *ConflictError. A
// Put or Delete of a document that fn has not read never conflicts. A transaction without writes needs no
// check.
//
// Without Retry, fn runs once. With Retry, a transaction that lost a conflict joins the queue for the document
// or range of the conflict, and runs fn again at its turn. Transactions in a queue commit one after another,
// and share the syncs of the disk. Queues belong to this process only. A turn passes to the next transaction
// when fn runs for more than a second. A call of Update inside fn never waits for the turn that fn has.
//
// HiLo IDs and GUIDs are final at once, and each further run of fn gets the IDs of the first run again (unless
// fn itself still holds one of them). The commit assigns server-side IDs and identities: until then Metadata.ID
// is the request. Returning and the ID fields of structs hold the final IDs when Update returns nil.
//
// With RequestID the writes are committed once: if an Update with the ID was committed before, Update returns
// nil and does not call fn. Update cannot compare functions, so a call with another fn also returns nil. A
// repeated call must read results that the first call returned through variables from the database. Of two
// concurrent calls one commits; the fn of the other may have run, but its writes, with their IDs, are dropped.
// A transaction without writes stores no result.
//
// A transaction holds its writes in memory, up to 1 GiB; each write counts as its document and 512 bytes. A
// write beyond that returns ErrTooLarge. Update checks ctx again before the commit: if ctx has ended, nothing
// is committed.
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
		o.Once = &write.Once{Request: &requests.Request{ID: o.id, Call: "update"}, Keeps: write.KeepsNothing}
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

// Get returns a document, as DB.Get does.
func (t *Tx) Get(ctx context.Context, id string) (*Document, error) {
	doc, err := t.inner().Get(ctx, id)
	return (*Document)(doc), err
}

// GetMany returns documents, as DB.GetMany does.
func (t *Tx) GetMany(ctx context.Context, ids ...string) ([]*Document, error) {
	out := make([]*Document, len(ids))
	if err := t.inner().LookupMany(ctx, ids, func(i int, doc *docs.Document) { out[i] = (*Document)(doc) }); err != nil {
		return nil, err
	}
	return out, nil
}

// Exists reports whether a document exists, as DB.Exists does.
func (t *Tx) Exists(ctx context.Context, id string) (bool, error) { return t.inner().Exists(ctx, id) }

// Put stores a document, as DB.Put does.
func (t *Tx) Put(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, t, newOp(write.Put, id, body, opts))
}

// Insert stores a new document, as DB.Insert does.
func (t *Tx) Insert(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, t, newOp(write.Insert, id, body, opts))
}

// Store inserts a document under a HiLo ID, as DB.Store does.
func (t *Tx) Store(ctx context.Context, collection string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, t, newStore(collection, body, opts))
}

// Replace stores a document over an existing one, as DB.Replace does.
func (t *Tx) Replace(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, t, newOp(write.Replace, id, body, opts))
}

// Delete removes a document, as DB.Delete does.
func (t *Tx) Delete(ctx context.Context, id string, opts ...WriteOption) error {
	_, err := writeOne(ctx, t, newOp(write.Delete, id, nil, opts))
	return err
}

// Apply makes the writes of b in the transaction, as DB.Apply does; its patches work like Tx.Patch. b can be
// used again at once.
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

// Savepoint calls fn. If fn returns an error or panics, Savepoint undoes the writes that the transaction has
// made since the beginning of the call. It returns the error of fn unchanged. So a part of a transaction can
// fail without the rest:
//
//	err := tx.Savepoint(ctx, func() error { return book(tx, second) })
//
// The reads of fn stay in the read set, so the transaction is serializable with everything that it has read.
// HiLo IDs that fn has drawn stay unused. Structs and variables of Returning keep the values that the writes of
// fn have set. Savepoints can be nested. Writes that other goroutines make through the transaction while fn
// runs are undone, too.
func (t *Tx) Savepoint(ctx context.Context, fn func() error) error {
	return t.inner().Savepoint(ctx, fn)
}

// Documents iterates over documents, as DB.Documents does. The iteration includes the writes that the
// transaction had made when the iteration began, except documents whose ID the commit will make. The range that
// the loop has passed joins the read set. Documents of @hilo, which change whenever IDs are drawn, join the
// read set only in an iteration over that collection or over a prefix.
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
