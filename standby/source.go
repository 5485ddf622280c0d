package standby

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/look"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/recovery"
)

// Source is a database that a standby follows, in this process or elsewhere. The standby calls it
// from one goroutine at a time.
type Source interface {
	// Stream sends a request to the source, which answers it by Serve, and returns what Serve writes.
	// The caller closes the reader. When ctx ends, reads return an error.
	Stream(ctx context.Context, request []byte) (io.ReadCloser, error)
}

// Serve answers the request of a standby on the side of the source. It writes to w until ctx ends,
// w returns an error, or db is closed. It returns nil when the standby has to send a new request.
// There may be a long time between two calls of Write, so w must not buffer bytes.
//
// The request may come from an untrusted sender: Serve checks it, and bounds it by 256 MiB, which
// it holds in memory. Serve returns ErrUsage for an invalid request. It returns ErrStandby or
// ErrReadOnly for a database that cannot be followed: a member of a cluster, a database on a shared
// store, or one that is open for reading only.
func Serve(ctx context.Context, db *jay.DB, w io.Writer, request io.Reader) error {
	if err := recovery.Stream(ctx, parts.Of(db), w, request); err != nil {
		return fmt.Errorf("serve a standby: %w", err)
	}
	return nil
}

// From returns a database of this process as a Source. The standby does not close it.
func From(db *jay.DB) Source { return local{db} }

type local struct{ db *jay.DB }

// Stream implements Source.
func (l local) Stream(ctx context.Context, request []byte) (io.ReadCloser, error) {
	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		err := Serve(ctx, l.db, in, bytes.NewReader(request))
		_ = in.CloseWithError(err) // it never fails; nil is an io.EOF
	}()
	return &stream{out, cancel}, nil
}

// stream is a stream whose Serve ends with it.
type stream struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.cancel()
	return s.PipeReader.Close()
}

// Dir returns a Source for the database in a directory of this machine that another program of the
// same user has open. The other program needs no code for that: it answers through the socket that
// jay.Look uses, unless its Options.NoLook is set.
func Dir(dir string) Source { return directory(dir) }

type directory string

// Stream implements Source.
func (d directory) Stream(ctx context.Context, request []byte) (io.ReadCloser, error) {
	return look.Follow(ctx, string(d), request)
}

// URL returns a Source that posts requests to an address, such as the address of a database of jay
// serve: https://host/jay/v1/databases/NAME/follow. A nil client means http.DefaultClient. The
// client must have no Timeout, because a reply has no end.
func URL(client *http.Client, address string) Source {
	if client == nil {
		client = http.DefaultClient
	}
	return remote{client, address}
}

type remote struct {
	client  *http.Client
	address string
}

// maxMessage is how much of the text of an error is read.
const maxMessage = 4 << 10

// Stream implements Source.
func (r remote) Stream(ctx context.Context, request []byte) (io.ReadCloser, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.address, bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/octet-stream")
	reply, err := r.client.Do(q)
	if err != nil {
		return nil, err
	}
	if reply.StatusCode == http.StatusOK {
		return reply.Body, nil
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(reply.Body, maxMessage)) // the status is the error
	return nil, fmt.Errorf("%s answers %s: %s", r.address, reply.Status, bytes.TrimSpace(text))
}
