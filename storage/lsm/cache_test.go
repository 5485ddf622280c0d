package lsm_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Ensure that the cache keeps its size while there are tables in memory, which
// Pebble counts against it: with tables as large as the cache, it had no room
// for a single block.
func TestEngine_CacheBesideMemTables(t *testing.T) {
	sample.OneGoroutine(t)
	const mib = 1 << 20
	e, err := lsm.Open("db", lsm.Options{InMemory: true, CacheBytes: 8 * mib, MemTableBytes: 8 * mib})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()

	random := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 1000)
	const keys = 40_000
	for i := 0; i < keys; {
		err := e.Update(ctx, false, func(tx storage.Tx) error {
			for range 1000 {
				for j := range value {
					value[j] = byte(random.Uint32())
				}
				tx.Set(fmt.Appendf(nil, "k%06d", i), value, nil)
				i++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	e.Stats() // looks at the tables in memory
	for i := range keys {
		_, closer, err := e.Get(fmt.Appendf(nil, "k%06d", i))
		if err := errors.Join(err, closer.Close()); err != nil {
			t.Fatal(err)
		}
	}
	// Blocks that are unpacked in flushes and compactions stay out of it.
	if got := e.Stats().CacheBytes; got < 6*mib || got > 9*mib {
		t.Errorf("the cache holds %d bytes, want about %d", got, 8*mib)
	}
}

// Ensure that a cache without bound is one: with the reservation for memtables
// its size was below 0, and it held nothing.
func TestEngine_CacheWithoutBound(t *testing.T) {
	sample.OneGoroutine(t)
	e, err := lsm.Open("db", lsm.Options{InMemory: true, CacheBytes: math.MaxInt64, MemTableBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	value := make([]byte, 32<<10)
	const keys = 100
	for i := range keys {
		if err := set(e, fmt.Sprint("k", i), string(value)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range keys {
		_, closer, err := e.Get(fmt.Append(nil, "k", i))
		if err := errors.Join(err, closer.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if got := e.Stats().CacheBytes; got == 0 {
		t.Error("the cache is empty")
	}
}
