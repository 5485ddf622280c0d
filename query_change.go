package jay

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/txn"
)

// Progress makes Patch and Delete call fn after each batch, with the counts so far. A batch is committed when
// fn is called, and on disk when Patch or Delete returns.
func (q Query[T]) Progress(fn func(Changed)) Query[T] {
	q.def.Progress = nil
	if fn != nil {
		q.def.Progress = func(c builder.Changed) { fn(Changed(c)) }
	}
	return q
}

// Patch edits every document that the query finds, as DB.Patch edits one document:
//
//	orders.Query().Where(jay.Lt("Total", 10)).Patch(ctx, jay.Set("Small", true))
//
// The query reads a snapshot from the beginning of Patch, so Count or All of the same query shows in advance
// which documents would change. Patch edits the documents in the order of the query, after Skip and Limit, in
// batches of up to 128 documents and about 4 MiB. Each batch is one atomic transaction, and batches share syncs
// of the disk. A batch tests each document against the condition again: if another write has changed the
// document so that it no longer satisfies the condition, Patch does not edit it. Documents that begin to
// satisfy the condition after the snapshot are not edited.
//
// If a document cannot be edited, or ctx ends, earlier batches stay written, and Changed counts their
// documents. Another call of Patch edits all documents that the query finds then.
//
// In a transaction, Patch edits all documents or, after an error, none. The commit of the transaction writes
// them.
//
// The query must have a collection and return whole documents: Patch returns ErrUsage for Select, GroupBy,
// Distinct and Include, and for OrInsert and conditions on one document's version.
func (q Query[T]) Patch(ctx context.Context, opts ...PatchOption) (Changed, error) {
	if err := checkEdits(opts); err != nil {
		return Changed{}, fmt.Errorf("patch by query: %w", err)
	}
	if q.def.IsOwned() {
		done, err := q.def.Ask(ctx, newPatch("", opts))
		return Changed(done), err
	}
	done, err := q.def.Change(ctx, "patch by query", func(t *txn.Tx, id string, done *builder.Changed) error {
		return builder.PatchOne(ctx, t, newPatch(id, opts), done)
	})
	return Changed(done), err
}

// Delete deletes every document that the query finds. The rules of Patch for batches, conditions, errors and
// transactions apply to Delete, too.
func (q Query[T]) Delete(ctx context.Context) (Changed, error) {
	done, err := q.def.Delete(ctx)
	return Changed(done), err
}

// checkEdits refuses what no document could be patched with.
func checkEdits(opts []PatchOption) error {
	o := newPatch("", opts)
	if o.UsageError != nil {
		return o.UsageError
	}
	if o.Patching.OrInsert || o.Expected != nil || o.Collection != "" || o.Returning != nil || len(o.Custom) > 0 {
		return fmt.Errorf("%w: a patch of many documents takes edits only, and no option for one document", ErrUsage)
	}
	return o.CheckPatch()
}
