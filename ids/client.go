package ids

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/relay"
)

// ErrClosed is returned by a Client after Close.
var ErrClosed = errors.New("hilo client is closed")

// ErrUsage is returned for a call with invalid arguments, which can never succeed.
var ErrUsage = errors.New("wrong usage")

// Source grants HiLo ranges. A grant is durable before NextRange returns.
type Source interface {
	NextRange(ctx context.Context, req RangeRequest) (Range, error)
	// ReturnRange gives back the numbers after last of the range that ends at
	// end. It reports whether the source accepted them.
	ReturnRange(ctx context.Context, tag string, last, end int64) (bool, error)
}

// Client draws HiLo IDs, from one range per tag at a time. A Client is meant
// to be shared by all goroutines of a process; several clients on one source
// never hold the same number. All methods are safe for concurrent use.
//
// From its second range of a tag on, a client fetches the next range when half
// of the current one is used, so that under steady load no draw waits. A client
// that never needs a second range makes the same requests as RavenDB's.
type Client struct {
	source     Source
	prefetch   bool
	generators sync.Map                  // tag → *generator
	newest     atomic.Pointer[generator] // the last one created: see load

	mu     sync.Mutex // guards closed, and creation against Close
	closed bool
}

// NewClient returns a client that draws ranges from source. If prefetch is set, the client fetches
// ranges before it needs them.
func NewClient(source Source, prefetch bool) *Client {
	return &Client{source: source, prefetch: prefetch}
}

// Next returns the next ID of tag, such as "users/33-A" for "users". It waits only if the current
// range is used up. Then concurrent calls share one fetch. If the fetch fails, all waiting calls
// return its error, no number is lost, and the next call fetches again. ctx bounds the wait, not
// the fetch.
//
// If the source panics, the call that started the fetch panics with the same
// value. If the source calls runtime.Goexit, the goroutine of that call ends.
// The other waiting calls fetch again.
func (c *Client) Next(ctx context.Context, tag string) (string, error) {
	g, err := c.load(tag)
	if err != nil {
		return "", err
	}
	return g.next(ctx)
}

// maxN is the most IDs that one call of NextN draws.
const maxN = MaxRangeSize

// NextN returns the next n IDs of tag. It takes one atomic step per range, not
// one per number, and so suits bulk loads. The numbers rise but need not be
// consecutive. If NextN fails, the numbers that it has drawn are a gap. It
// returns ErrUsage unless n is between 1 and 1,048,576.
func (c *Client) NextN(ctx context.Context, tag string, n int) ([]string, error) {
	if n < 1 || n > maxN {
		return nil, fmt.Errorf("next %d ids of %.100q: %w: between 1 and %d can be had at once", n, tag, ErrUsage, maxN)
	}
	g, err := c.load(tag)
	if err != nil {
		return nil, err
	}
	ids, err := g.nextN(ctx, make([]string, 0, n), int64(n))
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// load returns the generator of tag. Most clients draw for one tag at a time, so
// the newest generator is found without the map.
func (c *Client) load(tag string) (*generator, error) {
	if g := c.newest.Load(); g != nil && g.tag == tag {
		return g, nil
	}
	if g, found := c.generators.Load(tag); found {
		return g.(*generator), nil
	}
	return c.create(tag)
}

// create makes the generator of tag, or returns the one that another goroutine
// has made meanwhile.
func (c *Client) create(tag string) (*generator, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	tag = strings.Clone(tag) // the caller's may be part of a large string
	g, _ := c.generators.LoadOrStore(tag, newGenerator(c.source, tag, c.prefetch))
	c.newest.Store(g.(*generator))
	return g.(*generator), nil
}

// Raise skips the numbers of every tag up to floor(tag); 0 or less skips none. A
// call of Next or NextN that begins after Raise has returned draws no such
// number. The skipped numbers are a gap. Raise does not check ranges that the
// source grants later: raise the source's mark first.
func (c *Client) Raise(floor func(tag string) int64) {
	c.generators.Range(func(tag, g any) bool {
		if n := floor(tag.(string)); n > 0 {
			g.(*generator).raise(n)
		}
		return true
	})
}

// Held calls fn with every interval of numbers that the client holds and has not
// drawn yet. Numbers may be drawn meanwhile. fn must not call the client.
func (c *Client) Held(fn func(tag string, low, high int64)) {
	c.generators.Range(func(tag, g any) bool {
		g.(*generator).held(func(low, high int64) { fn(tag.(string), low, high) })
		return true
	})
}

// Close seals every generator, so that no more numbers are drawn, and gives back
// the unused numbers of its ranges. A range that cannot be given back is a gap.
// Close tries all ranges before it returns the first error, or before a panic of
// the source reaches the caller. Close is idempotent.
func (c *Client) Close(ctx context.Context) (first error) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()

	var tags []string
	c.generators.Range(func(tag, _ any) bool { tags = append(tags, tag.(string)); return true })
	slices.Sort(tags)
	for _, tag := range slices.Backward(tags) {
		g, _ := c.generators.Load(tag)
		// Deferred calls run even if one of them panics, so that no generator
		// stays open. They run last to first, hence slices.Backward.
		defer func() { first = cmp.Or(first, g.(*generator).close(ctx)) }()
	}
	return nil
}

// generator draws the numbers of one tag.
type generator struct {
	source Source
	tag    string
	early  bool // fetch before a range is used up

	current atomic.Pointer[held]
	waiting atomic.Int32 // callers in refill, for RangeRequest.Waiting

	mu     sync.Mutex
	ahead  *held        // fetched before it was needed, or nil. Guarded by mu.
	fetch  *fetch       // under way, or nil. Guarded by mu.
	last   RangeRequest // the next request, without Waiting. Guarded by mu.
	ranges int          // ranges fetched so far. Guarded by mu.
	floor  int64        // numbers up to it must not be drawn. Guarded by mu.
	closed bool         // Guarded by mu.
}

// held is a range in use. One atomic addition draws a number: the nth addition
// draws number Low+n-1.
type held struct {
	Range
	count   int64        // High - Low + 1; 0 before the first range
	fetchAt int64        // drawing this number starts a prefetch; 0 for never
	_       [64]byte     // keeps drawn, which all goroutines write, in a cache line of its own
	drawn   atomic.Int64 // numbers drawn; may exceed count, which does no harm
	_       [56]byte
}

// fetch is one call of Source.NextRange that any number of callers may wait for.
type fetch struct {
	done   chan struct{}
	err    error        // set before done is closed
	ending relay.Ending // of the source. Set before done is closed.
}

func newGenerator(source Source, tag string, prefetch bool) *generator {
	g := &generator{source: source, tag: tag, early: prefetch, last: RangeRequest{Tag: tag}}
	g.current.Store(&held{})
	return g
}

func (g *generator) next(ctx context.Context) (string, error) {
	for {
		h := g.current.Load()
		if n := h.drawn.Add(1); n <= h.count {
			if n == h.fetchAt {
				g.prefetch(ctx)
			}
			return h.id(n), nil
		}
		if err := g.refill(ctx, h); err != nil {
			return "", err
		}
	}
}

// nextN appends n IDs to dst.
func (g *generator) nextN(ctx context.Context, dst []string, n int64) ([]string, error) {
	for n > 0 {
		h := g.current.Load()
		end := h.drawn.Add(n)
		// Numbers start+1 to end are drawn, those beyond count excepted: they
		// come from the next range.
		start := end - n
		for i := start + 1; i <= min(end, h.count); i++ {
			dst = append(dst, h.id(i))
			n--
		}
		if start < h.fetchAt && h.fetchAt <= end {
			g.prefetch(ctx)
		}
		if n == 0 {
			break
		}
		if err := g.refill(ctx, h); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// id returns the ID of the nth number of the range, with one allocation.
func (h *held) id(n int64) string {
	var buffer [64]byte
	id := append(buffer[:0], h.Prefix...)
	id = strconv.AppendInt(id, h.Low+n-1, 10)
	if h.NodeTag != "" {
		id = append(id, '-')
		id = append(id, h.NodeTag...)
	}
	return string(id)
}

// prefetch starts a fetch before a call has to wait for it. If the source panics,
// the call that needs the range fetches again.
func (g *generator) prefetch(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed && g.ahead == nil {
		g.startFetch(ctx)
	}
}

// startFetch returns the fetch under way. If there is none it starts one, and
// mine is true. g.mu is held.
func (g *generator) startFetch(ctx context.Context) (f *fetch, mine bool) {
	if g.fetch != nil {
		return g.fetch, false
	}
	// Other callers may wait for this fetch, so it must not end with the context
	// of the caller that started it.
	ctx = context.WithoutCancel(ctx)
	req := g.last
	req.Waiting = int(g.waiting.Load())
	g.fetch = &fetch{done: make(chan struct{})}
	go g.run(ctx, g.fetch, req)
	return g.fetch, true
}

// refill waits until the generator has a newer range than used. It returns the
// error of the fetch that it waited for.
func (g *generator) refill(ctx context.Context, used *held) error {
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	for {
		f, mine, err := g.need(ctx, used)
		if f == nil || err != nil {
			return err
		}
		select {
		case <-f.done:
			if mine {
				f.ending.Repeat() // panics if the source did
			}
			if f.err != nil {
				return f.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// need returns the fetch to wait for and whether this call has started it. The
// fetch is nil if a newer range than used is in place.
func (g *generator) need(ctx context.Context, used *held) (f *fetch, mine bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, false, ErrClosed
	}
	if g.current.Load() != used { // another caller has installed it
		return nil, false, nil
	}
	if g.ahead != nil {
		g.current.Store(g.ahead)
		g.ahead = nil
		return nil, false, nil
	}
	f, mine = g.startFetch(ctx)
	return f, mine, nil
}

// run fetches a range and stores it in ahead. It completes the fetch even if the
// source panics or calls runtime.Goexit.
func (g *generator) run(ctx context.Context, f *fetch, req RangeRequest) {
	var r Range
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if f.ending.Returned() && f.err == nil {
			g.keep(r)
		}
		g.fetch = nil
		close(f.done)
	}()
	f.ending.Watch(func() { r, f.err = g.source.NextRange(ctx, req) })
}

// keep makes a fetched range the next one. g.mu is held.
func (g *generator) keep(r Range) {
	g.last.LastSize, g.last.LastRangeAt = r.Size, r.GrantedAt
	g.last.LastMax = max(g.last.LastMax, r.High)
	g.ahead = &held{Range: r, count: r.High - r.Low + 1}
	if g.ranges++; g.early && g.ranges > 1 {
		g.ahead.fetchAt = max(g.ahead.count/2, 1)
	}
	g.ahead.skipTo(g.floor) // the range may have been granted before Raise
}

// raise skips the numbers up to floor, also those of a fetch under way, which
// keep skips.
func (g *generator) raise(floor int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.floor = max(g.floor, floor)
	g.current.Load().skipTo(floor)
	if g.ahead != nil {
		g.ahead.skipTo(floor)
	}
}

// held calls fn with the unused numbers of the current range and of the one
// fetched ahead.
func (g *generator) held(fn func(low, high int64)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range []*held{g.current.Load(), g.ahead} {
		if h == nil {
			continue
		}
		if drawn := h.drawn.Load(); drawn < h.count {
			fn(h.Low+drawn, h.High)
		}
	}
}

// skipTo draws and discards the numbers up to floor.
func (h *held) skipTo(floor int64) {
	until := min(floor-h.Low+1, h.count)
	for {
		drawn := h.drawn.Load()
		if drawn >= until || h.drawn.CompareAndSwap(drawn, until) {
			return
		}
	}
}

// close seals the generator and gives back unused numbers, newest range first:
// the source accepts the newest range only.
func (g *generator) close(ctx context.Context) (err error) {
	g.mu.Lock()
	alreadyClosed := g.closed
	g.closed = true
	f := g.fetch
	g.mu.Unlock()
	if alreadyClosed {
		return nil
	}
	if f != nil {
		<-f.done // the range that it fetches must go back, too
	}

	g.mu.Lock()
	ahead := g.ahead
	g.ahead = nil
	g.mu.Unlock()
	// Deferred, so that the current range goes back even if returning the range
	// ahead panics.
	defer func() { err = cmp.Or(err, g.giveBack(ctx, g.current.Load())) }()
	if ahead != nil {
		return g.giveBack(ctx, ahead)
	}
	return nil
}

// giveBack seals h and gives its unused numbers back. If the source refuses
// them they are a gap, which is no error.
func (g *generator) giveBack(ctx context.Context, h *held) error {
	drawn := min(h.drawn.Swap(h.count), h.count)
	if drawn == h.count {
		return nil
	}
	_, err := g.source.ReturnRange(ctx, g.tag, h.Low+drawn-1, h.High)
	return err
}
