package lsm

import (
	"bytes"
	"slices"
)

// absentRanges is a negative cache: it remembers, from one transaction to the
// next, ranges in which no key is committed. A key in one of them is absent
// without a look-up. An insert asks for a key that is absent, and mostly for one
// beside the last.
//
// A range is open: it says nothing about the keys at its ends. Both ends begin
// with the same byte, or the upper end is that byte plus one. Ranges do not
// overlap.
//
// Invariant: no committed key lies in a range. Every commit first invalidates
// the ranges that its keys lie in. It is always correct to forget a range or a
// part of one, and to ignore deletions.
//
// All fields are guarded by Engine.mu, which is held for all writes of the
// engine. Keys are copied into slots, whose memory is reused.
type absentRanges struct {
	slots   [maxRanges]absentRange
	used    int      // slots[used:] were never used
	free    []uint16 // slots below used that hold no range
	order   []uint16 // slots that hold a range, in the order of keys
	lastHit int      // index in order of the last hit, or near it
	hand    int      // slot at which takeSlot goes on

	commits  uint64 // calls of invalidate
	accounts [keyClasses]costAccount
}

// absentRange is the open interval from lo to hi.
type absentRange struct {
	lo, hi []byte
	recent bool   // used since the hand of takeSlot passed
	class  uint8  // of the key whose look-up found the range
	cut    uint64 // value of commits when invalidate last moved lo
}

// costAccount decides whether walks pay for the keys of one class: those with the
// same first byte and length. The HiLo IDs of a collection are mostly of one
// class, GUIDs of another.
type costAccount struct {
	debt    int // hits that the last walk must still bring to have paid
	backOff int // misses without a walk after one that has not paid
	skips   int // misses of these that are still to come
}

const (
	maxRanges     = 512
	maxBoundBytes = 512 // longer keys bound no range: a slot stays small

	// A walk covers at most maxWalkRanges ranges, each of which holds about ten
	// HiLo IDs. It ends early when Pebble has to step over many deleted keys.
	maxWalkRanges = 16
	maxWalkSteps  = 1000

	// A walk has paid when it has saved hitsPerWalk look-ups, and one more for
	// every stepsPerHit steps of Pebble's iterator.
	hitsPerWalk = 4
	stepsPerHit = 32

	// A walk that reads blocks, rather than finds them in the cache, must save one
	// look-up more for every bytesPerHit bytes of them, as they are on disk, beyond
	// freeWalkBytes: beside the key may lie a value of megabytes. Reading 1.5 MB,
	// 31 MB when they are unpacked, takes about as long as 10,000 look-ups.
	freeWalkBytes = 64 << 10
	bytesPerHit   = 128

	keyClasses      = 64
	disabledBackOff = 15 // a back-off from which on the class keeps no ranges
	maxSkippedWalks = 4095
)

// contains reports whether key lies in a range, and so is known to be absent.
func (a *absentRanges) contains(key []byte) bool {
	i := a.find(key)
	if i < 0 {
		return false
	}
	a.lastHit = i
	s := &a.slots[a.order[i]]
	s.recent = true
	a.accounts[s.class].debt--
	return true
}

// find returns the index in order of the range that contains key, or -1. It looks
// beside the last hit first.
func (a *absentRanges) find(key []byte) int {
	n := len(a.order)
	if n == 0 {
		return -1
	}
	i := a.lastHit
	if i < n && a.above(i, key) && a.below(i, key) {
		return i
	}
	if !a.below(n-1, key) {
		return -1
	}
	if i++; i < n && a.above(i, key) && a.below(i, key) {
		return i
	}
	if i = a.search(key) - 1; i >= 0 && a.below(i, key) {
		return i
	}
	return -1
}

// above reports whether key is above the lower end of range i.
func (a *absentRanges) above(i int, key []byte) bool {
	return bytes.Compare(key, a.slots[a.order[i]].lo) > 0
}

// below reports whether key is below the upper end of range i.
func (a *absentRanges) below(i int, key []byte) bool {
	return bytes.Compare(key, a.slots[a.order[i]].hi) < 0
}

// search returns the index in order of the first range whose lower end is key or
// above.
func (a *absentRanges) search(key []byte) int {
	lo, hi := 0, len(a.order)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); a.above(mid, key) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// classOf returns the number of the class of key.
func classOf(key []byte) uint8 { return uint8((len(key) + 7*int(key[0])) % keyClasses) }

// shouldWalk is called after a look-up of a key that is absent. It reports
// whether to walk over the ranges beside the key. If walks have not paid for the
// class, the back-off doubles, and a long one disables the class, but for a trial
// at its end.
func (a *absentRanges) shouldWalk(key []byte) bool {
	if key[0] == 0xff || len(key) > maxBoundBytes {
		return false // no byte is above it for the upper end; too long to bound a range
	}
	account := &a.accounts[classOf(key)]
	if account.skips > 0 {
		account.skips--
		return false
	}
	switch {
	case account.debt <= 0: // the last walk has paid
		account.backOff = 0
	case account.debt > hitsPerWalk+maxWalkSteps/stepsPerHit: // it has read large values: see chargeBytes
		account.backOff = min(account.debt, maxSkippedWalks)
		a.forgetClass(classOf(key))
	case account.backOff < disabledBackOff:
		account.backOff = 2*account.backOff + 1
	default:
		account.backOff = min(2*account.backOff+1, maxSkippedWalks)
		a.forgetClass(classOf(key))
	}
	account.skips = account.backOff
	account.debt = hitsPerWalk
	return true
}

// forgetClass forgets the ranges of a class that is disabled: they would take
// slots, and time to search.
func (a *absentRanges) forgetClass(class uint8) {
	kept := a.order[:0]
	for _, slot := range a.order {
		if a.slots[slot].class == class {
			a.free = append(a.free, slot)
		} else {
			kept = append(kept, slot)
		}
	}
	a.order = kept
}

// charge adds the steps of a walk for key to its account.
func (a *absentRanges) charge(key []byte, steps int) {
	a.accounts[classOf(key)].debt += steps / stepsPerHit
}

// chargeBytes adds the bytes of blocks that a walk for key has read.
func (a *absentRanges) chargeBytes(key []byte, read int) {
	a.accounts[classOf(key)].debt += max(0, read-freeWalkBytes) / bytesPerHit
}

// add remembers that no key is committed between lo and hi, each of which is
// committed or a limit of all ranges of its first byte. A look-up of key found
// it. add returns false if the range was known.
func (a *absentRanges) add(lo, hi, key []byte) bool {
	if len(lo) > maxBoundBytes || len(hi) > maxBoundBytes {
		return true
	}
	first := a.search(lo)
	if first < len(a.order) {
		s := &a.slots[a.order[first]]
		if bytes.Equal(s.lo, lo) && bytes.Equal(s.hi, hi) {
			s.recent = true
			return false
		}
	}

	// No range contains lo or hi, so that those that begin between them are parts
	// of this one, and replaced by it.
	end := first
	for end < len(a.order) && bytes.Compare(a.slots[a.order[end]].lo, hi) < 0 {
		end++
	}
	a.forget(first, end)
	a.insert(absentRange{lo: lo, hi: hi, recent: true, class: classOf(key)})
	return true
}

// forget frees the slots of the ranges [first, end) of order.
func (a *absentRanges) forget(first, end int) {
	a.free = append(a.free, a.order[first:end]...)
	a.order = slices.Delete(a.order, first, end)
}

// insert copies n into a slot.
func (a *absentRanges) insert(n absentRange) {
	slot := a.takeSlot()
	s := &a.slots[slot]
	n.lo, n.hi = append(s.lo[:0], n.lo...), append(s.hi[:0], n.hi...)
	*s = n
	a.order = slices.Insert(a.order, a.search(n.lo), slot)
}

// takeSlot returns a free slot. If there is none, it forgets a range that was not
// used recently: the hand goes around the slots, and skips recent ranges once.
func (a *absentRanges) takeSlot() uint16 {
	if n := len(a.free); n > 0 {
		slot := a.free[n-1]
		a.free = a.free[:n-1]
		return slot
	}
	if a.used < maxRanges {
		a.used++
		return uint16(a.used - 1)
	}

	// All slots hold a range. Forget one by the CLOCK algorithm.
	for {
		slot := a.hand
		a.hand = (a.hand + 1) % maxRanges
		s := &a.slots[slot]
		if !s.recent {
			i := a.search(s.lo)
			a.order = slices.Delete(a.order, i, i+1)
			return uint16(slot)
		}
		s.recent = false
	}
}

// invalidate takes the keys that s sets out of the ranges; order is that of the
// keys. It must be called before their commit, whether or not that succeeds.
func (a *absentRanges) invalidate(s *staging, order []int32) {
	a.commits++
	for _, e := range order {
		if s.entries[e].deleted {
			continue
		}
		key := s.key(int(e))
		if i := a.find(key); i >= 0 {
			a.lastHit = i
			a.split(i, key)
		}
	}
}

// split divides range i at key, which is about to be committed. The upper part
// stays recent; the lower part, which only a number out of order falls into, is
// the first to be forgotten, as keys mostly rise. No slot is spent on a part in
// which no look-up is to be expected: between two consecutive numbers, or between
// two keys of one commit.
func (a *absentRanges) split(i int, key []byte) {
	s := &a.slots[a.order[i]]
	lower := s.cut != a.commits && !consecutive(s.lo, key)
	upper := !consecutive(key, s.hi)
	if len(key) > maxBoundBytes {
		lower, upper = false, false
	}

	switch {
	case lower && upper:
		var memory [maxBoundBytes]byte
		part := absentRange{lo: append(memory[:0], s.lo...), hi: key, class: s.class}
		s.lo, s.cut = append(s.lo[:0], key...), a.commits
		a.insert(part) // may reuse the slot of s
	case lower:
		s.hi, s.recent = append(s.hi[:0], key...), false
	case upper:
		s.lo, s.cut = append(s.lo[:0], key...), a.commits
	default:
		a.forget(i, i+1)
	}
}

// consecutive reports whether lo and hi are keys of consecutive numbers, as far
// as their bytes show: they differ in one byte, by one.
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
