package lsm

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
)

// Ensure that Pebble never begins a new table for a commit that space took to
// fit, in batches of all sizes, and that most small ones are found to fit.
func TestMemTable_NoSurprise(t *testing.T) {
	sample.OneGoroutine(t)
	e, err := Open("db", Options{InMemory: true, MemTableBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	today := sample.Of(t, 5)
	random := rand.New(rand.NewPCG(1+today.Seed(), 2))
	value := make([]byte, 3<<20)
	fitted, small := 0, 0
	for n := range today.Rounds(60_000) {
		entries, size := 1+random.IntN(20), random.IntN(400)
		if random.IntN(500) == 0 {
			entries, size = 1, random.IntN(len(value))
		}
		var fits bool
		before := e.memTable.begun.Load()
		err := e.Update(context.Background(), false, func(tx storage.Tx) error {
			for i := range entries {
				tx.Set([]byte{byte(n), byte(n >> 8), byte(i), byte(random.IntN(4))}, nil, value[:size])
			}
			fits = e.memTable.fits(e.staged.size, len(e.staged.entries))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if fits && e.memTable.begun.Load() != before {
			t.Fatalf("commit %d, %d entries of %d bytes, was to fit, and a table was begun", n, entries, size)
		}
		if entries*size < smallBytes {
			small++
		}
		if fits {
			fitted++
		}
	}
	if fitted < small/2 {
		t.Errorf("%d of %d small commits were found to fit", fitted, small)
	}
}
