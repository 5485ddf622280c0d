// Package relay carries the end of a function from the goroutine that ran it to
// the goroutine that asked for it: work that is done for a caller on another
// goroutine then panics, or calls runtime.Goexit, where the caller can see it.
package relay

import "runtime"

// Ending is how a function ended. The zero value stands for one that has not
// returned. It is not safe for concurrent use.
type Ending struct {
	returned bool
	panicked any // nil for a call of runtime.Goexit
}

// Watch calls fn and notes how it ends. A panic is recovered. A call of
// runtime.Goexit ends the goroutine; deferred functions of the caller of Watch
// find it in the Ending.
func (e *Ending) Watch(fn func()) {
	*e = Ending{}
	defer func() {
		if !e.returned {
			e.panicked = recover()
		}
	}()
	fn()
	e.returned = true
}

// Returned reports whether the function returned.
func (e *Ending) Returned() bool { return e.returned }

// Panic returns the value that the function panicked with, or nil.
func (e *Ending) Panic() any { return e.panicked }

// Repeat ends the calling goroutine's function as the watched one ended: it
// panics with the same value, calls runtime.Goexit, or does nothing.
func (e *Ending) Repeat() {
	switch {
	case e.returned:
	case e.panicked != nil:
		panic(e.panicked)
	default:
		runtime.Goexit()
	}
}
