package indexer

import (
	"context"
	"math"
	"testing"
	"time"
)

// Ensure that a throttle puts documents as far apart as it is told, whoever writes them, lets no commit wait for longer than its bound,
// and ends when the settler says so, or says nothing more. The test has its own clock: it needs what lies in the package.
func TestThrottle(t *testing.T) {
	now := time.Unix(1000, 0)
	th := &throttle{now: func() time.Time { return now }}
	take := func(documents int, want time.Duration) {
		t.Helper()
		if got := th.take(documents); got != want {
			t.Errorf("%d documents: got %v, want %v", documents, got, want)
		}
	}
	take(1000, 0)
	th.set(time.Millisecond)
	take(1, time.Millisecond)
	take(3, 4*time.Millisecond)
	now = now.Add(2 * time.Millisecond)
	take(1, 3*time.Millisecond)
	now = now.Add(time.Hour / 3600) // what has passed is not saved up
	take(1, time.Millisecond)
	take(math.MaxInt32, maxThrottle)
	take(1, maxThrottle)
	th.set(0)
	take(1, 0)
	th.set(time.Millisecond)
	now = now.Add(throttleMemory + 1)
	take(1, 0)
}

// Ensure that a writer that waits goes on when its context ends, and when the database is closed.
func TestThrottle_Ends(t *testing.T) {
	th := &throttle{now: time.Now}
	th.set(time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stopped := make(chan struct{})
	begun := time.Now()
	th.wait(ctx, stopped, 1)
	close(stopped)
	th.wait(context.Background(), stopped, 1)
	if took := time.Since(begun); took >= maxThrottle {
		t.Errorf("two writers went on after %v", took)
	}
}
