package own

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/jaydb/jay/server/internal/serve"
)

// While there are no events, a comment is sent at this interval: it shows whether the client is gone. A client that receives nothing for
// feedPatience is disconnected.
const (
	feedHeartbeat = 15 * time.Second
	feedPatience  = 30 * time.Second
)

// event is what an iterator has yielded.
type event[T any] struct {
	value T
	err   error
}

// sent reads an iterator in a goroutine of its own, and sends what it yields until ctx ends. ended is closed when the iterator has ended. ctx must
// end, and the caller must wait for ended.
func sent[T any](ctx context.Context, all iter.Seq2[T, error]) (events <-chan event[T], ended <-chan struct{}) {
	to, done := make(chan event[T]), make(chan struct{})
	go func() {
		defer close(done)
		for value, err := range all {
			select {
			case to <- event[T]{value, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return to, done
}

// eventWriter sends server-sent events.
type eventWriter struct {
	c       *serve.Call
	control *http.ResponseController
}

func newEventWriter(c *serve.Call) *eventWriter {
	return &eventWriter{c, http.NewResponseController(c.Writer)}
}

// begin sends the head of the reply, once.
func (w *eventWriter) begin() {
	if c := w.c; !c.Started {
		c.Started, c.Status = true, http.StatusOK
		c.Reply.Set("Content-Type", "text/event-stream")
		c.Reply.Set("Cache-Control", "no-store")
		c.Writer.WriteHeader(http.StatusOK)
	}
}

// write sends events at once. A client that takes nothing for feedPatience is disconnected.
func (w *eventWriter) write(text []byte) error {
	w.begin()
	_ = w.control.SetWriteDeadline(time.Now().Add(feedPatience)) // a test's writer has no deadlines
	if _, err := w.c.Writer.Write(text); err != nil {
		return err
	}
	return w.control.Flush()
}
