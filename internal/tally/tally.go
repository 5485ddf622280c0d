// Package tally counts the keys in a range, with several goroutines if there are many.
//
// All goroutines read one snapshot, so the count is exact for one moment, whatever is
// written meanwhile.
//
// The first goroutine walks from the beginning. If there are more than a few keys, others
// join, and each takes the upper half of the part that some walk has still before it.
// Halves are computed from the bytes of the keys and may differ much in their number of
// keys; a goroutine that is done takes another half. So nothing need be known about the
// keys, and a goroutine that starts late or never costs only time.
//
// A walk checks only now and then whether its range was cut. If it has passed its new
// end, it walks back to it and subtracts the keys on the way.
//
// A snapshot that is a storage.CountMemory may know parts of the range from earlier
// counts. Then only the gaps between them are walked, and the parts of long walks are
// offered to it.
package tally

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/internal/keybytes"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/storage"
)

// Bounds of a count. Variables for tests, which want every way with few keys.
var (
	ownKeys  = int64(256)  // keys counted before other goroutines start: a start costs as much as a few hundred
	gapKeys  = int64(1024) // the same if parts are known: what is left to walk is mostly less
	stepKeys = 128         // keys counted between two checks of the context and of the range's end

	minKept  = int64(2048) // keys of a range from which on its parts are offered to the memory
	partKeys = int64(256)  // keys of such a part, of a walk with up to maxMarks of them
	maxMarks = 1024
)

// alone is a number of own keys that no walk passes: nobody else is asked to help.
const alone = math.MaxInt64

// maxMisses is the number of halves with fewer than stepKeys keys after which a goroutine
// takes no more.
const maxMisses = 8

// count is one call of Keys.
type count struct {
	ctx    context.Context
	r      storage.Reader
	lo, hi []byte
	memory storage.CountMemory // nil for none

	mu    sync.Mutex
	keys  int64                // known, or counted by walks that have ended. Guarded by mu.
	gaps  []gap                // that no walk has begun. Guarded by mu.
	walks []*walk              // under way. Guarded by mu.
	parts []storage.RangeCount // of walks that have ended, if there is a memory. Guarded by mu.
}

// gap is a part of the range that must be walked. A nil end is that of the count.
type gap struct{ lo, end []byte }

// walk is the range of one goroutine.
type walk struct {
	it    storage.Iterator // over the range, or more: see cut; used by the walk's goroutine only
	n     int64            // keys that it has passed; used by the walk's goroutine only
	start []byte           // where it began
	marks []mark           // in between, if there is a memory; used by the walk's goroutine only
	every int64            // keys between two marks

	at  []byte // all keys below it are counted. Guarded by count.mu.
	end []byte // end of the range, exclusive; nil for that of the count. Guarded by count.mu.
	cut bool   // its iterator goes beyond end. Guarded by count.mu.
}

// mark is a key on the way of a walk, and the number of keys before it.
type mark struct {
	key []byte
	n   int64
}

// Keys returns the number of keys of r in [lo, hi). A nil hi means no upper bound.
// Several goroutines read r; none outlives the call. The error is that of ctx or of r.
func Keys(ctx context.Context, r storage.Reader, lo, hi []byte) (int64, error) {
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return 0, ctx.Err()
	}
	c := &count{ctx: ctx, r: r, lo: lo, hi: hi}
	if hi != nil {
		c.memory, _ = r.(storage.CountMemory)
	}
	if err := c.walkGaps(c.findGaps()); err != nil {
		return 0, err
	}
	if c.memory != nil && c.keys >= minKept {
		c.memory.KeepCounts(c.longParts())
	}
	if invariants.Enabled && c.memory != nil {
		c.verify()
	}
	return c.keys, nil
}

// findGaps notes what must be walked, and returns the number of keys that the caller walks
// before others help.
func (c *count) findGaps() (own int64) {
	own = ownKeys
	at := c.lo
	if c.memory != nil {
		for _, known := range c.memory.KnownCounts(c.lo, c.hi) {
			c.keys += known.Keys
			if !bytes.Equal(at, known.Lo) {
				c.gaps = append(c.gaps, gap{at, known.Lo})
			}
			at, own = known.Hi, gapKeys
		}
	}
	if c.hi == nil || bytes.Compare(at, c.hi) < 0 {
		c.gaps = append(c.gaps, gap{at, nil})
	}
	slices.Reverse(c.gaps) // they are taken from the end
	return own
}

// walkGaps walks gaps that no walk has begun, as long as there are any. When it has passed
// own keys, others help with what is left.
func (c *count) walkGaps(own int64) (err error) {
	for w := c.begin(); w != nil; w = c.begin() {
		if w.it, err = c.iterate(w); err != nil {
			return err
		}
		rest, err := c.run(w, w.it.First(), own)
		if rest {
			err = c.divide(w)
		}
		if err = errs.First(err, w.it.Close()); err != nil {
			return err
		}
		own -= w.n
	}
	return nil
}

// divide walks what is left of w, which stands on a key, and all gaps, by several
// goroutines.
func (c *count) divide(w *walk) error {
	workers := parallel.Workers()
	return parallel.Do(workers, 1, func(from, to int) error {
		for i := from; i < to; i++ {
			if i > 0 {
				if err := c.help(); err != nil {
					return err
				}
				continue
			}
			if _, err := c.run(w, true, alone); err != nil {
				return err
			}
			if err := c.walkGaps(alone); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin returns a new walk through the next gap, or nil.
func (c *count) begin() *walk {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.gaps) - 1
	if last < 0 {
		return nil
	}
	g := c.gaps[last]
	c.gaps = c.gaps[:last]
	return c.add(g)
}

// add adds a walk. c.mu is held.
func (c *count) add(g gap) *walk {
	w := &walk{at: bytes.Clone(g.lo), end: g.end} // bytes of its own, as at is overwritten
	if c.memory != nil {
		w.start, w.every = bytes.Clone(g.lo), partKeys
	}
	c.walks = append(c.walks, w)
	return w
}

// iterate returns an iterator over the range of a walk that has not begun.
func (c *count) iterate(w *walk) (storage.Iterator, error) {
	c.mu.Lock()
	lo, hi := w.at, w.end
	c.mu.Unlock()
	if hi == nil {
		hi = c.hi
	}
	return c.r.Iterate(lo, hi)
}

// step passes up to stepKeys keys. It returns false at the end.
func (w *walk) step() bool {
	if s, ok := w.it.(storage.Skipper); ok {
		n, more := s.Skip(stepKeys)
		w.n += int64(n)
		return more
	}
	for range stepKeys {
		w.n++
		if !w.it.Next() {
			return false
		}
	}
	return true
}

// mark notes a key that the walk has come to, if the last mark is far enough behind.
func (w *walk) mark(key []byte) {
	last := int64(0)
	if len(w.marks) > 0 {
		last = w.marks[len(w.marks)-1].n
	}
	if w.every == 0 || w.n-last < w.every {
		return
	}
	if w.marks = append(w.marks, mark{bytes.Clone(key), w.n}); len(w.marks) < maxMarks {
		return
	}
	w.every *= 2
	half := w.marks[:0]
	for i := 1; i < len(w.marks); i += 2 {
		half = append(half, w.marks[i])
	}
	w.marks = half
}

// run counts the range of w, which is in c.walks, until it has passed own keys. more reports
// whether the iterator is at a key. If rest is true, it stands on one, with part of the range
// before it; if not, the walk has ended.
func (c *count) run(w *walk, more bool, own int64) (rest bool, err error) {
	for more && c.advance(w) {
		if w.n >= own {
			return true, nil
		}
		if err = c.ctx.Err(); err != nil {
			break
		}
		more = w.step()
	}
	return false, c.end(w, more, err)
}

// end ends a walk. It adds the walk's keys to the count, unless err is not nil or the
// iterator has failed.
func (c *count) end(w *walk, more bool, err error) error {
	end, cut := c.leave(w)
	if !more {
		err = errs.First(err, w.it.Error())
	}
	if err == nil && cut && w.n > 0 {
		err = w.back(end, more)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys += w.n
	if c.memory != nil {
		c.addParts(w)
	}
	return nil
}

// addParts adds the parts of a walk that has ended. c.mu is held.
func (c *count) addParts(w *walk) {
	end := w.end
	if end == nil {
		end = bytes.Clone(c.hi)
	}
	lo, n := w.start, int64(0)
	for _, m := range w.marks {
		if bytes.Compare(m.key, end) >= 0 {
			break // it has walked back over this one
		}
		c.parts = append(c.parts, storage.RangeCount{Lo: lo, Hi: m.key, Keys: m.n - n})
		lo, n = m.key, m.n
	}
	c.parts = append(c.parts, storage.RangeCount{Lo: lo, Hi: end, Keys: w.n - n})
}

// longParts returns the parts that are worth to be remembered, in order.
func (c *count) longParts() []storage.RangeCount {
	parts := slices.DeleteFunc(c.parts, func(p storage.RangeCount) bool { return p.Keys < partKeys/4 })
	slices.SortFunc(parts, func(a, b storage.RangeCount) int { return bytes.Compare(a.Lo, b.Lo) })
	return parts
}

// verify counts once more, by one walk over all keys.
func (c *count) verify() {
	it, err := c.r.Iterate(c.lo, c.hi)
	if err != nil {
		return
	}
	n := int64(0)
	for more := it.First(); more; more = it.Next() {
		n++
	}
	if errs.First(it.Error(), it.Close()) == nil && n != c.keys {
		invariants.Broken("%d keys from %x to %x, but %d were counted", n, c.lo, c.hi, c.keys)
	}
}

// advance publishes the position of a walk, and reports whether it is within the range.
func (c *count) advance(w *walk) bool {
	key := w.it.Key()
	w.mark(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.end != nil && bytes.Compare(key, w.end) >= 0 {
		return false
	}
	w.at = append(w.at[:0], key...)
	return true
}

// leave removes a walk from c.walks and returns the end of its range, which is not cut
// from then on, and whether the iterator goes beyond it.
func (c *count) leave(w *walk) (end []byte, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.walks = slices.DeleteFunc(c.walks, func(other *walk) bool { return other == w })
	return w.end, w.cut
}

// back subtracts from the walk the keys from end on, all of which it has passed. more
// reports whether the iterator is at a key, the first that the walk has not passed.
func (w *walk) back(end []byte, more bool) error {
	ok := false
	if more {
		ok = w.it.Prev()
	} else {
		ok = w.it.Last()
	}
	for ok && bytes.Compare(w.it.Key(), end) >= 0 {
		w.n--
		ok = w.it.Prev()
	}
	return w.it.Error()
}

// help walks gaps, and then parts of other goroutines' ranges, as long as there are any.
func (c *count) help() (err error) {
	if err := c.walkGaps(alone); err != nil {
		return err
	}
	c.mu.Lock()
	idle := len(c.walks) == 0
	c.mu.Unlock()
	if idle {
		return nil // all work is done
	}
	it, err := c.r.Iterate(c.lo, c.hi)
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	if !it.Last() {
		return it.Error()
	}
	top := append(bytes.Clone(it.Key()), 0)
	for misses := 0; misses < maxMisses; {
		w := c.take(top)
		if w == nil {
			return nil
		}
		w.it = it
		if _, err := c.run(w, it.SeekGE(w.at), alone); err != nil {
			return err
		}
		if misses++; w.n >= int64(stepKeys) {
			misses = 0
		}
	}
	return nil
}

// take cuts the walk that seems to have most before it, and returns a new walk over the
// upper half. It returns nil if no walk can be cut. top is above all keys.
func (c *count) take(top []byte) *walk {
	c.mu.Lock()
	defer c.mu.Unlock()
	var most *walk
	var half []byte
	width, same := uint64(0), keybytes.Common(c.lo, top) // on the scale of the whole range
	for _, w := range c.walks {
		end := w.end
		if end == nil {
			end = top
		}
		between := keybytes.Middle(w.at, end)
		if between == nil {
			continue
		}
		if n := keybytes.NumberAt(end, same) - keybytes.NumberAt(w.at, same); most == nil || n > width {
			most, half, width = w, between, n
		}
	}
	if most == nil {
		return nil
	}
	w := c.add(gap{half, most.end})
	w.cut = w.end != nil
	most.end, most.cut = half, true
	return w
}
