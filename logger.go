package jay

import (
	"context"
	"log/slog"

	"github.com/jaydb/jay/internal/relay"
)

// guardLogger returns a logger that passes records to the handler of l, and shields
// Jay from the handler's panics. It is nil for nil.
func guardLogger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return nil
	}
	return slog.New(guardedHandler{l.Handler()})
}

// guardedHandler calls a user's handler on a goroutine of its own, and waits for
// it. A handler that panics, or calls runtime.Goexit, loses the record and
// nothing else: records come from goroutines of the storage engine, in the
// middle of flushes and commits, and have no caller who could recover.
type guardedHandler struct{ user slog.Handler }

// Enabled implements slog.Handler.
func (h guardedHandler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	apart(func() { enabled = h.user.Enabled(ctx, level) })
	return enabled
}

// Handle implements slog.Handler.
func (h guardedHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	apart(func() { err = h.user.Handle(ctx, r) })
	return err
}

// WithAttrs implements slog.Handler.
func (h guardedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return guardedHandler{h.user.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h guardedHandler) WithGroup(name string) slog.Handler {
	return guardedHandler{h.user.WithGroup(name)}
}

// apart runs fn on a goroutine of its own and waits until it ends, in whatever way.
func apart(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		new(relay.Ending).Watch(fn)
	}()
	<-done
}
