package jay

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/bulk"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/write"
)

// BulkOptions configure BulkInsert. The zero value, and nil, are good
// defaults.
type BulkOptions struct {
	// BatchDocuments and BatchBytes bound a batch: it is committed when it reaches
	// either. The defaults are 1,000 documents and 4 MiB. Batches are smaller while
	// other writes wait for the disk: see BulkWriter.
	BatchDocuments int
	BatchBytes     int

	// MaxDelay is the time after which a batch is committed even if it is not full.
	// The default is one second.
	MaxDelay time.Duration

	// Progress is called after each committed batch, by one goroutine at a time. It
	// blocks the writer while it runs, and must call none of its methods but
	// Progress.
	//
	// If it panics, or calls runtime.Goexit, the writer ends: batches that were
	// committed stay, the others are not stored, and all later calls return an
	// ErrUsage that says so. The first of them panics with the value instead.
	Progress func(BulkProgress)
}

// BulkProgress reports how far a BulkWriter is.
type BulkProgress struct {
	Documents int64         `json:"documents"` // committed
	Bytes     int64         `json:"bytes"`     // of those documents, as they are stored
	Batches   int64         `json:"batches"`
	Elapsed   time.Duration `json:"elapsedNs"`
}

// BulkWriter is the fastest way to load many documents: a stream of documents from
// one goroutine or many, committed in batches in the background while the next
// batch fills. DB.BulkInsert makes it and Close ends it. All methods are safe for
// concurrent use.
//
// Each batch is atomic. Batches do not wait for the disk: a document is durable
// when a later Flush or Close has returned nil. Durable writes of other callers would
// wait long beside large batches. While there are any, batches are of about 60 KB, each
// waits for the disk, and the load takes longer. If a single document is refused,
// such as for malformed JSON, the call that added it returns the error and the
// writer goes on. If a batch cannot be committed, the writer ends: that call and
// all later ones return the error, and Progress reports how many documents were
// committed before it.
//
// Calls return IDs before their batch is committed. If a document was written by
// hand under an ID that HiLo then draws, the commit is refused with ErrExists; a
// new writer continues with the numbers after it.
//
// A writer holds at most three batches in memory. A caller that is faster than the
// disk waits, for as long as one commit takes. A batch waits for a transaction that
// has lost repeatedly over one of its documents, and has an exclusive turn now (see
// DB.Update): for a second at most. If the context of a caller ends meanwhile, its
// document is not added and the writer goes on. When the database is closed, calls
// return ErrClosed, and documents that were not flushed before are not stored.
type BulkWriter bulk.Writer

func (w *BulkWriter) inner() *bulk.Writer { return (*bulk.Writer)(w) }

// BulkInsert starts a bulk insert. Close must be called. It returns ErrOption
// for options that make no sense, and ErrClosed after Close.
func (db *DB) BulkInsert(opts *BulkOptions) (*BulkWriter, error) {
	var o bulk.Options
	if opts != nil {
		o = bulk.Options{BatchDocuments: opts.BatchDocuments, BatchBytes: opts.BatchBytes, MaxDelay: opts.MaxDelay}
		if opts.Progress != nil {
			o.Progress = func(p bulk.Progress) { opts.Progress(BulkProgress(p)) }
		}
	}
	w, err := bulk.New(&db.core, o)
	return (*BulkWriter)(w), err
}

// Store adds a document under a new HiLo ID of the collection, and returns the
// ID. body is copied.
func (w *BulkWriter) Store(ctx context.Context, collection string, body json.RawMessage, opts ...WriteOption) (id string, err error) {
	p := write.Preparations.Get().(*write.Preparation)
	defer p.Release()
	initStore(&p.Op, collection, body, opts)
	return w.inner().Add(ctx, p)
}

// Put adds a document with this ID, replacing an existing one, and returns the ID:
// "" makes a GUID. Server-side IDs and identities are made by the commit; Returning
// reports them after a Flush or Close. body is copied.
func (w *BulkWriter) Put(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (string, error) {
	p := write.Preparations.Get().(*write.Preparation)
	defer p.Release()
	initOp(&p.Op, write.Put, id, body, opts)
	return w.inner().Add(ctx, p)
}

// BulkStore adds v to the writer as Put would store it: an empty ID field gets a
// HiLo ID, or what the conventions make, at once. An existing document with the ID
// is replaced, unless the ID was made. A version field gives the version that the
// document must have, unless IfMatch or AnyVersion overrides it, and stays as it is.
//
// v belongs to the caller again when BulkStore returns. The exception is a value
// whose ID the commit makes, such as "invoices|": its field is written by the
// commit, and v must not be used before a Flush or Close has returned.
func (c *Collection[T]) BulkStore(ctx context.Context, w *BulkWriter, v *T, opts ...WriteOption) error {
	if v == nil {
		return fmt.Errorf("%w: nil %T", ErrUsage, v)
	}
	if db, ok := c.via.(*DB); !ok || &db.core != w.inner().Database() {
		return fmt.Errorf("%w: BulkStore is no part of a transaction, and its writer is one of the collection's database", ErrUsage)
	}
	o, err := newValueOp(ctx, c.m, write.Put, v, opts)
	if err != nil {
		return err
	}
	e := codec.NewEncoder(1)
	defer e.Release()
	body, err := e.Encode(c.m, v, c.via.source().Database().Env.Limits)
	if err != nil {
		return err
	}
	o.SetBody(c.m, body)
	if err := setCustom(c.m, o, v); err != nil {
		return err
	}
	if !o.StrategyUnknown(c.via.source().Database().Writer) {
		id, err := w.inner().Add(ctx, &write.Preparation{Op: *o})
		if err == nil {
			c.m.SetIdentity(v, id, c.m.GetVersion(v))
		}
		return err
	}

	// The commit writes the ID, and may do so before add returns: compare with the
	// ID before.
	before := c.m.GetID(v)
	c.m.SetIdentity(v, o.RequestID, c.m.GetVersion(v))
	o.Committed = func(result Metadata) { setResult(c.m, v, result) }
	if _, err := w.inner().Add(ctx, &write.Preparation{Op: *o}); err != nil {
		c.m.SetIdentity(v, before, c.m.GetVersion(v))
		return err
	}
	return nil
}

// Flush commits what was added before and waits until it is on disk.
func (w *BulkWriter) Flush(ctx context.Context) error { return w.inner().Flush(ctx) }

// Close commits what was added, waits until all of it is on disk and ends the
// writer. It is idempotent, and returns the error that ended the writer, if
// one did.
func (w *BulkWriter) Close() error { return w.inner().Close() }

// Progress returns how far the writer is.
func (w *BulkWriter) Progress() BulkProgress { return BulkProgress(w.inner().Progress()) }
