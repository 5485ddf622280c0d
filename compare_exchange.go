package jay

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exchange"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// CompareExchange reads and changes the compare-exchange values of a database: JSON values under keys, separate
// from the documents. A change names the index that the value must have. So of two callers that have read the
// same value only the first can change it, which is enough for unique names, locks and counters.
// DB.CompareExchange returns the handle. The handle of Tx.CompareExchange changes values together with
// documents, in a transaction. A CompareExchange is safe for concurrent use.
//
// Keys have 1 to 512 bytes, and follow the rules of IDs: case does not matter unless the database says so. Keys
// that begin with "rvn-atomic/" belong to AtomicGuard. A value is any JSON, of at most 1 MiB.
//
// With Options.Cluster all nodes share the values. Every method then calls the cluster's coordinator, and
// returns ErrNoMajority if that has no majority. A change that ends with ErrUnknownOutcome is resolved in the
// background, and at the latest by the next Open; the index shows the outcome. If Get still returns the old
// index after the database was opened again, the change was not made.
type CompareExchange struct {
	db *core.Database
	tx *Tx // nil outside of a transaction
}

// CompareExchange returns the compare-exchange values of the database.
func (db *DB) CompareExchange() CompareExchange { return CompareExchange{db: &db.core} }

// CompareExchange returns the compare-exchange values as the transaction sees them: the state at its beginning,
// with its own changes. Values that it reads belong to its read set. An index in a transaction is always the
// index from before the transaction, even after the transaction has changed the value.
func (t *Tx) CompareExchange() CompareExchange {
	return CompareExchange{db: t.inner().Database(), tx: t}
}

// CompareExchangeValue is the value of a key.
type CompareExchangeValue struct {
	Key string `json:"key"` // as the caller wrote it

	// Index grows with every change of the key and never repeats, not even after a deletion or a crash. It is
	// above 0, except that a value that the same transaction has made has index 0.
	//
	// Indexes are etags. A copy or a restored database does not know the indexes that its original has made
	// since, and makes them again unless RestoreOptions.Floors or RaiseCounters has raised its etags above
	// them.
	Index uint64 `json:"index"`

	Value    json.RawMessage `json:"value"`
	Metadata json.RawMessage `json:"metadata,omitempty"` // a JSON object, or nil
}

// Decode stores the value in *v as encoding/json does.
func (x *CompareExchangeValue) Decode(v any) error {
	if err := json.Unmarshal(x.Value, v); err != nil {
		return fmt.Errorf("compare-exchange key %q: %w", errs.Shorten(x.Key), err)
	}
	return nil
}

// CompareExchangeError is returned when a compare-exchange value does not have the
// expected index, or was changed since a transaction has read it. Nothing was changed.
// errors.Is(err, ErrConflict) is always true; ErrExists and ErrNotFound match where they
// apply. Its fields (see package metadata):
//
//	Key       string           as the caller wrote it; folded if a transaction has lost, "" with Range
//	Expected  uint64           0 means that there must be no value
//	Actual    uint64           0 if there is no value
//	Value     json.RawMessage  the present value; nil if there is none, for a guard and in a transaction
//	Metadata  json.RawMessage  of that value
//	Range     string           the range that a transaction had listed before it changed; else ""
type CompareExchangeError = metadata.CompareExchangeError

// CompareExchangeOption is an option of CompareExchange.Put.
type CompareExchangeOption func(*op)

// CompareExchangeMetadata stores an object as metadata of the value. Without the option
// the new value has no metadata, even if the old one had. @expires and @refresh are
// refused: only documents expire.
func CompareExchangeMetadata(object json.RawMessage) CompareExchangeOption {
	return func(o *op) { o.Custom = object }
}

// Get returns the value of a key, or ErrNotFound.
func (c CompareExchange) Get(ctx context.Context, key string) (*CompareExchangeValue, error) {
	found, err := c.GetMany(ctx, key)
	if err != nil {
		return nil, err
	}
	if found[0] == nil {
		return nil, fmt.Errorf("compare-exchange key %q: %w", errs.Shorten(key), ErrNotFound)
	}
	return found[0], nil
}

// GetMany returns the values of keys from one snapshot, in the order of keys. The value of a missing key is
// nil.
func (c CompareExchange) GetMany(ctx context.Context, keys ...string) ([]*CompareExchangeValue, error) {
	if c.tx != nil {
		found, err := c.tx.inner().ExchangeValues(ctx, keys)
		return publicExchanges(found), err
	}
	found, err := c.db.ExchangeValues(ctx, keys...)
	return publicExchanges(found), err
}

func publicExchange(v *exchange.Value) *CompareExchangeValue {
	if v == nil {
		return nil
	}
	return &CompareExchangeValue{Key: v.Key, Index: v.Index, Value: v.Value, Metadata: v.Metadata}
}

func publicExchanges(found []*exchange.Value) []*CompareExchangeValue {
	if found == nil {
		return nil
	}
	out := make([]*CompareExchangeValue, len(found))
	for i, v := range found {
		out[i] = publicExchange(v)
	}
	return out
}

// List returns the values whose keys begin with prefix and come after the key after, in
// the order of their folded keys. It returns at most limit of them, and at most 1,024; a
// limit of 0 means 1,024. To get the next page, pass the key of the last value as after.
func (c CompareExchange) List(ctx context.Context, prefix, after string, limit int) ([]*CompareExchangeValue, error) {
	if limit < 0 {
		return nil, fmt.Errorf("%w: list compare-exchange values: a limit of %d", ErrUsage, limit)
	}
	if limit == 0 || limit > exchange.MaxPage {
		limit = exchange.MaxPage
	}
	prefix, after = c.db.Env.Rules.Fold(prefix), c.db.Env.Rules.Fold(after)
	if c.tx != nil {
		found, err := c.tx.inner().ExchangeList(ctx, prefix, after, limit)
		return publicExchanges(found), err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.db.Env.Enter(); err != nil {
		return nil, err
	}
	defer c.db.Env.Exit()
	var out []*CompareExchangeValue
	if c.db.InCluster() {
		found, err := c.db.ClusterPage(ctx, prefix, after, limit)
		return publicExchanges(found), err
	}
	err := exchange.Each(ctx, c.db.Env.Engine, prefix, after, func(v *exchange.Value) bool {
		out = append(out, publicExchange(v))
		return len(out) < limit
	})
	return out, err
}

// Put stores a value under a key, if the present value has the index, or if there is none
// and index is 0. It returns the new index. Otherwise it returns a *CompareExchangeError
// with the present value, and changes nothing. value is encoded by encoding/json; a
// json.RawMessage is stored as it is, without white space.
//
// In a transaction the new index is made at the commit, and Put returns 0.
func (c CompareExchange) Put(ctx context.Context, key string, value any, index uint64, opts ...CompareExchangeOption) (uint64, error) {
	o := new(op)
	initExchange(o, key, index)
	setExchange(o, value, opts)
	return c.change(ctx, o)
}

// Delete removes the value of a key, if it has the index. Otherwise it returns a *CompareExchangeError and
// changes nothing. An index of 0 is an ErrUsage, because 0 means no value.
func (c CompareExchange) Delete(ctx context.Context, key string, index uint64) error {
	o := new(op)
	initExchange(o, key, index)
	removeExchange(o)
	_, err := c.change(ctx, o)
	return err
}

// change writes one op, directly or in the transaction.
func (c CompareExchange) change(ctx context.Context, o *op) (uint64, error) {
	var err error
	if c.tx != nil {
		err = c.tx.write(ctx, []*op{o})
	} else {
		err = c.db.Write(ctx, []*op{o})
	}
	if err != nil {
		return 0, err
	}
	return c.db.Writer.ResultOf(o).Etag, nil
}

// PutCompareExchange adds a write as by CompareExchange.Put to the batch. In the results of DB.Apply its
// Metadata has the key as ID and the new index as Etag.
func (b *Batch) PutCompareExchange(key string, value any, index uint64, opts ...CompareExchangeOption) {
	o := b.add()
	initExchange(o, key, index)
	setExchange(o, value, opts)
}

// DeleteCompareExchange adds a write as by CompareExchange.Delete to the batch.
func (b *Batch) DeleteCompareExchange(key string, index uint64) {
	o := b.add()
	initExchange(o, key, index)
	removeExchange(o)
}

func initExchange(o *op, key string, index uint64) {
	o.Verb, o.RequestID = write.Exchange, key
	o.Exchanging = &write.Exchanging{Index: index}
}

// setExchange makes o an op that writes a value.
func setExchange(o *op, value any, opts []CompareExchangeOption) {
	for _, option := range opts {
		option(o)
	}
	if raw, is := value.(json.RawMessage); is {
		o.Body = raw
		return
	}
	body, err := json.Marshal(value)
	if err != nil {
		o.UsageError = fmt.Errorf("%w: compare-exchange value: %w", ErrType, err)
	}
	o.Body = body
}

// removeExchange makes o an op that deletes a value.
func removeExchange(o *op) {
	o.Exchanging.Delete = true
	if o.Exchanging.Index == 0 {
		o.UsageError = fmt.Errorf("%w: delete compare-exchange key %q: index 0 means that there is no value", ErrUsage, errs.Shorten(o.RequestID))
	}
}

// AtomicGuard protects a document in cluster-wide transactions, in RavenDB's sense. It is the compare-exchange
// value with the key "rvn-atomic/" followed by the ID. A cluster-wide transaction compares and replaces the
// guard of each document that it writes, in the same commit. So of two transactions that have read the same
// guard only one commits, on any nodes. Deleting the document in such a transaction deletes its guard. Other
// writes neither check nor change guards.
//
// A Session with ClusterWide handles guards itself. Other programs read a guard with
// CompareExchange.Get and GuardKey, and pass it to Guarded.
type AtomicGuard struct {
	// Index is the index that the guard must have; 0 if there must be none. The commit
	// sets it to the new index, or to 0 after a deletion.
	Index uint64

	// Any accepts any guard, and a missing guard. Index is then not compared.
	Any bool
}

// Guarded makes the write part of a cluster-wide transaction: see AtomicGuard. If the guard does not have the
// index, the write fails with a *CompareExchangeError. Guarded applies to Put, Insert, Replace and Delete of a
// document whose ID the commit does not make; other writes return ErrUsage. The caller must not change g until
// the write has ended.
func Guarded(g *AtomicGuard) WriteOption {
	return writeOption(func(o *op) { o.Guard = (*write.Guard)(g) })
}

// GuardKey returns the compare-exchange key of the guard of a document.
func GuardKey(id string) string { return format.GuardPrefix + id }
