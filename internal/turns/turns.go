// Package turns lets callers that lost against other writers run one after another,
// instead of competing with all others again.
//
// A [Caller] that lost joins a line for each [Key] that it lost over: a document or a
// range of documents. It gets its turn when it is the first in all of its lines, and
// keeps the turn until it has committed. Callers are ordered by age, which is when they
// first waited, and join all of their lines at once. So waiting callers cannot deadlock.
//
// A turn is a courtesy among the writers of one process; correctness never depends on
// it. A caller that has not lost takes no place and no lock. Before it commits, it gives
// way to the lines that its writes would interfere with ([Caller.Meets]). A writer that
// does not give way may overtake the holder of a turn. After two such losses the turn is
// exclusive: other writers wait until it has ended ([Lines.Yield]).
//
// The holder runs a function of the user's, which may make calls that need a turn
// themselves, on any goroutine, and wait for them. A call that began during the function
// may be one of these: it does not wait for this holder, but in an inner line with
// others of its kind. A turn also has a limit ([Lines.Limit]), in case a function hangs
// or waits through the user's own locks for a caller that waits for the turn.
//
// A Lines is safe for concurrent use, a Caller is not.
package turns

import (
	"context"
	"math"
	"time"
)

const (
	// DefaultLimit is used if Lines.Limit is 0.
	DefaultLimit = time.Second

	// MaxRuns is the number of runs after which the turn passes to the next caller.
	MaxRuns = 4

	// MaxKeys bounds the lines in which a call of a user's function waits. A loss over a
	// further key costs it another run.
	MaxKeys = 16

	// maxOvertaken is the number of losses in a turn after which it becomes exclusive.
	maxOvertaken = 2

	// minExclusive is the least time that an exclusive run may take.
	minExclusive = 20 * time.Millisecond
)

// Caller is a call that may have to wait for its turn. It must end with Leave.
type Caller struct {
	lines  *Lines
	called uint64 // Lines.runs when the call began
	worker bool   // it runs no function of the user's
	ticket uint64 // its age: a lower ticket is older; 0 before it waits
	lost   []Key  // newest first
	place  *place // nil if it stands in no line
}

// Caller returns a Caller that runs a function of the user's.
func (l *Lines) Caller() Caller { return Caller{lines: l, called: l.runs.Load()} }

// Worker returns a Caller that runs no function of the user's. Its work is bounded, so
// its turn needs no limit.
func (l *Lines) Worker() Caller { return Caller{lines: l, called: l.runs.Load(), worker: true} }

// Held reports whether the caller has its turn.
func (c *Caller) Held() bool { return c.place != nil && !c.place.gone.Load() }

// Meets returns a key whose line a write of the document would interfere with. The
// caller should then wait for its turn. If there is no such line, Meets takes no lock.
func (c *Caller) Meets(d Doc) (Key, bool) {
	l := c.lines
	if key := Document(d.ID); l.mayHave(d.ID) && l.blocks(key, c.called) {
		return key, true
	}
	if ranges := l.ranges.Load(); ranges != nil {
		for key := range *ranges {
			if key.covers(d, false) && l.blocks(key, c.called) {
				return key, true
			}
		}
	}
	return Key{}, false
}

// Wait returns when the caller, which has lost over the keys lost, has its turn, or with
// the error of ctx. Keys of more join the turn as far as MaxKeys allows. A caller that
// was overtaken in its turn keeps it, and Wait returns at once.
func (c *Caller) Wait(ctx context.Context, lost []Key, more []Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p := c.place; p != nil {
		again, used := c.lines.runAgain(p, lost)
		if again {
			return nil
		}
		if used {
			c.ticket = 0 // its age ends: it is younger than all that wait now
		}
		c.Leave()
	}
	c.lost = distinct(lost, c.lost, c.mostKeys())
	if c.place = c.lines.join(c, distinct(c.lost, more, max(MaxKeys, len(c.lost)))); c.place == nil {
		return nil
	}
	select {
	case <-c.place.turn:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		c.Leave()
		return err
	}
	return nil
}

// mostKeys bounds the keys that a caller keeps. Those of a worker are bounded by its
// work, while a function may lose over others in each run.
func (c *Caller) mostKeys() int {
	if c.worker {
		return math.MaxInt
	}
	return MaxKeys
}

// distinct returns the different keys of a and b, up to n of them, in order.
func distinct(a, b []Key, n int) []Key {
	var out []Key
	seen := make(map[Key]bool)
	for _, keys := range [][]Key{a, b} {
		for _, k := range keys {
			if !seen[k] && len(out) < n {
				seen[k] = true
				out = append(out, k)
			}
		}
	}
	return out
}

// Leave ends the caller's turn, or its wait. It is idempotent.
func (c *Caller) Leave() {
	if c.place != nil {
		c.lines.leave(c.place)
		c.place = nil
	}
}
