// Package bulk loads many documents: a stream of documents from several goroutines, committed
// in batches in the background while the next batch fills (Writer). It also has what calls
// need that work in batches: the syncs that they share (Lazy).
//
// Both make room for other writers that wait for the disk: see pace.
package bulk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/relay"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// Options configure a Writer. A zero value stands for its default.
type Options struct {
	BatchDocuments int
	BatchBytes     int
	MaxDelay       time.Duration
	Progress       func(Progress) // or nil
}

// Progress is how far a Writer is.
type Progress struct {
	Documents int64 // committed
	Bytes     int64 // of those documents, as they are stored
	Batches   int64
	Elapsed   time.Duration
}

// Writer commits what Add gives it in batches. New makes it and Close ends it. All methods
// are safe for concurrent use.
type Writer struct {
	db   *core.Database
	opts Options

	mu      sync.Mutex
	filling *batch        // nil until one is free again. Guarded by mu.
	filled  chan struct{} // closed when filling is one again. Guarded by mu.
	closed  bool          // Guarded by mu.
	timer   *time.Timer
	pace    pace
	memory  budget.Draw // of the batches, until the committer has ended

	full chan *batch   // to the committer
	free chan *batch   // back from it
	done chan struct{} // closed when the committer has ended

	state    sync.Mutex
	err      error    // error that ended the writer. Guarded by state.
	panicked any      // what the first call that meets err panics with, or nil. Guarded by state.
	progress Progress // Guarded by state.
	newest   uint64   // etag committed last, with invariants only. Guarded by state.
	started  time.Time
}

// New starts a bulk insert. Close must be called.
func New(db *core.Database, o Options) (*Writer, error) {
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	w := &Writer{
		db:      db,
		opts:    o,
		full:    make(chan *batch, allBatches),
		free:    make(chan *batch, allBatches),
		done:    make(chan struct{}),
		started: time.Now(),
	}
	w.pace.begin(db, w.started)
	given := w.opts.BatchBytes
	if err := w.opts.fill(); err != nil {
		return nil, err
	}
	if err := w.draw(given != 0); err != nil {
		return nil, err
	}
	for range batches {
		w.free <- &batch{slab: make([]write.Op, 0, min(w.opts.BatchDocuments, defaultDocuments))}
	}
	w.filling = <-w.free
	go w.commitAll()
	return w, nil
}

// draw draws the memory of all batches. Unless their size was asked for, they are smaller where little is free.
func (w *Writer) draw(asked bool) error {
	w.memory = w.db.Env.Work.NewDraw("bulk writer")
	for {
		wanted := batches * int64(w.opts.BatchBytes)
		if w.memory.Try(wanted) {
			return nil
		}
		if asked || w.opts.BatchBytes/2 < leastBytes {
			return w.memory.Refused(wanted)
		}
		w.opts.BatchBytes /= 2
	}
}

// Database returns the database that the writer writes to.
func (w *Writer) Database() *core.Database { return w.db }

const (
	defaultDocuments = 1000
	defaultBytes     = 4 << 20
	leastBytes       = 64 << 10 // of the batches of a writer that finds little memory
	defaultDelay     = time.Second
	maxDocuments     = 100_000
	maxBytes         = 256 << 20
)

// batch is a batch with memory of its own, which is reused.
type batch struct {
	ops   []*write.Op
	slab  []write.Op
	arena []byte // bodies
	bytes int
	flush chan error // set if a Flush waits for this batch
}

// batches is how many batches a writer has: one being filled, one in the
// channel, one being committed.
const batches = 3

// allBatches counts also the batch that Close makes if none is being filled.
const allBatches = batches + 1

func (o *Options) fill() error {
	if o.BatchDocuments == 0 {
		o.BatchDocuments = defaultDocuments
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = defaultBytes
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = defaultDelay
	}
	switch {
	case o.BatchDocuments < 1 || o.BatchDocuments > maxDocuments:
		return fmt.Errorf("%w: BatchDocuments must be between 1 and %d, got %d", errs.ErrOption, maxDocuments, o.BatchDocuments)
	case o.BatchBytes < 1 || o.BatchBytes > maxBytes:
		return fmt.Errorf("%w: BatchBytes must be between 1 and %d, got %d", errs.ErrOption, maxBytes, o.BatchBytes)
	case o.MaxDelay < 0:
		return fmt.Errorf("%w: MaxDelay must not be negative, got %v", errs.ErrOption, o.MaxDelay)
	}
	return nil
}

// Add prepares a document outside the lock and adds it to the batch.
func (w *Writer) Add(ctx context.Context, p *write.Preparation) (string, error) {
	o := &p.Op
	if err := w.prepare(ctx, p); err != nil {
		return "", write.OpError([]*write.Op{o}, o, err)
	}
	id := o.ID
	if id == "" {
		id = o.Resolved
	}

	added := false
	defer func() {
		if !added { // an error, or a context that panics
			w.db.Writer.Unused.Count([]*write.Op{o})
		}
	}()
	if err := w.lock(ctx); err != nil {
		return "", err
	}
	defer w.mu.Unlock()
	w.filling.add(o)
	added = true
	w.pace.look(w.db.Env)
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
func (w *Writer) lock(ctx context.Context) error {
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

func (w *Writer) prepare(ctx context.Context, p *write.Preparation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.db.Env.EnterWrite(); err != nil {
		return err
	}
	defer w.db.Env.Exit()
	p.Use(w.db.Writer)
	if err := w.db.Writer.Prepare(&p.Op, metadata.Ticks(w.db.Env.Now()), &p.Naming); err != nil {
		return err
	}
	if p.Op.Guard != nil && w.db.InCluster() {
		return fmt.Errorf("%w: a bulk writer makes no cluster-wide transactions", ids.ErrUsage)
	}
	p.Op.Exposed = true
	return w.db.Writer.DrawID(ctx, &p.Op)
}

// add copies o and its body.
func (b *batch) add(o *write.Op) {
	if len(b.slab) == cap(b.slab) {
		// The ops added so far stay where they are.
		b.slab = make([]write.Op, 0, max(64, 2*cap(b.slab)))
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
func (b *batch) keep(p []byte) []byte {
	start := len(b.arena)
	b.arena = append(b.arena, p...)
	return b.arena[start:len(b.arena):len(b.arena)]
}

// fill makes b the batch that is filled, where there was none. w.mu is held.
func (w *Writer) fill(b *batch) {
	w.filling = b
	close(w.filled)
}

// send hands the batch that is filled to the committer. w.mu is held.
func (w *Writer) send(flush chan error) {
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
func (w *Writer) startTimer() {
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
func (w *Writer) Flush(ctx context.Context) error {
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
func (w *Writer) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		if w.timer != nil {
			w.timer.Stop()
		}
		if w.filling == nil {
			w.fill(new(batch))
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
func (w *Writer) Progress() Progress {
	w.state.Lock()
	defer w.state.Unlock()
	p := w.progress
	p.Elapsed = time.Since(w.started)
	return p
}

func (w *Writer) failure() error {
	w.state.Lock()
	defer w.state.Unlock()
	return w.err
}

// repeatPanic panics with what the committer has met, once.
func (w *Writer) repeatPanic() {
	w.state.Lock()
	defer w.state.Unlock()
	if value := w.panicked; value != nil {
		w.panicked = nil
		panic(value)
	}
}

// commitAll is the committer: it commits full batches in their order. If
// Progress ends its goroutine, it goes on on another, to answer those who wait.
func (w *Writer) commitAll() {
	over := false
	defer func() {
		if over {
			w.memory.End()
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
func (w *Writer) take(b *batch) {
	defer func() {
		if b.flush != nil {
			b.flush <- w.failure()
		}
		b.reset()
		w.free <- b
	}()
	if w.failure() != nil {
		w.db.Writer.Unused.Count(b.ops)
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
	errProgressBroken = fmt.Errorf("%w: BulkOptions.Progress did not return", ids.ErrUsage)
	errCommitBroken   = errors.New("the commit did not return")
)

// watch calls fn. If fn does not return, the writer ends with err.
func (w *Writer) watch(err error, fn func()) {
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
func (w *Writer) broken(err error, panicked any) {
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
// batch, or for the sake of others: see pace. If it returns false, the writer has ended.
func (w *Writer) commit(b *batch) bool {
	sync := b.flush != nil || w.pace.slow()
	if sync {
		w.db.Env.OwnSyncs.Add(1)
		defer w.db.Env.OwnSyncs.Add(-1)
	}
	err := Commit(context.Background(), w.db, b.ops, sync)
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
func (w *Writer) checkEtags(ops []*write.Op) {
	for _, o := range ops {
		if o.Header.Etag <= w.newest {
			invariants.Broken("a bulk writer commits etag %d behind %d", o.Header.Etag, w.newest)
		}
		w.newest = o.Header.Etag
	}
}

// reset empties the batch. Memory that one large document took is released.
func (b *batch) reset() {
	clear(b.slab)
	clear(b.ops)
	b.slab, b.ops, b.bytes, b.flush = b.slab[:0], b.ops[:0], 0, nil
	b.arena = b.arena[:0]
	if cap(b.arena) > 2*defaultBytes {
		b.arena = nil
	}
}

// Commit commits prepared ops, behind the exclusive turns of their documents. With
// sync, they and everything committed before are on disk when it returns.
func Commit(ctx context.Context, db *core.Database, ops []*write.Op, sync bool) error {
	if db.Watch == nil || len(ops) == 0 {
		return writeBatch(ctx, db, ops, sync)
	}
	o := core.OperationOf(ops)
	o.Verb, o.ID = "bulk", ""
	return db.Watch.Do(ctx, o, func(ctx context.Context, o *observe.Operation) error {
		err := writeBatch(ctx, db, ops, sync)
		if err == nil {
			o.Documents = int64(len(ops))
		}
		return err
	})
}

func writeBatch(ctx context.Context, db *core.Database, ops []*write.Op, sync bool) error {
	if err := db.Env.Enter(); err != nil {
		return err
	}
	defer db.Env.Exit()
	written := false
	defer func() {
		if !written {
			db.Writer.Unused.Count(ops)
		}
	}()
	if err := db.Writer.Yield(ctx, ops); err != nil {
		return err
	}
	if err := db.Writer.SupposeCollections(ctx, ops); err != nil {
		return err
	}
	prefetched, err := db.Writer.Prefetch(ctx, ops)
	if err != nil {
		return err
	}
	defer prefetched.Close(ops)
	err = db.Writer.DrawIdentities(ctx, ops, nil)
	if err == nil {
		err = db.Writer.Redrawing(ctx, ops, func() error {
			return db.Writer.Load(write.Expecting(ctx, db.Env, ops, nil), sync, batchTransaction(ops, prefetched))
		})
	}
	db.Writer.SettleIdentities(ops, err)
	if err != nil {
		return err
	}
	written = true
	db.Writer.Publish(ops)
	return nil
}

// batchTransaction returns what commits a batch.
func batchTransaction(ops []*write.Op, prefetched *write.Prefetched) func(t *write.Txn) error {
	return func(t *write.Txn) error {
		t.Use(prefetched)
		for _, o := range ops {
			if o.Strategy.FromCounter() {
				t.Tx.RequireSync() // readers may see its number at once
				break
			}
		}
		return t.Run(ops)
	}
}

// errWriterClosed is the ErrClosed of a writer on a database that is open.
type errWriterClosed struct{}

func (errWriterClosed) Error() string { return "jay: the bulk writer is closed" }

func (errWriterClosed) Is(target error) bool { return target == errs.ErrClosed }
