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
	// BatchDocuments and BatchBytes bound a batch: the writer commits it when it reaches either. The defaults
	// are 1,000 documents and 4 MiB. Batches are smaller while other writes wait for the disk: see BulkWriter.
	BatchDocuments int
	BatchBytes     int

	// MaxDelay is the time after which the writer commits a batch even if it is not full. The default is one
	// second.
	MaxDelay time.Duration

	// Progress is called after each committed batch, by one goroutine at a time. It blocks the writer while it
	// runs. Of the methods of the writer, it may call only Progress.
	//
	// If Progress panics, or calls runtime.Goexit, the writer ends: committed batches stay, the others are not
	// stored, and all later calls return an ErrUsage that says so. After a panic, the first of these calls
	// panics with the same value instead.
	Progress func(BulkProgress)
}

// BulkProgress reports how far a BulkWriter is.
type BulkProgress struct {
	Documents int64         `json:"documents"` // committed
	Bytes     int64         `json:"bytes"`     // stored size of those documents
	Batches   int64         `json:"batches"`
	Elapsed   time.Duration `json:"elapsedNs"`
}

// BulkWriter is the fastest way to load many documents. One or more goroutines add documents, and the writer
// commits them in batches in the background while the next batch fills. DB.BulkInsert makes a BulkWriter, and
// Close ends it. All methods are safe for concurrent use.
//
// Each batch is atomic. Batches do not wait for the disk: a document is durable when a later Flush or Close has
// returned nil. Large batches would delay durable writes of other callers. While other callers make such
// writes, each batch has about 60 KB and waits for the disk, and the load takes longer.
//
// If a single document is refused, such as for malformed JSON, the call that added it returns the error and the
// writer continues. A Put that names no collection keeps that of the existing document, which the writer
// looks up with the batch: if the schema or a strict index of that collection refuses the document, the batch
// is not committed. If a batch cannot be committed, the writer ends: that call and all later calls return the
// error, and Progress reports how many documents were committed before it.
//
// Calls return IDs before their batch is committed. If a document exists already under an ID that HiLo draws,
// the commit fails with ErrExists; a new writer continues with the numbers after it.
//
// A writer holds at most three batches in memory. A caller that is faster than the disk waits, for as long as
// one commit takes. A batch also waits, for at most a second, for a transaction that has an exclusive turn
// after repeated conflicts over one of the documents of the batch (see DB.Update). If the context of a waiting
// caller ends, its document is not added and the writer continues. After Close of the database, calls return
// ErrClosed, and documents that were not flushed before are not stored.
type BulkWriter bulk.Writer

func (w *BulkWriter) inner() *bulk.Writer { return (*bulk.Writer)(w) }

// BulkInsert starts a bulk insert. The caller must call Close of the writer. BulkInsert returns ErrOption for
// invalid options, and ErrClosed after Close of the database.
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

// Store adds a document under a new HiLo ID of the collection, and returns the ID. Store copies body.
func (w *BulkWriter) Store(ctx context.Context, collection string, body json.RawMessage, opts ...WriteOption) (id string, err error) {
	p := write.Preparations.Get().(*write.Preparation)
	defer p.Release()
	initStore(&p.Op, collection, body, opts)
	return w.inner().Add(ctx, p)
}

// Put adds a document with this ID, replacing an existing one, and returns the ID. An empty id makes a GUID.
// The commit makes server-side IDs and identities; Returning reports them after a Flush or Close. Put copies
// body.
func (w *BulkWriter) Put(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (string, error) {
	p := write.Preparations.Get().(*write.Preparation)
	defer p.Release()
	initOp(&p.Op, write.Put, id, body, opts)
	return w.inner().Add(ctx, p)
}

// BulkStore adds v to the writer, to be stored as by Put. An empty ID field gets a HiLo ID, or the ID that the
// conventions make, at once. The write replaces an existing document with the ID, unless Jay or the conventions
// made the ID. A version field holds the version that the document must have, unless IfMatch or AnyVersion
// overrides it; the field does not change.
//
// v belongs to the caller again when BulkStore returns. The exception is a value whose ID the commit makes,
// such as "invoices|": the commit sets the ID field, and v must not be used before a Flush or Close has
// returned.
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

// Flush commits the documents that were added before the call, and waits until they are on disk.
func (w *BulkWriter) Flush(ctx context.Context) error { return w.inner().Flush(ctx) }

// Close commits the documents that were added, waits until all of them are on disk, and ends the writer. It is
// idempotent. It returns the error that ended the writer, if any.
func (w *BulkWriter) Close() error { return w.inner().Close() }

// Progress returns the progress of the writer.
func (w *BulkWriter) Progress() BulkProgress { return BulkProgress(w.inner().Progress()) }
