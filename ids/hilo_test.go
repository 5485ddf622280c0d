package ids_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/ids"
)

// Ensure that the size of a range follows the table, with the clamp in every
// branch.
func TestRangeSize(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	never := time.Duration(math.MinInt64)
	tests := []struct {
		last int64
		age  time.Duration
		want int64
	}{
		{0, never, 32}, {-5, never, 32}, {100, never, 100}, {5_000_000, never, 1 << 20},
		{32, 0, 64}, {32, 29999 * time.Millisecond, 64}, {32, -time.Hour, 64}, {64, time.Second, 128},
		{1 << 20, time.Second, 1 << 20}, {math.MaxInt64, time.Second, 1 << 20},
		{32, 30 * time.Second, 32}, {64, 45 * time.Second, 64}, {32, 60 * time.Second, 32}, {2_097_152, 45 * time.Second, 1 << 20},
		{64, 61 * time.Second, 32}, {32, 61 * time.Second, 32}, {256, time.Hour, 128}, {math.MinInt64, time.Hour, 32},
	}
	for _, test := range tests {
		at := time.Time{}
		if test.age != never {
			at = now.Add(-test.age)
		}
		if got := ids.RangeSize(test.last, at, now); got != test.want {
			t.Errorf("last %d, age %v: got %d, want %d", test.last, test.age, got, test.want)
		}
	}
}

// Ensure that grants stand behind document, client and mark, whichever is
// highest, and that an end never repeats.
func TestMarks_Grant(t *testing.T) {
	tests := []struct {
		name      string
		marks     ids.Marks
		document  int64
		lastMax   int64
		low, high int64
	}{
		{"first", ids.Marks{}, 0, 0, 1, 32},
		{"after a range", ids.Marks{Mark: 32, Top: 32}, 32, 0, 33, 64},
		{"document raised", ids.Marks{Mark: 64, Top: 64}, 1000, 0, 1001, 1032},
		{"document lowered", ids.Marks{Mark: 64, Top: 64}, 12, 0, 65, 96},
		{"document deleted, fresh client", ids.Marks{Mark: 64, Top: 64}, 0, 0, 65, 96},
		{"client has seen more", ids.Marks{}, 0, 64, 65, 96},
		{"after a return to 1", ids.Marks{Mark: 1, Top: 32}, 1, 0, 2, 33},
		{"end raised after a return of all", ids.Marks{Mark: 0, Top: 32}, 0, 0, 1, 33},
		{"negative document", ids.Marks{}, -5, 0, 1, 32},
	}
	for _, test := range tests {
		m := test.marks
		low, high, size, err := m.Grant(test.document, ids.RangeRequest{Tag: "users", LastMax: test.lastMax}, time.Now())
		if err != nil || low != test.low || high != test.high || size != 32 {
			t.Errorf("%s: got %d..%d size %d, %v; want %d..%d", test.name, low, high, size, err, test.low, test.high)
		}
		if m.Mark != high || m.Top != high {
			t.Errorf("%s: mark %d, top %d after a grant to %d", test.name, m.Mark, m.Top, high)
		}
	}
}

// Ensure that a refused grant changes nothing.
func TestMarks_Grant_Refused(t *testing.T) {
	tests := []struct {
		name     string
		document int64
		lastMax  int64
		want     error
	}{
		{"overflow", math.MaxInt64 - 7, 0, ids.ErrExhausted},
		{"at the end", math.MaxInt64, 0, ids.ErrExhausted},
		{"client far ahead", 0, 1<<40 + 11, ids.ErrLeadTooLarge},
		{"negative client", 0, -1, ids.ErrLeadTooLarge},
	}
	for _, test := range tests {
		m := ids.Marks{Mark: 10, Top: 10, Leases: []ids.Lease{{Low: 1, End: 10}}}
		_, _, _, err := m.Grant(test.document, ids.RangeRequest{Tag: "users", LastMax: test.lastMax}, time.Now())
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
		if m.Mark != 10 || m.Top != 10 || len(m.Leases) != 1 {
			t.Errorf("%s: changed to %+v", test.name, m)
		}
	}
}

// Ensure that a return is accepted once, for the newest open range alone, and
// uncovers the one beneath only if nothing of it was used.
func TestMarks_Return(t *testing.T) {
	type call struct {
		document, last, end int64
		want                bool
		mark                int64 // afterwards
	}
	tests := []struct {
		name   string
		grants int
		calls  []call
	}{
		{"seed example", 1, []call{{32, 1, 32, true, 1}}},
		{"twice", 1, []call{{32, 1, 32, true, 1}, {1, 1, 32, false, 1}, {32, 1, 32, false, 1}}},
		{"nothing used", 1, []call{{32, 0, 32, true, 0}}},
		{"all used", 1, []call{{32, 32, 32, true, 32}, {32, 32, 32, false, 32}}},
		{"below the range", 2, []call{{64, 31, 64, false, 64}, {64, 0, 64, false, 64}}},
		{"above the range", 1, []call{{32, 33, 32, false, 32}}},
		{"not the newest", 2, []call{{64, 20, 32, false, 64}}},
		{"document changed", 1, []call{{40, 1, 32, false, 32}, {0, 1, 32, false, 32}}},
		{"unknown end", 1, []call{{32, 30, 31, false, 32}}},
		{"two ranges, newest first", 2, []call{{64, 32, 64, true, 32}, {32, 5, 32, true, 5}}},
		{"beneath a used one", 2, []call{{64, 33, 64, true, 33}, {33, 5, 32, false, 33}, {33, 32, 33, false, 33}}},
		{"never granted", 0, []call{{0, 0, 0, false, 0}, {32, 1, 32, false, 0}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var m ids.Marks
			document := int64(0)
			for range test.grants {
				_, high, _, err := m.Grant(document, ids.RangeRequest{Tag: "users"}, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				document = high
			}
			for _, c := range test.calls {
				if got := m.Return(c.document, c.last, c.end); got != c.want || m.Mark != c.mark {
					t.Errorf("return last %d end %d, document %d: got %v, mark %d; want %v, %d", c.last, c.end, c.document, got, m.Mark, c.want, c.mark)
				}
			}
		})
	}
}

// Ensure that a mark is raised above what was granted, where no range can be returned any more,
// and that below the mark it stays, and no return goes below the number.
func TestMarks_Raise(t *testing.T) {
	granted := func(n int64) *ids.Marks {
		m := new(ids.Marks)
		if _, _, _, err := m.Grant(0, ids.RangeRequest{Tag: "users"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		m.Raise(n)
		return m
	}
	tests := []struct {
		name      string
		raise     int64 // after 1 to 32 were granted
		last, end int64 // of a return
		want      bool
		mark      int64 // afterwards
	}{
		{"return below it", 10, 5, 32, false, 32},
		{"return to it", 10, 10, 32, true, 10},
		{"return above it", 10, 20, 32, true, 20},
		{"at the mark", 32, 31, 32, false, 32},
		{"above the mark", 40, 35, 40, false, 40},
		{"above the mark, the old range", 40, 20, 32, false, 40},
	}
	for _, test := range tests {
		m := granted(test.raise)
		if got := m.Return(m.Mark, test.last, test.end); got != test.want || m.Mark != test.mark {
			t.Errorf("%s: got %v, mark %d; want %v, %d", test.name, got, m.Mark, test.want, test.mark)
		}
	}
}

// source grants ranges in memory, and fails or blocks on demand.
type source struct {
	mu      sync.Mutex
	marks   map[string]*ids.Marks
	asked   int // fetches begun
	fetches int
	err     error
	block   chan struct{}
	nodes   []string // node tag per fetch
}

func (s *source) NextRange(ctx context.Context, req ids.RangeRequest) (ids.Range, error) {
	s.mu.Lock()
	block := s.block
	s.asked++
	s.mu.Unlock()
	if block != nil {
		<-block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetches++
	if s.err != nil {
		return ids.Range{}, s.err
	}
	if s.marks == nil {
		s.marks = make(map[string]*ids.Marks)
	}
	m := s.marks[req.Tag]
	if m == nil {
		m = &ids.Marks{}
		s.marks[req.Tag] = m
	}
	now := time.Now()
	low, high, size, err := m.Grant(m.Mark, req, now)
	node := "A"
	if len(s.nodes) > 0 {
		node, s.nodes = s.nodes[0], s.nodes[1:]
	}
	return ids.Range{Prefix: req.Tag + "/", Low: low, High: high, Size: size, NodeTag: node, GrantedAt: now}, err
}

func (s *source) ReturnRange(_ context.Context, tag string, last, end int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false, s.err
	}
	return s.marks[tag].Return(s.marks[tag].Mark, last, end), nil
}

// Ensure that 100 goroutines that share a client get 1..2000, each once.
func TestClient_Next_Concurrent(t *testing.T) {
	s := &source{}
	c := ids.NewClient(s, true)
	var mu sync.Mutex
	seen := make(map[string]bool)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for range 20 {
				id, err := c.Next(context.Background(), "users")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[id] {
					t.Errorf("%s came twice", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for n := 1; n <= 2000; n++ {
		if id := fmt.Sprintf("users/%d-A", n); !seen[id] {
			t.Errorf("%s is missing", id)
		}
	}
}

// Ensure that number and node tag come from one range.
func TestClient_Next_NodeTag(t *testing.T) {
	c := ids.NewClient(&source{nodes: []string{"A", "B"}}, true)
	var got []string
	for range 33 {
		id, err := c.Next(context.Background(), "users")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
	}
	if want := []string{"users/32-A", "users/33-B"}; !slices.Equal(got[31:], want) {
		t.Errorf("got %v, want %v", got[31:], want)
	}
}

// Ensure that two clients never hold the same number.
func TestClient_Next_TwoClients(t *testing.T) {
	s := &source{}
	a, b := ids.NewClient(s, true), ids.NewClient(s, true)
	ctx := context.Background()
	for _, want := range []string{"users/1-A", "users/33-A", "users/2-A", "users/34-A"} {
		id, err := a.Next(ctx, "users")
		if err != nil || id != want {
			t.Errorf("got %q, %v; want %q", id, err, want)
		}
		a, b = b, a
	}
}

// Ensure that a failed fetch loses nothing, and that the next call tries
// again.
func TestClient_Next_FetchFails(t *testing.T) {
	s := &source{err: errors.New("disk")}
	c := ids.NewClient(s, true)
	for range 3 {
		if _, err := c.Next(context.Background(), "users"); !errors.Is(err, s.err) {
			t.Errorf("got %v, want the source's error", err)
		}
	}
	s.err = nil
	if id, err := c.Next(context.Background(), "users"); err != nil || id != "users/1-A" {
		t.Errorf("after the failure: got %q, %v", id, err)
	}
}

// Ensure that one fetch serves all who wait, and that a caller who gives up
// neither waits on nor takes it away from the others.
func TestClient_Next_Cancelled(t *testing.T) {
	s := &source{block: make(chan struct{})}
	c := ids.NewClient(s, true)
	ctx, cancel := context.WithCancel(context.Background())
	gaveUp := make(chan error)
	go func() { _, err := c.Next(ctx, "users"); gaveUp <- err }()
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.Next(context.Background(), "users"); err != nil {
				t.Error(err)
			}
		})
	}
	close(s.block)
	wg.Wait()
	if s.fetches != 1 {
		t.Errorf("%d fetches for 9 callers, want 1", s.fetches)
	}
}

// Ensure that Close returns the tail of every range, that nothing is drawn
// afterwards, and that a second Close does nothing.
func TestClient_Close(t *testing.T) {
	s := &source{}
	c := ids.NewClient(s, true)
	ctx := context.Background()
	for range 3 {
		if _, err := c.Next(ctx, "users"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Next(ctx, "orders"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if s.marks["users"].Mark != 3 || s.marks["orders"].Mark != 1 {
		t.Errorf("marks after Close: users %d, orders %d; want 3, 1", s.marks["users"].Mark, s.marks["orders"].Mark)
	}
	for _, tag := range []string{"users", "products"} {
		if id, err := c.Next(ctx, tag); !errors.Is(err, ids.ErrClosed) {
			t.Errorf("after Close: got %q, %v; want ErrClosed", id, err)
		}
	}
}

// Ensure that numbers drawn while Close runs are never given back.
func TestClient_Close_Concurrent(t *testing.T) {
	for range 50 {
		s := &source{}
		c := ids.NewClient(s, true)
		var wg sync.WaitGroup
		var mu sync.Mutex
		drawn := make(map[string]bool)
		for range 4 {
			wg.Go(func() {
				for {
					id, err := c.Next(context.Background(), "users")
					if errors.Is(err, ids.ErrClosed) {
						return
					}
					mu.Lock()
					drawn[id] = true
					mu.Unlock()
				}
			})
		}
		if err := c.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		next, err := ids.NewClient(s, true).Next(context.Background(), "users")
		if err != nil || drawn[next] {
			t.Fatalf("%s came twice (%v)", next, err)
		}
	}
}

// Ensure that a client fetches ahead from its second range on, takes the
// numbers in order, and gives both ranges back, newest first.
func TestClient_Prefetch(t *testing.T) {
	s := &source{}
	c := ids.NewClient(s, true)
	ctx := context.Background()
	draw := func(n int) {
		t.Helper()
		for range n {
			if _, err := c.Next(ctx, "users"); err != nil {
				t.Fatal(err)
			}
		}
	}
	fetches := func() int { s.mu.Lock(); defer s.mu.Unlock(); return s.fetches }

	draw(32)
	if fetches() != 1 {
		t.Errorf("%d fetches for the first 32 numbers, want 1", fetches())
	}
	draw(31) // 33 … 63 of 33 … 96
	if fetches() != 2 {
		t.Errorf("%d fetches for 63 numbers, want 2", fetches())
	}
	draw(1) // half of the second range
	for fetches() != 3 {
		runtime.Gosched()
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if mark := s.marks["users"].Mark; mark != 64 {
		t.Errorf("mark after Close: got %d, want 64", mark)
	}
}

// Ensure that NextN gives n different IDs, over the ends of ranges, beside
// goroutines that draw one at a time.
func TestClient_NextN(t *testing.T) {
	c := ids.NewClient(&source{}, true)
	ctx := context.Background()
	var mu sync.Mutex
	seen := make(map[string]bool)
	note := func(got ...string) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range got {
			if seen[id] {
				t.Errorf("%s came twice", id)
			}
			seen[id] = true
		}
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if g%2 == 0 {
					id, err := c.Next(ctx, "users")
					if err != nil {
						t.Error(err)
					}
					note(id)
					continue
				}
				got, err := c.NextN(ctx, "users", i*3+1)
				if err != nil || len(got) != i*3+1 {
					t.Errorf("got %d of %d, %v", len(got), i*3+1, err)
				}
				note(got...)
			}
		})
	}
	wg.Wait()
	for _, n := range []int{-1, 0, 1<<20 + 1} {
		if _, err := c.NextN(ctx, "users", n); !errors.Is(err, ids.ErrUsage) {
			t.Errorf("%d ids at once: got %v, want ErrUsage", n, err)
		}
	}
}

// Ensure that a raised client draws nothing up to the floor, from the range at
// hand, from the one fetched ahead, or from a fetch that was under way, and
// that it gives nothing back below it.
func TestClient_Raise(t *testing.T) {
	ctx := context.Background()
	raise := func(c *ids.Client, n int64) {
		c.Raise(func(tag string) int64 { return map[string]int64{"users": n}[tag] })
	}
	next := func(c *ids.Client, tag, want string) {
		t.Helper()
		if id, err := c.Next(ctx, tag); err != nil || id != want {
			t.Errorf("got %s, %v; want %s", id, err, want)
		}
	}

	s := &source{}
	c := ids.NewClient(s, true)
	next(c, "users", "users/1-A")
	next(c, "orders", "orders/1-A")
	raise(c, 20)
	next(c, "users", "users/21-A")
	raise(c, 5)
	next(c, "users", "users/22-A")
	next(c, "orders", "orders/2-A")
	raise(c, 32)
	next(c, "users", "users/33-A")

	// Half of the second range, 33 to 96, fetches the next: 97 to 224.
	for range 31 {
		if _, err := c.Next(ctx, "users"); err != nil {
			t.Fatal(err)
		}
	}
	for held(c)["users"] < 32+128 {
		runtime.Gosched()
	}
	raise(c, 200)
	if n := held(c)["users"]; n != 24 {
		t.Errorf("%d numbers are held, want 24", n)
	}
	next(c, "users", "users/201-A")
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if mark := s.marks["users"].Mark; mark != 201 {
		t.Errorf("mark after Close: got %d, want 201", mark)
	}

	slow := &source{block: make(chan struct{})}
	c = ids.NewClient(slow, true)
	got := make(chan string)
	go func() { id, _ := c.Next(ctx, "users"); got <- id }()
	for asked := 0; asked == 0; runtime.Gosched() {
		slow.mu.Lock()
		asked = slow.asked
		slow.mu.Unlock()
	}
	raise(c, 10)
	close(slow.block)
	if id := <-got; id != "users/11-A" {
		t.Errorf("of a fetch under way: got %s, want users/11-A", id)
	}
}

// held counts the numbers that a client holds, by tag.
func held(c *ids.Client) map[string]int64 {
	n := make(map[string]int64)
	c.Held(func(tag string, low, high int64) { n[tag] += high - low + 1 })
	return n
}

// Ensure that drawing an ID allocates its string and no more.
func TestClient_Next_Allocations(t *testing.T) {
	c := ids.NewClient(&source{}, true)
	ctx := context.Background()
	for range 5000 { // grow the range, so that no fetch falls into the measurement
		if _, err := c.Next(ctx, "users"); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(500, func() { _, _ = c.Next(ctx, "users") }); n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}

// Ensure that a range of 3.x is doubled until those who wait take at most a
// tenth of it (vector 160), and is bounded.
func TestPace_Waiting(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for waiting, want := range map[int]int64{0: 32, 3: 32, 4: 64, 7: 128, 1000: 16384, 1 << 30: 1 << 20} {
		var p ids.Pace
		if got := p.Next(ids.Growth3, 32, now, waiting); got != want {
			t.Errorf("%d waiting: got %d, want %d", waiting, got, want)
		}
	}
	halves := ids.Pace{}
	halves.Next(ids.Growth3, 32, now, 20) // 256
	if got := halves.Next(ids.Growth3, 32, now.Add(61*time.Second), 0); got != 128 {
		t.Errorf("256 after a minute: got %d, want 128", got)
	}
}
