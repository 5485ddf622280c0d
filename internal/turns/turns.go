// Package turns lets callers that lost against other writers go one after another,
// instead of competing with all others again.
//
// A [Caller] that lost waits in a line for each [Key] that it lost over: a document
// or a range of documents. It has its turn when it is the first of all its lines, and
// keeps it until it has committed. Lines are ordered by the age of the callers, which
// is when they first waited, and a caller joins all its lines at once. So callers
// that wait do not wait for each other.
//
// A turn is a courtesy among the writers of one process; correctness never rests on
// it. A caller that has not lost takes no place and no lock. Before it commits, it
// gives way to the lines that it would write into ([Caller.Meets]). Writers that do
// not give way may overtake the holder of a turn. After two such losses the turn is
// exclusive: other writers wait until it has ended ([Lines.Yield]).
//
// The holder runs a function of the user's, which may make calls that want a turn
// themselves, on any goroutine, and wait for them. A call that began while the
// function was running may be one of those: it does not wait for this holder, but in
// an inner line with others of its kind. And a turn has a limit ([Lines.Limit]), for
// functions that hang and for cycles of waits through the user's own locks.
//
// A Lines is safe for concurrent use, a Caller is not.
package turns

import (
	"context"
	"math"
	"time"
)

const (
	// DefaultLimit is the Limit of a Lines that has none.
	DefaultLimit = time.Second

	// MaxRuns is how many runs the holder of a turn has before the turn passes to the
	// next caller.
	MaxRuns = 4

	// MaxKeys is how many lines a caller of a user's function stands in. Losing over a
	// key whose line it does not stand in costs it another run.
	MaxKeys = 16

	// maxOvertaken is how many runs in its turn a holder loses before the turn becomes
	// exclusive.
	maxOvertaken = 2

	// minExclusive is the least time that an exclusive run may take.
	minExclusive = 20 * time.Millisecond
)

// Caller is a call that may have to wait for its turn. Leave must follow.
type Caller struct {
	lines  *Lines
	called uint64 // Lines.runs when the call began
	worker bool   // it runs no function of the user's
	ticket uint64 // its age: lower is older; 0 before it waits
	lost   []Key  // newest first
	place  *place // nil if it stands in no line
}

// Caller begins a call that runs a function of the user's.
func (l *Lines) Caller() Caller { return Caller{lines: l, called: l.runs.Load()} }

// Worker begins a call that runs no function of the user's. Its work is bounded, so
// that its turn needs no limit.
func (l *Lines) Worker() Caller { return Caller{lines: l, called: l.runs.Load(), worker: true} }

// Held reports whether the caller has its turn.
func (c *Caller) Held() bool { return c.place != nil && !c.place.gone.Load() }

// Meets returns a key whose line the write of a document would interfere with. The
// caller should wait for its turn instead. Meets takes no lock if there is no such
// line.
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

// Wait returns when the caller, which has lost over some keys, has its turn, or with
// the error of ctx. As far as there is room, the turn is for more keys, too. A caller
// that was overtaken in its turn keeps it, and Wait returns at once.
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
			c.ticket = 0 // behind all that wait now
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

// mostKeys returns how many keys that it lost over a caller keeps. A worker's are
// bounded by its work; a function may lose over others in each run.
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
