package lsm

// These tests look at what Pebble is asked to compact, and with which context.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that no context that can end while Pebble is open reaches it: a manual compaction
// that is cancelled when it was picked makes Pebble panic, and the process end. Close waits
// for the piece that is under way, and begins no other.
func TestCompact_ContextOfPebbleDoesNotEnd(t *testing.T) {
	e, err := Open("db", Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	begun, goOn := make(chan context.Context, 1), make(chan struct{})
	run := e.compactor.run
	e.compactor.run = func(ctx context.Context, lo, hi []byte) error {
		begun <- ctx
		<-goOn
		return run(ctx, lo, hi)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Compact(ctx, nil, nil) }()
	given := <-begun
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if given.Err() != nil {
		t.Error("the context that Pebble got has ended with the caller's")
	}
	late, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if err := e.Compact(late, nil, nil); !errors.Is(err, context.Canceled) || len(begun) > 0 {
		t.Errorf("got %v, want the end of the context: the other piece is still merged", err)
	}

	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	<-e.quit
	select {
	case err := <-closed:
		t.Errorf("Close has not waited for the piece: %v", err)
	case <-time.After(5 * time.Millisecond):
	}
	close(goOn)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if given.Err() == nil {
		t.Error("a call that waits for Pebble, which has ended, would wait for ever")
	}
}

// Ensure that the failure of the engine ends Compact, and does not end the context that Pebble got.
func TestCompact_FailureWhileItRuns(t *testing.T) {
	e, err := Open("db", Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	begun, never := make(chan context.Context, 1), make(chan struct{})
	e.compactor.run = func(ctx context.Context, _, _ []byte) error {
		begun <- ctx
		select {
		case <-ctx.Done():
		case <-never:
		}
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() { done <- e.Compact(t.Context(), nil, nil) }()
	given := <-begun
	e.fail(errors.New("injected"))
	if err := <-done; !errors.Is(err, storage.ErrFailed) {
		t.Errorf("got %v, want ErrFailed", err)
	}
	if given.Err() != nil {
		t.Error("the context that Pebble got has ended before Pebble")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	<-given.Done() // the call does not stay
}

// Ensure that a compaction is made in pieces that follow one another and leave no key out,
// and that no piece begins after the context has ended.
func TestCompact_Pieces(t *testing.T) {
	e, err := Open("db", Options{InMemory: true, TableBounds: [][]byte{[]byte("k3"), []byte("k6")}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for range 2 {
		for i := range 9 {
			set(t, e, fmt.Sprint("k", i), "value")
		}
		if err := e.Compact(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	e.compactor.pieceBytes = 1
	var pieces []keyRange
	ctx, cancel := context.WithCancel(t.Context())
	e.compactor.run = func(_ context.Context, lo, hi []byte) error {
		pieces = append(pieces, keyRange{lo, hi})
		return nil
	}
	if err := e.Compact(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(pieces) < 3 {
		t.Fatalf("%d pieces, want one for each table: 3", len(pieces))
	}
	for i, p := range pieces {
		if bytes.Compare(p.lo, p.hi) >= 0 {
			t.Errorf("piece %d from %q to %q is empty", i, p.lo, p.hi)
		}
		if i > 0 && !bytes.Equal(p.lo, append(bytes.Clone(pieces[i-1].hi), 0)) {
			t.Errorf("piece %d begins at %q, and the one before it ends at %q", i, p.lo, pieces[i-1].hi)
		}
	}
	if first, last := pieces[0].lo, pieces[len(pieces)-1].hi; len(first) != 1 || first[0] != 0 || last[0] != 0xff {
		t.Errorf("the pieces go from %q to %q", first, last)
	}
	n := 0
	e.compactor.run = func(context.Context, []byte, []byte) error { n++; cancel(); return nil }
	if err := e.Compact(ctx, nil, nil); !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("got %v after %d pieces, want the end of the context after the first one", err, n)
	}
}

// Ensure that a compaction frees what commits have removed that are not synced, and what the engine's own views of former commits show, which wait to be closed
// together.
func TestCompact_Views(t *testing.T) {
	e, err := Open("db", Options{FS: storagetest.NewDisk(), DurableReads: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	value := make([]byte, 64<<10)
	rand.New(rand.NewSource(37)).Read(value)
	const keys = 12
	write := func(sync bool, stage func(tx storage.Tx, key []byte)) {
		for i := range keys {
			if err := e.Update(t.Context(), sync, func(tx storage.Tx) error { stage(tx, fmt.Appendf(nil, "k%02d", i)); return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(true, func(tx storage.Tx, key []byte) { tx.Set(key, value, nil) })
	for _, sync := range []bool{true, false} {
		write(sync, func(tx storage.Tx, key []byte) { tx.Set(key, value[:1<<10], nil) })
		if err := e.Compact(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		size := uint64(0)
		levels, err := e.db.SSTables()
		if err != nil {
			t.Fatal(err)
		}
		for _, tables := range levels {
			for _, table := range tables {
				size += table.Size
			}
		}
		if size > keys*3<<10 {
			t.Errorf("synced %v: %d bytes are left of %d", sync, size, keys<<10)
		}
		write(true, func(tx storage.Tx, key []byte) { tx.Set(key, value, nil) })
	}
}

// Ensure that a compaction frees what a snapshot kept that is gone: when its tables were written, deletions stayed in the last level, beside what they delete.
func TestCompact_Elisions(t *testing.T) {
	sample.OneGoroutine(t)
	disk := storagetest.NewDisk()
	e, err := Open("db", Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { e.Close() }()
	value := make([]byte, 4<<10)
	rand.New(rand.NewSource(37)).Read(value)
	const keys = 4000
	write := func(stage func(tx storage.Tx, key []byte)) {
		for i := 0; i < keys; i += 100 {
			if err := e.Update(t.Context(), true, func(tx storage.Tx) error {
				for j := range 100 {
					stage(tx, fmt.Appendf(nil, "k%05d", i+j))
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	compacted := func() uint64 {
		if err := e.Compact(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		size, err := e.DiskBytes([]byte("k"), []byte("l"))
		if err != nil {
			t.Fatal(err)
		}
		return size
	}
	write(func(tx storage.Tx, key []byte) { tx.Set(key, value, nil) })
	s := e.Snapshot()
	write(func(tx storage.Tx, key []byte) { tx.Delete(key) })
	if size := compacted(); size < keys*1<<10 {
		t.Fatalf("%d bytes: the snapshot keeps nothing", size)
	}
	s.Close()
	if size := compacted(); size > keys*1<<10/10 {
		t.Errorf("%d bytes are left after the snapshot", size)
	}

	// The same by a program that opens the database to compact it.
	write(func(tx storage.Tx, key []byte) { tx.Set(key, value, nil) })
	s = e.Snapshot()
	write(func(tx storage.Tx, key []byte) { tx.Delete(key) })
	compacted()
	s.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = Open("db", Options{FS: disk}); err != nil {
		t.Fatal(err)
	}
	if size := compacted(); size > keys*1<<10/10 {
		t.Errorf("%d bytes are left in a new run", size)
	}
}

// slowManifests is a file system on which the sync of a manifest takes a while.
type slowManifests struct{ vfs.FS }

func (s slowManifests) Unwrap() vfs.FS { return s.FS }

func (s slowManifests) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, c)
	if err == nil && bytes.Contains([]byte(name), []byte("MANIFEST")) {
		f = slowManifest{f}
	}
	return f, err
}

type slowManifest struct{ vfs.File }

func (f slowManifest) Sync() error { time.Sleep(2 * time.Millisecond); return f.File.Sync() }

// Ensure that compactions which end together under load neither end the process nor lose a
// write. (Pebble with a context that ends panics here after seconds to minutes.)
func TestCompact_CancelledUnderLoad(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			e, err := Open("db", Options{FS: slowManifests{vfs.NewMem()}, MemTableBytes: 64 << 10})
			if err != nil {
				t.Error(err)
				return
			}
			e.compactor.pieceBytes = 32 << 10
			r := rand.New(rand.NewSource(int64(k)))
			newest := map[string]byte{}
			value := make([]byte, 600)
			for round := range rounds {
				for range 3 {
					err := e.Update(t.Context(), true, func(tx storage.Tx) error {
						for range 60 {
							key := fmt.Sprint("x/", r.Intn(1000))
							r.Read(value)
							value[0] = byte(round)
							newest[key] = byte(round)
							tx.Set([]byte(key), value, nil)
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.Intn(8000))*time.Microsecond)
				var calls sync.WaitGroup
				for range 4 {
					calls.Go(func() {
						if err := e.Compact(ctx, nil, nil); err != nil && !errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
					})
				}
				calls.Wait()
				cancel()
			}
			s := e.Snapshot()
			for key, round := range newest {
				got, closer, err := s.Get([]byte(key))
				if err != nil || got[0] != round {
					t.Errorf("%s: %v, %v, want the write of round %d", key, got, err, round)
					continue
				}
				_ = closer.Close()
			}
			if err := errors.Join(s.Close(), e.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
