// Package txn runs transactions: functions that read a snapshot and keep their writes, which
// are committed in one write if nothing that was read has changed meanwhile.
//
// Update runs a function and commits; a run that has lost against another writer waits in its
// turn and runs again (update.go). The reads of a run are its read set (readset.go), which the
// commit compares. A Tx keeps what it writes as prepared ops (write.go). It is safe for
// concurrent use by goroutines that end before its function does.
package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// Tx is a transaction that View or Update has begun.
type Tx struct {
	db       *core.Database
	writable bool

	mu        sync.Mutex
	docs      *docs.Reader // that the caller of the present call pays for. Guarded by mu.
	ended     error        // set when no more calls are possible. Guarded by mu.
	snapshot  storage.Snapshot
	ahead     docs.Ahead              // of the present call. Guarded by mu.
	deletes   *horizon.Hold           // of the records that the commit looks at; nil for a view
	ops       []*write.Op             // Guarded by mu.
	staged    map[string]int          // by folded ID, its newest op. Guarded by mu.
	bytes     int                     // that ops will stage, about. Guarded by mu.
	reads     readSet                 // Guarded by mu.
	open      map[env.Handle]struct{} // walks and queries. Guarded by mu.
	exchanges exchanges               // Guarded by mu.
	issued    *Issued
	reissued  map[string]bool // folded IDs of an earlier run that this run was given. Guarded by mu.
	usedHeld  bool            // the function used one of them that it held. Guarded by mu.
	catalog   *catalog.Catalog

	uploads   []*attachments.Upload // of attachments, to be closed. Guarded by mu.
	committed bool                  // Guarded by mu.
	moment    core.Moment           // of all reads
	lazy      bool                  // the commit does not wait for the disk
	once      *write.Once           // the commit happens once; nil for none
}

// Database returns the database of the transaction.
func (t *Tx) Database() *core.Database { return t.db }

// Writable reports whether the transaction may write.
func (t *Tx) Writable() bool { return t.writable }

// Issued are the HiLo IDs that the runs of one Update were given, by prefix. They
// are reissued to the next run, in their order, before new ones are drawn.
//
// The function may still hold one of them, in a struct that outlives the run, and
// use it after it was reissued to another value. Then the run ends, and the next
// one is given new IDs only.
type Issued struct {
	all  map[string][]string
	free map[string][]string // not reissued to this run yet
	held bool                // the function holds IDs: reissue none

	identities write.HeldNumbers // of a cluster, that no run has used yet

	Written int64 // writes of the run that was committed
}

// NewIssued returns what an Update begins with.
func NewIssued() *Issued { return &Issued{all: make(map[string][]string)} }

// rewind makes all IDs available to the next run.
func (i *Issued) rewind() {
	i.free = maps.Clone(i.all)
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

// end makes every later call fail and releases the snapshot. It is idempotent.
func (t *Tx) end() {
	// A snapshot that cannot be closed is only garbage.
	_ = t.release(errs.ErrTxDone)
	t.db.Env.Unregister((*txHandle)(t)) // last: Close waits for registered handles
}

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
	if err := t.db.Env.EnterWrite(); err != nil {
		return err
	}
	t.mu.Lock()
	if t.ended != nil {
		defer t.exit()
		return t.ended
	}
	t.docs = t.db.Docs.For(ctx)
	return nil
}

func (t *Tx) exit() {
	t.mu.Unlock()
	t.db.Env.Exit()
}

// lookup returns a document as the transaction sees it, or errs.ErrNotFound
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

// base returns a document as it was before the transaction, or errs.ErrNotFound
// unwrapped, and adds it to the read set.
func (t *Tx) base(folded string) (*docs.Document, error) {
	doc, err := t.stored(folded)
	return docs.AliveAt(t.moment.At, doc, err)
}

// stored is base with a document that has expired, too. To the read set that one is missing, as it is to the check of the commit.
func (t *Tx) stored(folded string) (*docs.Document, error) {
	doc, err := t.docs.ReadFrom(t.ahead, t.snapshot, folded)
	switch _, alive := docs.AliveAt(t.moment.At, doc, err); alive {
	case nil:
		node, etag := doc.Version()
		t.saw(folded, write.Version{Node: node, Etag: etag})
	case errs.ErrNotFound:
		t.saw(folded, write.Version{})
	}
	return doc, err
}

// pending returns the document that o will write. Its version is the one that it
// replaces, as far as the transaction has read it. The body is a copy, which
// readers may change: the commit writes what the transaction was given.
func (t *Tx) pending(o *write.Op) (*docs.Document, error) {
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
func (t *Tx) peek(o *write.Op) (*docs.Document, error) {
	if o.Verb.Deletes() {
		return nil, errs.ErrNotFound
	}
	if err := t.showDue(o); err != nil {
		return nil, err
	}
	if docs.IsGone(&o.Header, t.moment.At) {
		return nil, errs.ErrNotFound
	}
	header, replaced := o.Header, t.reads.versions[o.FoldedID]
	header.Node, header.Etag = replaced.Node, replaced.Etag
	doc := docs.Make(t.db.Env.Origins, o.FoldedID, header, o.JSON)
	return &doc, nil
}

// saw adds a document to the read set, found or missing. A transaction that cannot
// write has nothing to check at its end, and records nothing: it may read any
// number of documents.
func (t *Tx) saw(folded string, v write.Version) {
	if t.writable {
		t.reads.document(folded, v)
	}
}

// Get returns a document as the transaction sees it.
func (t *Tx) Get(ctx context.Context, id string) (*docs.Document, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	doc, err := t.lookup(t.db.Env.Rules.Fold(id))
	if err != nil {
		return nil, fmt.Errorf("get %q: %w", errs.Shorten(id), err)
	}
	return doc, nil
}

// Exists reports whether there is a document for the transaction.
func (t *Tx) Exists(ctx context.Context, id string) (bool, error) {
	if err := t.enter(ctx); err != nil {
		return false, err
	}
	defer t.exit()
	switch _, err := t.lookup(t.db.Env.Rules.Fold(id)); err {
	case nil:
		return true, nil
	case errs.ErrNotFound:
		return false, nil
	default:
		return false, fmt.Errorf("exists %q: %w", errs.Shorten(id), err)
	}
}

// LookupMany calls take with the documents of ids, in their order; nil for a missing one.
func (t *Tx) LookupMany(ctx context.Context, ids []string, take func(i int, doc *docs.Document)) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.exit()
	folded := make([]string, len(ids))
	for i, id := range ids {
		folded[i] = t.db.Env.Rules.Fold(id)
	}
	var err error
	if t.ahead, err = t.docs.ReadAhead(t.snapshot, folded); err != nil {
		return err
	}
	defer func() { t.ahead = nil }()
	for i, id := range ids {
		doc, err := t.lookup(folded[i])
		if err != nil && err != errs.ErrNotFound {
			return fmt.Errorf("get %q: %w", errs.Shorten(id), err)
		}
		take(i, doc)
	}
	return nil
}
