package jay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Tx is a transaction: the database as it was when the transaction began, with the
// transaction's own writes over it. DB.Update and DB.View pass it to their
// function, and it ends when that function returns: later calls return ErrTxDone.
// Its methods are those of DB. Collection.In provides them for Go values.
//
// A Tx is safe for concurrent use by goroutines that end before the function does.
type Tx struct {
	db       *DB
	writable bool

	mu        sync.Mutex
	ended     error // set when no more calls are possible. Guarded by mu.
	snapshot  storage.Snapshot
	deletes   *horizon.Hold           // of the records that the commit looks at; nil for a view
	ops       []*op                   // Guarded by mu.
	staged    map[string]int          // by folded ID, its newest op. Guarded by mu.
	bytes     int                     // that ops will stage, about. Guarded by mu.
	reads     readSet                 // Guarded by mu.
	open      map[env.Handle]struct{} // walks and queries. Guarded by mu.
	exchanges exchanges               // Guarded by mu.
	issued    *issuedIDs
	reissued  map[string]bool // folded IDs of an earlier run that this run was given. Guarded by mu.
	usedHeld  bool            // the function used one of them that it held. Guarded by mu.
	catalog   *catalog.Catalog

	uploads   []*attachments.Upload // of attachments, to be closed. Guarded by mu.
	committed bool                  // Guarded by mu.
	moment    moment                // of all reads
}

// issuedIDs are the HiLo IDs that the runs of one Update were given, by prefix. They
// are reissued to the next run, in their order, before new ones are drawn.
//
// The function may still hold one of them, in a struct that outlives the run, and
// use it after it was reissued to another value. Then the run ends, and the next
// one is given new IDs only.
type issuedIDs struct {
	all  map[string][]string
	free map[string][]string // not reissued to this run yet
	held bool                // the function holds IDs: reissue none

	identities write.HeldNumbers // of a cluster, that no run has used yet

	written int64 // writes of the run that was committed
}

// rewind makes all IDs available to the next run.
func (i *issuedIDs) rewind() {
	i.free = maps.Clone(i.all)
}

// TxOption changes one DB.Update.
type TxOption func(*txOptions)

type txOptions struct {
	retries int
	misused error
}

// Retry runs the function again, up to n more times, when its transaction lost
// against another one; Retry() goes on until ctx ends. The function must be able to
// run more than once. Before it runs again, the transaction waits for its turn: see
// DB.Update. A run that gives way to transactions in line counts as well, and so
// Retry(10) suffices however many transactions meet.
//
// Update returns ErrUsage if n is negative, or for more than one number.
func Retry(n ...int) TxOption {
	return func(o *txOptions) {
		switch {
		case len(n) == 0:
			o.retries = math.MaxInt
		case len(n) > 1:
			o.misused = fmt.Errorf("%w: Retry takes one number, not %d", ErrUsage, len(n))
		case n[0] < 0:
			o.misused = fmt.Errorf("%w: Retry(%d): a function cannot run again fewer than 0 times", ErrUsage, n[0])
		default:
			o.retries = n[0]
		}
	}
}

// View calls fn with a read-only Tx: everything as it was at one moment. It returns
// fn's error. That state takes disk space as long as fn runs.
func (db *DB) View(ctx context.Context, fn func(*Tx) error) error {
	if db.watch == nil {
		return view(ctx, db, fn)
	}
	return db.watch.Do(ctx, observe.Operation{Verb: "view"}, func(ctx context.Context, _ *observe.Operation) error { return view(ctx, db, fn) })
}

func view(ctx context.Context, db *DB, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := db.begin(false, nil)
	if err != nil {
		return err
	}
	defer t.end()
	return fn(t)
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
// A transaction holds its writes in memory: a write past 1 GiB, where each counts
// 512 bytes beside its document, is refused with ErrTooLarge. ctx is checked again
// before the commit: once it is cancelled, nothing is committed.
func (db *DB) Update(ctx context.Context, fn func(*Tx) error, opts ...TxOption) error {
	var o txOptions
	for _, option := range opts {
		option(&o)
	}
	if o.misused != nil {
		return o.misused
	}
	issued := &issuedIDs{all: make(map[string][]string)}
	if db.watch == nil {
		return update(ctx, db, fn, o.retries, issued)
	}
	return db.watch.Do(ctx, observe.Operation{Verb: "update"}, func(ctx context.Context, seen *observe.Operation) error {
		err := update(ctx, db, fn, o.retries, issued)
		seen.Documents = issued.written
		return err
	})
}

func update(ctx context.Context, db *DB, fn func(*Tx) error, retries int, issued *issuedIDs) error {
	defer db.writer.Unused.CountDrawn(issued.all) // those that were not used
	if db.writer.Cluster != nil {
		issued.identities = make(write.HeldNumbers)
		defer db.writer.ReleaseIdentities(issued.identities)
	}
	caller := db.writer.Lines.Caller()
	defer caller.Leave()
	for run := 0; ; run++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := db.updateOnce(ctx, issued, fn, &caller, run < retries)
		lost, isLost := err.(write.LostError)
		switch {
		case err == errHeldReissued:
			run-- // that run found only that the IDs cannot be reissued
		case !isLost:
			return err
		case run >= retries:
			caller.Leave() // the disk may take long
			return db.writer.RefuseDurably(ctx, fmt.Errorf("update: %w", lost.Cause))
		default:
			if err := caller.Wait(ctx, []turns.Key{lost.Over}, lost.Writes); err != nil {
				return fmt.Errorf("update: in line after a loss: %w", err)
			}
		}
		issued.rewind()
	}
}

// errHeldReissued ends a run in which the function used a reissued ID that it held from
// an earlier run: see issuedIDs.
var errHeldReissued = errors.New("a number of an earlier run is held by the function: it runs again")

// updateOnce runs fn once, and commits.
func (db *DB) updateOnce(ctx context.Context, issued *issuedIDs, fn func(*Tx) error, caller *turns.Caller, mayRunAgain bool) error {
	t, err := db.begin(true, issued)
	if err != nil {
		return err
	}
	defer t.end()
	err = fn(t)
	if t.hasUsedHeld() {
		issued.held = true
		return t.leave(ctx, errHeldReissued)
	}
	if err == nil {
		wrote, err := t.commitInTurn(ctx, caller, mayRunAgain)
		if _, lost := err.(write.LostError); lost && mayRunAgain {
			return t.leave(ctx, err)
		}
		if wrote || err != nil {
			if err == nil {
				t.mu.Lock() // another goroutine may have written in the transaction
				issued.written = int64(len(t.ops))
				t.mu.Unlock()
			}
			return err
		}
	}
	caller.Leave() // the disk may take long
	return t.leave(ctx, err)
}

// leave returns err, which may be nil, when everything that the transaction could
// see is on disk: its function has seen it, and a crash must not undo it
// afterwards. That holds for a run that lost, too, before the next one begins: what the
// function has passed on to others cannot be taken back. A transaction that writes need
// not wait: its own commit comes after everything that it has read.
func (t *Tx) leave(ctx context.Context, err error) error {
	if !t.db.env.Synced {
		return err
	}
	if closed := t.db.env.Enter(); closed != nil {
		return errs.First(err, closed) // Close makes it durable
	}
	defer t.db.env.Exit()
	unsure := t.snapshot.WaitDurable(ctx)
	switch {
	case unsure == nil:
		return err
	case err == nil:
		return fmt.Errorf("update: what was read: %w", unsure)
	}
	return fmt.Errorf("%w: %w", unsure, err)
}

func (t *Tx) hasUsedHeld() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.usedHeld
}

// checkHeld returns errHeldReissued if an ID that the function names itself is one
// that was reissued to this run. t.mu is held.
func (t *Tx) checkHeld(folded string) error {
	if !t.reissued[folded] {
		return nil
	}
	t.usedHeld = true
	return errHeldReissued
}

// begin opens a transaction. end must follow.
func (db *DB) begin(writable bool, issued *issuedIDs) (*Tx, error) {
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	begun := beginMoment(db)
	take := db.env.Engine.Snapshot
	var deletes *horizon.Hold
	if writable {
		deletes = db.horizon.Hold() // before the snapshot
		take = db.env.Engine.Latest // its commit follows in the log the commits that it reads
	}
	c, snapshot := db.indexes.View(take)
	t := &Tx{db: db, writable: writable, snapshot: snapshot, deletes: deletes, catalog: c, issued: issued, moment: endMoment(db, begun)}
	db.env.Register((*txHandle)(t))
	return t, nil
}

// end makes every later call fail and releases the snapshot. It is idempotent.
func (t *Tx) end() {
	// A snapshot that cannot be closed is only garbage.
	_ = t.release(ErrTxDone)
	t.db.env.Unregister((*txHandle)(t)) // last: Close waits for registered handles
}

var _ access = (*Tx)(nil)

// txHandle is a Tx as an env.Handle, for Close.
type txHandle Tx

// Release implements env.Handle.
func (h *txHandle) Release(cause error) error { return (*Tx)(h).release(cause) }

// release ends the transaction: its later calls return cause. It is idempotent.
func (t *Tx) release(cause error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return nil
	}
	t.ended = cause
	var err error
	for h := range t.open {
		err = errors.Join(err, h.Release(cause))
	}
	t.open = nil
	if t.deletes != nil {
		t.deletes.Release()
	}
	t.closeUploads()
	return errors.Join(err, t.snapshot.Close())
}

// register adds a handle that must not outlive the transaction. t.mu is held.
func (t *Tx) register(h env.Handle) {
	if t.open == nil {
		t.open = make(map[env.Handle]struct{})
	}
	t.open[h] = struct{}{}
}

// unregister removes a handle that has been released.
func (t *Tx) unregister(h env.Handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, h)
}

// enter begins a call. exit must follow if it returns nil.
func (t *Tx) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.db.env.Enter(); err != nil {
		return err
	}
	t.mu.Lock()
	if t.ended != nil {
		defer t.exit()
		return t.ended
	}
	return nil
}

func (t *Tx) exit() {
	t.mu.Unlock()
	t.db.env.Exit()
}

// Get is DB.Get.
func (t *Tx) Get(ctx context.Context, id string) (*Document, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	doc, err := t.lookup(t.db.env.Rules.Fold(id))
	if err != nil {
		return nil, fmt.Errorf("get %q: %w", errs.Shorten(id), err)
	}
	return (*Document)(doc), nil
}

// GetMany is DB.GetMany.
func (t *Tx) GetMany(ctx context.Context, ids ...string) ([]*Document, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	out := make([]*Document, len(ids))
	for i, id := range ids {
		doc, err := t.lookup(t.db.env.Rules.Fold(id))
		if err != nil && err != ErrNotFound {
			return nil, fmt.Errorf("get %q: %w", errs.Shorten(id), err)
		}
		out[i] = (*Document)(doc)
	}
	return out, nil
}

// Exists is DB.Exists.
func (t *Tx) Exists(ctx context.Context, id string) (bool, error) {
	if err := t.enter(ctx); err != nil {
		return false, err
	}
	defer t.exit()
	switch _, err := t.lookup(t.db.env.Rules.Fold(id)); err {
	case nil:
		return true, nil
	case ErrNotFound:
		return false, nil
	default:
		return false, fmt.Errorf("exists %q: %w", errs.Shorten(id), err)
	}
}

// lookup returns a document as the transaction sees it, or ErrNotFound
// itself.
func (t *Tx) lookup(folded string) (*docs.Document, error) {
	if err := t.checkHeld(folded); err != nil {
		return nil, err
	}
	if i, found := t.staged[folded]; found {
		return t.pending(t.ops[i])
	}
	return t.base(folded)
}

// base returns a document as it was before the transaction, or ErrNotFound
// unwrapped, and adds it to the read set.
func (t *Tx) base(folded string) (*docs.Document, error) {
	doc, err := t.db.docs.ReadFolded(t.snapshot, folded)
	doc, err = docs.AliveAt(t.moment.at, doc, err)
	if err == nil {
		node, etag := doc.Version()
		t.saw(folded, write.Version{Node: node, Etag: etag})
	}
	if err == ErrNotFound {
		t.saw(folded, write.Version{})
	}
	return doc, err
}

// pending returns the document that o will write. Its version is the one that it
// replaces, as far as the transaction has read it. The body is a copy, which
// readers may change: the commit writes what the transaction was given.
func (t *Tx) pending(o *op) (*docs.Document, error) {
	if err := t.showAttachments(o); err != nil {
		return nil, err
	}
	doc, err := t.peek(o)
	if err == nil {
		doc.CloneBody()
	}
	return doc, err
}

// peek is pending with the body that the commit will write: it must not leave the
// package.
func (t *Tx) peek(o *op) (*docs.Document, error) {
	if o.Verb == write.Delete {
		return nil, ErrNotFound
	}
	if docs.IsGone(&o.Header, t.moment.at) {
		return nil, ErrNotFound
	}
	header, replaced := o.Header, t.reads.versions[o.FoldedID]
	header.Node, header.Etag = replaced.Node, replaced.Etag
	doc := docs.Make(t.db.env.Origins, o.FoldedID, header, o.JSON)
	return &doc, nil
}

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

// database implements access.
func (t *Tx) database() *DB { return t.db }

// write implements access: it stages ops, all of them or none. The results
// are what is known before the commit.
func (t *Tx) write(ctx context.Context, ops []*op) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.exit()
	if !t.writable {
		return fmt.Errorf("%w: a transaction of View only reads", ErrUsage)
	}
	if err := t.db.writer.PrepareAll(ops); err != nil {
		return err
	}
	count, bytes := len(t.ops), t.bytes
	replaced := make([]int, 0, len(ops))
	whole := false
	defer func() {
		if !whole { // an error, or a clock that panics
			t.undo(count, bytes, replaced)
		}
	}()
	var unchanged []*op // patches that change nothing
	for _, o := range ops {
		staged, before, err := t.stage(ctx, o)
		if err != nil {
			return write.OpError(ops, o, err)
		}
		if staged {
			replaced = append(replaced, before)
		} else {
			unchanged = append(unchanged, o)
		}
	}
	whole = true
	t.db.writer.Publish(unchanged)
	return nil
}

// stage stages a prepared op, or reports that it changes nothing. before is the op
// of the same document that it replaces, or -1.
func (t *Tx) stage(ctx context.Context, o *op) (staged bool, before int, err error) {
	if o.Verb != write.Patch {
		before, err = t.add(ctx, o)
		return true, before, err
	}
	w, _, err := t.resolvePatch(ctx, o)
	if w == nil || err != nil {
		return false, 0, err
	}
	if err := t.prepareOne(w); err != nil {
		return false, 0, err
	}
	before, err = t.add(ctx, w)
	o.Outcome, o.ID, o.Header = w.Outcome, w.ID, w.Header
	return true, before, err
}

// undo removes the ops from count on; replaced are the ops that they replaced, or
// -1.
func (t *Tx) undo(count, bytes int, replaced []int) {
	for i := len(replaced) - 1; i >= 0; i-- {
		o := t.ops[count+i]
		switch {
		case o.FoldedID == "":
		case replaced[i] < 0:
			delete(t.staged, o.FoldedID)
		default:
			t.staged[o.FoldedID] = replaced[i]
		}
	}
	t.ops, t.bytes = t.ops[:count], bytes
	t.undoExchanges()
}

// opBytes is what an op counts beside its document.
const opBytes = 512

// checkRoom returns ErrTooLarge unless the transaction may stage size bytes more.
func (t *Tx) checkRoom(size int) error {
	if t.bytes+size > storage.MaxTxBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, t.bytes+size, storage.MaxTxBytes)
	}
	return nil
}

// add stages one prepared op, and returns the previous newest op of its document,
// or -1.
func (t *Tx) add(ctx context.Context, o *op) (before int, err error) {
	size := len(o.JSON) + len(o.Header.Custom) + 2*len(o.ID) + opBytes
	if err := t.checkRoom(size); err != nil {
		return 0, err
	}
	if err := t.drawID(ctx, o); err != nil {
		return 0, err
	}
	if o.Verb == write.Delete {
		o.FoldedID = t.db.env.Rules.Fold(o.ID)
	}
	if o.Strategy == ids.Semantic {
		if err := t.checkHeld(o.FoldedID); err != nil {
			return 0, err
		}
	}
	if err := t.expect(o); err != nil {
		return 0, err
	}
	if o.Exchanging != nil || o.Guard != nil {
		if err := t.expectIndex(ctx, o); err != nil {
			return 0, err
		}
	}
	if err := t.adopt(o); err != nil {
		return 0, err
	}

	o.Own()
	if o.Outcome = write.Provisional; o.Verb == write.Delete {
		o.Outcome = write.Absent
	}
	staged := *o // the commit writes its results here, and the caller reads those in o
	t.ops, t.bytes = append(t.ops, &staged), t.bytes+size
	if o.Exchanging != nil {
		t.addExchange(o.Exchanging.Folded, len(t.ops)-1)
	}
	if o.FoldedID == "" {
		return -1, nil // the commit makes its ID, or it is no document
	}
	before, found := t.staged[o.FoldedID]
	if found {
		t.list(&staged, t.ops[before])
	} else {
		t.list(&staged, nil)
		before = -1
	}
	if t.staged == nil {
		t.staged = make(map[string]int)
	}
	t.staged[o.FoldedID] = len(t.ops) - 1
	return before, nil
}

func (t *Tx) result(o *op) Metadata { return t.db.result(o) }

// drawID makes HiLo IDs and GUIDs that no document has, in the database or in this
// transaction.
func (t *Tx) drawID(ctx context.Context, o *op) error {
	if o.Strategy != ids.HiLo && o.Strategy != ids.GUID {
		return nil
	}
	if o.ID = t.reissue(o); o.ID != "" {
		t.db.writer.EncodeTail(o)
	} else if err := t.db.writer.DrawID(ctx, o); err != nil {
		return err
	}
	given := o.ID
	taken, err := docs.Exists(t.db.env.Engine, format.DocumentKey(nil, o.FoldedID))
	for err == nil && (taken || t.wrote(o.FoldedID)) {
		err, taken = t.db.writer.RedrawID(ctx, o), false
	}
	if err != nil {
		return err
	}
	o.Exposed = true
	if o.Strategy == ids.HiLo && (given != o.ID || !t.reissued[o.FoldedID]) {
		t.issued.all[o.Tag] = append(t.issued.all[o.Tag], o.ID)
	}
	return nil
}

// reissue returns the next HiLo ID that an earlier run was given, or "".
func (t *Tx) reissue(o *op) string {
	if o.Strategy != ids.HiLo || t.issued.held {
		return ""
	}
	for free := t.issued.free[o.Tag]; len(free) > 0; {
		id := free[0]
		free = free[1:]
		t.issued.free[o.Tag] = free
		if folded := t.db.env.Rules.Fold(id); !t.wrote(folded) {
			if t.reissued == nil {
				t.reissued = make(map[string]bool)
			}
			t.reissued[folded] = true
			return id
		}
	}
	return ""
}

// wrote reports whether the transaction has written a document.
func (t *Tx) wrote(folded string) bool { _, found := t.staged[folded]; return found }

// expect checks the condition of o on the document, as the transaction sees it, and
// adds the document to the read set.
func (t *Tx) expect(o *op) error {
	if o.Strategy != ids.Semantic || (o.Verb != write.Insert && o.Verb != write.Replace && o.Expected == nil && o.InCollection == "") {
		return nil
	}
	doc, err := t.lookup(o.FoldedID)
	if err != nil && err != ErrNotFound {
		return err
	}
	if o.InCollection != "" && doc != nil && !doc.IsIn(o.InCollection) {
		return &CollectionError{ID: o.ID, Current: doc.Collection(), Given: o.Collection}
	}
	switch {
	case o.Verb == write.Insert && doc != nil:
		return ErrExists
	case o.Verb == write.Replace && doc == nil:
		return ErrNotFound
	}
	return t.expectVersion(o)
}

// expectVersion compares the version that o expects with the one before the
// transaction: its own writes have none yet. The commit need not compare again: it
// checks the read set.
func (t *Tx) expectVersion(o *op) error {
	if o.Expected == nil {
		return nil
	}
	actual, err := t.actualVersion(o)
	if err != nil {
		return err
	}
	if actual != *o.Expected || (o.Verb == write.Delete && actual == "") {
		return &ConflictError{ID: o.ID, Expected: *o.Expected, Actual: actual}
	}
	o.Expected = nil
	return nil
}

// actualVersion returns the version to compare with. It is "" for a document that
// the transaction has deleted, and for one that it wrote blindly, if that write
// reported "".
func (t *Tx) actualVersion(o *op) (string, error) {
	if i, found := t.staged[o.FoldedID]; found {
		_, looked := t.reads.versions[o.FoldedID]
		if t.ops[i].Verb == write.Delete || !looked && *o.Expected == "" {
			return "", nil
		}
	}
	doc, err := t.base(o.FoldedID)
	if err == ErrNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return doc.ChangeVector(), nil
}

// commit checks the read set and writes what was staged. It reports whether
// anything was to be written. A turn of the caller ends before the wait for the disk.
func (t *Tx) commit(ctx context.Context, caller *turns.Caller) (wrote bool, err error) {
	if err := t.enter(ctx); err != nil {
		return false, err
	}
	defer t.exit()
	if len(t.ops) == 0 {
		return false, nil
	}
	if err := t.reads.prepare(ctx, t.db.env, t.snapshot); err != nil {
		return true, err
	}
	inTurn := caller.Held()
	commit := func() error {
		return t.db.writer.Transact(ctx, t.db.env.Synced && !inTurn, func(in *write.Txn) error {
			if err := t.reads.check(in); err != nil {
				return err
			}
			if err := t.exchanges.check(in); err != nil {
				return err
			}
			return in.Run(t.ops)
		})
	}
	if t.db.writer.Cluster != nil {
		err = t.commitInCluster(ctx, commit)
	} else {
		err = commit()
	}
	if err == nil && inTurn {
		err = t.db.writer.PassTurn(ctx, caller)
	}
	if err != nil {
		return true, err
	}
	t.committed = true
	for prefix, list := range t.issued.all {
		t.issued.all[prefix] = slices.DeleteFunc(list, func(id string) bool { return t.wrote(t.db.env.Rules.Fold(id)) })
	}
	t.db.writer.Publish(t.ops)
	return true, nil
}

// adopt puts o into the collection that its document has for the transaction. That
// is no read of the document: the commit only checks that the collection is the
// same, which takes a deletion to change.
func (t *Tx) adopt(o *op) error {
	if !o.Adopts() {
		return nil
	}
	collection := o.Suggested
	if i, found := t.staged[o.FoldedID]; found {
		if before := t.ops[i]; before.Verb != write.Delete {
			collection = string(before.Header.Collection)
		}
	} else {
		seen, _, err := t.db.writer.CollectionAt(t.snapshot, o, &collection)
		if err != nil {
			return err
		}
		o.Seen = &seen
	}
	o.TakeCollection(t.db.writer, collection)
	return o.ExtractFor(t.db.indexes.Load())
}

// saw adds a document to the read set, found or missing. A transaction that cannot
// write has nothing to check at its end, and records nothing: it may read any
// number of documents.
func (t *Tx) saw(folded string, v write.Version) {
	if t.writable {
		t.reads.document(folded, v)
	}
}

// prepareOne prepares an op whose name is not to be in the error.
func (t *Tx) prepareOne(o *op) error {
	var last write.CollectionNaming
	return t.db.writer.Prepare(o, metadata.Ticks(t.db.env.Now()), &last)
}

// resolvePatch returns the write that is the result of a prepared patch, or nil if
// it changes nothing.
func (t *Tx) resolvePatch(ctx context.Context, p *op) (*op, PatchResult, error) {
	doc, err := t.lookup(p.FoldedID)
	if err != nil && err != ErrNotFound {
		return nil, PatchResult{}, err
	}
	o := &op{Request: write.Request{Verb: write.Put, RequestID: p.ID, Expected: p.Expected, Returning: p.Returning}}
	if doc == nil {
		return t.resolveMissing(ctx, p, o)
	}
	if p.InCollection != "" && !doc.IsIn(p.InCollection) {
		return nil, PatchResult{}, &CollectionError{ID: p.ID, Current: doc.Collection(), Given: p.Collection}
	}
	out, changed, err := t.db.writer.ApplyEdits(ctx, p, doc.JSON(), 0)
	if err != nil {
		return nil, PatchResult{}, err
	}
	header := doc.Header()
	retimed, err := p.Retime(&header)
	if err != nil {
		return nil, PatchResult{}, err
	}
	if !changed && !retimed {
		p.Outcome, p.ID, p.Header, p.JSON = write.Present, doc.ID(), doc.Header(), doc.JSON()
		p.Patching.Status = write.StatusNotModified
		return nil, PatchResult{Status: PatchNotModified, Metadata: t.result(p), Body: doc.JSON()}, t.expectVersion(p)
	}
	o.RequestID, o.Body, o.Kept, o.KeptTimed = doc.ID(), out, header.Custom, header.Timed
	o.Collection = doc.Collection()
	p.Patching.Status = write.StatusPatched
	o.Committed = p.CommittedAs(o)
	return o, PatchResult{Status: PatchPatched}, nil
}
