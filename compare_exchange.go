package jay

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exchange"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// CompareExchange reads and changes the compare-exchange values of a database: JSON
// values under keys, beside the documents. A change names the index that the value must
// have, so that of two callers who have read the same one only the first succeeds: that
// makes unique names, locks and counters. DB.CompareExchange returns the handle, and
// Tx.CompareExchange that of a transaction, in which documents and values are changed
// together. It is safe for concurrent use.
//
// Keys have 1 to 512 bytes, and follow the rules of IDs: case does not matter unless the
// database says so. Keys that begin with "rvn-atomic/" are those of AtomicGuard. A value
// is any JSON, of at most 1 MiB.
//
// With Options.Cluster the values are those of all nodes. Then every method asks the
// cluster's coordinator, and returns ErrNoMajority if that has no majority. A change that
// ends with ErrUnknownOutcome is brought to its end in the background, and by the next Open:
// the index decides it. If Get still shows the old one, and the database was opened again,
// the change has not happened.
type CompareExchange struct {
	db *DB
	tx *Tx
}

// CompareExchange returns the compare-exchange values of the database.
func (db *DB) CompareExchange() CompareExchange { return CompareExchange{db: db} }

// CompareExchange returns the compare-exchange values as the transaction sees them: as
// they were when it began, with its own changes. What it has read is in the read set, and
// an index is that from before the transaction, whatever it has changed since.
func (t *Tx) CompareExchange() CompareExchange { return CompareExchange{db: t.db, tx: t} }

// CompareExchangeValue is the value of a key.
type CompareExchangeValue struct {
	Key string `json:"key"` // as it was written

	// Index grows with every change of the key, and never returns, not even after a
	// deletion or a crash. It is above 0. A value that the transaction has made has 0.
	//
	// A copy or a restored database does not know the indexes that its original has made
	// since, and makes them again, unless RestoreOptions.Floors or RaiseCounters has raised
	// its etags above them: indexes are etags.
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
// errors.Is(err, ErrConflict) is always true, and errors.Is with ErrExists and
// ErrNotFound as they apply. Its fields (see package metadata):
//
//	Key       string           as the caller wrote it; folded if a transaction has lost, "" with Range
//	Expected  uint64           0 means that there must be no value
//	Actual    uint64           0 if there is none
//	Value     json.RawMessage  what is there; nil if there is none, for a guard and in a transaction
//	Metadata  json.RawMessage  of that value
//	Range     string           what a transaction had listed before it changed; else ""
type CompareExchangeError = metadata.CompareExchangeError

// CompareExchangeOption changes one CompareExchange.Put.
type CompareExchangeOption func(*op)

// CompareExchangeMetadata stores an object beside the value. Without it the value has
// none, whatever the one before had. @expires and @refresh are refused: only documents
// expire.
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

// GetMany returns the values of keys at one moment, in their order; nil for a key without
// one.
func (c CompareExchange) GetMany(ctx context.Context, keys ...string) ([]*CompareExchangeValue, error) {
	if c.tx != nil {
		return c.tx.exchangeValues(ctx, keys)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.db.env.Enter(); err != nil {
		return nil, err
	}
	defer c.db.env.Exit()
	if c.db.inCluster() {
		return clusterValues(ctx, c.db, keys)
	}
	out := make([]*CompareExchangeValue, len(keys))
	snapshot := c.db.env.Engine.Snapshot()
	for i, key := range keys {
		folded, err := exchange.CheckKey(c.db.env.Rules, key)
		var found *exchange.Value
		if err == nil {
			found, err = exchange.Get(snapshot, folded)
		}
		if err != nil {
			return nil, errs.First(err, snapshot.Close())
		}
		out[i] = publicExchange(found)
	}
	return out, snapshot.Close()
}

func publicExchange(v *exchange.Value) *CompareExchangeValue {
	if v == nil {
		return nil
	}
	return &CompareExchangeValue{Key: v.Key, Index: v.Index, Value: v.Value, Metadata: v.Metadata}
}

// List returns the values whose keys begin with prefix, in the order of their folded
// keys, those after the key after, at most limit of them and at most 1,024: pass the key
// of the last one to get the next page. A limit of 0 means 1,024.
func (c CompareExchange) List(ctx context.Context, prefix, after string, limit int) ([]*CompareExchangeValue, error) {
	if limit < 0 {
		return nil, fmt.Errorf("%w: list compare-exchange values: a limit of %d", ErrUsage, limit)
	}
	if limit == 0 || limit > exchange.MaxPage {
		limit = exchange.MaxPage
	}
	prefix, after = c.db.env.Rules.Fold(prefix), c.db.env.Rules.Fold(after)
	if c.tx != nil {
		return c.tx.exchangeList(ctx, prefix, after, limit)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.db.env.Enter(); err != nil {
		return nil, err
	}
	defer c.db.env.Exit()
	var out []*CompareExchangeValue
	if c.db.inCluster() {
		return clusterPage(ctx, c.db, prefix, after, limit)
	}
	err := exchange.Each(ctx, c.db.env.Engine, prefix, after, func(v *exchange.Value) bool {
		out = append(out, publicExchange(v))
		return len(out) < limit
	})
	return out, err
}

// Put stores a value under a key whose value has the index, or that has none if index is
// 0, and returns the new index. Otherwise it returns a *CompareExchangeError, which has
// what is there, and changes nothing. value is stored as encoding/json encodes it, and a
// json.RawMessage as it is, without white space.
//
// In a transaction the commit makes the new index, and Put returns 0.
func (c CompareExchange) Put(ctx context.Context, key string, value any, index uint64, opts ...CompareExchangeOption) (uint64, error) {
	o := new(op)
	initExchange(o, key, index)
	setExchange(o, value, opts)
	return c.change(ctx, o)
}

// Delete removes the value of a key, which must have the index. Otherwise it returns a
// *CompareExchangeError and changes nothing. An index of 0 is ErrUsage: there is nothing
// to delete.
func (c CompareExchange) Delete(ctx context.Context, key string, index uint64) error {
	o := new(op)
	initExchange(o, key, index)
	removeExchange(o)
	_, err := c.change(ctx, o)
	return err
}

// change writes one op.
func (c CompareExchange) change(ctx context.Context, o *op) (uint64, error) {
	var through access = c.db
	if c.tx != nil {
		through = c.tx
	}
	m, err := writeOne(ctx, through, o)
	return m.Etag, err
}

// PutCompareExchange adds CompareExchange.Put. In the results of DB.Apply its Metadata
// has the key as ID and the new index as Etag.
func (b *Batch) PutCompareExchange(key string, value any, index uint64, opts ...CompareExchangeOption) {
	o := b.add()
	initExchange(o, key, index)
	setExchange(o, value, opts)
}

// DeleteCompareExchange adds CompareExchange.Delete.
func (b *Batch) DeleteCompareExchange(key string, index uint64) {
	o := b.add()
	initExchange(o, key, index)
	removeExchange(o)
}

func initExchange(o *op, key string, index uint64) {
	o.Verb, o.RequestID = write.Exchange, key
	o.Exchanging = &write.Exchanging{Index: index}
}

// setExchange makes o the write of a value.
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

// removeExchange makes o a deletion.
func removeExchange(o *op) {
	o.Exchanging.Delete = true
	if o.Exchanging.Index == 0 {
		o.UsageError = fmt.Errorf("%w: delete compare-exchange key %q: index 0 means that there is no value", ErrUsage, errs.Shorten(o.RequestID))
	}
}

// AtomicGuard is what a cluster-wide transaction, in RavenDB's sense, compares and
// replaces for each document that it writes, in the same commit: the compare-exchange
// value with the key "rvn-atomic/" and the ID. So of two transactions that have read the
// same guard only one commits, on whichever node. Deleting the document in such a
// transaction removes its guard. Other writes do not look at guards, and leave them.
//
// A Session with ClusterWide keeps the guards by itself. A program that does not use one
// reads a guard with CompareExchange.Get and GuardKey, and passes it to Guarded.
type AtomicGuard struct {
	// Index is the index that the guard must have; 0 if there must be none. When the
	// write is committed, it is the new one, 0 after a deletion.
	Index uint64

	// Any takes the guard as it is, if there is one.
	Any bool
}

// Guarded makes the write one of a cluster-wide transaction: see AtomicGuard. If the
// guard does not have the index, the write fails with a *CompareExchangeError. It is for
// documents that are put, inserted, replaced or deleted, with an ID that the commit does
// not make; else the write is ErrUsage. g must stay as it is until the write has ended.
func Guarded(g *AtomicGuard) WriteOption {
	return func(o *op) { o.Guard = (*write.Guard)(g) }
}

// GuardKey returns the compare-exchange key of the guard of a document.
func GuardKey(id string) string { return format.GuardPrefix + id }
