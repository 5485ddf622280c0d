package ids_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/jaydb/jay/ids"
)

// breaking is a source whose calls break as asked.
type breaking struct {
	source
	fetch, giveBack func(n int) // called first, with the number of the call, from 1

	mu               sync.Mutex
	fetched, givenBy int
}

func (s *breaking) NextRange(ctx context.Context, req ids.RangeRequest) (ids.Range, error) {
	s.mu.Lock()
	s.fetched++
	n := s.fetched
	s.mu.Unlock()
	if s.fetch != nil {
		s.fetch(n)
	}
	return s.source.NextRange(ctx, req)
}

func (s *breaking) ReturnRange(ctx context.Context, tag string, last, end int64) (bool, error) {
	s.mu.Lock()
	s.givenBy++
	n := s.givenBy
	s.mu.Unlock()
	if s.giveBack != nil {
		s.giveBack(n)
	}
	return s.source.ReturnRange(ctx, tag, last, end)
}

// outcome runs fn on a goroutine of its own and returns how it ended: with what
// it returned, "panic …" or "goexit".
func outcome(fn func() string) string {
	out := make(chan string, 1)
	go func() {
		text := "goexit"
		defer func() {
			if r := recover(); r != nil {
				text = fmt.Sprint("panic ", r)
			}
			out <- text
		}()
		text = fn()
	}()
	return <-out
}

// waitingContext notes when a call begins to wait.
type waitingContext struct {
	context.Context
	waits *sync.WaitGroup
}

func (c waitingContext) Done() <-chan struct{} {
	c.waits.Done()
	return c.Context.Done()
}

func next(c *ids.Client) func() string { return nextWith(context.Background(), c) }

func nextWith(ctx context.Context, c *ids.Client) func() string {
	return func() string {
		id, err := c.Next(ctx, "users")
		return fmt.Sprint(id, " ", err)
	}
}

// Ensure that a fetch that does not return ends the call that started it in the
// same way, that calls which wait for it fetch again, and that nothing hangs
// afterwards, Close included.
func TestClient_Next_SourceDoesNotReturn(t *testing.T) {
	for want, end := range map[string]func(){"panic clock": func() { panic("clock") }, "goexit": runtime.Goexit} {
		t.Run(want, func(t *testing.T) {
			begun, gate := make(chan struct{}), make(chan struct{})
			s := &breaking{fetch: func(n int) {
				if n == 1 {
					close(begun)
					<-gate
					end()
				}
			}}
			c := ids.NewClient(s, true)
			first, others := make(chan string), make(chan string)
			go func() { first <- outcome(next(c)) }()
			<-begun
			var waits sync.WaitGroup
			for range 4 {
				waits.Add(1)
				go func() { others <- outcome(nextWith(waitingContext{context.Background(), &waits}, c)) }()
			}
			waits.Wait()
			waits.Add(1000) // they wait again
			close(gate)
			if got := <-first; got != want {
				t.Errorf("the call that started the fetch: %q, want %q", got, want)
			}
			seen := make(map[string]bool)
			for range 4 {
				seen[<-others] = true
			}
			for i := range 4 {
				if id := fmt.Sprintf("users/%d-A <nil>", i+1); !seen[id] {
					t.Errorf("the other calls drew %v, without %s", seen, id)
				}
			}
			if got := outcome(next(c)); got != "users/5-A <nil>" {
				t.Errorf("afterwards: %q", got)
			}
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Ensure that a fetch ahead of need that does not return loses nothing: the call
// that needs the range fetches again.
func TestClient_Prefetch_SourceDoesNotReturn(t *testing.T) {
	for _, end := range []func(){func() { panic("clock") }, runtime.Goexit} {
		ended := make(chan struct{})
		s := &breaking{fetch: func(n int) {
			if n == 3 { // the first that no call waits for
				defer close(ended)
				end()
			}
		}}
		c := ids.NewClient(s, true)
		for i := range 300 {
			if i == 80 { // the range of 33 to 96 is half used
				<-ended
			}
			if got, want := outcome(next(c)), fmt.Sprintf("users/%d-A <nil>", i+1); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
}

// Ensure that Close gives back the ranges of all tags though the source panics
// over one, that the caller gets the panic, and that nothing is drawn
// afterwards.
func TestClient_Close_SourceDoesNotReturn(t *testing.T) {
	for want, end := range map[string]func(){"panic clock": func() { panic("clock") }, "goexit": runtime.Goexit} {
		s := &breaking{giveBack: func(n int) {
			if n == 1 {
				end()
			}
		}}
		c := ids.NewClient(s, true)
		for _, tag := range []string{"orders", "products", "users"} {
			if _, err := c.Next(context.Background(), tag); err != nil {
				t.Fatal(err)
			}
		}
		if got := outcome(func() string { return fmt.Sprint(c.Close(context.Background())) }); got != want {
			t.Errorf("Close: %q, want %q", got, want)
		}
		for tag, mark := range map[string]int64{"orders": 32, "products": 1, "users": 1} {
			if got := s.marks[tag].Mark; got != mark {
				t.Errorf("%s: %s is at %d, want %d", want, tag, got, mark)
			}
		}
		if got := outcome(next(c)); got != " "+ids.ErrClosed.Error() {
			t.Errorf("Next after Close: %q", got)
		}
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("second Close: %v", err)
		}
	}
}

// Ensure that a call without a context leaves the client usable.
func TestClient_Next_NilContext(t *testing.T) {
	c := ids.NewClient(&source{}, true)
	var none context.Context
	if got := outcome(func() string { id, err := c.Next(none, "users"); return fmt.Sprint(id, err) }); got[:5] != "panic" {
		t.Errorf("without a context: %q", got)
	}
	if got := outcome(next(c)); got != "users/1-A <nil>" {
		t.Errorf("afterwards: %q", got)
	}
}
