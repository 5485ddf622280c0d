package background

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// Ensure that a worker works until there is nothing left, looks once more if it was woken
// while it worked, goes on after an error when it is woken again, and not after Stop.
func TestWorker(t *testing.T) {
	var left, steps, failures atomic.Int64
	broken := errors.New("broken")
	stepping, step := make(chan struct{}), make(chan error)
	w := NewWorker(func(context.Context) (bool, error) {
		steps.Add(1)
		stepping <- struct{}{}
		err := <-step
		return left.Add(-1) > 0, err
	}, func(err error) {
		if err == broken {
			failures.Add(1)
		}
	})

	left.Store(3)
	w.Wake()
	for range 3 {
		<-stepping
		step <- nil
	}
	w.Wait()
	if steps.Load() != 3 {
		t.Errorf("%d steps for three parts of work", steps.Load())
	}

	left.Store(2)
	w.Wake()
	<-stepping
	w.Wake() // it may not see what this is about
	step <- broken
	<-stepping
	step <- nil
	w.Wait()
	if steps.Load() != 5 || failures.Load() != 1 {
		t.Errorf("%d steps and %d failures", steps.Load(), failures.Load())
	}

	w.Wake()
	<-stepping
	stopped := make(chan struct{})
	go func() {
		w.Stop()
		close(stopped)
	}()
	<-w.Context().Done()
	left.Store(10)
	step <- context.Canceled
	<-stopped
	w.Wake()
	w.Wait()
	if steps.Load() != 6 || failures.Load() != 1 {
		t.Errorf("%d steps and %d failures after Stop", steps.Load(), failures.Load())
	}
}

// Ensure that a group runs nothing after Stop, and does not rest.
func TestGroup_Stopped(t *testing.T) {
	g := NewGroup()
	ran := make(chan struct{})
	g.Go(func() { close(ran) })
	<-ran
	g.Stop()
	g.Go(func() { t.Error("a goroutine began after Stop") })
	g.Wait()
	if g.Rest(time.Now().Add(-time.Hour)) {
		t.Error("a group that was stopped goes on")
	}
}

// Ensure that a worker that hurries does not rest between its steps.
func TestWorker_Hurry(t *testing.T) {
	var w *Worker
	steps, worked := 0, time.Duration(0)
	w = NewWorker(func(context.Context) (bool, error) {
		at := time.Now()
		time.Sleep(20 * time.Millisecond)
		if steps++; steps < 10 {
			w.Hurry()
		}
		worked += time.Since(at)
		return steps < 10, nil
	}, func(err error) { t.Error(err) })
	begun := time.Now()
	w.Wake()
	w.Wait()
	if rested := time.Since(begun) - worked; steps != 10 || rested > worked/2 {
		t.Errorf("%d steps took %v, and %v between them", steps, worked, rested)
	}
	w.Stop()
}
