package query

import (
	"context"
	"sync/atomic"
)

// workPerPoll is the work between two checks of the context, in units of about
// one byte, one value, or one character times one state of a regular expression.
// It takes a few milliseconds at most.
const workPerPoll = 1 << 18

// Pace stops work on documents early. The types that read documents count their
// work and check the context after a certain amount of it. They count work and
// not documents, since one document may take as long as a million others. A Pace
// does not bound work: it only stops it when the context ends or Stop is called.
//
// Charge passes the work on to where it is bounded.
//
// The zero Pace and a nil one never stop. Stop is safe for concurrent use; the
// other methods belong to one goroutine.
type Pace struct {
	ctx     context.Context
	work    int
	charge  func(work int) error // see Charge, or nil
	err     error                // why the work was stopped
	stopped atomic.Pointer[error]
}

// Begin makes ctx the context to check from now on.
func (p *Pace) Begin(ctx context.Context) { p.ctx = ctx }

// Charge makes p pass the work that it counts to spend, at each check and by Settle.
// An error of spend stops the work.
func (p *Pace) Charge(spend func(work int) error) { p.charge = spend }

// Settle passes the work since the last check to the function of Charge, and returns
// Err.
func (p *Pace) Settle() error {
	if p.err == nil {
		p.poll()
	}
	return p.err
}

// Stop stops the work with cause, at the next check. The first cause counts. It
// is safe for concurrent use.
func (p *Pace) Stop(cause error) { p.stopped.CompareAndSwap(nil, &cause) }

// Err returns why the work was stopped: the context's error or the cause of Stop.
// It returns nil as long as the work may go on.
func (p *Pace) Err() error {
	if p == nil {
		return nil
	}
	return p.err
}

// Spend counts n units of work and reports whether the work may go on. Once it
// has returned false it always does, and the result of the work has no meaning.
func (p *Pace) Spend(n int) bool {
	if p == nil {
		return true
	}
	if p.work += n; p.work < workPerPoll {
		return true
	}
	return p.poll()
}

// poll checks the context, Stop and the function of Charge.
func (p *Pace) poll() bool {
	if p.err == nil {
		if cause := p.stopped.Load(); cause != nil {
			p.err = *cause
		} else if p.ctx != nil {
			p.err = p.ctx.Err()
		}
		if p.err == nil && p.charge != nil {
			p.err = p.charge(p.work)
		}
	}
	if p.err != nil {
		p.work = workPerPoll // every later call of Spend polls and fails
		return false
	}
	p.work = 0
	return true
}
