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
package tally

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/keybytes"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/storage"
)

// Bounds of a count. Variables for tests, which want every way with few keys.
var (
	ownKeys  = 256 // keys counted before other goroutines start: a start costs as much as a few hundred
	stepKeys = 128 // keys counted between two checks of the context and of the range's end
)

// maxMisses is the number of halves with fewer than stepKeys keys after which a goroutine
// takes no more.
const maxMisses = 8

// count is one call of Keys.
type count struct {
	ctx    context.Context
	r      storage.Reader
	lo, hi []byte

	mu    sync.Mutex
	keys  int64   // counted by walks that have ended. Guarded by mu.
	walks []*walk // under way. Guarded by mu.
}

// walk is the range of one goroutine.
type walk struct {
	it storage.Iterator // over the whole range of the count; used by the walk's goroutine only
	n  int64            // keys that it has passed; used by the walk's goroutine only

	at  []byte // all keys below it are counted. Guarded by count.mu.
	end []byte // end of the range, exclusive; nil for that of the count. Guarded by count.mu.
}

// Keys returns the number of keys of r in [lo, hi). A nil hi means no upper bound.
// Several goroutines read r; none outlives the call. The error is that of ctx or of r.
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

	// The first walk continues on any goroutine, and the others take parts of its range.
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

// run counts the range of w, which is in c.walks. more reports whether the iterator is at
// a key.
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

// end ends a walk. It adds the walk's keys to the count, unless err is not nil or the
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

// advance publishes the position of a walk, and reports whether it is within the range.
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

// leave removes a walk from c.walks and returns the end of its range, which is not cut
// from then on.
func (c *count) leave(w *walk) (end []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.walks = slices.DeleteFunc(c.walks, func(other *walk) bool { return other == w })
	return w.end
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

// help counts parts of other goroutines' ranges as long as there are any.
func (c *count) help() (err error) {
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
		if err := c.run(w, it.SeekGE(w.at)); err != nil {
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
	// Each walk needs bytes of its own, as at is overwritten.
	w := &walk{at: bytes.Clone(half), end: most.end}
	most.end = half
	c.walks = append(c.walks, w)
	return w
}
