package ids

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Bounds of a range's size. The cap holds in every branch.
const (
	MinRangeSize = 32
	MaxRangeSize = 1 << 20
)

// MaxLead is how far a client's LastMax may be above the private mark: a
// client that claims more is broken or hostile.
const MaxLead = 1 << 40

// maxLeases is how many open leases of one tag are remembered. An older lease
// can no longer be given back: its unused numbers become a gap.
const maxLeases = 128

// ErrLeadTooLarge is returned when a client claims to have seen numbers far
// above any that were granted.
var ErrLeadTooLarge = errors.New("last max is not one that was granted")

// RangeRequest asks for the next range of a HiLo tag.
type RangeRequest struct {
	// Tag names the sequence; it is the ID prefix without its separator,
	// such as "users".
	Tag string
	// LastSize is the size of the last range this client got, 0 for none.
	LastSize int64
	// LastRangeAt is when that range was granted, as the range said. The zero
	// time means unknown.
	LastRangeAt time.Time
	// Separator stands between tag and number. Empty means the database's.
	Separator string
	// LastMax is the highest number that this client was ever granted.
	LastMax int64
	// Waiting is how many callers wait for this range. Only the older generations of HiLo use it.
	Waiting int
}

// Range is a grant of the numbers Low to High to one client. It is immutable:
// number, prefix and node tag of an ID come from one Range, so that a range
// of another node can never lend its tag to them.
type Range struct {
	Prefix    string // "users/"
	Low, High int64  // both inclusive
	Size      int64  // what to send as LastSize
	NodeTag   string
	GrantedAt time.Time
}

// Lease is a granted range that can still be given back.
type Lease struct{ Low, End int64 }

// Marks is the private record that belongs to one HiLo document. It keeps numbers unique even if
// the document is changed or deleted. Its key is the folded tag.
type Marks struct {
	// Mark is the highest number granted and not given back. Only a grant
	// raises it, only an accepted return lowers it.
	Mark int64
	// Top is the greatest end of all ranges ever granted. Ends never repeat,
	// so that an end names its lease.
	Top int64
	// Leases are open, oldest first.
	Leases []Lease
}

// RangeSize returns how many numbers a client gets: the last size doubled if
// it came back within 30 seconds, halved if after more than 60, and always
// between MinRangeSize and MaxRangeSize.
func RangeSize(lastSize int64, lastRangeAt, now time.Time) int64 {
	size := lastSize
	if !lastRangeAt.IsZero() {
		switch age := now.Sub(lastRangeAt); {
		case age < 30*time.Second:
			size = min(lastSize, MaxRangeSize) * 2
		case age > 60*time.Second:
			size = lastSize / 2
		}
	}
	return min(max(size, MinRangeSize), MaxRangeSize)
}

// Grant reserves the next range and returns its numbers and the size it was
// computed with. documentMax is the Max of the HiLo document, 0 if there is
// none. The caller must make the new marks, and a document whose Max is high,
// durable before any number is used. On an error nothing has changed.
func (m *Marks) Grant(documentMax int64, req RangeRequest, now time.Time) (low, high, size int64, err error) {
	if req.LastMax < 0 || req.LastMax > addCapped(m.Mark, MaxLead) {
		return 0, 0, 0, fmt.Errorf("%w: the client says %d, the mark is %d", ErrLeadTooLarge, req.LastMax, m.Mark)
	}
	size = RangeSize(req.LastSize, req.LastRangeAt, now)
	// The document may have been edited or deleted, so it counts only where it is
	// above the mark and above what the client was granted.
	old := max(documentMax, req.LastMax, m.Mark, 0)
	if old > math.MaxInt64-size {
		return 0, 0, 0, fmt.Errorf("hilo %.100q: %w: %d numbers after %d", req.Tag, ErrExhausted, size, old)
	}
	low, high = old+1, old+size
	// A returned range leaves Top above Mark. Its end must not come again, so
	// the new range is one longer: after 1–32 was given back, 1–33 is granted.
	if high <= m.Top {
		if m.Top == math.MaxInt64 {
			return 0, 0, 0, fmt.Errorf("hilo %.100q: %w: no end above %d", req.Tag, ErrExhausted, m.Top)
		}
		high = m.Top + 1
	}

	m.Mark, m.Top = high, high
	m.Leases = append(m.Leases, Lease{low, high})
	if extra := len(m.Leases) - maxLeases; extra > 0 {
		m.Leases = append(m.Leases[:0], m.Leases[extra:]...)
	}
	return low, high, size, nil
}

// Return gives back the numbers after last of the lease that ends at end. It
// is accepted only if that lease is the newest open one and nothing has moved
// since, documentMax included; then Mark is last, and the document's Max must
// become last in the same commit. Otherwise nothing changes.
func (m *Marks) Return(documentMax, last, end int64) bool {
	if len(m.Leases) == 0 || documentMax != m.Mark || m.Mark != end {
		return false
	}
	newest := m.Leases[len(m.Leases)-1]
	if newest.End != end || last < newest.Low-1 || last > end {
		return false
	}

	m.Mark = last
	m.Leases = m.Leases[:len(m.Leases)-1]
	if last >= newest.Low {
		// Numbers of this range are in use for good, above all older leases.
		m.Leases = m.Leases[:0]
	}
	return true
}

// GrantBlock reserves the next numbers after floor and the mark for a client
// of an older generation, which never gives any back: size of them or, with
// aligned set, the next whole block of that size, whose first number is one
// above a multiple of size. On an error nothing has changed.
func (m *Marks) GrantBlock(floor, size int64, aligned bool) (low, high int64, err error) {
	old := max(floor, m.Mark, 0)
	if aligned && old%size != 0 { // old is inside a block: skip the rest of it
		if old > math.MaxInt64-size {
			return 0, 0, ErrExhausted
		}
		old += size - old%size
	}
	if old > math.MaxInt64-size {
		return 0, 0, fmt.Errorf("%w: %d numbers after %d", ErrExhausted, size, old)
	}
	m.Raise(old + size)
	return old + 1, old + size, nil
}

// Raise lifts the mark to at least n, for numbers used elsewhere. No return of a lease lowers the
// mark below n.
func (m *Marks) Raise(n int64) {
	if n > m.Mark {
		m.Mark, m.Top = n, max(m.Top, n)
		m.Leases = m.Leases[:0]
		return
	}
	// The mark stays, but a return must not take it below n.
	for i := range m.Leases {
		m.Leases[i].Low = max(m.Leases[i].Low, n+1)
	}
}

// addCapped returns a + b, or the greatest int64 if that overflows.
func addCapped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
