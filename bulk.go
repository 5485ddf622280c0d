package jay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/relay"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
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

const (
	defaultBulkDocuments = 1000
	defaultBulkBytes     = 4 << 20
	defaultBulkDelay     = time.Second
	maxBulkDocuments     = 100_000
	maxBulkBytes         = 256 << 20
)

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
type BulkWriter struct {
	db   *DB
	opts BulkOptions

	mu      sync.Mutex
	filling *bulkBatch    // nil until one is free again. Guarded by mu.
	filled  chan struct{} // closed when filling is one again. Guarded by mu.
	closed  bool          // Guarded by mu.
	timer   *time.Timer
	pace    bulkPace

	full chan *bulkBatch // to the committer
	free chan *bulkBatch // back from it
	done chan struct{}   // closed when the committer has ended

	state    sync.Mutex
	err      error        // error that ended the writer. Guarded by state.
	panicked any          // what the first call that meets err panics with, or nil. Guarded by state.
	progress BulkProgress // Guarded by state.
	newest   uint64       // etag committed last, with invariants only. Guarded by state.
	started  time.Time
}

// bulkBatch is a batch with memory of its own, which is reused.
type bulkBatch struct {
	ops   []*op
	slab  []op
	arena []byte // bodies
	bytes int
	flush chan error // set if a Flush waits for this batch
}

// bulkBatches is how many batches a writer has: one being filled, one in the
// channel, one being committed.
const bulkBatches = 3

// allBatches counts also the batch that Close makes if none is being filled.
const allBatches = bulkBatches + 1

// BulkInsert starts a bulk insert. Close must be called. It returns ErrOption
// for options that make no sense, and ErrClosed after Close.
func (db *DB) BulkInsert(opts *BulkOptions) (*BulkWriter, error) {
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	w := &BulkWriter{
		db:      db,
		full:    make(chan *bulkBatch, allBatches),
		free:    make(chan *bulkBatch, allBatches),
		done:    make(chan struct{}),
		started: time.Now(),
	}
	w.pace.now = func() int64 { return 1 + int64(time.Since(w.started)) }
	w.pace.engine, _ = db.env.Engine.(storage.Paced)
	if opts != nil {
		w.opts = *opts
	}
	if err := w.opts.fill(); err != nil {
		return nil, err
	}
	for range bulkBatches {
		w.free <- &bulkBatch{slab: make([]op, 0, min(w.opts.BatchDocuments, defaultBulkDocuments))}
	}
	w.filling = <-w.free
	go w.commitAll()
	return w, nil
}

func (o *BulkOptions) fill() error {
	if o.BatchDocuments == 0 {
		o.BatchDocuments = defaultBulkDocuments
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = defaultBulkBytes
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = defaultBulkDelay
	}
	switch {
	case o.BatchDocuments < 1 || o.BatchDocuments > maxBulkDocuments:
		return fmt.Errorf("%w: BatchDocuments must be between 1 and %d, got %d", ErrOption, maxBulkDocuments, o.BatchDocuments)
	case o.BatchBytes < 1 || o.BatchBytes > maxBulkBytes:
		return fmt.Errorf("%w: BatchBytes must be between 1 and %d, got %d", ErrOption, maxBulkBytes, o.BatchBytes)
	case o.MaxDelay < 0:
		return fmt.Errorf("%w: MaxDelay must not be negative, got %v", ErrOption, o.MaxDelay)
	}
	return nil
}

// Store adds a document under a new HiLo ID of the collection, and returns the
// ID. body is copied.
func (w *BulkWriter) Store(ctx context.Context, collection string, body json.RawMessage, opts ...WriteOption) (id string, err error) {
	p := write.Preparations.Get().(*write.Preparation)
	defer p.Release()
	initStore(&p.Op, collection, body, opts)
	return w.add(ctx, p)
}

// Put adds a document with this ID, replacing an existing one, and returns the ID:
// "" makes a GUID. Server-side IDs and identities are made by the commit; Returning
// reports them after a Flush or Close. body is copied.
func (w *BulkWriter) Put(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (string, error) {
	p := write.Preparations.Get().(*write.Preparation)
	defer p.Release()
	initOp(&p.Op, write.Put, id, body, opts)
	return w.add(ctx, p)
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
	if db, ok := c.via.(*DB); !ok || db != w.db {
		return fmt.Errorf("%w: BulkStore is no part of a transaction, and its writer is one of the collection's database", ErrUsage)
	}
	o, err := newValueOp(ctx, c.m, write.Put, v, opts)
	if err != nil {
		return err
	}
	e := codec.NewEncoder(1)
	defer e.Release()
	body, err := e.Encode(c.m, v, w.db.env.Limits)
	if err != nil {
		return err
	}
	o.SetBody(c.m, body)
	if err := setCustom(c.m, o, v); err != nil {
		return err
	}
	if !o.StrategyUnknown(w.db.writer) {
		id, err := w.add(ctx, &write.Preparation{Op: *o})
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
	if _, err := w.add(ctx, &write.Preparation{Op: *o}); err != nil {
		c.m.SetIdentity(v, before, c.m.GetVersion(v))
		return err
	}
	return nil
}

// add prepares a document outside the lock and adds it to the batch.
func (w *BulkWriter) add(ctx context.Context, p *write.Preparation) (string, error) {
	o := &p.Op
	if err := w.prepare(ctx, p); err != nil {
		return "", write.OpError([]*op{o}, o, err)
	}
	id := o.ID
	if id == "" {
		id = o.Resolved
	}

	added := false
	defer func() {
		if !added { // an error, or a context that panics
			w.db.writer.Unused.Count([]*op{o})
		}
	}()
	if err := w.lock(ctx); err != nil {
		return "", err
	}
	defer w.mu.Unlock()
	w.filling.add(o)
	added = true
	w.pace.look(w.db.env)
	if len(w.filling.ops) == 1 {
		w.startTimer()
	}
	if len(w.filling.ops) == w.opts.BatchDocuments || w.filling.bytes >= w.opts.BatchBytes || w.filling.isPiece() && w.pace.slow() {
		w.send(nil)
	}
	return id, nil
}

// lock locks w.mu with a batch to fill, for which it waits without the lock. Its
// error is the one that ended the writer, or that of ctx.
func (w *BulkWriter) lock(ctx context.Context) error {
	for {
		w.mu.Lock()
		err := w.failure()
		if w.closed {
			err = errWriterClosed{}
		}
		if err == nil && w.filling != nil {
			return nil
		}
		filled := w.filled
		w.mu.Unlock()
		if err != nil {
			w.repeatPanic()
			return err
		}

		select {
		case b := <-w.free:
			w.mu.Lock()
			if w.filling == nil {
				w.fill(b)
			} else {
				w.free <- b // another call got one first
			}
			w.mu.Unlock()
		case <-filled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *BulkWriter) prepare(ctx context.Context, p *write.Preparation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.db.env.Enter(); err != nil {
		return err
	}
	defer w.db.env.Exit()
	p.Use(w.db.writer)
	if err := w.db.writer.Prepare(&p.Op, metadata.Ticks(w.db.env.Now()), &p.Naming); err != nil {
		return err
	}
	if p.Op.Guard != nil && w.db.inCluster() {
		return fmt.Errorf("%w: a bulk writer makes no cluster-wide transactions", ErrUsage)
	}
	p.Op.Exposed = true
	return w.db.writer.DrawID(ctx, &p.Op)
}

// add copies o and its body.
func (b *bulkBatch) add(o *op) {
	if len(b.slab) == cap(b.slab) {
		// The ops added so far stay where they are.
		b.slab = make([]op, 0, max(64, 2*cap(b.slab)))
	}
	b.slab = append(b.slab, *o)
	mine := &b.slab[len(b.slab)-1]
	mine.JSON = b.keep(o.JSON)
	mine.Tail = b.keep(o.Tail)
	mine.Header.Custom = bytes.Clone(o.Header.Custom)
	mine.Body, mine.Custom = nil, nil
	b.ops = append(b.ops, mine)
	b.bytes += len(mine.JSON) + len(mine.Tail) + len(mine.ID)
}

// keep copies p into the batch's memory.
func (b *bulkBatch) keep(p []byte) []byte {
	start := len(b.arena)
	b.arena = append(b.arena, p...)
	return b.arena[start:len(b.arena):len(b.arena)]
}

// fill makes b the batch that is filled, where there was none. w.mu is held.
func (w *BulkWriter) fill(b *bulkBatch) {
	w.filling = b
	close(w.filled)
}

// send hands the batch that is filled to the committer. w.mu is held.
func (w *BulkWriter) send(flush chan error) {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.filling.flush = flush
	w.full <- w.filling
	select {
	case w.filling = <-w.free:
	default: // the next call waits for one
		w.filling, w.filled = nil, make(chan struct{})
	}
}

// startTimer makes sure that the batch is committed even if nothing more
// comes. w.mu is held.
func (w *BulkWriter) startTimer() {
	batch, first := w.filling, w.filling.ops[0]
	w.timer = time.AfterFunc(w.opts.MaxDelay, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.closed && w.filling == batch && len(batch.ops) > 0 && batch.ops[0] == first {
			w.send(nil)
		}
	})
}

// Flush commits what was added before and waits until it is on disk.
func (w *BulkWriter) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	flushed := make(chan error, 1)
	if err := w.lock(ctx); err != nil {
		return err
	}
	w.send(flushed)
	w.mu.Unlock()
	select {
	case err := <-flushed:
		if err != nil {
			w.repeatPanic()
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close commits what was added, waits until all of it is on disk and ends the
// writer. It is idempotent, and returns the error that ended the writer, if
// one did.
func (w *BulkWriter) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		if w.timer != nil {
			w.timer.Stop()
		}
		if w.filling == nil {
			w.fill(new(bulkBatch))
		}
		w.filling.flush = make(chan error, 1)
		w.full <- w.filling
		close(w.full)
	}
	w.mu.Unlock()
	<-w.done
	w.repeatPanic()
	return w.failure()
}

// Progress returns how far the writer is.
func (w *BulkWriter) Progress() BulkProgress {
	w.state.Lock()
	defer w.state.Unlock()
	p := w.progress
	p.Elapsed = time.Since(w.started)
	return p
}

func (w *BulkWriter) failure() error {
	w.state.Lock()
	defer w.state.Unlock()
	return w.err
}

// repeatPanic panics with what the committer has met, once.
func (w *BulkWriter) repeatPanic() {
	w.state.Lock()
	defer w.state.Unlock()
	if value := w.panicked; value != nil {
		w.panicked = nil
		panic(value)
	}
}

// commitAll is the committer: it commits full batches in their order. If
// Progress ends its goroutine, it goes on on another, to answer those who wait.
func (w *BulkWriter) commitAll() {
	over := false
	defer func() {
		if over {
			close(w.done)
		} else {
			go w.commitAll()
		}
	}()
	for b := range w.full {
		w.take(b)
	}
	over = true
}

// take commits one batch, or drops it if the writer has ended, and answers the
// Flush that waits for it.
func (w *BulkWriter) take(b *bulkBatch) {
	defer func() {
		if b.flush != nil {
			b.flush <- w.failure()
		}
		b.reset()
		w.free <- b
	}()
	if w.failure() != nil {
		w.db.writer.Unused.Count(b.ops)
		return
	}
	stored := false
	w.watch(errCommitBroken, func() { stored = w.commit(b) })
	if stored && len(b.ops) > 0 && w.opts.Progress != nil {
		w.watch(errProgressBroken, func() { w.opts.Progress(w.Progress()) })
	}
}

// Why a writer ends whose committer has called a function that did not return.
var (
	errProgressBroken = fmt.Errorf("%w: BulkOptions.Progress did not return", ErrUsage)
	errCommitBroken   = errors.New("the commit did not return")
)

// watch calls fn. If fn does not return, the writer ends with err.
func (w *BulkWriter) watch(err error, fn func()) {
	var e relay.Ending
	defer func() {
		if !e.Returned() {
			w.broken(err, e.Panic())
		}
	}()
	e.Watch(fn)
}

// broken ends the writer because of a function that has panicked, or called
// runtime.Goexit, for which panicked is nil.
func (w *BulkWriter) broken(err error, panicked any) {
	reason := errors.New("it called runtime.Goexit")
	if panicked != nil {
		reason = fmt.Errorf("panic: %v", panicked)
		if err, is := panicked.(error); is {
			reason = fmt.Errorf("panic: %w", err)
		}
	}
	w.state.Lock()
	defer w.state.Unlock()
	w.err = fmt.Errorf("bulk insert, after %d documents: %w: %w", w.progress.Documents, err, reason)
	w.panicked = panicked
}

// commit commits one batch, and waits for the disk if a Flush waits for the
// batch, or for the sake of others: see bulkPace. If it returns false, the writer has ended.
func (w *BulkWriter) commit(b *bulkBatch) bool {
	sync := b.flush != nil || w.pace.slow()
	if sync {
		w.db.env.OwnSyncs.Add(1)
		defer w.db.env.OwnSyncs.Add(-1)
	}
	err := w.db.writeBulk(context.Background(), b.ops, sync)
	w.state.Lock()
	defer w.state.Unlock()
	if err != nil {
		w.err = fmt.Errorf("bulk insert, after %d documents: %w", w.progress.Documents, err)
		return false
	}
	if invariants.Enabled {
		w.checkEtags(b.ops)
	}
	if len(b.ops) > 0 {
		w.progress.Documents += int64(len(b.ops))
		w.progress.Bytes += int64(b.bytes)
		w.progress.Batches++
	}
	return true
}

// checkEtags checks that the etags of what was committed rise, from one batch to
// the next as well. w.state is held.
func (w *BulkWriter) checkEtags(ops []*op) {
	for _, o := range ops {
		if o.Header.Etag <= w.newest {
			invariants.Broken("a bulk writer commits etag %d behind %d", o.Header.Etag, w.newest)
		}
		w.newest = o.Header.Etag
	}
}

// reset empties the batch. Memory that one large document took is released.
func (b *bulkBatch) reset() {
	clear(b.slab)
	clear(b.ops)
	b.slab, b.ops, b.bytes, b.flush = b.slab[:0], b.ops[:0], 0, nil
	b.arena = b.arena[:0]
	if cap(b.arena) > 2*defaultBulkBytes {
		b.arena = nil
	}
}

// writeBulk commits prepared ops, behind the exclusive turns of their documents. With
// sync, they and everything committed before are on disk when it returns.
func (db *DB) writeBulk(ctx context.Context, ops []*op, sync bool) error {
	if db.watch == nil || len(ops) == 0 {
		return writeBulk(ctx, db, ops, sync)
	}
	o := operationOf(ops)
	o.Verb, o.ID = "bulk", ""
	return db.watch.Do(ctx, o, func(ctx context.Context, o *observe.Operation) error {
		err := writeBulk(ctx, db, ops, sync)
		if err == nil {
			o.Documents = int64(len(ops))
		}
		return err
	})
}

func writeBulk(ctx context.Context, db *DB, ops []*op, sync bool) error {
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	written := false
	defer func() {
		if !written {
			db.writer.Unused.Count(ops)
		}
	}()
	if err := db.writer.Yield(ctx, ops); err != nil {
		return err
	}
	if err := db.writer.SupposeCollections(ctx, ops); err != nil {
		return err
	}
	prefetched, err := db.writer.Prefetch(ctx, ops)
	if err != nil {
		return err
	}
	defer prefetched.Close(ops)
	err = db.writer.DrawIdentities(ctx, ops, nil)
	if err == nil {
		err = db.writer.Redrawing(ctx, ops, func() error { return db.writer.Transact(ctx, sync, bulkTransaction(ops, prefetched)) })
	}
	db.writer.SettleIdentities(ops, err)
	if err != nil {
		return err
	}
	written = true
	db.writer.Publish(ops)
	return nil
}

// bulkTransaction returns what commits a batch.
func bulkTransaction(ops []*op, prefetched *write.Prefetched) func(t *write.Txn) error {
	return func(t *write.Txn) error {
		t.Use(prefetched)
		for _, o := range ops {
			if o.Strategy == ids.Identity {
				t.Tx.RequireSync() // readers may see its number at once
				break
			}
		}
		return t.Run(ops)
	}
}

// errWriterClosed is the ErrClosed of a writer on a database that is open.
type errWriterClosed struct{}

func (errWriterClosed) Error() string        { return "jay: the bulk writer is closed" }
func (errWriterClosed) Is(target error) bool { return target == ErrClosed }
