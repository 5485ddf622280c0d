// Package observe reports what is done with a database, to an observer and to the log of
// slow operations. A database without either has a nil *Watch, and each operation costs
// it one comparison.
package observe

import (
	"context"
	"errors"
	"log/slog"
	"time"
	"unicode/utf8"
)

// Operation is an operation on a database. It is what jay.Operation is made of, which has
// the documentation for users.
type Operation struct {
	Verb       string
	Collection string
	ID         string
	Query      func() string
	Documents  int64
	Began      time.Time
	Duration   time.Duration
	Err        error
}

// Watch is what operations are reported to. It is set before the first operation and does
// not change.
type Watch struct {
	Begin func(ctx context.Context, o *Operation) context.Context // nil for no observer
	End   func(ctx context.Context, o *Operation)

	Slow time.Duration // operations that take as long are logged; 0 for none
	Log  *slog.Logger
}

// New returns a Watch, or nil if nothing is to be reported.
func New(w Watch) *Watch {
	if w.Begin == nil && w.Slow == 0 {
		return nil
	}
	return &w
}

// errCut is the error of an operation that ended with a panic, or with runtime.Goexit.
var errCut = errors.New("the operation was cut short by a panic")

// Do reports the operation fn, which adds to o what it finds out.
func (w *Watch) Do(ctx context.Context, o Operation, fn func(ctx context.Context, o *Operation) error) error {
	s := w.Start(ctx, o)
	s.Err = errCut
	defer s.Finish()
	s.Err = fn(s.ctx, &s.Operation)
	return s.Err
}

// Span is an operation that is under way. Its own time is what passes between Resume and
// Pause: the rest is the caller's, in a loop over what is found.
type Span struct {
	Operation
	watch  *Watch
	ctx    context.Context
	paused bool
	since  time.Time
}

// Start begins an operation, whose own time begins to run. Finish must follow.
func (w *Watch) Start(ctx context.Context, o Operation) *Span {
	s := &Span{Operation: o, watch: w, ctx: ctx}
	s.Began = time.Now()
	s.since = s.Began
	if w.Begin != nil {
		if ctx := w.Begin(ctx, &s.Operation); ctx != nil {
			s.ctx = ctx
		}
	}
	return s
}

// Context returns the context of the operation.
func (s *Span) Context() context.Context { return s.ctx }

// Pause stops the operation's own time. A nil span has none.
func (s *Span) Pause() {
	if s != nil && !s.paused {
		s.Duration += time.Since(s.since)
		s.paused = true
	}
}

// Resume lets it run again.
func (s *Span) Resume() {
	if s != nil && s.paused {
		s.since, s.paused = time.Now(), false
	}
}

// Found counts a document. A nil span counts none.
func (s *Span) Found() {
	if s != nil {
		s.Documents++
	}
}

// Fail returns err, and makes it the error of the operation.
func (s *Span) Fail(err error) error {
	if s != nil {
		s.Err = err
	}
	return err
}

// Finish ends the operation, and reports it.
func (s *Span) Finish() {
	if s == nil {
		return
	}
	s.Pause()
	if s.watch.Slow > 0 && s.Duration >= s.watch.Slow {
		s.log()
	}
	if s.watch.End != nil {
		s.watch.End(s.ctx, &s.Operation)
	}
}

// MaxText bounds the text of a query, and the ID, that the log gets.
const MaxText = 1000

func (s *Span) log() {
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("verb", s.Verb), slog.Duration("took", s.Duration))
	if s.Collection != "" {
		attrs = append(attrs, slog.String("collection", shorten(s.Collection)))
	}
	if s.ID != "" {
		attrs = append(attrs, slog.String("id", shorten(s.ID)))
	}
	if s.Query != nil {
		attrs = append(attrs, slog.String("query", shorten(s.Query())))
	}
	attrs = append(attrs, slog.Int64("documents", s.Documents))
	if s.Err != nil {
		attrs = append(attrs, slog.String("err", shorten(s.Err.Error())))
	}
	s.watch.Log.LogAttrs(context.WithoutCancel(s.ctx), slog.LevelWarn, "jay: slow operation", attrs...)
}

// shorten cuts a text at MaxText bytes, at the beginning of a character.
func shorten(text string) string {
	if len(text) <= MaxText {
		return text
	}
	end := MaxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
