package query

import (
	"context"
	"sync/atomic"
)

// workPerLook is the work between two looks at the context: about as many
// bytes, values, or characters times states of a regular expression. It takes
// a few milliseconds at most.
const workPerLook = 1 << 18

// Pace lets work on documents end early. Whatever works on them counts what it
// does, and looks at the context each time that a certain amount of work is
// done: by work and not by documents, one of which may be as much work as a
// million others. It bounds nothing: work is never refused, only stopped.
//
// The zero Pace, and a nil one, never end. One Pace serves one goroutine, but
// for Stop.
type Pace struct {
	ctx     context.Context
	work    int
	err     error // why the work has ended
	stopped atomic.Pointer[error]
}

// Begin makes ctx the context that is looked at from now on.
func (p *Pace) Begin(ctx context.Context) { p.ctx = ctx }

// Stop ends the work with cause, at the next look. It may be called by any
// goroutine.
func (p *Pace) Stop(cause error) { p.stopped.CompareAndSwap(nil, &cause) }

// Err returns why the work has ended: the context's error or the cause of Stop.
// It is nil as long as the work goes on.
func (p *Pace) Err() error {
	if p == nil {
		return nil
	}
	return p.err
}

// Spend counts n units of work and reports whether the work may go on. After
// it was false once it stays so: what the work came to then has no meaning.
func (p *Pace) Spend(n int) bool {
	if p == nil {
		return true
	}
	if p.work += n; p.work < workPerLook {
		return true
	}
	return p.look()
}

// look looks at the context.
func (p *Pace) look() bool {
	if p.err == nil {
		if cause := p.stopped.Load(); cause != nil {
			p.err = *cause
		} else if p.ctx != nil {
			p.err = p.ctx.Err()
		}
	}
	if p.err != nil {
		p.work = workPerLook // every call from now on comes here
		return false
	}
	p.work = 0
	return true
}
