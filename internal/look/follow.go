package look

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jaydb/jay/storage"
)

// Follow sends the request of a standby to the program that has directory dir open, and returns the stream that it answers with. The
// caller closes it; when ctx ends, reading from it returns an error. The error is a storage.ErrUnavailable if no program
// has the directory open, or it does not answer.
func Follow(ctx context.Context, dir string, request []byte) (io.ReadCloser, error) {
	e, err := connect(dir, greeting)
	if err != nil {
		return nil, fmt.Errorf("follow %q: %w", dir, err)
	}
	s := &followed{wire: e.wire}
	s.stop = context.AfterFunc(ctx, func() { _ = e.wire.conn.Close() })
	if err := s.begin(request); err != nil {
		return nil, errors.Join(fmt.Errorf("follow %q: %w", dir, err), s.Close())
	}
	return s, nil
}

// followed is the stream of a standby, on the side of the client.
type followed struct {
	wire *wire
	stop func() bool
}

func (s *followed) begin(request []byte) error {
	err := s.wire.write(askFollow)
	if err == nil {
		_, err = s.wire.out.Write(request)
	}
	if err == nil {
		err = s.wire.out.Flush()
	}
	if err != nil {
		return unanswered(err)
	}
	kind, reply, err := s.wire.read(nil, maxRequest, stall)
	switch {
	case err != nil:
		return unanswered(err)
	case kind != 0:
		return errorOf(kind, reply)
	}
	return s.wire.wait(0)
}

// Read implements io.Reader.
func (s *followed) Read(p []byte) (int, error) { return s.wire.in.Read(p) }

// Close implements io.Closer.
func (s *followed) Close() error {
	s.stop()
	return s.wire.conn.Close()
}

// follow answers the request of a standby that comes next, until the stream or the Answerer ends. The connection ends
// with it.
func (c *client) follow() error {
	serve := c.of.source.Follow
	if serve == nil {
		return c.fail(fmt.Errorf("%w: it cannot be followed", storage.ErrUnavailable))
	}
	w := &streamed{wire: c.wire}
	if err := serve(c.of.ctx, w, requested{c.wire}); err != nil && !w.begun {
		return c.fail(err)
	}
	return nil
}

// requested reads the request of a standby.
type requested struct{ wire *wire }

// Read implements io.Reader.
func (r requested) Read(p []byte) (int, error) {
	if err := r.wire.wait(stall); err != nil {
		return 0, err
	}
	return r.wire.in.Read(p)
}

// streamed writes the stream, after a reply that says that it begins.
type streamed struct {
	wire  *wire
	begun bool
}

// Write implements io.Writer.
func (s *streamed) Write(p []byte) (int, error) {
	if !s.begun {
		s.begun = true
		if err := s.wire.write(0); err != nil {
			return 0, err
		}
	}
	n, err := s.wire.out.Write(p)
	return n, errors.Join(err, s.wire.out.Flush())
}
