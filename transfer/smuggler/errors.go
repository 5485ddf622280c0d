package smuggler

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// ImportError is the error of an import with its place in the input.
type ImportError struct {
	Input  string
	Number int64 // of the record, from 1; 0 for no particular record
	Line   int64 // of the record's first byte, from 1; 0 for none
	Offset int64 // of the record's first byte, from 0; -1 for none
	Stored int64 // number of documents stored so far
	Err    error

	Skipped bool // the import skipped the record
}

// Error names the input, the record and the place.
func (e *ImportError) Error() string {
	text := e.Input
	if e.Number > 0 {
		text += fmt.Sprintf(": document %d", e.Number)
		if e.Offset >= 0 {
			text += fmt.Sprintf(" at byte %d", e.Offset)
		}
		if e.Line > 0 {
			text += fmt.Sprintf(" (line %d)", e.Line)
		}
	}
	if e.Skipped {
		return fmt.Sprintf("import %s is skipped: %v", text, e.Err)
	}
	are := "documents are"
	if e.Stored == 1 {
		are = "document is"
	}
	return fmt.Sprintf("import %s: %v; %s %s stored", text, e.Err, grouped(e.Stored), are)
}

// Unwrap returns the error of the record.
func (e *ImportError) Unwrap() error { return e.Err }

// ConvertedError is the error of a document that was made from another format: its text
// has no offset, which would mean nothing in the input.
type ConvertedError struct{ jay.DocumentError }

// Error returns the rule, and what was found.
func (e *ConvertedError) Error() string {
	text := "invalid document: " + e.Rule
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Limit > 0 {
		text += fmt.Sprintf(", it has %d", e.Actual)
	}
	return text
}

// Unwrap returns the error of the document.
func (e *ConvertedError) Unwrap() error { return &e.DocumentError }

// FinalError is an error of an input after which nothing more can be read.
type FinalError struct{ Err error }

// Error returns the text of the error.
func (e *FinalError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *FinalError) Unwrap() error { return e.Err }

// ErrReadOnce is returned for a dump that is to be read twice, and cannot be.
var ErrReadOnce = errors.New("the input can be read only once")

// canSkip reports whether an import can continue after an error of a source.
func canSkip(err error) bool {
	var final *FinalError
	if errors.As(err, &final) {
		return false
	}
	return errors.Is(err, jay.ErrInvalidDocument)
}

// refused makes an error of a format one of a document, which can be skipped if the
// record is known.
func refused(err error) error {
	var bad *transfer.Error
	is := errors.As(err, &bad)
	if !is {
		return err
	}
	err = &formatError{bad}
	if bad.Raw == nil {
		return &FinalError{err}
	}
	return err
}

// formatError is an error of a format, as the error of a document that it is.
type formatError struct{ err *transfer.Error }

// Error returns the rule, and what was found.
func (e *formatError) Error() string {
	if e.err.Detail == "" {
		return e.err.Rule
	}
	return e.err.Rule + ": " + e.err.Detail
}

// Is makes errors.Is(err, jay.ErrInvalidDocument) true.
func (e *formatError) Is(target error) bool { return target == jay.ErrInvalidDocument }

// refusals are the errors of a single record. Other records can still be stored.
var refusals = []error{
	jay.ErrInvalidDocument, jay.ErrInvalidAttachment, jay.ErrInvalidID, jay.ErrCollection, jay.ErrSchema, jay.ErrConflict, jay.ErrExists, jay.ErrUnique, jay.ErrTooLarge, jay.ErrUsage, jay.ErrSubscription,
}

// isRefusal reports whether an error is one of refusals.
func isRefusal(err error) bool { return isAny(err, refusals) }

// isShortage reports whether an error is that of a counter without numbers. It ends
// the import even where invalid documents are skipped: the user must decide about
// the counter, and most of the following documents will need it, too.
func isShortage(err error) bool {
	return isAny(err, []error{jay.ErrNeedsFloor, jay.ErrNeedsCapacity, jay.ErrExhausted, jay.ErrLeadTooLarge})
}

func isAny(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// errAttachment is the error for lines of attachments that do not match.
func errAttachment(format string, args ...any) error {
	return fmt.Errorf("%w: attachment: %s", jay.ErrInvalidDocument, fmt.Sprintf(format, args...))
}

// joined returns err, joined with the error of a clean-up that err does not wrap already.
func joined(err, cleanup error) error {
	if cleanup == nil || err != nil && errors.Is(err, cleanup) {
		return err
	}
	return errors.Join(err, cleanup)
}

// grouped writes n, which is not negative, with a comma between each three digits.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
