package lsm

import (
	"bytes"
	"slices"
)

// gaps remembers, from one transaction to the next, stretches between two keys
// in which nothing is committed: a key that lies in one is known to be absent
// without a look-up. Inserts ask for keys that are not there, and mostly for
// one beside the last.
//
// A gap is an open interval: it says nothing about the two keys at its ends.
// Both begin with the same byte, or the upper end is that byte plus one. Gaps
// do not overlap. What must never be is a committed key in a gap: every commit
// takes its keys out of the gaps first, by occupy. To forget a gap or a part of
// one is always right; so is not to be told of deletions.
//
// All of it is guarded by Pebble.mu, under which all writes of the engine are
// made. Keys are copied into the slots, whose memory is used again.
type gaps struct {
	slots [maxGaps]gap
	used  int      // slots from here on were never used
	free  []uint16 // slots below used that are not in order
	order []uint16 // slots of the gaps that are known, in the order of keys
	at    int      // index in order of the last hit, about
	hand  int      // the slot at which take goes on

	commits uint64 // calls of occupy
	shapes  [keyShapes]shape
}

// gap is the open interval from lo to hi.
type gap struct {
	lo, hi []byte
	warm   bool   // take passes by once more
	shape  uint8  // of the key that it was looked for
	cut    uint64 // the call of occupy that moved lo last
}

// shape tells whether walks pay for keys of one first byte and length. HiLo IDs
// of a collection have mostly one shape, GUIDs another.
type shape struct {
	owed int // hits that the last walk still has to bring
	wait int // misses to let pass after a walk
	left int // of these
}

const (
	maxGaps     = 512
	maxGapBytes = 512 // longer keys are no ends of gaps: a slot stays small

	// A walk goes over walkGaps gaps, each of which has room for ten HiLo IDs. It
	// ends early when Pebble has to pass many deleted keys.
	walkGaps  = 16
	walkSteps = 1000

	// A walk has paid when it has spared walkHits look-ups, and one more for every
	// stepsPerHit steps of Pebble's.
	walkHits    = 4
	stepsPerHit = 32

	keyShapes = 64
	hopeless  = 15 // a wait from which on the gaps of a shape are not kept
	maxWait   = 4095
)

// absent tells whether key is known to be absent.
func (g *gaps) absent(key []byte) bool {
	i := g.find(key)
	if i < 0 {
		return false
	}
	g.at = i
	s := &g.slots[g.order[i]]
	s.warm = true
	g.shapes[s.shape].owed--
	return true
}

// find returns the index in order of the gap that holds key, or -1. It looks
// beside the last hit first.
func (g *gaps) find(key []byte) int {
	n := len(g.order)
	if n == 0 {
		return -1
	}
	i := g.at
	if i < n && g.above(i, key) && g.below(i, key) {
		return i
	}
	if !g.below(n-1, key) {
		return -1
	}
	if i++; i < n && g.above(i, key) && g.below(i, key) {
		return i
	}
	if i = g.search(key) - 1; i >= 0 && g.below(i, key) {
		return i
	}
	return -1
}

// above tells whether key is above the lower end of gap i.
func (g *gaps) above(i int, key []byte) bool {
	return bytes.Compare(key, g.slots[g.order[i]].lo) > 0
}

// below tells whether key is below the upper end of gap i.
func (g *gaps) below(i int, key []byte) bool {
	return bytes.Compare(key, g.slots[g.order[i]].hi) < 0
}

// search returns the index in order of the first gap whose lower end is key or
// above.
func (g *gaps) search(key []byte) int {
	lo, hi := 0, len(g.order)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); g.above(mid, key) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// shapeOf returns the number of the shape of key.
func shapeOf(key []byte) uint8 { return uint8((len(key) + 7*int(key[0])) % keyShapes) }

// worth is told of a key that was looked up and is not there. It tells whether
// to walk over the gaps beside it: not if walks did not pay for such keys, but
// for a trial now and then.
func (g *gaps) worth(key []byte) bool {
	if key[0] == 0xff || len(key) > maxGapBytes {
		return false // there is no byte for the upper end; no end of a gap
	}
	s := &g.shapes[shapeOf(key)]
	if s.left > 0 {
		s.left--
		return false
	}
	switch {
	case s.owed <= 0:
		s.wait = 0
	case s.wait < hopeless:
		s.wait = 2*s.wait + 1
	default:
		s.wait = min(2*s.wait+1, maxWait)
		g.forgetShape(shapeOf(key))
	}
	s.left = s.wait
	s.owed = walkHits
	return true
}

// forgetShape forgets the gaps that were looked for keys of this shape. Where
// they are of no use they only take time to search, and slots.
func (g *gaps) forgetShape(shape uint8) {
	kept := g.order[:0]
	for _, slot := range g.order {
		if g.slots[slot].shape == shape {
			g.free = append(g.free, slot)
		} else {
			kept = append(kept, slot)
		}
	}
	g.order = kept
}

// cost is told how many steps a walk for key took.
func (g *gaps) cost(key []byte, steps int) {
	g.shapes[shapeOf(key)].owed += steps / stepsPerHit
}

// add remembers that nothing is committed between lo and hi, each of which is
// committed or an end of what gaps may reach. It was looked for key. add returns
// false if that was known.
func (g *gaps) add(lo, hi, key []byte) bool {
	if len(lo) > maxGapBytes || len(hi) > maxGapBytes {
		return true
	}
	first := g.search(lo)
	if first < len(g.order) {
		s := &g.slots[g.order[first]]
		if bytes.Equal(s.lo, lo) && bytes.Equal(s.hi, hi) {
			s.warm = true
			return false
		}
	}

	// No gap holds lo or hi: those that begin between them are parts of this one.
	end := first
	for end < len(g.order) && bytes.Compare(g.slots[g.order[end]].lo, hi) < 0 {
		end++
	}
	g.forget(first, end)
	g.insert(gap{lo: lo, hi: hi, warm: true, shape: shapeOf(key)})
	return true
}

// forget makes the slots of the gaps [first, end) of order free.
func (g *gaps) forget(first, end int) {
	g.free = append(g.free, g.order[first:end]...)
	g.order = slices.Delete(g.order, first, end)
}

// insert copies n into a slot.
func (g *gaps) insert(n gap) {
	slot := g.take()
	s := &g.slots[slot]
	n.lo, n.hi = append(s.lo[:0], n.lo...), append(s.hi[:0], n.hi...)
	*s = n
	g.order = slices.Insert(g.order, g.search(n.lo), slot)
}

// take returns a free slot. If there is none, it forgets the gap that was not of
// use for longest, about: the hand goes around the slots, and passes by the warm
// ones once.
func (g *gaps) take() uint16 {
	if n := len(g.free); n > 0 {
		slot := g.free[n-1]
		g.free = g.free[:n-1]
		return slot
	}
	if g.used < maxGaps {
		g.used++
		return uint16(g.used - 1)
	}
	for { // all slots are in order
		slot := g.hand
		g.hand = (g.hand + 1) % maxGaps
		s := &g.slots[slot]
		if !s.warm {
			i := g.search(s.lo)
			g.order = slices.Delete(g.order, i, i+1)
			return uint16(slot)
		}
		s.warm = false
	}
}

// occupy takes the keys that s sets out of the gaps; order is that of its keys.
// It is called before they are committed, whether or not that succeeds.
func (g *gaps) occupy(s *staging, order []int32) {
	g.commits++
	for _, e := range order {
		if s.entries[e].deleted {
			continue
		}
		key := s.key(int(e))
		if i := g.find(key); i >= 0 {
			g.at = i
			g.split(i, key)
		}
	}
}

// split leaves of gap i the part above key and the part below, in which a number
// that comes out of order lies. The part below is the first to be forgotten,
// since keys mostly rise. No slot is spent on a part in which nothing will be
// looked for: between two numbers in a row, or two keys of one commit.
func (g *gaps) split(i int, key []byte) {
	s := &g.slots[g.order[i]]
	lower := s.cut != g.commits && !inRow(s.lo, key)
	upper := !inRow(key, s.hi)
	if len(key) > maxGapBytes {
		lower, upper = false, false
	}
	switch {
	case lower && upper:
		var room [maxGapBytes]byte
		part := gap{lo: append(room[:0], s.lo...), hi: key, shape: s.shape}
		s.lo, s.cut = append(s.lo[:0], key...), g.commits
		g.insert(part) // may take the slot of s
	case lower:
		s.hi, s.warm = append(s.hi[:0], key...), false
	case upper:
		s.lo, s.cut = append(s.lo[:0], key...), g.commits
	default:
		g.forget(i, i+1)
	}
}

// inRow tells whether lo and hi are keys of two numbers in a row, as far as
// bytes tell: they differ in one byte, by one.
func inRow(lo, hi []byte) bool {
	if len(lo) != len(hi) {
		return false
	}
	i := 0
	for i < len(lo) && lo[i] == hi[i] {
		i++
	}
	return i < len(lo) && lo[i]+1 == hi[i] && bytes.Equal(lo[i+1:], hi[i+1:])
}
