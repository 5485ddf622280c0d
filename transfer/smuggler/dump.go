package smuggler

import (
	"context"
	"encoding/json"
	"io"
)

// dumpTag is the prefix of the tag of a content that jay export has written, whose hash
// is a SHA-256. RavenDB's hashes differ by version and serve here only as names.
const dumpTag = "jay sha256 "

// dumpExchange is a compare-exchange value in a dump. Value is a text of JSON, an object
// with the value as its member Object.
type dumpExchange struct {
	Key   string
	Value string
}

// exchangeValue is the Value of a dumpExchange.
type exchangeValue struct {
	Object json.RawMessage
	Custom json.RawMessage `json:"@metadata,omitempty"`
}

// contextReader is a reader that fails when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
