package sqlkv_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

// Ensure that an iterator moves as one over a sorted list does, in any order of moves, within and without bounds, over pages that end by
// their rows and by their bytes.
func TestIterator_Model(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	e := open(t, new(sqlkv.Driver), newName(t))
	defer e.Close()
	var all [][]byte
	must(t, e.Update(ctx, true, func(tx storage.Tx) error {
		all = nil
		for i := range 3000 {
			key := fmt.Appendf(nil, "k%05d", 2*i)
			size := i % 7
			if i%500 == 3 {
				size = 400 << 10 // three of them end a page
			}
			tx.Set(key, key, make([]byte, size))
			all = append(all, key)
		}
		return nil
	}))
	find := func(key []byte) int {
		return sort.Search(len(all), func(i int) bool { return bytes.Compare(all[i], key) >= 0 })
	}
	anyKey := func() []byte { return fmt.Appendf(nil, "k%05d", random.IntN(6100)-20) }

	s := e.Snapshot()
	defer s.Close()
	for range 40 {
		lo, hi := anyKey(), anyKey()
		first, last := 0, len(all)
		switch random.IntN(4) {
		case 0:
			lo, hi = nil, nil
		case 1:
			hi, first = nil, find(lo)
		default:
			if bytes.Compare(lo, hi) > 0 {
				lo, hi = hi, lo
			}
			first, last = find(lo), find(hi)
		}
		it, err := s.Iterate(lo, hi)
		must(t, err)
		at := first - 1 // where the model stands: first-1 is before all keys, last is behind them
		for range 60 {
			var moved bool
			var move string
			switch n := random.IntN(12); n {
			case 0:
				move, moved, at = "First", it.First(), first
			case 1:
				move, moved, at = "Last", it.Last(), last-1
			case 2:
				key := anyKey()
				move, moved, at = fmt.Sprintf("SeekGE %s", key), it.SeekGE(key), min(max(find(key), first), last)
			case 3:
				key := anyKey()
				move, moved, at = fmt.Sprintf("SeekLT %s", key), it.SeekLT(key), max(min(find(key), last)-1, first-1)
			case 4:
				if at < first || at >= last {
					continue
				}
				steps := 1 + random.IntN(900)
				called, more := it.(storage.Skipper).Skip(steps)
				move, moved = fmt.Sprintf("Skip %d", steps), more
				if want := min(steps, last-at); called != want {
					t.Fatalf("Skip %d from %d of %d to %d: called %d times, want %d", steps, at, first, last, called, want)
				}
				at = min(at+steps, last)
			case 5:
				if first == last {
					continue
				}
				key := all[first+random.IntN(last-first)]
				if random.IntN(2) == 0 {
					key = append(bytes.Clone(key), 'x') // which is not there
				}
				if hi != nil && bytes.Compare(key, hi) >= 0 {
					continue
				}
				found := storage.SeekExact(it, key)
				if there := len(key) == 6; found != there || found && !bytes.Equal(it.Key(), key) {
					t.Fatalf("SeekExact %s: %v", key, found)
				}
				if !found {
					it.First() // no move but a seek may follow
					at = first
					move, moved = "First", it.Valid()
					break
				}
				move, moved, at = "SeekExact", true, find(key)
			case 6, 7, 8, 9:
				move, moved, at = "Next", it.Next(), min(at+1, last)
			default:
				move, moved, at = "Prev", it.Prev(), max(at-1, first-1)
			}
			there := at >= first && at < last
			if moved != there || it.Valid() != there || it.Error() != nil {
				t.Fatalf("[%s, %s) %s: moved %v, valid %v, %v, want %v", lo, hi, move, moved, it.Valid(), it.Error(), there)
			}
			if there && (!bytes.Equal(it.Key(), all[at]) || !bytes.HasPrefix(it.Value(), all[at])) {
				t.Fatalf("[%s, %s) %s: at %s, want %s", lo, hi, move, it.Key(), all[at])
			}
			if first == last && at < first { // before and behind are one place
				at = first - 1
			}
		}
		must(t, it.Close())
	}
}
