package tally

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay/storage"
)

// The tests look at single steps, and make the bounds small: they are in the package.

// sorted is a Reader of keys in memory. fail, if it is not nil, is the error of all
// iterators once they have passed failAt keys.
type sorted struct {
	keys   []string
	fail   error
	failAt int
}

func (r *sorted) Get([]byte) ([]byte, io.Closer, error) { return nil, nil, storage.ErrNotFound }

func (r *sorted) Iterate(lo, hi []byte) (storage.Iterator, error) {
	from, _ := slices.BinarySearch(r.keys, string(lo))
	to := len(r.keys)
	if hi != nil {
		to, _ = slices.BinarySearch(r.keys, string(hi))
	}
	return &cursor{r: r, keys: r.keys[from:max(from, to)], at: -1}, nil
}

type cursor struct {
	r      *sorted
	keys   []string
	at     int
	passed int
	err    error
}

func (c *cursor) move(to int) bool {
	c.at = max(-1, min(to, len(c.keys)))
	if c.passed++; c.r.fail != nil && c.passed > c.r.failAt {
		c.err = c.r.fail
	}
	return c.Valid()
}

func (c *cursor) SeekGE(key []byte) bool {
	i, _ := slices.BinarySearch(c.keys, string(key))
	return c.move(i)
}

func (c *cursor) SeekLT(key []byte) bool {
	i, _ := slices.BinarySearch(c.keys, string(key))
	return c.move(i - 1)
}

func (c *cursor) First() bool   { return c.move(0) }
func (c *cursor) Last() bool    { return c.move(len(c.keys) - 1) }
func (c *cursor) Next() bool    { return c.move(c.at + 1) }
func (c *cursor) Prev() bool    { return c.move(c.at - 1) }
func (c *cursor) Valid() bool   { return c.err == nil && c.at >= 0 && c.at < len(c.keys) }
func (c *cursor) Key() []byte   { return []byte(c.keys[c.at]) }
func (c *cursor) Value() []byte { return nil }
func (c *cursor) Error() error  { return c.err }
func (c *cursor) Close() error  { return c.err }

// keySets are keys whose bytes say more or less about where most of them are.
func keySets() map[string][]string {
	random := rand.New(rand.NewPCG(1, 2))
	sets := map[string][]string{
		"none":   nil,
		"one":    {"a"},
		"empty":  {"", "\x00", "\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"},
		"nested": nil,
		"IDs":    nil,
		"random": nil,
		"skewed": {"a"},
		"high":   nil,
	}
	for i := range 300 {
		sets["nested"] = append(sets["nested"], strings.Repeat("a", i))
		sets["IDs"] = append(sets["IDs"], fmt.Sprintf("orders/%d-a", i*i))
		sets["random"] = append(sets["random"], fmt.Sprintf("%x", random.Uint64()))
		sets["skewed"] = append(sets["skewed"], fmt.Sprintf("zzzzzzzzzzzz%03d", i))
		sets["high"] = append(sets["high"], strings.Repeat("\xff", i%12)+string([]byte{byte(i)}))
	}
	for name := range sets {
		slices.Sort(sets[name])
		sets[name] = slices.Compact(sets[name])
	}
	return sets
}

func small(t *testing.T) {
	own, step, procs := ownKeys, stepKeys, runtime.GOMAXPROCS(0)
	t.Cleanup(func() { ownKeys, stepKeys = own, step; runtime.GOMAXPROCS(procs) })
	ownKeys, stepKeys = 2, 3
	runtime.GOMAXPROCS(4)
}

// Ensure that a count is exact, however the goroutines meet.
func TestKeys(t *testing.T) {
	small(t)
	random := rand.New(rand.NewPCG(3, 4))
	for name, keys := range keySets() {
		r := &sorted{keys: keys}
		bounds := append([]string{"", "a", "orders/5", "zzzzzzzzzzzz150", "~"}, keys[:min(len(keys), 20)]...)
		for range 100 {
			lo := bounds[random.IntN(len(bounds))]
			var hi []byte
			if random.IntN(3) > 0 {
				hi = []byte(bounds[random.IntN(len(bounds))])
			}
			want := 0
			for _, key := range keys {
				if key >= lo && (hi == nil || key < string(hi)) {
					want++
				}
			}
			n, err := Keys(t.Context(), r, []byte(lo), hi)
			if err != nil || n != int64(want) {
				t.Fatalf("%s: %q to %q: %d keys, %v, want %d", name, lo, hi, n, err, want)
			}
		}
	}
}

// Ensure that walks whose ranges are cut at any time count each key once. One goroutine
// takes all steps, in a random order.
func TestCount_Cut(t *testing.T) {
	small(t)
	for name, keys := range keySets() {
		if len(keys) == 0 {
			continue
		}
		for seed := range uint64(200) {
			random := rand.New(rand.NewPCG(seed, 5))
			c := &count{ctx: t.Context(), r: &sorted{keys: keys}}
			top := []byte(keys[len(keys)-1] + "\x00")
			type runner struct {
				w    *walk
				more bool
			}
			start := func(w *walk) runner {
				it, _ := c.r.Iterate(nil, nil)
				w.it = it
				return runner{w, it.SeekGE(w.at)}
			}
			first := &walk{}
			c.walks = append(c.walks, first)
			running := []runner{start(first)}
			cuts := 0
			for len(running) > 0 {
				if random.IntN(3) == 0 {
					if w := c.take(top); w != nil {
						running = append(running, start(w))
						cuts++
					}
				}
				i := random.IntN(len(running))
				r := &running[i]
				if r.more && c.advance(r.w) {
					r.more = r.w.step()
					continue
				}
				if err := c.end(r.w, r.more, nil); err != nil {
					t.Fatal(err)
				}
				running = slices.Delete(running, i, i+1)
			}
			if c.keys != int64(len(keys)) {
				t.Fatalf("%s, seed %d: %d keys after %d cuts, want %d", name, seed, c.keys, cuts, len(keys))
			}
		}
	}
}

// Ensure that the error of an iterator, and that of the context, is the result, whoever
// meets it.
func TestKeys_Error(t *testing.T) {
	small(t)
	keys := keySets()["IDs"]
	broken := errors.New("broken")
	for failAt := 0; failAt < len(keys); failAt += 7 {
		if n, err := Keys(t.Context(), &sorted{keys, broken, failAt}, nil, nil); err != broken {
			// Each iterator passes fewer keys than failAt if the others do their part.
			if err != nil || n != int64(len(keys)) {
				t.Fatalf("failing after %d: %d keys, %v", failAt, n, err)
			}
		}
	}
	if _, err := Keys(t.Context(), &sorted{keys, broken, 1}, nil, nil); err != broken {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Keys(ctx, &sorted{keys: keys}, nil, nil); err != context.Canceled {
		t.Fatalf("got %v", err)
	}
}
