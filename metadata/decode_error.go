package metadata

import "fmt"

// DecodeError is returned for a document, or a row of a query, that does not decode into its Go
// type.
type DecodeError struct {
	ID  string // of the document; "" for a row
	Err error  // the error of the decoder
}

// Error names the document.
func (e *DecodeError) Error() string {
	if e.ID == "" {
		return "decode a row: " + e.Err.Error()
	}
	return fmt.Sprintf("decode %q: %v", e.ID, e.Err)
}

// Unwrap returns the error of the decoder.
func (e *DecodeError) Unwrap() error { return e.Err }
