package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/follow"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/storage"
)

// Stream sends a standby what it asks for, until ctx ends, w fails, the database is closed, or the standby has to ask
// again: that is no error. The engine is read inside the gate, a block at a time; w is the caller's, and is called outside.
func Stream(ctx context.Context, db *core.Database, w io.Writer, request io.Reader) error {
	if db.Standbys == nil {
		return fmt.Errorf("%w: the database cannot be followed: its engine does not show its commits", errs.ErrStandby)
	}
	q, err := follow.ReadRequest(request)
	if err != nil {
		return fmt.Errorf("%w: %w", ids.ErrUsage, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &streamRun{db: db, cancel: cancel}
	if err := db.Inside(func() error { return r.start(q) }); err != nil {
		return err
	}
	defer r.end()
	var out []byte
	var idle bool
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		err := db.Inside(func() (err error) { out, idle, err = r.next(ctx, out[:0]); return err })
		if err != nil && !errors.Is(err, follow.ErrEnd) {
			return err
		}
		if len(out) > 0 {
			if _, err := w.Write(out); err != nil {
				return err
			}
		}
		if errors.Is(err, follow.ErrEnd) {
			return nil
		}
		if idle {
			if err := r.stream.Wait(ctx); err != nil {
				return err
			}
		}
	}
}

// streamRun is a Stream under way.
type streamRun struct {
	db     *core.Database
	cancel context.CancelCauseFunc

	mu     sync.Mutex // against Close
	stream *follow.Stream
	ended  error // why it is over; nil while it runs
}

// start is called inside the gate.
func (r *streamRun) start(q *follow.Request) error {
	e := r.db.Env
	_, closer, err := e.Engine.Get(format.AppendKey(nil, format.SpaceMeta, format.MembershipName))
	if err == nil {
		return errs.First(fmt.Errorf("%w: the database is a member of a cluster: it cannot be followed", errs.ErrStandby), closer.Close())
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	stored, err := settings.Load(e.Engine)
	if err != nil {
		return err
	}
	if r.stream, err = r.db.Standbys.NewStream(q, stored, e.Origins); err == nil {
		e.Register(r)
	}
	return err
}

// next appends what can be sent. idle is true if there is nothing to do until there is more.
func (r *streamRun) next(ctx context.Context, dst []byte) (out []byte, idle bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return nil, false, r.ended
	}
	out, err = r.stream.Next(ctx, dst)
	return out, len(out) == 0 && r.stream.Idle(), err
}

var errStreamEnded = errors.New("the stream has ended")

func (r *streamRun) end() {
	_ = r.Release(errStreamEnded) // an error of reading was returned by then
	r.db.Env.Unregister(r)        // after: Close must not close the engine in between
}

// Release implements env.Handle.
func (r *streamRun) Release(cause error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return nil
	}
	r.ended = cause
	r.cancel(cause)
	return r.stream.Close()
}
