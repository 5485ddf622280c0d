package serve

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The checks of rights are internal, as only they can be made to hang for a while without a real one.

// Ensure that a check which hangs delays the checks of other streams, and new streams, by no more than its patience, that
// it is not begun twice, and that its stream ends after a while.
func TestAuthentication_EndStreams_Hangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Authentication{opts: &Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now}}
		ends, released := make(chan string, 10), make(chan struct{})
		defer close(released)
		var checks atomic.Int32
		a.watch(&Grant{}, "GET", "/hangs", func() { ends <- "hangs" }, func() error {
			checks.Add(1)
			<-released
			return nil
		})
		began := time.Now()
		a.EndStreams()
		if took := time.Since(began); took > checkPatience {
			t.Errorf("the checks took %s", took)
		}
		stop := a.watch(&Grant{}, "GET", "/lost", func() { ends <- "lost" }, func() error { return errors.New("the right has ended") })
		a.EndStreams()
		if got := <-ends; got != "lost" || checks.Load() != 1 {
			t.Errorf("%s has ended, after %d checks that hang", got, checks.Load())
		}
		stop()

		time.Sleep(checkTimeout)
		a.EndStreams()
		if got := <-ends; got != "hangs" || checks.Load() != 1 {
			t.Errorf("%s has ended, after %d checks that hang", got, checks.Load())
		}
	})
}

// Ensure that a stream which ends while its check runs is not ended again.
func TestAuthentication_EndStreams_Over(t *testing.T) {
	t.Parallel()
	a := &Authentication{opts: &Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now}}
	var stop func()
	stop = a.watch(&Grant{}, "GET", "/over", func() { t.Error("the stream is ended after its end") }, func() error {
		stop()
		return errors.New("the right has ended")
	})
	a.EndStreams()
}
