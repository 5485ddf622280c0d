package enginetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay/storage"
)

// Keys of the tests of counts are "x" and four digits, so that their ranges are short to write.
func countKey(i int) []byte { return fmt.Appendf(nil, "x%04d", i) }

// countByWalk walks over the keys of r in [lo, hi), and divides them into parts of up to each keys.
func countByWalk(r storage.Reader, lo, hi []byte, each int64) (parts []storage.RangeCount, err error) {
	it, err := r.Iterate(lo, hi)
	if err != nil {
		return nil, err
	}
	part := storage.RangeCount{Lo: bytes.Clone(lo)}
	for ok := it.First(); ok; ok = it.Next() {
		if part.Keys == each {
			part.Hi = bytes.Clone(it.Key())
			parts = append(parts, part)
			part = storage.RangeCount{Lo: part.Hi}
		}
		part.Keys++
	}
	part.Hi = bytes.Clone(hi)
	if err := it.Error(); err != nil {
		return nil, err
	}
	return append(parts, part), it.Close()
}

func closeSnapshot(t *testing.T, s storage.Snapshot) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// checkCounts compares all that s knows of [lo, hi) with what it shows, and returns how many
// parts that were.
func checkCounts(s storage.Snapshot, lo, hi []byte) (int, error) {
	at := lo
	known := s.(storage.CountMemory).KnownCounts(lo, hi)
	for _, k := range known {
		if bytes.Compare(k.Lo, at) < 0 || bytes.Compare(k.Hi, hi) > 0 || bytes.Compare(k.Lo, k.Hi) >= 0 {
			return 0, fmt.Errorf("a part from %q to %q, behind %q, of %q to %q", k.Lo, k.Hi, at, lo, hi)
		}
		at = k.Hi
		walked, err := countByWalk(s, k.Lo, k.Hi, 1<<60)
		if err != nil {
			return 0, err
		}
		if walked[0].Keys != k.Keys {
			return 0, fmt.Errorf("%d keys are known from %q to %q, where there are %d", k.Keys, k.Lo, k.Hi, walked[0].Keys)
		}
	}
	return len(known), nil
}

// Ensure that what a snapshot knows of counts is what it shows, whatever was committed before
// the count, during it and after it, if the engine's snapshots are storage.CountMemories.
func testCountMemory(t *testing.T, e storage.Engine) {
	lo, hi := []byte("x"), []byte("y")
	update(t, e, func(tx storage.Tx) error {
		for i := range 1000 {
			tx.Set(countKey(10*i), nil, nil)
		}
		return nil
	})
	first := e.Snapshot()
	defer closeSnapshot(t, first)
	memory, ok := first.(storage.CountMemory)
	if !ok {
		t.Skip("the engine's snapshots are no storage.CountMemories")
	}
	parts, err := countByWalk(first, lo, hi, 100)
	want(t, err, error(nil))
	memory.KeepCounts(slices.Clone(parts))
	check := func(s storage.Snapshot) {
		t.Helper()
		_, err := checkCounts(s, lo, hi)
		want(t, err, error(nil))
	}
	check(first)

	// A commit writes in one part, and deletes in another.
	set(t, e, string(countKey(1505)), "")
	update(t, e, func(tx storage.Tx) error { tx.Delete(countKey(4000)); return nil })
	second := e.Snapshot()
	defer closeSnapshot(t, second)
	check(second)
	check(first)

	// A count of a state in which a later commit has written.
	memory.KeepCounts(parts)
	check(second)

	// A state that is older than the count.
	newer, err := countByWalk(second, lo, hi, 100)
	want(t, err, error(nil))
	second.(storage.CountMemory).KeepCounts(newer)
	check(second)
	check(first)
	third := e.Latest()
	defer closeSnapshot(t, third)
	check(third)
}

// Ensure the same of snapshots that are taken, counted and kept open beside writers.
func testCountMemoryBeside(t *testing.T, e storage.Engine) {
	s := e.Snapshot()
	_, ok := s.(storage.CountMemory)
	closeSnapshot(t, s)
	if !ok {
		t.Skip("the engine's snapshots are no storage.CountMemories")
	}
	const keys = 2000
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	var writers, readers sync.WaitGroup
	var stop atomic.Bool
	var known atomic.Int64
	for w := range 2 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for !stop.Load() {
				size := 1
				if random.IntN(200) == 0 {
					size = random.IntN(2 * keys)
				}
				err := e.Update(ctx, w == 0, func(tx storage.Tx) error {
					for range size {
						if key := countKey(random.IntN(keys)); random.IntN(2) == 0 {
							tx.Set(key, nil, nil)
						} else {
							tx.Delete(key)
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for r := range 3 {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(r), 2))
			var open []storage.Snapshot
			// Which commits come between a count and the next question is up to chance: go on
			// until something was known.
			for round := 0; round < rounds || known.Load() == 0 && round < 20*rounds; round++ {
				s := e.Snapshot()
				if random.IntN(2) == 0 {
					closeSnapshot(t, s)
					s = e.Latest()
				}
				open = append(open, s)
				s = open[random.IntN(len(open))]
				from := random.IntN(keys)
				lo, hi := countKey(from), countKey(from+1+random.IntN(keys-from))
				n, err := checkCounts(s, lo, hi)
				if err != nil {
					t.Error(err)
					break
				}
				known.Add(int64(n))
				parts, err := countByWalk(s, lo, hi, int64(1+random.IntN(200)))
				if err != nil {
					t.Error(err)
					break
				}
				s.(storage.CountMemory).KeepCounts(parts)
				if len(open) > 5 {
					closeSnapshot(t, open[0])
					open = open[1:]
				}
			}
			for _, s := range open {
				closeSnapshot(t, s)
			}
		})
	}
	readers.Wait()
	stop.Store(true)
	writers.Wait()
	if known.Load() == 0 {
		t.Error("nothing was ever known")
	}
}
