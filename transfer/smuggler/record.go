package smuggler

import (
	"io"
)

// Record is a record of an input, as a document. Its text is valid until the next call of
// Next.
type Record struct {
	Number int64 // from 1
	Line   int64 // of its first byte, from 1; 0 if the input has no lines
	Offset int64 // of its first byte in the input; -1 if it has none
	Text   []byte

	// Converted is true if Text is not what the input has there.
	Converted bool
}

// Source reads the records of an input. An io.Closer among them is closed at the end.
type Source interface {
	// Next returns the next record, or io.EOF. After an error that is
	// jay.ErrInvalidDocument, and no *FinalError, Skip moves behind the record. Any other
	// error is final. Number and place of the record are also set with an error.
	Next() (Record, error)

	// Skip writes the record on which Next failed to w.
	Skip(w io.Writer) error
}
