package ids

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// ErrClosed is returned by a Client after Close.
var ErrClosed = errors.New("hilo client is closed")

// Source grants HiLo ranges. A grant is durable before NextRange returns.
type Source interface {
	NextRange(ctx context.Context, req RangeRequest) (Range, error)
	// ReturnRange gives back the numbers after last of the range that ended
	// at end, and tells whether that was accepted.
	ReturnRange(ctx context.Context, tag string, last, end int64) (bool, error)
}

// Client draws HiLo IDs, from one range per tag at a time. A Client is meant
// to be shared by all goroutines of a process; several clients on one source
// never hold the same number. All methods are safe for concurrent use.
type Client struct {
	source     Source
	generators sync.Map // tag → *generator

	mu     sync.Mutex // guards closed, and creation against Close
	closed bool
}

// NewClient returns a client that draws from source.
func NewClient(source Source) *Client { return &Client{source: source} }

// Next returns the next ID of tag, such as "users/33-A" for "users". It waits
// only if the range at hand is used up: then one fetch is under way, whoever
// asks. If that fetch fails, all who wait get its error, nothing is lost, and
// the next call fetches again. ctx bounds the wait, not the fetch.
func (c *Client) Next(ctx context.Context, tag string) (string, error) {
	g, found := c.generators.Load(tag)
	if !found {
		var err error
		if g, err = c.generator(tag); err != nil {
			return "", err
		}
	}
	return g.(*generator).next(ctx)
}

// generator returns the generator of tag, made on first use.
func (c *Client) generator(tag string) (*generator, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	tag = strings.Clone(tag)
	g, _ := c.generators.LoadOrStore(tag, newGenerator(c.source, tag))
	return g.(*generator), nil
}

// Close seals every generator, so that no number is drawn any more, and gives
// back what is left of its range. A range that cannot be given back is a gap;
// the first error is returned after all have been tried. Close is idempotent.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()

	var tags []string
	c.generators.Range(func(tag, _ any) bool { tags = append(tags, tag.(string)); return true })
	slices.Sort(tags)
	var first error
	for _, tag := range tags {
		g, _ := c.generators.Load(tag)
		if err := g.(*generator).close(ctx); err != nil && first == nil {
			first = fmt.Errorf("return hilo range of %q: %w", tag, err)
		}
	}
	return first
}

// generator draws the numbers of one tag.
type generator struct {
	source Source
	tag    string

	current atomic.Pointer[held]

	mu     sync.Mutex
	fetch  *fetch       // under way, or nil. Guarded by mu.
	last   RangeRequest // what the next request will say. Guarded by mu.
	closed bool         // Guarded by mu.
}

// held is a range in use. One atomic step draws a number.
type held struct {
	Range
	count int64        // High - Low + 1, or 0 when there never was a range
	drawn atomic.Int64 // numbers drawn; may run past count, harmlessly
}

// fetch is one call of Source.NextRange that any number of callers wait for.
type fetch struct {
	done chan struct{}
	err  error // set before done is closed
}

func newGenerator(source Source, tag string) *generator {
	g := &generator{source: source, tag: tag, last: RangeRequest{Tag: tag}}
	g.current.Store(&held{})
	return g
}

func (g *generator) next(ctx context.Context) (string, error) {
	for {
		h := g.current.Load()
		if n := h.drawn.Add(1); n <= h.count {
			return h.id(n), nil
		}
		if err := g.refill(ctx, h); err != nil {
			return "", err
		}
	}
}

// id returns the ID of the nth number of the range, with one allocation.
func (h *held) id(n int64) string {
	var buffer [64]byte
	id := append(buffer[:0], h.Prefix...)
	id = strconv.AppendInt(id, h.Low+n-1, 10)
	id = append(id, '-')
	id = append(id, h.NodeTag...)
	return string(id)
}

// refill returns when a newer range than used is there, or with the error of
// the fetch it waited for.
func (g *generator) refill(ctx context.Context, used *held) error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return ErrClosed
	}
	if g.current.Load() != used {
		g.mu.Unlock()
		return nil
	}
	f := g.fetch
	if f == nil {
		f = &fetch{done: make(chan struct{})}
		g.fetch = f
		// The fetch serves whoever waits: it outlives the context of the one
		// who happened to start it.
		go g.run(context.WithoutCancel(ctx), f, g.last)
	}
	g.mu.Unlock()

	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *generator) run(ctx context.Context, f *fetch, req RangeRequest) {
	r, err := g.source.NextRange(ctx, req)

	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		g.last.LastSize, g.last.LastRangeAt = r.Size, r.GrantedAt
		g.last.LastMax = max(g.last.LastMax, r.High)
		g.current.Store(&held{Range: r, count: r.High - r.Low + 1})
	}
	f.err = err
	g.fetch = nil
	close(f.done)
}

// close seals the range and returns its tail.
func (g *generator) close(ctx context.Context) error {
	g.mu.Lock()
	alreadyClosed := g.closed
	g.closed = true
	f := g.fetch
	g.mu.Unlock()
	if alreadyClosed {
		return nil
	}
	if f != nil {
		<-f.done // its range, too, must go back
	}

	h := g.current.Load()
	drawn := min(h.drawn.Swap(h.count), h.count)
	if drawn == h.count {
		return nil
	}
	_, err := g.source.ReturnRange(ctx, g.tag, h.Low+drawn-1, h.High)
	return err
}
