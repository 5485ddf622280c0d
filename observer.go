package jay

import (
	"context"
	"log/slog"
	"time"

	"github.com/jaydb/jay/internal/relay"
)

// Observer is called for each operation on a database (Options.Observer), so that a
// program can trace and count them: jayprometheus.Observer and jayotel.Observer do.
//
// Jay calls both methods on the goroutine of the operation, and holds no locks. This is usually the goroutine
// of the caller, and a goroutine of Jay for a BulkWriter. The operation waits for the methods, so they must be
// quick. They must be safe for concurrent use, and must not use the database. A panic reaches the caller of the
// operation. A panic in End comes after the operation was carried out.
type Observer interface {
	// Begin is called before an operation. The returned context becomes the context of the operation, so it can
	// carry a span; it must be derived from ctx. nil means ctx.
	Begin(ctx context.Context, o *Operation) context.Context

	// End is called when the operation has ended, with the context that Begin returned and the same Operation,
	// whose fields are complete. The observer may keep o, but must not call o.Query after End has returned.
	End(ctx context.Context, o *Operation)
}

// Operation is an operation on a database, as an Observer sees it.
//
// The verbs are get, get many, exists and read of single documents; query, count and scan
// (DB.Documents); put, insert, replace, delete, patch, attach and revise of one document,
// compare exchange for a change of one compare-exchange value, whose key is the ID, batch
// for several writes in one commit, and bulk for a batch of a BulkWriter; update and view
// for transactions, whose own queries are operations, too, but not their other reads and
// writes; flush, compact and sweep.
type Operation struct {
	Verb       string
	Collection string        // as the call names it, or the documents do; "" if neither does
	ID         string        // of one document; "" for several documents, and until a write has made the ID
	Query      func() string // the text of a query or a count, with its values; else nil
	Documents  int64         // number of documents returned, counted or written; set at the end
	Began      time.Time
	Duration   time.Duration // without the time of the caller's loop over the answers; set at the end
	Err        error         // set at the end
}

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
