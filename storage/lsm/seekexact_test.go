package lsm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jaydb/jay/storage"
)

// exactKeys is how many keys the random moves know.
const exactKeys = 300

// Ensure that SeekExact finds what Get finds, at whatever level a key or its deletion lies, and that
// the iterator goes on to make every other move rightly, also when the next reader has taken it over.
func TestIterator_SeekExact(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	e := openStates(t, false)
	model := make(map[string]string)
	for round := range 40 {
		changeKeys(t, e, random, model, round)
		switch random.IntN(4) {
		case 0, 1:
			if err := e.db.Flush(); err != nil {
				t.Fatal(err)
			}
		case 2:
			if err := e.db.Compact(context.Background(), []byte("k"), []byte("l"), false); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 { // all but the first may have an iterator of the one before
			s := e.Snapshot()
			moveAround(t, s, random, model)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func exactKey(i int) string { return fmt.Sprintf("k%03d", i) }

// changeKeys sets and deletes keys in one commit.
func changeKeys(t *testing.T, e *Engine, random *rand.Rand, model map[string]string, round int) {
	t.Helper()
	err := e.Update(context.Background(), true, func(tx storage.Tx) error {
		for range 60 {
			key := exactKey(random.IntN(exactKeys))
			if random.IntN(3) == 0 {
				tx.Delete([]byte(key))
				delete(model, key)
				continue
			}
			model[key] = fmt.Sprint(round)
			tx.Set([]byte(key), []byte(model[key]), nil)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// moveAround makes random moves of one iterator and compares each with the model.
func moveAround(t *testing.T, s storage.Reader, random *rand.Rand, model map[string]string) {
	t.Helper()
	lo, hi := exactKey(random.IntN(exactKeys/2)), exactKey(exactKeys/2+random.IntN(exactKeys/2))
	if random.IntN(2) == 0 {
		lo, hi = "k", "l" // a reader takes over an iterator with these bounds
	}
	var keys []string
	for key := range model {
		if lo <= key && key < hi {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	it, err := s.Iterate([]byte(lo), []byte(hi))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := it.(storage.Finder); !ok {
		t.Fatal("the iterator is no storage.Finder")
	}
	at := -1 // in keys; no step is made unless it is valid
	for range 60 {
		target := exactKey(random.IntN(exactKeys))
		move, ok := random.IntN(9), false
		switch {
		case move == 0:
			ok, at = it.First(), 0
		case move == 1:
			ok, at = it.Last(), len(keys)-1
		case move == 2:
			ok = it.SeekGE([]byte(target))
			at, _ = slices.BinarySearch(keys, target)
		case move == 3:
			ok = it.SeekLT([]byte(target))
			at, _ = slices.BinarySearch(keys, target)
			at--
		case move == 4 && 0 <= at && at < len(keys):
			ok, at = it.Next(), at+1
		case move == 5 && 0 <= at && at < len(keys):
			ok, at = it.Prev(), at-1
		case target < lo || target >= hi:
			continue
		default:
			want, there := model[target]
			by := it
			if random.IntN(4) == 0 {
				by = struct{ storage.Iterator }{it} // no Finder
			}
			if got := storage.SeekExact(by, []byte(target)); got != there {
				t.Fatalf("SeekExact(%q) is %v, want %v", target, got, there)
			}
			if there && (string(it.Key()) != target || string(it.Value()) != want) {
				t.Fatalf("SeekExact(%q) is at %q with %q, want %q", target, it.Key(), it.Value(), want)
			}
			at = -1
			continue
		}
		if want := 0 <= at && at < len(keys); ok != want || ok && (string(it.Key()) != keys[at] || string(it.Value()) != model[keys[at]]) {
			t.Fatalf("move %d to %q, bounds %q to %q: got %v at %q, want %v", move, target, lo, hi, ok, it.Key(), want)
		}
	}
	if err := it.Error(); err != nil {
		t.Error(err)
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
}
