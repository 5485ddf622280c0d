package jay

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/txn"
)

// Progress has fn called after each batch of Patch and Delete, with what is done so far:
// committed, and on disk soon. It is on disk when Patch or Delete returns.
func (q Query[T]) Progress(fn func(Changed)) Query[T] {
	q.def.Progress = nil
	if fn != nil {
		q.def.Progress = func(c builder.Changed) { fn(Changed(c)) }
	}
	return q
}

// Patch edits every document that the query finds, as DB.Patch edits one, and leaves
// the others as they are:
//
//	orders.Query().Where(jay.Lt("Total", 10)).Patch(ctx, jay.Set("Small", true))
//
// The query sees the database as it is when Patch begins; so Count or All of the same
// query says beforehand what would be changed. The documents are edited in its order,
// with Skip and Limit, in batches of up to 128 documents and about 4 MiB. Each batch is
// a transaction, and batches share syncs of the disk: all of it is written or nothing, and each document is tested against
// the condition again, so that one which other writes have changed meanwhile, and which
// satisfies the condition no more, is left as it is. Documents that begin to satisfy
// the condition meanwhile are not edited.
//
// If a document cannot be edited, or ctx ends, the batches before are written: Changed
// counts their documents. Calling Patch again edits all that the query finds then.
//
// In a transaction, Patch edits all documents or, after an error, none, and they are
// written when the transaction commits.
//
// The query needs a collection, and whole documents: Select, GroupBy, Distinct and
// Include are ErrUsage, and so are OrInsert and conditions on one document's version.
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

// Delete deletes every document that the query finds. What Patch says of batches,
// conditions, errors and transactions holds for Delete too.
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
