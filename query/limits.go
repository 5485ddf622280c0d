package query

import (
	"cmp"
	"context"
	"sync/atomic"
)

// Bounds of a condition, parsed or built. A condition beyond them is refused with
// a *LimitError before any work is done on it.
const (
	MaxConditionDepth = 1000     // nested conditions
	MaxConditions     = 10_000   // conditions of all kinds, And, Or and Not included
	MaxValues         = 100_000  // values of all In together
	MaxOperandBytes   = 32 << 20 // of all values, texts and patterns together
	MaxRegexps        = 1000     // regular expressions
	MaxSearches       = 64       // searches for words
	MaxPlaces         = 64       // conditions on places
	MaxSimilars       = 64       // conditions on vectors
	MaxElemMatches    = 100      // conditions on elements: each reads the elements on its own
)

// Size is the size of a condition, in the quantities that are bounded.
type Size struct {
	Conditions int // And, Or and Not included
	Depth      int // of the deepest condition, from 1
	Values     int // of all In
	Bytes      int // of values, texts and patterns
	Regexps    int
	Searches   int
	Places     int
	Similars   int
	Elements   int // conditions on elements
}

// Join returns the size of an And, Or or Not whose conditions have these sizes.
func Join(parts ...Size) Size {
	all := Size{Conditions: 1}
	for _, part := range parts {
		all.Conditions += part.Conditions
		all.Depth = max(all.Depth, part.Depth)
		all.Values += part.Values
		all.Bytes += part.Bytes
		all.Regexps += part.Regexps
		all.Searches += part.Searches
		all.Places += part.Places
		all.Similars += part.Similars
		all.Elements += part.Elements
	}
	all.Depth++
	return all
}

// Check returns a *LimitError if the size is beyond a bound.
func (s Size) Check() error {
	switch {
	case s.Conditions > MaxConditions:
		return &LimitError{"conditions", MaxConditions, s.Conditions}
	case s.Depth > MaxConditionDepth:
		return &LimitError{"levels of conditions", MaxConditionDepth, s.Depth}
	case s.Values > MaxValues:
		return &LimitError{"values in lists", MaxValues, s.Values}
	case s.Bytes > MaxOperandBytes:
		return &LimitError{"bytes of values", MaxOperandBytes, s.Bytes}
	case s.Searches > MaxSearches:
		return &LimitError{"searches for words", MaxSearches, s.Searches}
	case s.Places > MaxPlaces:
		return &LimitError{"conditions on places", MaxPlaces, s.Places}
	case s.Similars > MaxSimilars:
		return &LimitError{"conditions on vectors", MaxSimilars, s.Similars}
	case s.Regexps > MaxRegexps:
		return &LimitError{"regular expressions", MaxRegexps, s.Regexps}
	case s.Elements > MaxElemMatches:
		return &LimitError{"conditions on elements", MaxElemMatches, s.Elements}
	}
	return nil
}

// Measure returns the size of e, or a *LimitError if it is beyond a bound. It
// stops at the first bound that e exceeds and does not recurse, so that its time
// and stack stay small however large or deep e is.
func Measure(e Expr) (Size, error) {
	var size Size
	_, nested := e.(ElemMatch)
	if _, ok := fieldOf(e); ok && !nested { // the usual case: no conditions in it, no stack needed
		size.count(e)
		size.Depth = 1
		return size, size.Check()
	}
	err := walk(e, func(e Expr, depth int) error {
		size.count(e)
		size.Depth = max(size.Depth, depth)
		return size.Check()
	})
	return size, err
}

// walk calls fn with e and all conditions in it, parents first, until fn returns
// an error. It keeps its own stack, as e may be too deep for recursion. A nil e
// has no conditions.
func walk(e Expr, fn func(e Expr, depth int) error) error {
	if e == nil {
		return nil
	}
	stack := [][]Expr{{e}} // for each level, the conditions still to visit
	for len(stack) > 0 {
		top := len(stack) - 1
		if len(stack[top]) == 0 {
			stack = stack[:top]
			continue
		}
		e := stack[top][0]
		stack[top] = stack[top][1:]
		if err := fn(e, len(stack)); err != nil {
			return err
		}
		switch e := e.(type) {
		case And:
			stack = append(stack, e)
		case Or:
			stack = append(stack, e)
		case Not:
			stack = append(stack, []Expr{e.Expr})
		case Boost:
			stack = append(stack, []Expr{e.Expr})
		case ElemMatch:
			if e.Where != nil {
				stack = append(stack, []Expr{e.Where})
			}
		}
	}
	return nil
}

// count adds one condition, without its children.
func (s *Size) count(e Expr) {
	s.Conditions++
	if l, is := e.(leaf); is {
		*s = l.measure(*s)
	}
}

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
	whole   *Pace                // see Within, or nil
	err     error                // why the work was stopped
	stopped atomic.Pointer[error]
}

// Begin makes ctx the context to check from now on.
func (p *Pace) Begin(ctx context.Context) { p.ctx = ctx }

// Charge makes p pass the work that it counts to spend, at each check and by Settle.
// An error of spend stops the work.
func (p *Pace) Charge(spend func(work int) error) { p.charge = spend }

// Within makes p stop where whole is stopped by Stop: p is of another goroutine that does a part of the work of whole.
// It does not charge for it.
func (p *Pace) Within(whole *Pace) { p.whole = whole }

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

// stopCause returns the cause of Stop, or nil.
func (p *Pace) stopCause() error {
	if p == nil {
		return nil
	}
	if cause := p.stopped.Load(); cause != nil {
		return *cause
	}
	return nil
}

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
		if p.err = cmp.Or(p.stopCause(), p.whole.stopCause()); p.err == nil && p.ctx != nil {
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
