package indexer

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/keybytes"
)

// idRange is the documents whose folded IDs are not below low and below high; "" is no bound.
type idRange struct{ low, high string }

// ranges shares the documents of a collection among goroutines, each of which walks over ranges of its own.
// A goroutine that has none waits until another one hands over half of what is left of its range,
// by the bytes of the IDs: how many documents that is, it does not know, and so ranges are divided until nothing is left.
type ranges struct {
	handed  chan idRange
	done    chan struct{} // closed when no goroutine has a range
	waiting atomic.Int32  // goroutines without a range
	walking atomic.Int32  // goroutines with one

	mu    sync.Mutex
	whole *idRange // nil when it is taken. Guarded by mu.
}

// newRanges shares the documents of a range whose bounds are known.
func newRanges(whole idRange) *ranges {
	r := &ranges{handed: make(chan idRange), done: make(chan struct{}), whole: &whole}
	r.walking.Store(1)
	return r
}

// takeWhole returns the range that nobody has taken yet, if it is there.
func (r *ranges) takeWhole() (_ idRange, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.whole == nil {
		return idRange{}, false
	}
	whole := *r.whole
	r.whole = nil
	return whole, true
}

// walk calls fn with ranges until there are none, or until one call fails.
func (r *ranges) walk(ctx context.Context, fn func(idRange) error) error {
	if whole, ok := r.takeWhole(); ok {
		if err := r.walkOne(whole, fn); err != nil {
			return err
		}
	}
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	for {
		select {
		case one := <-r.handed:
			r.waiting.Add(-1)
			err := r.walkOne(one, fn)
			r.waiting.Add(1)
			if err != nil {
				return err
			}
		case <-r.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *ranges) walkOne(one idRange, fn func(idRange) error) error {
	defer func() { // also if fn panics: the others must not wait for it
		if r.walking.Add(-1) == 0 {
			close(r.done)
		}
	}()
	return fn(one)
}

// divide hands over the upper half of what is left of a range behind the ID last, if a goroutine waits for
// it, and returns the upper bound of what stays.
func (r *ranges) divide(last []byte, high string) string {
	if r.waiting.Load() == 0 {
		return high
	}
	middle, ok := between(string(last), high)
	if !ok {
		return high
	}
	r.walking.Add(1)
	select {
	case r.handed <- idRange{middle, high}:
		return middle
	default:
		r.walking.Add(-1)
		return high
	}
}

// between returns a text above low and below high about halfway, without a byte 00, if it finds one.
func between(low, high string) (middle string, ok bool) {
	halfway := keybytes.Middle([]byte(low), []byte(high))
	if n := bytes.IndexByte(halfway, 0); n >= 0 {
		halfway = halfway[:n]
	}
	middle = string(halfway)
	return middle, low < middle && middle < high
}
