// Package write is the write path: all changes to documents go through Writer.Write, in
// five steps. It prepares ops without a lock, draws their HiLo numbers and GUIDs,
// resolves and stages them in a transaction of the engine, commits, and publishes the
// results.
//
// Transactions that stage something else beside documents, such as HiLo ranges and
// identities, run in Writer.Transact. Nothing here enters the gate of the database.
package write

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/agenda"
	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/heads"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/storage"
)

// Writer writes to an open database. Its fields are set before the first write and do
// not change afterwards. It is safe for concurrent use.
type Writer struct {
	Env         *env.Env
	Docs        *docs.Reader
	Resolver    *ids.Resolver
	Reserved    *counters.Reserved
	Indexes     *catalog.Current
	Counts      *counts.Counts
	Horizon     *horizon.Horizon
	Agenda      *agenda.Agenda
	Revisions   *revisions.Current // the rules
	Schemas     *schemas.Current   // the rules about the shape of documents
	Attachments *attachments.Store
	Cluster     *accord.Node                   // nil for none
	NoCluster   error                          // why there are no identities and compare-exchange values; nil if there are
	Client      *ids.Client                    // draws the HiLo IDs
	PrefixOf    func(collection string) string // of HiLo IDs

	PrefixCollections bool // prefixes of IDs suggest collections

	Unused Unused

	// Unsettled is called after a commit into indexes with work in the background, and the caller of the commit waits until it returns; nil for
	// nothing. throttled is how many documents were written to indexes whose work has become too much, 0 for a caller that must not wait.
	Unsettled func(ctx context.Context, throttled int)

	Heads *heads.Table // of documents that were written lately; nil for none

	Hidden   Hidden   // by tables that are ingested
	Withheld Withheld // while tables are made

	Lines turns.Lines // of transactions and patches that lost

	disk    disk                  // where reads of documents wait
	locks   locks                 // of commits that the cluster's coordinator has not decided
	calls   calls                 // of these, those with a request ID
	intents atomic.Uint64         // number of the newest one
	found   map[string]*Undecided // by call: the intents that Open has found; not changed afterwards
}

// errIDInUse means that the made ID of some op is in use: draw another and run
// again.
var errIDInUse = errors.New("a made id is in use")

// Write is the write path: all changes to documents go through it, in five steps.
// The database is as it was if it returns an error other than ErrUnknownOutcome.
func (w *Writer) Write(ctx context.Context, ops []*Op) (err error) {
	// 1. Prepare: validate, fold, extract index entries. No lock, no number.
	if err := w.PrepareAll(ops); err != nil {
		return err
	}
	if len(ops) > 0 && ops[0].Once != nil {
		once := ops[0].Once.Request
		once.Given = hashAsked(ops)
		// Looked for here, too: a repeated call, and a refused one, draw no number.
		if err := once.Find(w.Env.Engine); err != nil {
			return err
		}
	}

	// Transactions and patches that lost two runs in their turn come first.
	if err := w.Yield(ctx, ops); err != nil {
		return err
	}

	// 2. Draw HiLo numbers and GUIDs: last, so that no refusal costs a number.
	written := false
	defer func() {
		if !written { // an error, or a panic of user code
			w.Unused.Count(ops)
		}
	}()
	if w.Cluster != nil {
		defer func() { w.SettleIdentities(ops, settled(written, err)) }()
		if err := w.DrawIdentities(ctx, ops, nil); err != nil {
			return err
		}
	}
	if err := w.drawIDs(ctx, ops); err != nil {
		return err
	}

	// Work that needs no lock and may turn out to be stale: the collections of
	// documents, the results of patches, and the documents that a large batch
	// replaces.
	if err := w.SupposeCollections(ctx, ops); err != nil {
		return err
	}
	speculated, err := w.SpeculatePatches(ctx, ops)
	if err != nil {
		return err
	}
	defer speculated.Close()
	prefetched, err := w.Prefetch(ctx, ops)
	if err != nil {
		return err
	}
	defer prefetched.Close(ops)

	// 3. Resolve and stage, in a transaction. 4. Commit, and share the sync.
	if w.IsClusterWide(ops) {
		err = w.Redrawing(ctx, ops, func() error { return w.CommitClusterWide(ctx, ops, Reads{}) })
	} else {
		err = w.ResolveAndCommit(ctx, ops, prefetched, speculated)
	}
	if err != nil {
		return err
	}

	// 5. Publish: the callers get the results.
	written = true
	w.Publish(ops)
	return nil
}

// ResolveAndCommit runs the transaction of ops. It runs it again with other numbers
// as long as a drawn ID is in use, and with new results of patches as long as a
// patched document has changed since.
func (w *Writer) ResolveAndCommit(ctx context.Context, ops []*Op, prefetched *Prefetched, speculated *Speculations) error {
	for {
		inTurn := speculated.inTurn()
		err := w.Commit(ctx, ops, prefetched, w.Env.Synced && !inTurn)
		if err == nil && inTurn {
			err = w.PassTurn(ctx, &speculated.caller)
		}
		switch {
		case errors.Is(err, errIDInUse): // a document was put under an ID that was drawn
			err = w.redrawTaken(ctx, ops)
		case errors.Is(err, ErrStale):
			err = speculated.Again(ctx)
		default:
			return err
		}
		if err != nil {
			return err
		}
	}
}

// drawIDs makes the IDs of ops that the transaction does not make.
func (w *Writer) drawIDs(ctx context.Context, ops []*Op) error {
	for _, o := range ops {
		if err := w.DrawID(ctx, o); err != nil {
			return OpError(ops, o, err)
		}
	}
	return nil
}

// redrawTaken makes other IDs for the ops whose IDs are in use.
func (w *Writer) redrawTaken(ctx context.Context, ops []*Op) error {
	for _, o := range ops {
		if !o.idInUse {
			continue
		}
		o.prefetched = false
		if err := w.RedrawID(ctx, o); err != nil {
			return OpError(ops, o, err)
		}
	}
	return nil
}

// DrawID makes the IDs that are made before the transaction: HiLo and GUID.
func (w *Writer) DrawID(ctx context.Context, o *Op) (err error) {
	switch {
	case !o.Strategy.Drawn():
		return nil
	case o.Strategy.FromRange():
		if err := w.Cluster.CheckTag(); err != nil {
			return err
		}
		o.ID, err = w.Client.Next(ctx, o.Tag)
	default:
		o.ID, _, err = w.Resolver.Make(o.Strategy, nil, o.Resolved)
	}
	if err != nil {
		return err
	}
	if err := w.Env.Rules.Check(o.ID); err != nil {
		return err
	}
	w.EncodeTail(o)
	return nil
}

// maxRandom is how many random IDs are tried for one document before their source counts
// as broken.
const maxRandom = 10

// RedrawID draws until the ID is free in the committed state: the transaction
// checks again.
func (w *Writer) RedrawID(ctx context.Context, o *Op) error {
	if o.number != 0 {
		return w.redrawIdentity(ctx, o)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.redraws++; o.Strategy.Random() && o.redraws > maxRandom {
			return fmt.Errorf("%w: %d new %s ids were taken already: Options.Rand repeats itself", ids.ErrUsage, maxRandom, o.Strategy)
		}
		w.Unused.countTaken(o)
		o.ID = "" // it is counted: if the draw panics, it must not be counted twice
		if err := w.DrawID(ctx, o); err != nil {
			return err
		}
		var scratch [128]byte
		found, err := docs.Exists(w.Env.Engine, format.DocumentKey(scratch[:0], w.Env.Rules.Fold(o.ID)))
		if err != nil || !found {
			return err
		}
	}
}

// Commit runs the transaction of ops. With sync, it returns when they are on disk.
func (w *Writer) Commit(ctx context.Context, ops []*Op, a *Prefetched, sync bool) error {
	return w.Transact(Expecting(ctx, w.Env, ops, nil), sync, func(t *Txn) error {
		t.Use(a)
		return t.Run(ops)
	})
}

// Expecting returns a context for the transaction of ops, which also reads the documents with these folded
// IDs. On a shared store it says which documents that will read: see storage.Expect.
func Expecting(ctx context.Context, e *env.Env, ops []*Op, folded []string) context.Context {
	if !e.Engine.Shared() {
		return ctx
	}
	var keys [][]byte
	for _, id := range folded {
		keys = append(keys, format.DocumentKey(nil, id))
	}
	for _, o := range ops {
		if o.FoldedID != "" && !o.prefetched {
			keys = append(keys, format.DocumentKey(nil, o.FoldedID))
		}
	}
	return storage.Expect(ctx, keys)
}

// Publish passes the results to the callers of ops.
func (w *Writer) Publish(ops []*Op) {
	for _, o := range ops {
		if o.Guard != nil {
			o.publishGuard()
		}
		if o.Returning != nil {
			*o.Returning = w.ResultOf(o)
		}
		if o.Committed != nil {
			o.Committed(w.ResultOf(o))
		}
		if p := o.Patching; p != nil && p.Returning != nil {
			p.Returning(string(p.Status), w.ResultOf(o), o.PatchedBody())
		}
	}
}
