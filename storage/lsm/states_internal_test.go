package lsm

// These tests look at which states are kept, and count Pebble's snapshots.

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay/storage"
)

func openStates(t *testing.T, durable bool) *Engine {
	t.Helper()
	e, err := Open("db", Options{InMemory: true, DurableReads: durable})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil { // Pebble reports iterators and snapshots that are open
			t.Error(err)
		}
	})
	return e
}

func set(t *testing.T, e *Engine, key, value string) {
	t.Helper()
	err := e.Update(context.Background(), true, func(tx storage.Tx) error { tx.Set([]byte(key), []byte(value), nil); return nil })
	if err != nil {
		t.Fatal(err)
	}
}

// keysOf walks over [lo, hi), forwards and backwards.
func keysOf(t *testing.T, r storage.Reader, lo, hi string) (keys []string) {
	t.Helper()
	var end []byte
	if hi != "" {
		end = []byte(hi)
	}
	it, err := r.Iterate([]byte(lo), end)
	if err != nil {
		t.Fatal(err)
	}
	if it.Valid() {
		t.Errorf("an iterator over %q to %q begins at %q", lo, hi, it.Key())
	}
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, string(it.Key())+string(it.Value()))
	}
	n := len(keys)
	for ok := it.Last(); ok; ok = it.Prev() {
		if n--; n < 0 || keys[n] != string(it.Key())+string(it.Value()) {
			t.Errorf("backwards, %q to %q has other keys", lo, hi)
		}
	}
	if err := it.Close(); err != nil || n != 0 {
		t.Error(n, err)
	}
	return keys
}

// Ensure that a reader takes over the state and the iterators of the one before, that
// these have the bounds that are asked for, and that no reader takes over a state from before a
// commit.
func TestStates(t *testing.T) {
	for _, durable := range []bool{false, true} {
		e := openStates(t, durable)
		for _, key := range []string{"a1", "a2", "a3", "b1", "b2", "c1", "d1", "e1", "f1"} {
			set(t, e, key, "")
		}
		var first *state
		for range 3 {
			s := e.Snapshot().(*latest)
			if first == nil {
				first = s.state
			}
			if s.state != first {
				t.Error("the state was not kept")
			}
			for _, want := range []struct {
				lo, hi string
				keys   []string
			}{
				{"a", "b", []string{"a1", "a2", "a3"}},
				{"a2", "a3", []string{"a2"}},
				{"a", "a", nil},
				{"a3", "b2", []string{"a3", "b1"}},
				{"b", "c", []string{"b1", "b2"}},
				{"c", "d", []string{"c1"}},
				{"d", "e", []string{"d1"}},
				{"e", "", []string{"e1", "f1"}},
				{"", "a2", []string{"a1"}},
				{"", "", []string{"a1", "a2", "a3", "b1", "b2", "c1", "d1", "e1", "f1"}},
			} {
				if got := keysOf(t, s, want.lo, want.hi); !slices.Equal(got, want.keys) {
					t.Errorf("%q to %q: %q, want %q", want.lo, want.hi, got, want.keys)
				}
			}
			if n := len(s.state.idle); n != maxIdleIterators {
				t.Errorf("%d iterators are kept", n)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}

		// A state that is in use when a commit comes, and one that is not.
		used, kept := e.newest(), e.newest()
		if used.state == kept.state {
			t.Error("two readers were given one state")
		}
		if err := kept.Close(); err != nil {
			t.Fatal(err)
		}
		set(t, e, "a4", "")
		if got := keysOf(t, used, "a4", "b"); got != nil {
			t.Errorf("a snapshot shows a later commit: %q", got)
		}
		if err := used.Close(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got := keysOf(t, e, "a4", "b"); !slices.Equal(got, []string{"a4"}) {
				t.Errorf("got %q, want the commit that has returned", got)
			}
		}

		// Tables that were replaced are not held.
		if e.states.isEmpty() {
			t.Error("no state is kept")
		}
		if err := e.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := e.db.Metrics().TableIters; !e.states.isEmpty() || n != 0 {
			t.Errorf("after Compact, iterators are open: of %d tables", n)
		}
	}
}

// Ensure that readers beside a writer see every commit that had returned before they
// began, and nothing later than their moment.
func TestStates_Commits(t *testing.T) {
	for _, durable := range []bool{false, true} {
		e := openStates(t, durable)
		number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
		var returned atomic.Uint64
		done := make(chan struct{})
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					least := returned.Load()
					s := e.Snapshot()
					var seen [2]uint64
					for i, key := range []string{"x", "y"} {
						it, err := s.Iterate([]byte(key), []byte(key+"\x00"))
						if err != nil {
							t.Error(err)
							return
						}
						if it.First() {
							seen[i] = binary.BigEndian.Uint64(it.Value())
						}
						if err := it.Close(); err != nil {
							t.Error(err)
						}
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					if seen[0] < least || seen[0] != seen[1] {
						t.Errorf("saw commits %d, after %d had returned", seen, least)
						return
					}
				}
			})
		}
		for n := range uint64(1000) {
			err := e.Update(t.Context(), true, func(tx storage.Tx) error {
				tx.Set([]byte("x"), number(n), nil)
				tx.Set([]byte("y"), number(n), nil)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			returned.Store(n)
		}
		close(done)
		readers.Wait()
	}
}
