package patch

import (
	"context"
	"errors"
	"fmt"
)

// ErrTooMuchWork matches the *Error of a patch that takes more work than
// Limits.MaxWork allows, as ErrInvalid does. The same edits of the same document
// always take the same work.
var ErrTooMuchWork = errors.New("patch takes too much work")

// Work is counted in units. A unit is a byte that is read, compared or written.
// Other operations count about one unit for each nanosecond that they take, and
// more than three units for each byte of memory that they keep.
const (
	workPerValue   = 4   // to skip an element or a member
	workPerName    = 64  // to enter a member into a hash table of names
	workPerLookup  = 128 // to look a member up in such a table, which may not fit in a cache
	workPerCall    = 64  // of one operation, and to find an element
	workPerElement = 16  // to edit one of all elements of an array
	workPerTouched = 700 // to make a member or an element a node of its own
	workPerSum     = 16  // of numbers of few digits
	workPerDigit   = 16  // of sums of other numbers
	workPerHash    = 64  // of a value
)

const (
	// defaultWorkPerByte is the default of Limits.MaxWork for each byte of
	// Limits.MaxBytes: enough to read and write a document eight times.
	defaultWorkPerByte = 16

	// minDefaultWork is the least default of Limits.MaxWork, so that a small
	// MaxBytes still allows many edits.
	minDefaultWork = 512 << 20

	// workPerPoll is the work between two checks of the context: about a
	// millisecond.
	workPerPoll = 1 << 20
)

// work counts the work of one Apply. Whether a patch is refused depends on the
// count only. The context can stop the work but never changes the result.
type work struct {
	ctx   context.Context
	limit int64
	left  int64
	poll  int64 // the context is checked when left falls below this
}

func newWork(ctx context.Context, limit int64) work {
	return work{ctx: ctx, limit: limit, left: limit, poll: limit}
}

// spend must be called before n units of work are done. It returns an error if
// they must not be done: an *Error beyond the limit, or that of the context.
func (w *work) spend(n int) error {
	if w.left -= int64(n); w.left >= w.poll {
		return nil
	}
	if w.left < 0 {
		return &Error{
			Rule:   fmt.Sprintf("a patch may take %d units of work, such as bytes looked at or written; make fewer edits at a time, or split the document", w.limit),
			Detail: fmt.Sprintf("it takes %d at least", w.limit-w.left),
			Edit:   0,
			work:   true,
		}
	}
	w.poll = w.left - workPerPoll
	return w.ctx.Err()
}
