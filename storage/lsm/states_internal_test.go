package lsm

// These tests look at which states are kept, and count Pebble's snapshots.

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
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
		if err := e.Compact(t.Context(), nil, nil); err != nil {
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

// Ensure that a reader that comes between the begin of a commit and the moment at which it
// shows leaves no state to those that come after the commit has returned.
func TestStates_DuringCommit(t *testing.T) {
	disk := storagetest.NewDisk()
	e, err := Open("db", Options{FS: disk, MemTableBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	logs := disk.Hold(storagetest.Logs, storagetest.Creations)
	tables := disk.Hold(storagetest.Tables, storagetest.Creations) // no flush makes states go
	written := make(chan uint64)
	go func() {
		defer close(written)
		for n := uint64(1); ; n++ { // until a commit waits for its log to be made
			err := e.Update(context.Background(), false, func(tx storage.Tx) error { tx.Set([]byte("n"), number(n), make([]byte, 10_000)); return nil })
			if err != nil {
				t.Error(err)
				return
			}
			select {
			case <-logs.Met():
				written <- n
				return
			default:
			}
		}
	}()
	<-logs.Met()
	shown := e.visible.Load()
	if begun := e.durability.applying.Load(); begun == shown {
		t.Errorf("commit %d shows already: the test does not test it", begun)
	}
	during := e.Latest()
	keysOf(t, during, "n", "o")
	if err := during.Close(); err != nil {
		t.Fatal(err)
	}
	logs.Release()
	last := <-written

	after := e.Latest()
	value, closer, err := after.Get([]byte("n"))
	if err != nil {
		t.Fatal(err)
	}
	if n := binary.BigEndian.Uint64(value); n != last {
		t.Errorf("a reader sees commit %d, after %d had returned", n, last)
	}
	tables.Release()
	if err := errors.Join(closer.Close(), after.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}

// Ensure that a reader that is open for long, and has iterated, keeps Pebble neither from
// removing the tables that it has replaced, nor from freeing memtables.
func TestStates_LongReader(t *testing.T) {
	for name, replace := range map[string]func(e *Engine) error{
		"flush": func(e *Engine) error { return e.db.Flush() },
		"compaction": func(e *Engine) error {
			return errors.Join(e.db.Flush(), e.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false))
		},
		"Compact": func(e *Engine) error { return e.Compact(context.Background(), nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			e := openStates(t, false)
			set(t, e, "a1", "")
			if err := e.db.Flush(); err != nil {
				t.Fatal(err)
			}
			set(t, e, "b1", "")
			s := e.Snapshot().(*latest)
			idle := func() int {
				s.state.mu.Lock()
				defer s.state.mu.Unlock()
				return len(s.state.idle)
			}
			for _, lo := range []string{"a", "b"} {
				keysOf(t, s, lo, "")
			}
			set(t, e, "a1", "new")
			if err := replace(e); err != nil {
				t.Fatal(err)
			}
			// States go on another goroutine.
			for begun := time.Now(); ; runtime.Gosched() {
				n, held := idle(), e.db.Metrics().Table.ZombieCount
				if n == 0 && held == 0 {
					break
				}
				if time.Since(begun) > time.Minute {
					t.Fatalf("%d tables are held, and %d iterators are kept", held, n)
				}
			}
			for range 2 {
				if got := keysOf(t, s, "a", "c"); !slices.Equal(got, []string{"a1", "b1"}) {
					t.Errorf("the reader sees %q", got)
				}
			}
			if n := idle(); n != 0 {
				t.Errorf("%d iterators are kept again", n)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
