package verbs

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/jaydb/jay/server/internal/serve"
)

const (
	// BulkBatchBytes bounds a batch of a bulk insert. There are up to three at a time.
	BulkBatchBytes = 2 << 20

	// BulkMemory is what a bulk insert takes from the server's memory budget, beside its
	// largest element.
	BulkMemory = 4*BulkBatchBytes + 2*serve.ElementBufferBytes
)

// QuietBody returns the decompressed body of a stream. Its reads end with ctx. The caller
// must call stop, also after an error.
func QuietBody(c *serve.Call, ctx context.Context) (body io.Reader, stop func() bool, err error) {
	source := &quietReader{ctx: ctx, c: c, r: c.Request.Body}
	stop = serve.ClosesUnless(source.watch(), c.Request, c.Reply)
	body, err = serve.Unpacked(source, c.Header.Get("Content-Encoding"), c.Held())
	return body, stop, err
}

// quietReader reads a body whose sender may be slow, but must not be silent for longer
// than Options.SilenceTimeout.
type quietReader struct {
	ctx context.Context
	c   *serve.Call
	r   io.Reader

	mu sync.Mutex // guards the deadline, so that none is set after ctx has ended
}

// watch makes a running read end when ctx ends. The caller must call stop.
func (q *quietReader) watch() (stop func() bool) {
	return context.AfterFunc(q.ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		_ = http.NewResponseController(q.c.Writer).SetReadDeadline(time.Unix(1, 0))
	})
}

// Read implements io.Reader.
func (q *quietReader) Read(b []byte) (int, error) {
	q.mu.Lock()
	if q.ctx.Err() != nil {
		q.mu.Unlock()
		return 0, context.Cause(q.ctx)
	}
	// A ResponseWriter that has no deadlines is one of a test, or wrapped by a user.
	_ = http.NewResponseController(q.c.Writer).SetReadDeadline(time.Now().Add(q.c.Server.Options.SilenceTimeout))
	q.mu.Unlock()
	return q.r.Read(b)
}
