// Package relay transfers the ending of a function to another goroutine. Work
// that runs on a background goroutine for a caller can thus panic, or call
// runtime.Goexit, on the goroutine of the caller.
package relay

import "runtime"

// Ending is how a function ended. The zero value stands for one that has not
// returned. It is not safe for concurrent use.
type Ending struct {
	returned bool
	panicked any // nil for a call of runtime.Goexit
}

// Watch calls fn and records how it ends. It recovers a panic. A call of
// runtime.Goexit ends the goroutine; deferred functions of Watch's caller then
// read the Ending.
func (e *Ending) Watch(fn func()) {
	*e = Ending{}
	defer func() {
		if !e.returned {
			e.panicked = recover() // nil for runtime.Goexit
		}
	}()
	fn()
	e.returned = true
}

// Returned reports whether the function returned.
func (e *Ending) Returned() bool { return e.returned }

// Panic returns the value that the function panicked with, or nil.
func (e *Ending) Panic() any { return e.panicked }

// Repeat ends as the watched function ended: it returns, panics with the same
// value, or calls runtime.Goexit.
func (e *Ending) Repeat() {
	switch {
	case e.returned:
	case e.panicked != nil:
		panic(e.panicked)
	default:
		runtime.Goexit()
	}
}
