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
// All of it is guarded by Engine.mu, under which all writes of the engine are
// made. Keys are copied into the slots, whose memory is used again.
type absentRanges struct {
	slots   [maxRanges]absentRange
	used    int      // slots from here on were never used
	free    []uint16 // slots below used that are not in order
	order   []uint16 // slots of the gaps that are known, in the order of keys
	lastHit int      // index in order of the last hit, about
	hand    int      // the slot at which take goes on

	commits  uint64 // calls of occupy
	accounts [keyClasses]costAccount
}

// gap is the open interval from lo to hi.
type absentRange struct {
	lo, hi []byte
	recent bool   // take passes by once more
	class  uint8  // of the key that it was looked for
	cut    uint64 // the call of occupy that moved lo last
}

// shape tells whether walks pay for keys of one first byte and length. HiLo IDs
// of a collection have mostly one shape, GUIDs another.
type costAccount struct {
	debt    int // hits that the last walk still has to bring
	backOff int // misses to let pass after a walk
	skips   int // of these
}

const (
	maxRanges     = 512
	maxBoundBytes = 512 // longer keys are no ends of gaps: a slot stays small

	// A walk goes over walkGaps gaps, each of which has room for ten HiLo IDs. It
	// ends early when Pebble has to pass many deleted keys.
	maxWalkRanges = 16
	maxWalkSteps  = 1000

	// A walk has paid when it has spared walkHits look-ups, and one more for every
	// stepsPerHit steps of Pebble's.
	hitsPerWalk = 4
	stepsPerHit = 32

	keyClasses      = 64
	disabledBackOff = 15 // a wait from which on the gaps of a shape are not kept
	maxSkippedWalks = 4095
)

// absent tells whether key is known to be absent.
func (g *absentRanges) contains(key []byte) bool {
	i := g.find(key)
	if i < 0 {
		return false
	}
	g.lastHit = i
	s := &g.slots[g.order[i]]
	s.recent = true
	g.accounts[s.class].debt--
	return true
}

// find returns the index in order of the gap that holds key, or -1. It looks
// beside the last hit first.
func (g *absentRanges) find(key []byte) int {
	n := len(g.order)
	if n == 0 {
		return -1
	}
	i := g.lastHit
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
func (g *absentRanges) above(i int, key []byte) bool {
	return bytes.Compare(key, g.slots[g.order[i]].lo) > 0
}

// below tells whether key is below the upper end of gap i.
func (g *absentRanges) below(i int, key []byte) bool {
	return bytes.Compare(key, g.slots[g.order[i]].hi) < 0
}

// search returns the index in order of the first gap whose lower end is key or
// above.
func (g *absentRanges) search(key []byte) int {
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
func classOf(key []byte) uint8 { return uint8((len(key) + 7*int(key[0])) % keyClasses) }

// worth is told of a key that was looked up and is not there. It tells whether
// to walk over the gaps beside it: not if walks did not pay for such keys, but
// for a trial now and then.
func (g *absentRanges) shouldWalk(key []byte) bool {
	if key[0] == 0xff || len(key) > maxBoundBytes {
		return false // there is no byte for the upper end; no end of a gap
	}
	s := &g.accounts[classOf(key)]
	if s.skips > 0 {
		s.skips--
		return false
	}
	switch {
	case s.debt <= 0:
		s.backOff = 0
	case s.backOff < disabledBackOff:
		s.backOff = 2*s.backOff + 1
	default:
		s.backOff = min(2*s.backOff+1, maxSkippedWalks)
		g.forgetClass(classOf(key))
	}
	s.skips = s.backOff
	s.debt = hitsPerWalk
	return true
}

// forgetShape forgets the gaps that were looked for keys of this shape. Where
// they are of no use they only take time to search, and slots.
func (g *absentRanges) forgetClass(shape uint8) {
	kept := g.order[:0]
	for _, slot := range g.order {
		if g.slots[slot].class == shape {
			g.free = append(g.free, slot)
		} else {
			kept = append(kept, slot)
		}
	}
	g.order = kept
}

// cost is told how many steps a walk for key took.
func (g *absentRanges) charge(key []byte, steps int) {
	g.accounts[classOf(key)].debt += steps / stepsPerHit
}

// add remembers that nothing is committed between lo and hi, each of which is
// committed or an end of what gaps may reach. It was looked for key. add returns
// false if that was known.
func (g *absentRanges) add(lo, hi, key []byte) bool {
	if len(lo) > maxBoundBytes || len(hi) > maxBoundBytes {
		return true
	}
	first := g.search(lo)
	if first < len(g.order) {
		s := &g.slots[g.order[first]]
		if bytes.Equal(s.lo, lo) && bytes.Equal(s.hi, hi) {
			s.recent = true
			return false
		}
	}

	// No gap holds lo or hi: those that begin between them are parts of this one.
	end := first
	for end < len(g.order) && bytes.Compare(g.slots[g.order[end]].lo, hi) < 0 {
		end++
	}
	g.forget(first, end)
	g.insert(absentRange{lo: lo, hi: hi, recent: true, class: classOf(key)})
	return true
}

// forget makes the slots of the gaps [first, end) of order free.
func (g *absentRanges) forget(first, end int) {
	g.free = append(g.free, g.order[first:end]...)
	g.order = slices.Delete(g.order, first, end)
}

// insert copies n into a slot.
func (g *absentRanges) insert(n absentRange) {
	slot := g.takeSlot()
	s := &g.slots[slot]
	n.lo, n.hi = append(s.lo[:0], n.lo...), append(s.hi[:0], n.hi...)
	*s = n
	g.order = slices.Insert(g.order, g.search(n.lo), slot)
}

// take returns a free slot. If there is none, it forgets the gap that was not of
// use for longest, about: the hand goes around the slots, and passes by the warm
// ones once.
func (g *absentRanges) takeSlot() uint16 {
	if n := len(g.free); n > 0 {
		slot := g.free[n-1]
		g.free = g.free[:n-1]
		return slot
	}
	if g.used < maxRanges {
		g.used++
		return uint16(g.used - 1)
	}
	for { // all slots are in order
		slot := g.hand
		g.hand = (g.hand + 1) % maxRanges
		s := &g.slots[slot]
		if !s.recent {
			i := g.search(s.lo)
			g.order = slices.Delete(g.order, i, i+1)
			return uint16(slot)
		}
		s.recent = false
	}
}

// occupy takes the keys that s sets out of the gaps; order is that of its keys.
// It is called before they are committed, whether or not that succeeds.
func (g *absentRanges) invalidate(s *staging, order []int32) {
	g.commits++
	for _, e := range order {
		if s.entries[e].deleted {
			continue
		}
		key := s.key(int(e))
		if i := g.find(key); i >= 0 {
			g.lastHit = i
			g.split(i, key)
		}
	}
}

// split leaves of gap i the part above key and the part below, in which a number
// that comes out of order lies. The part below is the first to be forgotten,
// since keys mostly rise. No slot is spent on a part in which nothing will be
// looked for: between two numbers in a row, or two keys of one commit.
func (g *absentRanges) split(i int, key []byte) {
	s := &g.slots[g.order[i]]
	lower := s.cut != g.commits && !consecutive(s.lo, key)
	upper := !consecutive(key, s.hi)
	if len(key) > maxBoundBytes {
		lower, upper = false, false
	}
	switch {
	case lower && upper:
		var room [maxBoundBytes]byte
		part := absentRange{lo: append(room[:0], s.lo...), hi: key, class: s.class}
		s.lo, s.cut = append(s.lo[:0], key...), g.commits
		g.insert(part) // may take the slot of s
	case lower:
		s.hi, s.recent = append(s.hi[:0], key...), false
	case upper:
		s.lo, s.cut = append(s.lo[:0], key...), g.commits
	default:
		g.forget(i, i+1)
	}
}

// inRow tells whether lo and hi are keys of two numbers in a row, as far as
// bytes tell: they differ in one byte, by one.
func consecutive(lo, hi []byte) bool {
	if len(lo) != len(hi) {
		return false
	}
	i := 0
	for i < len(lo) && lo[i] == hi[i] {
		i++
	}
	return i < len(lo) && lo[i]+1 == hi[i] && bytes.Equal(lo[i+1:], hi[i+1:])
}
