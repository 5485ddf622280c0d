package ids

import "time"

// Growth is the policy by which a client of an older HiLo generation chooses the
// size of its next range.
type Growth uint8

const (
	// Growth3 is the policy of RavenDB 3.0 and 3.5. The size doubles if the last range was requested
	// less than 5 seconds ago, quadruples if the one before it was requested less than 3 seconds ago,
	// and halves after more than a minute. It then doubles until the waiting callers take at most a
	// tenth of the range.
	Growth3 Growth = iota
	// Growth2 is the policy of RavenDB 2.0 and 2.5. The size doubles if the last range was requested
	// less than a second ago, and never shrinks.
	Growth2
	// GrowthNone keeps every range at the base capacity.
	GrowthNone
)

// Pace is the request history that a client of an older generation keeps for one
// tag. It is not safe for concurrent use.
type Pace struct {
	Capacity     int64     // size of the last range; 0 before the first
	last, before time.Time // when the last range, and the one before it, was requested
}

// Next returns the size of the next range: at least base, at most MaxRangeSize. now is the time of
// the request, and waiting is how many callers wait for the range.
func (p *Pace) Next(g Growth, base int64, now time.Time, waiting int) int64 {
	size := max(p.Capacity, base)
	switch g {
	case Growth3:
		size = p.grow3(size, base, now, waiting)
	case Growth2:
		if !p.last.IsZero() && now.Sub(p.last) < time.Second {
			size *= 2
		}
	case GrowthNone:
		size = base
	}
	p.Capacity = min(size, MaxRangeSize)
	p.before, p.last = p.last, now
	return p.Capacity
}

func (p *Pace) grow3(size, base int64, now time.Time, waiting int) int64 {
	switch {
	case p.last.IsZero() || now.Sub(p.last) > time.Minute:
		size = max(base, size/2)
	case now.Sub(p.last) < 5*time.Second && !p.before.IsZero() && now.Sub(p.before) < 3*time.Second:
		size *= 4
	case now.Sub(p.last) < 5*time.Second:
		size *= 2
	}
	for int64(waiting)*10 > size && size < MaxRangeSize {
		size *= 2
	}
	return size
}
