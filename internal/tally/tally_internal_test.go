package tally

import (
	"bytes"
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

// remembering is a Reader that knows counts, right ones: some are given, and it keeps others.
type remembering struct {
	sorted
	known, offered []storage.RangeCount
}

func (r *remembering) KnownCounts(lo, hi []byte) (known []storage.RangeCount) {
	for _, k := range r.known {
		if bytes.Compare(k.Lo, lo) >= 0 && bytes.Compare(k.Hi, hi) <= 0 {
			known = append(known, k)
		}
	}
	return known
}

func (r *remembering) KeepCounts(parts []storage.RangeCount) { r.offered = parts }

// between returns how many keys lie in a part.
func (r *remembering) between(lo, hi []byte) (n int64) {
	for _, key := range r.keys {
		if key >= string(lo) && key < string(hi) {
			n++
		}
	}
	return n
}

// Ensure that a count is exact whatever parts are known, and that the parts it offers are right, in
// order and apart.
func TestKeys_Memory(t *testing.T) {
	small(t)
	t.Cleanup(func(gap, kept, part int64, marks int) func() {
		return func() { gapKeys, minKept, partKeys, maxMarks = gap, kept, part, marks }
	}(gapKeys, minKept, partKeys, maxMarks))
	random := rand.New(rand.NewPCG(5, 6))
	offered := 0
	for name, keys := range keySets() {
		for range 300 {
			gapKeys, minKept, partKeys, maxMarks = random.Int64N(20), random.Int64N(20), int64(4+random.IntN(20)), 2+random.IntN(20)
			runtime.GOMAXPROCS(1 + random.IntN(4))
			r := &remembering{sorted: sorted{keys: keys}}
			bounds := []string{"", "a", "orders/5", "zzzzzzzzzzzz150", "~"}
			for range 2 * random.IntN(10) {
				if len(keys) > 0 {
					bounds = append(bounds, keys[random.IntN(len(keys))])
				}
			}
			slices.Sort(bounds)
			bounds = slices.Compact(bounds)
			lo, hi := []byte(bounds[0]), []byte(bounds[len(bounds)-1])
			for i := 1; i < len(bounds); i++ {
				if from, to := []byte(bounds[i-1]), []byte(bounds[i]); random.IntN(2) == 0 {
					r.known = append(r.known, storage.RangeCount{Lo: from, Hi: to, Keys: r.between(from, to)})
				}
			}
			for again := range 2 {
				n, err := Keys(t.Context(), r, lo, hi)
				if want := r.between(lo, hi); err != nil || n != want {
					t.Fatalf("%s: %q to %q, knowing %q: %d keys, %v, want %d (again %d)", name, lo, hi, r.known, n, err, want, again)
				}
				at := lo
				for _, k := range r.offered {
					if bytes.Compare(k.Lo, at) < 0 || bytes.Compare(k.Hi, k.Lo) <= 0 || k.Keys != r.between(k.Lo, k.Hi) {
						t.Fatalf("%s: offers %d keys from %q to %q, behind %q: want %d", name, k.Keys, k.Lo, k.Hi, at, r.between(k.Lo, k.Hi))
					}
					at = k.Hi
					offered++
				}
				r.known, r.offered = r.offered, nil
			}
		}
	}
	if offered == 0 {
		t.Error("nothing was ever offered")
	}
}
