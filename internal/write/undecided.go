package write

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Undecided is a commit with the coordinator whose caller has returned before the process knew
// what has become of it. The commit is brought to its end in the background, or by the next Open.
type Undecided struct {
	by     *Writer
	intent format.Intent // names the commit; Writes is 0 if none was stored
	done   chan struct{} // closed when decision and err are set

	decision Decision
	err      error // this process will not find out
}

// Decision is what has become of a commit.
type Decision struct {
	Index  uint64            // of its values; 0 if it has not happened
	Writes []metadata.Header // of its documents, in the order of the ops; only what was put has all fields
}

// undecidedError is the error of a caller that has left.
type undecidedError struct {
	error
	of *Undecided
}

func (e *undecidedError) Unwrap() error { return e.error }

// UndecidedOf returns the commit whose outcome an error leaves open, or nil.
func UndecidedOf(err error) *Undecided {
	var u *undecidedError
	if errors.As(err, &u) {
		return u.of
	}
	return nil
}

// undecided returns the Undecided of c.
func (c *clusterCommit) undecided() *Undecided {
	return &Undecided{by: c.w, intent: c.in, done: make(chan struct{})}
}

// end sets what has become of the commit. u may be nil.
func (u *Undecided) end(d Decision, err error) {
	if u != nil {
		u.decision, u.err = d, err
		close(u.done)
	}
}

// Await waits until it is known what has become of the commit, and returns that. w is the Writer of the
// same run of the database or of a later one. An error is an ErrUnknownOutcome if w cannot find out, for
// good: a run in between has ended the commit, and has kept no record of the versions of its documents.
func (u *Undecided) Await(ctx context.Context, w *Writer) (Decision, error) {
	if w.Cluster == nil {
		return Decision{}, fmt.Errorf("%w: the coordinator of the cluster knows what became of the commit", errs.ErrNeedsCluster)
	}
	ctx, cancel := w.Cluster.Bounded(ctx)
	defer cancel()
	if u.by != w {
		found := w.found[u.intent.Call]
		if found == nil {
			return u.ask(ctx, w)
		}
		u = found
	}
	select {
	case <-u.done:
		return u.decision, u.err
	case <-ctx.Done():
		return Decision{}, fmt.Errorf("the coordinator of the cluster has not decided yet: %w: %w", cluster.ErrNoMajority, ctx.Err())
	case <-w.Cluster.Context().Done():
		return Decision{}, errs.ErrClosed
	}
}

// ask asks the coordinator, in a run that has found no intent.
func (u *Undecided) ask(ctx context.Context, w *Writer) (Decision, error) {
	index, known, err := w.Cluster.Outcome(ctx, u.intent.Slot, u.intent.Before, u.intent.Call)
	switch {
	case err != nil:
		return Decision{}, err
	case !known || index > 0 && u.intent.Writes > 0:
		return Decision{}, fmt.Errorf("%w: an earlier run has ended the commit, and what became of it is recorded nowhere", storage.ErrUnknownOutcome)
	}
	return Decision{Index: index}, nil
}
