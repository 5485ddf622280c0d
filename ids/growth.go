package ids

import "time"

// Growth is how the size of a range follows the pace of its client in the
// older generations of HiLo, where the client decides.
type Growth uint8

const (
	// Growth3 is RavenDB 3.0 and 3.5: twice as many numbers when the last range
	// was asked for less than 5 seconds ago, four times when the one before it
	// was less than 3 seconds ago, half after more than a minute; then doubled
	// until those who wait take at most a tenth.
	Growth3 Growth = iota
	// Growth2 is RavenDB 2.0 and 2.5: twice as many when the last range was
	// asked for less than a second ago; never fewer.
	Growth2
	// GrowthNone keeps every range at the base capacity.
	GrowthNone
)

// Pace is what a client of an older generation remembers of one tag.
type Pace struct {
	Capacity     int64
	last, before time.Time
}

// Next returns the size of the next range, asked for at now while this many
// callers wait for it. base is the smallest; no range is larger than
// MaxRangeSize.
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
