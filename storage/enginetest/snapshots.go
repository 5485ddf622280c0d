package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay/storage"
)

// contents returns all keys of r with their values.
func contents(r storage.Reader) (string, error) {
	it, err := r.Iterate(nil, nil)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		fmt.Fprintf(&b, "%q %q\n", it.Key(), it.Value())
	}
	if err := it.Error(); err != nil {
		return "", err
	}
	return b.String(), it.Close()
}

// Ensure that a commit gives the snapshots after it another number, and that snapshots of one number, taken beside writers, show the
// same, if the engine's snapshots are storage.Numbered.
func testNumbered(t *testing.T, e storage.Engine) {
	take := func(s storage.Snapshot) (number uint64, known bool, shown string, err error) {
		number, known = s.(storage.Numbered).CommitNumber()
		if shown, err = contents(s); err == nil {
			err = s.Close()
		}
		return number, known, shown, err
	}
	s := e.Snapshot()
	_, ok := s.(storage.Numbered)
	closeSnapshot(t, s)
	if !ok {
		t.Skip("the engine's snapshots are not storage.Numbered")
	}
	var last uint64
	for i := range 5 {
		set(t, e, "x0000", fmt.Sprint(i))
		number, known, _, err := take(e.Snapshot())
		want(t, err, error(nil))
		again, _, _, err := take(e.Latest())
		want(t, err, error(nil))
		if !known || number <= last || again != number {
			t.Fatalf("after commit %d the number is %d (%v) and %d, and was %d before", i, number, known, again, last)
		}
		last = number
	}

	var mu sync.Mutex
	shown := make(map[uint64]string)
	var readers, writers sync.WaitGroup
	var stop atomic.Bool
	for w := range 2 {
		writers.Go(func() {
			for i := 0; !stop.Load(); i++ {
				err := e.Update(ctx, i%8 == 0, func(tx storage.Tx) error {
					tx.Set(countKey(i%50), fmt.Append(nil, w, i), nil)
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var compared atomic.Int64
	for r := range 4 {
		readers.Go(func() {
			for round := 0; round < 200 || compared.Load() == 0 && round < 20_000; round++ {
				s := e.Snapshot()
				if r%2 == 0 {
					closeSnapshot(t, s)
					s = e.Latest()
				}
				number, known, now, err := take(s)
				if err != nil {
					t.Error(err)
					return
				}
				if !known {
					continue
				}
				mu.Lock()
				before, met := shown[number]
				shown[number] = now
				mu.Unlock()
				if met {
					compared.Add(1)
				}
				if met && before != now {
					t.Errorf("two snapshots of number %d show\n%s\nand\n%s", number, before, now)
					return
				}
			}
		})
	}
	readers.Wait()
	stop.Store(true)
	writers.Wait()
	if compared.Load() == 0 {
		t.Errorf("no two snapshots had one number of %v", slices.Sorted(maps.Keys(shown)))
	}
}
