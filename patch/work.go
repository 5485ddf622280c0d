package patch

import (
	"context"
	"errors"
	"fmt"
)

// ErrTooMuchWork is what the *Error of a patch that takes more work than
// Limits.MaxWork allows is, beside ErrInvalid. The same edits of the same
// document always take the same work.
var ErrTooMuchWork = errors.New("patch takes too much work")

// Work is counted in units. A unit is a byte that is looked at, compared or
// written; what costs more than its bytes counts for about as many units as it
// takes nanoseconds, and for more than three times the bytes of memory that it
// keeps.
const (
	workPerValue   = 4   // to pass over an element or a member
	workPerName    = 64  // to put a member into a table of names
	workPerLookup  = 128 // of a member in such a table, which may not fit in a cache
	workPerCall    = 64  // of one operation, and to find an element
	workPerElement = 16  // to make an edit in one of all elements
	workPerTouched = 700 // a member or an element becomes a node of its own
	workPerSum     = 16  // of numbers of few digits
	workPerDigit   = 16  // of other numbers
	workPerHash    = 64  // of a value
)

const (
	// defaultWorkPerByte is the default of Limits.MaxWork for each byte of
	// Limits.MaxBytes: eight times that a document is read and written.
	defaultWorkPerByte = 16

	// minDefaultWork is the least default of Limits.MaxWork, so that a small
	// MaxBytes leaves room for many edits.
	minDefaultWork = 512 << 20

	// workPerLook is how much work is done between two looks at the context:
	// about a millisecond.
	workPerLook = 1 << 20
)

// work counts what one Apply does. It decides by the amount only: the context
// can end the work but never change what comes out of it.
type work struct {
	ctx   context.Context
	limit int64
	left  int64
	look  int64 // ctx is looked at when left falls below this
}

func newWork(ctx context.Context, limit int64) work {
	return work{ctx: ctx, limit: limit, left: limit, look: limit}
}

// spend is called before n units of work are done, and returns an error if they
// must not be: an *Error beyond the limit, or that of the context.
func (w *work) spend(n int) error {
	if w.left -= int64(n); w.left >= w.look {
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
	w.look = w.left - workPerLook
	return w.ctx.Err()
}
