package write

import (
	"context"
	"iter"

	"github.com/jaydb/jay/internal/turns"
)

// DocsOf returns the documents that ops write, as far as their IDs are known.
func DocsOf(ops []*Op) iter.Seq[turns.Doc] {
	return func(yield func(turns.Doc) bool) {
		for _, o := range ops {
			if o.Exchanging != nil && !yield(turns.Doc{ID: ExchangeTurn(o.Exchanging.Folded)}) {
				return
			}
			if o.FoldedID != "" && !yield(turns.Doc{ID: o.FoldedID, Collection: o.FoldedCollection}) {
				return
			}
		}
	}
}

// ExchangeTurn returns the name under which transactions stand in line for a
// compare-exchange key: no document has it.
func ExchangeTurn(folded string) string { return "\x00" + folded }

// Yield waits for the exclusive turns that ops would interfere with.
func (w *Writer) Yield(ctx context.Context, ops []*Op) error {
	if !w.Lines.Exclusive() {
		return nil
	}
	return w.Lines.Yield(ctx, DocsOf(ops))
}

// PassTurn ends a turn in which a commit was made without a sync, and waits for the
// disk. The next in line may rest on this commit, which comes before its own in the
// log.
func (w *Writer) PassTurn(ctx context.Context, caller *turns.Caller) error {
	caller.Leave()
	if !w.Env.Synced {
		return nil
	}
	return w.Env.Engine.Sync(ctx)
}
