package lsm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// fail makes the engine fail: every later Update returns ErrFailed. The first
// cause is kept. That of a full disk is a storage.ErrDiskFull, too: the engine can be
// opened again when there is room.
func (e *Engine) fail(cause error) {
	if isDiskFull(cause) {
		cause = fullError{cause}
	}
	if e.failure.CompareAndSwap(nil, &cause) {
		close(e.failed)
		e.notice.send()
		time.AfterFunc(abandonDelay, func() { close(e.abandoned) })
		e.log.Error("jay: storage failed, writes are refused until the database is reopened", "dir", e.dir, "cause", cause)
	}
}

// fullError is an error of a full disk that is also storage.ErrDiskFull.
type fullError struct{ error }

// Unwrap returns both.
func (f fullError) Unwrap() []error { return []error{f.error, storage.ErrDiskFull} }

// abandonDelay is how long calls wait after the engine has failed. All that they
// could still learn is that their outcome is unknown.
const abandonDelay = time.Second

// protect calls fn and returns a panic of it as an error: Pebble panics when it
// cannot write its log.
func (e *Engine) protect(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return fn()
}

// listener returns a listener to Pebble's background work. A flush or compaction
// that fails makes the engine fail, as Pebble would retry it for ever while
// writers pile up. Other errors there, such as statistics that cannot be read,
// are only logged.
func (e *Engine) listener() *pebble.EventListener {
	// Pebble reports a flush that had nothing to write as an error to FlushEnd,
	// and only real failures to BackgroundError, among failures of other kinds.
	var flush atomic.Pointer[error]
	return &pebble.EventListener{
		// Without this, Pebble calls Fatalf for a table that cannot be read. With
		// it, the reader gets ErrCorrupt, and the rest can still be read.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			e.log.Error("jay: corrupt table", "dir", e.dir, "file", info.Path, "err", info.Details)
		},
		FlushEnd: func(info pebble.FlushInfo) {
			if info.Err != nil {
				flush.Store(&info.Err)
			}
		},
		CompactionEnd: func(info pebble.CompactionInfo) {
			if info.Err != nil && !errors.Is(info.Err, pebble.ErrCancelledCompaction) {
				e.fail(fmt.Errorf("compact tables: %w", readError(info.Err)))
			}
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			if e.stalls.begin() {
				e.log.Warn("jay: writes wait for the disk", "dir", e.dir, "reason", info.Reason)
			}
		},
		WriteStallEnd: func() {
			e.log.Warn("jay: writes go on", "dir", e.dir, "waited", e.stalls.end())
		},
		BackgroundError: func(err error) {
			if flushErr := flush.Load(); flushErr != nil && errors.Is(err, *flushErr) {
				e.fail(fmt.Errorf("write a table: %w", readError(err)))
				return
			}
			e.log.Warn("jay: storage, in the background", "dir", e.dir, "err", err)
		},
	}
}

// pebbleLogger is Pebble's logger. The default one ends the process on Fatalf,
// which an embedded library must not do.
type pebbleLogger struct{ e *Engine }

// Infof implements pebble.Logger, at the debug level: Pebble logs each flush.
func (l pebbleLogger) Infof(format string, args ...any) {
	if l.e.log.Enabled(context.Background(), slog.LevelDebug) {
		l.e.log.Debug(fmt.Sprintf(format, args...))
	}
}

// Errorf implements pebble.Logger.
func (l pebbleLogger) Errorf(format string, args ...any) { l.e.log.Error(fmt.Sprintf(format, args...)) }

// Fatalf implements pebble.Logger. The engine has failed, and Fatalf must not
// return, as Pebble's state is inconsistent. Below a call of this package it
// panics, and protect recovers that. On a goroutine of Pebble's it ends the
// goroutine, whose deferred calls release its locks.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := newFatal(format, args)
	l.e.fail(err)
	if calledByUs() {
		panic(err)
	}
	runtime.Goexit()
}

// calledByUs reports whether a method of Engine is on the stack. The logger is
// not one.
func calledByUs() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "jay/storage/lsm.(*Engine)") {
			return true
		}
		if !more {
			return false
		}
	}
}

// fatal is a message of Pebble's, which formats errors with %v, and the error in
// it, so that errors.Is and As still find that.
type fatal struct {
	text  string
	cause error // or nil
}

func newFatal(format string, args []any) error {
	f := &fatal{text: fmt.Sprintf(format, args...)}
	for _, arg := range args {
		if err, is := arg.(error); is {
			f.cause = err
		}
	}
	return f
}

// Error returns the message.
func (f *fatal) Error() string { return f.text }

// Unwrap returns the error that the message contains.
func (f *fatal) Unwrap() error { return f.cause }
