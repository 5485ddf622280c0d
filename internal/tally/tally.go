// Package tally counts the keys in a range, by several goroutines if there are many.
//
// All of them read one snapshot, so that the number is exact: it is that of the keys at
// one moment, whatever is written meanwhile.
//
// The first goroutine walks from the beginning. If there are more than a few keys, others
// come, and each takes the upper half of what one that walks has before it. The halves
// are halves by the bytes of the keys, which says little about how many keys each has: one
// that is done takes another half. So nothing about the keys need be known beforehand, and
// goroutines that begin late, or never, cost only time.
//
// One that walks looks only now and then whether its range was cut. It walks back over the
// keys that it has counted beyond its end, and takes them from its number.
package tally

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/storage"
)

// Bounds of a count. Variables for tests, which want every way with few keys.
var (
	ownKeys  = 256 // counted before other goroutines are started, which takes as long as a few hundred
	stepKeys = 128 // counted between two looks at the context and at the end of the range
)

// maxMisses is after how many halves with fewer than stepKeys keys a goroutine stops
// looking for more.
const maxMisses = 8

// count is one call of Keys.
type count struct {
	ctx    context.Context
	r      storage.Reader
	lo, hi []byte

	mu    sync.Mutex
	keys  int64   // of the walks that have ended. Guarded by mu.
	walks []*walk // under way. Guarded by mu.
}

// walk is the range of one goroutine.
type walk struct {
	it storage.Iterator // over all of the count; of the goroutine
	n  int64            // keys that it has passed; of the goroutine

	at  []byte // no key below is still to be counted. Guarded by count.mu.
	end []byte // the range ends before it; nil for the end of the count. Guarded by count.mu.
}

// Keys returns how many keys r has in [lo, hi). A nil hi means no upper bound. r is read
// by several goroutines, none of which outlives the call. The error is that of ctx or
// of r.
func Keys(ctx context.Context, r storage.Reader, lo, hi []byte) (int64, error) {
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return 0, ctx.Err()
	}
	it, err := r.Iterate(lo, hi)
	if err != nil {
		return 0, err
	}
	n, err := countFrom(&count{ctx: ctx, r: r, lo: lo, hi: hi}, it)
	return n, errs.First(err, it.Close())
}

func countFrom(c *count, it storage.Iterator) (int64, error) {
	workers := min(runtime.GOMAXPROCS(0), parallel.MaxWorkers)
	first := &walk{it: it, at: c.lo}
	more := it.First()
	for more && (workers == 1 || first.n < int64(ownKeys)) {
		if err := c.ctx.Err(); err != nil {
			return 0, err
		}
		more = first.step()
	}
	if !more {
		return first.n, it.Error()
	}

	// The first walk goes on, on whichever goroutine comes first, and the others take
	// from it.
	first.at = bytes.Clone(it.Key())
	c.walks = append(c.walks, first)
	err := parallel.Do(workers, 1, func(from, to int) error {
		for i := from; i < to; i++ {
			if i == 0 {
				if err := c.run(first, true); err != nil {
					return err
				}
			} else if err := c.help(); err != nil {
				return err
			}
		}
		return nil
	})
	return c.keys, err
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

// run counts the range of w, which is in c.walks. more says whether the iterator stands
// on a key.
func (c *count) run(w *walk, more bool) error {
	var err error
	for more && c.advance(w) {
		if err = c.ctx.Err(); err != nil {
			break
		}
		more = w.step()
	}
	return c.end(w, more, err)
}

// end ends a walk: its number joins that of the count, unless err is not nil, or the
// iterator has failed.
func (c *count) end(w *walk, more bool, err error) error {
	end := c.leave(w)
	if !more {
		err = errs.First(err, w.it.Error())
	}
	if err == nil && end != nil && w.n > 0 {
		err = w.back(end, more)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys += w.n
	return nil
}

// advance notes where a walk stands, and reports whether that is in its range.
func (c *count) advance(w *walk) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := w.it.Key()
	if w.end != nil && bytes.Compare(key, w.end) >= 0 {
		return false
	}
	w.at = append(w.at[:0], key...)
	return true
}

// leave ends a walk and returns where its range ends: no goroutine cuts it from then on.
func (c *count) leave(w *walk) (end []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.walks = slices.DeleteFunc(c.walks, func(other *walk) bool { return other == w })
	return w.end
}

// back takes the keys from end on, all of which it has passed, from the number of the
// walk. more says whether the iterator stands on a key, the first that it has not passed.
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

// help takes over parts of the ranges of other goroutines, as long as there are any.
func (c *count) help() (err error) {
	c.mu.Lock()
	idle := len(c.walks) == 0
	c.mu.Unlock()
	if idle {
		return nil // it comes too late
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
		if err := c.run(w, it.SeekGE(w.at)); err != nil {
			return err
		}
		if misses++; w.n >= int64(stepKeys) {
			misses = 0
		}
	}
	return nil
}

// take cuts the walk that seems to have most before it, and returns a walk over the
// upper half of that. It returns nil if there is none to cut. top is above all keys.
func (c *count) take(top []byte) *walk {
	c.mu.Lock()
	defer c.mu.Unlock()
	var most *walk
	var half []byte
	width, same := uint64(0), parallel.Common(c.lo, top) // on the scale of the whole range
	for _, w := range c.walks {
		end := w.end
		if end == nil {
			end = top
		}
		between := parallel.Middle(w.at, end)
		if between == nil {
			continue
		}
		if n := parallel.NumberAt(end, same) - parallel.NumberAt(w.at, same); most == nil || n > width {
			most, half, width = w, between, n
		}
	}
	if most == nil {
		return nil
	}
	// Each has its bytes: at is overwritten.
	w := &walk{at: bytes.Clone(half), end: most.end}
	most.end = half
	c.walks = append(c.walks, w)
	return w
}
