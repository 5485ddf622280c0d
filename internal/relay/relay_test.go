package relay_test

import (
	"runtime"
	"testing"

	"github.com/jaydb/jay/internal/relay"
)

// ended runs fn on a goroutine of its own and returns how fn ended, as the
// goroutine's deferred functions see it.
func ended(fn func()) (panicked any, returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		fn()
		returned = true
	}()
	<-done
	return panicked, returned
}

// Ensure that each way to end a function is noted, and repeated on the
// goroutine that asks.
func TestEnding(t *testing.T) {
	type value struct{ n int }
	for _, test := range []struct {
		name     string
		fn       func()
		panicked any
		returned bool
	}{
		{"return", func() {}, nil, true},
		{"panic", func() { panic(value{7}) }, value{7}, false},
		{"goexit", runtime.Goexit, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var e relay.Ending
			if p, returned := ended(func() { e.Watch(test.fn) }); p != nil || returned != (test.name != "goexit") {
				t.Errorf("Watch: panic %v, returned %v", p, returned)
			}
			if e.Returned() != test.returned || e.Panic() != test.panicked {
				t.Errorf("noted: returned %v, panic %v", e.Returned(), e.Panic())
			}
			if p, returned := ended(e.Repeat); p != test.panicked || returned != test.returned {
				t.Errorf("Repeat: panic %v, returned %v", p, returned)
			}
		})
	}
}
