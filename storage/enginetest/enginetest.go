// Package enginetest holds what an engine of package storage must pass. It imports
// no engine and no file system: any engine can run it, within its own module.
package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
)

// Run checks the contract of storage.Engine. open returns an empty engine; Run
// closes it.
func Run(t *testing.T, open func(t *testing.T) storage.Engine) {
	tests := []struct {
		name string
		run  func(*testing.T, storage.Engine)
	}{
		{"reads see commits in order", testReads},
		{"an error stages nothing", testError},
		{"a transaction reads its own writes", testOwnWrites},
		{"a large transaction reads its own writes", testManyOwnWrites},
		{"a transaction walks over what was committed", testTxIterate},
		{"a range that a transaction walked over does not change", testPhantoms},
		{"a snapshot stays as it is", testSnapshot},
		{"keys are skipped, and single ones found", testSkipAndFind},
		{"who waits for the disk is counted", testPaced},
		{"sequence numbers follow the order of commits", testSequence},
		{"a failed transaction draws no number", testSequenceOfFailure},
		{"read and write under many goroutines loses nothing", testIncrements},
		{"an Update waits for the transactions before it", testBarrier},
		{"what is absent, and what is not, agrees with a map", testAbsent},
		{"a key that is absent is inserted once", testInsertOnce},
		{"a write tracker notices every key that was written", testWriteTracker},
		{"keys that are expected are read as they are", testExpected},
		{"additions to a number all count", testAdd},
		{"concurrent additions to a number all count", testAddTogether},
		{"a key has several numbers", testAddSeveral},
		{"keys beside numbers have other values", testAddBeside},
		{"a cancelled context runs nothing", testCancelled},
		{"what is above the limits is refused", testLimits},
		{"many keys are got as single ones are", testGetMany},
		{"values belong to the engine until closed", testValueStays},
		{"who waits for the next commit misses none", testNextCommit},
		{"what is known of counts is what a snapshot shows", testCountMemory},
		{"counts are known beside writers", testCountMemoryBeside},
		{"snapshots of one number show the same", testNumbered},
		{"tables are taken in by one commit", testIngest},
		{"tables are taken in beside transactions", testIngestBeside},
		{"a table deletes keys", testIngestDeletes},
		{"who watches commits can copy the store", testWatchCommits},
		{"a temporary file holds what was written", testTemporary},
		{"the format rises with what is used", testFeatures},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := open(t)
			defer func() {
				if err := e.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			test.run(t, e)
		})
	}
}

var ctx = context.Background()

func update(t *testing.T, e storage.Engine, fn func(storage.Tx) error) {
	t.Helper()
	if err := e.Update(ctx, true, fn); err != nil {
		t.Fatalf("update: %v", err)
	}
}

// retried calls Update until it meets no conflict.
func retried(e storage.Engine, sync bool, fn func(storage.Tx) error) error {
	for {
		if err := e.Update(ctx, sync, fn); !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
}

func set(t *testing.T, e storage.Engine, pairs ...string) {
	t.Helper()
	update(t, e, func(tx storage.Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			tx.Set([]byte(pairs[i]), []byte(pairs[i+1]), nil)
		}
		return nil
	})
}

// read returns the value at key, or "absent".
func read(t *testing.T, r interface {
	storage.Reader
}, key string) string {
	t.Helper()
	value, closer, err := r.Get([]byte(key))
	if errors.Is(err, storage.ErrNotFound) {
		return "absent"
	}
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	defer closer.Close()
	return string(value)
}

func keys(t *testing.T, r interface {
	Iterate(lo, hi []byte) (storage.Iterator, error)
}, lo, hi string) string {
	t.Helper()
	it, err := r.Iterate([]byte(lo), []byte(hi))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var out []byte
	for ok := it.First(); ok; ok = it.Next() {
		out = append(append(out, it.Key()...), ' ')
	}
	if err := it.Error(); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(out))
}

func want(t *testing.T, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Ensure that Get and Iterate see exactly what was committed.
func testReads(t *testing.T, e storage.Engine) {
	want(t, read(t, e, "a"), "absent")
	set(t, e, "b", "2", "a", "1", "c", "3")
	want(t, read(t, e, "a"), "1")
	want(t, keys(t, e, "a", "c"), "a b")
	update(t, e, func(tx storage.Tx) error {
		tx.Delete([]byte("b"))
		tx.Set([]byte("c"), []byte("3"), []byte("+"))
		return nil
	})
	want(t, read(t, e, "b"), "absent")
	want(t, read(t, e, "c"), "3+")
	want(t, keys(t, e, "", "z"), "a c")
}

// Ensure that a function that fails leaves nothing behind.
func testError(t *testing.T, e storage.Engine) {
	cause := errors.New("refused")
	err := e.Update(ctx, true, func(tx storage.Tx) error {
		tx.Set([]byte("a"), []byte("1"), nil)
		return cause
	})
	want(t, err, cause)
	want(t, read(t, e, "a"), "absent")
}

// Ensure that a transaction sees what it staged, deletions included.
func testOwnWrites(t *testing.T, e storage.Engine) {
	set(t, e, "a", "1", "b", "1")
	update(t, e, func(tx storage.Tx) error {
		tx.Set([]byte("a"), []byte("2"), nil)
		tx.Delete([]byte("b"))
		want(t, txRead(t, tx, "a"), "2")
		want(t, txRead(t, tx, "b"), "absent")
		tx.Set([]byte("b"), []byte("3"), nil)
		want(t, txRead(t, tx, "b"), "3")
		want(t, read(t, e, "a"), "1")
		return nil
	})
	want(t, read(t, e, "a")+read(t, e, "b"), "23")
}

func txRead(t *testing.T, tx storage.Tx, key string) string {
	t.Helper()
	value, closer, err := tx.Get([]byte(key))
	if errors.Is(err, storage.ErrNotFound) {
		return "absent"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	return string(value)
}

// Ensure that the way staged keys are found changes nothing when there are
// many of them, and many versions of one.
func testManyOwnWrites(t *testing.T, e storage.Engine) {
	update(t, e, func(tx storage.Tx) error {
		for round := range 3 {
			for i := range 500 {
				tx.Set(fmt.Appendf(nil, "k%03d", i), fmt.Appendf(nil, "%d.%d", round, i), nil)
			}
		}
		tx.Delete([]byte("k007"))
		for i := range 500 {
			expected := fmt.Sprintf("2.%d", i)
			if i == 7 {
				expected = "absent"
			}
			want(t, txRead(t, tx, fmt.Sprintf("k%03d", i)), expected)
		}
		want(t, txRead(t, tx, "k500"), "absent")
		return nil
	})
	want(t, read(t, e, "k499"), "2.499")
	want(t, read(t, e, "k007"), "absent")
}

// Ensure that Tx.Iterate sees what was committed before the transaction, in the
// bounds it was given, and nothing of what the transaction has staged.
func testTxIterate(t *testing.T, e storage.Engine) {
	set(t, e, "a", "1", "b", "2", "c", "3", "d", "4")
	update(t, e, func(tx storage.Tx) error {
		want(t, keys(t, tx, "b", "d"), "b c")
		tx.Set([]byte("bb"), []byte("5"), nil)
		tx.Set([]byte("b"), []byte("6"), nil)
		tx.Delete([]byte("c"))
		want(t, keys(t, tx, "b", "d"), "b c")
		want(t, keys(t, tx, "x", "y"), "")

		it, err := tx.Iterate([]byte("b"), nil)
		if err != nil {
			return err
		}
		want(t, it.Last(), true)
		want(t, string(it.Key())+string(it.Value()), "d4")
		want(t, it.SeekGE([]byte("a")), true)
		want(t, string(it.Key())+string(it.Value()), "b2")
		want(t, it.Prev(), false)
		return it.Close()
	})
	update(t, e, func(tx storage.Tx) error {
		want(t, keys(t, tx, "", "z"), "a b bb d")
		return nil
	})
	cause := errors.New("refused")
	err := e.Update(ctx, true, func(tx storage.Tx) error {
		it, err := tx.Iterate([]byte("a"), []byte("z"))
		if err != nil {
			return err
		}
		it.First()
		return errors.Join(it.Close(), cause)
	})
	want(t, errors.Is(err, cause), true)
}

// Ensure that no other transaction writes into a range between a transaction's walk over it
// and its commit: each adds a key behind the last that it found.
func testPhantoms(t *testing.T, e storage.Engine) {
	const goroutines, rounds = 8, 25
	add := func(tx storage.Tx) error {
		it, err := tx.Iterate([]byte("n"), []byte("o"))
		if err != nil {
			return err
		}
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			n++
		}
		if err := errors.Join(it.Error(), it.Close()); err != nil {
			return err
		}
		tx.Set(fmt.Appendf(nil, "n%04d", n), nil, nil)
		return nil
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range rounds {
				if err := retried(e, false, add); err != nil {
					t.Errorf("add: %v", err)
				}
			}
		})
	}
	wg.Wait()
	want(t, read(t, e, fmt.Sprintf("n%04d", goroutines*rounds-1)), "")
	want(t, read(t, e, fmt.Sprintf("n%04d", goroutines*rounds)), "absent")
}

// Ensure that a snapshot does not see later commits.
func testSnapshot(t *testing.T, e storage.Engine) {
	set(t, e, "a", "1")
	s := e.Snapshot()
	set(t, e, "a", "2", "b", "2")
	want(t, read(t, s, "a"), "1")
	want(t, keys(t, s, "", "z"), "a")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure that an iterator skips as many keys as Next would pass, if it is a storage.Skipper,
// that storage.SeekExact finds what is there and nothing else, and that seeks go on from there.
func testSkipAndFind(t *testing.T, e storage.Engine) {
	set(t, e, "a", "1", "b", "2", "bb", "3", "d", "4", "e", "5")
	update(t, e, func(tx storage.Tx) error { tx.Delete([]byte("bb")); return nil })
	it, err := e.Iterate([]byte("a"), []byte("e"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if s, ok := it.(storage.Skipper); ok {
		want(t, it.First(), true)
		called, more := s.Skip(2)
		want(t, called, 2)
		want(t, more, true)
		want(t, string(it.Key()), "d")
		called, more = s.Skip(5)
		want(t, called, 1) // behind d is the end
		want(t, more, false)
	}
	for _, key := range []string{"d", "c", "a", "bb", "b"} {
		found := storage.SeekExact(it, []byte(key))
		want(t, found, key != "c" && key != "bb")
		if found {
			want(t, string(it.Key()), key)
		}
	}
	want(t, it.SeekGE([]byte("bb")), true)
	want(t, string(it.Key()), "d")
	want(t, it.Prev(), true)
	want(t, string(it.Key()), "b")
	want(t, storage.SeekExact(it, []byte("c")), false)
	want(t, it.SeekLT([]byte("c")), true)
	want(t, string(it.Key()), "b")
	want(t, it.Error(), error(nil))
}

// Ensure that a call of Update that waits for the disk is counted while it lasts, if the
// engine is a storage.Paced, and no other one is.
func testPaced(t *testing.T, e storage.Engine) {
	p, ok := e.(storage.Paced)
	if !ok {
		t.Skip("the engine is no storage.Paced")
	}
	for _, sync := range []bool{false, true} {
		during := int64(-1)
		err := e.Update(ctx, sync, func(tx storage.Tx) error {
			during = p.SyncsAwaited()
			tx.Set([]byte("a"), nil, nil)
			return nil
		})
		want(t, err, error(nil))
		want(t, during == 1, sync)
		want(t, p.SyncsAwaited(), int64(0))
	}
}

// Ensure that numbers rise by one in commit order, and start where StartSequence says.
func testSequence(t *testing.T, e storage.Engine) {
	draw := func() (n uint64) {
		update(t, e, func(tx storage.Tx) (err error) {
			tx.Set([]byte("a"), nil, nil)
			n, err = tx.Sequence()
			return err
		})
		return n
	}
	want(t, draw(), uint64(1))
	want(t, draw(), uint64(2))
	e.StartSequence(100)
	want(t, draw(), uint64(101))
	e.StartSequence(5)
	want(t, draw(), uint64(102))
	e.StartSequence(1<<63 - 1)
	err := e.Update(ctx, true, func(tx storage.Tx) error { _, err := tx.Sequence(); return err })
	want(t, errors.Is(err, storage.ErrSequenceExhausted), true)
}

// Ensure that the number of a transaction that failed is drawn again.
func testSequenceOfFailure(t *testing.T, e storage.Engine) {
	for range 3 {
		_ = e.Update(ctx, true, func(tx storage.Tx) error {
			n, err := tx.Sequence()
			want(t, n, uint64(1))
			want(t, err, nil)
			return errors.New("refused")
		})
	}
}

// Ensure that what a transaction read is still so when it commits.
func testIncrements(t *testing.T, e storage.Engine) { increments(t, 8, 50, e) }

// increments has goroutines, in turn on each of the engines of one store, increment one number.
func increments(t *testing.T, goroutines, rounds int, engines ...storage.Engine) {
	step := func(tx storage.Tx) error {
		n := 0
		if text := txRead(t, tx, "n"); text != "absent" {
			if _, err := fmt.Sscan(text, &n); err != nil {
				return err
			}
		}
		tx.Set([]byte("n"), fmt.Append(nil, n+1), nil)
		return nil
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range rounds {
				if err := retried(engines[g%len(engines)], true, step); err != nil {
					t.Errorf("increment: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for _, e := range engines {
		want(t, read(t, e, "n"), fmt.Sprint(goroutines*rounds))
	}
}

// absentKeys are ways to make the nth key of one kind: some rise, some share long
// beginnings, and some are the beginnings of others.
var absentKeys = []func(n int) []byte{
	func(n int) []byte { return fmt.Appendf(nil, "dorders/%d-a\x00", n) },
	func(n int) []byte { return fmt.Appendf(nil, "dorders/%d-a\x00", n%50*100+n) },
	func(n int) []byte { return fmt.Appendf(nil, "d%016x", uint64(n+1)*0x9e3779b97f4a7c15) },
	func(n int) []byte { return append([]byte("dlines/"), bytes.Repeat([]byte{'a' + byte(n%3)}, n%700)...) },
	func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 1+n/256%3) },
	func(n int) []byte { return []byte{'c' + byte(n%3), byte(n / 3)}[:1+n/7%2] },
}

// errRefused is the error of functions that fail on purpose.
var errRefused = errors.New("refused")

// Ensure that Get finds in a transaction what was committed before, and staged
// in it, and nothing else: in whatever order keys come, go and come again, and
// though some transactions fail.
func testAbsent(t *testing.T, e storage.Engine) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	there := make(map[string]string) // "absent" is a deletion
	front := 0                       // near which most numbers are
	for round := range 4000 {
		changes := make(map[string]string) // of this transaction
		fails := random.IntN(8) == 0
		err := e.Update(ctx, false, func(tx storage.Tx) error {
			clear(changes)
			for range 1 + random.IntN(3)*random.IntN(10) {
				front += random.IntN(3)
				n := max(0, front-random.IntN(20))
				if random.IntN(10) == 0 {
					n = random.IntN(front + 10)
				}
				key := absentKeys[0](n)
				if random.IntN(2) == 0 {
					key = absentKeys[random.IntN(len(absentKeys))](n)
				}

				expected := "absent"
				if value, changed := changes[string(key)]; changed {
					expected = value
				} else if value, found := there[string(key)]; found {
					expected = value
				}
				if got := txRead(t, tx, string(key)); got != expected {
					return fmt.Errorf("round %d: %.40q is %q, want %q", round, key, got, expected)
				}
				switch random.IntN(5) {
				case 0:
					tx.Delete(key)
					changes[string(key)] = "absent"
				case 1: // only read
				default:
					value := fmt.Sprint(round)
					tx.Set(key, []byte(value), nil)
					changes[string(key)] = value
				}
			}
			if fails {
				return errRefused
			}
			return nil
		})
		if fails && err == errRefused {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(there, changes)
	}
	update(t, e, func(tx storage.Tx) error {
		for key, value := range there {
			want(t, txRead(t, tx, key), value)
		}
		return nil
	})
}

// Ensure that of many goroutines that insert and delete the same keys, each
// insert finds its key absent, and each delete finds it there.
func testInsertOnce(t *testing.T, e storage.Engine) {
	const goroutines, rounds, keys = 8, 400, 300
	var present [keys]atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		random := rand.New(rand.NewPCG(1, uint64(g)))
		wg.Go(func() {
			for i := range rounds {
				n := (i/2 + random.IntN(20)) % keys
				var change int64
				step := func(tx storage.Tx) error {
					change = 1
					key := absentKeys[0](n)
					switch found := txRead(t, tx, string(key)) != "absent"; {
					case !found:
						tx.Set(key, nil, nil)
					case i%4 == 0:
						tx.Delete(key)
						change = -1
					default:
						change = 0
					}
					if i%16 == 5 {
						return errRefused
					}
					return nil
				}
				if err := retried(e, false, step); err == nil {
					present[n].Add(change)
				} else if err != errRefused {
					t.Errorf("update: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for n := range keys {
		got := int64(0)
		if read(t, e, string(absentKeys[0](n))) != "absent" {
			got = 1
		}
		if inserts := present[n].Load(); got != inserts {
			t.Errorf("%q: inserted %d times more than deleted, and there %d times", absentKeys[0](n), inserts, got)
		}
	}
}

// Ensure that an Update that stages nothing returns only when a transaction that
// had begun before it has committed.
func testBarrier(t *testing.T, e storage.Engine) {
	for round := range 50 {
		key := fmt.Append(nil, round)
		begun, release := make(chan struct{}), make(chan struct{})
		var once sync.Once // the function may run more than once
		var all sync.WaitGroup
		all.Go(func() {
			err := e.Update(ctx, round%2 == 0, func(tx storage.Tx) error {
				tx.Set(key, nil, nil)
				once.Do(func() { close(begun) })
				<-release
				return nil
			})
			want(t, err, nil)
		})
		<-begun
		all.Go(func() {
			want(t, e.Update(ctx, false, func(storage.Tx) error { return nil }), nil)
			latest := e.Latest()
			defer latest.Close()
			want(t, read(t, latest, string(key)), "")
		})
		for range 100 * (round % 3) {
			runtime.Gosched() // an engine without the barrier is done by now
		}
		close(release)
		all.Wait()
	}
}

// Ensure that a context that is done keeps the function from running.
func testCancelled(t *testing.T, e storage.Engine) {
	done, cancel := context.WithCancel(ctx)
	cancel()
	err := e.Update(done, true, func(storage.Tx) error { t.Error("the function ran"); return nil })
	want(t, errors.Is(err, context.Canceled), true)
}

// Ensure that a value stays readable until its closer is closed.
func testValueStays(t *testing.T, e storage.Engine) {
	set(t, e, "a", "before")
	value, closer, err := e.Get([]byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	set(t, e, "a", "after!")
	want(t, string(value), "before")
	want(t, closer.Close(), nil)
}

// testWriteTracker checks that Unchanged is false for every key that was written after
// the tracker began, by others or in the transaction, and true for most that were not:
// else to read ahead is for nothing.
func testWriteTracker(t *testing.T, e storage.Engine) {
	put := func(key string) {
		t.Helper()
		update(t, e, func(tx storage.Tx) error { tx.Set([]byte(key), []byte("x"), nil); return nil })
	}
	const keys = 100
	key := func(i int) []byte { return fmt.Appendf(nil, "k%d", i) }
	for i := range keys {
		put(string(key(i)))
	}

	w := e.TrackWrites()
	defer w.Close()
	put("k7")
	update(t, e, func(tx storage.Tx) error { tx.Delete([]byte("k9")); return nil })
	look, err := w.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	put("k8") // the look does not see it
	if _, err := look.Get([]byte("k8")); err != nil {
		t.Errorf("get k8: %v", err)
	}
	if _, err := look.Get([]byte("k")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("get k: %v, want %v", err, storage.ErrNotFound)
	}
	testMissing(t, look)
	if err := look.Close(); err != nil {
		t.Fatal(err)
	}
	if many, is := w.(storage.ManyGetter); is {
		testGetsOfTracker(t, many, "k1", "k7", "k9", "k8", "none", "k1", "k50")
	}

	unchanged := 0
	update(t, e, func(tx storage.Tx) error {
		unchanged = 0
		tx.Set([]byte("k10"), nil, nil)
		tx.Delete([]byte("k11"))
		for i := range keys {
			if tx.Unchanged(w, key(i)) {
				unchanged++
				if 7 <= i && i <= 11 {
					t.Errorf("%s is unchanged, but was written", key(i))
				}
			}
		}
		return nil
	})
	if unchanged < keys/2 {
		t.Errorf("%d of %d keys are unchanged, want nearly all", unchanged, keys)
	}
}

// testExpected checks that transactions beside each other find what is there at the keys that their callers
// expect them to read: short and long values, none, and what they and those before them write.
func testExpected(t *testing.T, e storage.Engine) {
	long := strings.Repeat("long", 64<<10)
	set(t, e, "a", "1", "empty", "", "long", long)
	update(t, e, func(tx storage.Tx) error { tx.Add([]byte("sum"), 5); return nil })
	var keys [][]byte
	for _, key := range []string{"absent", "long", "a", "empty", "a", "sum", "count"} {
		keys = append(keys, []byte(key))
	}
	expecting := storage.Expect(ctx, keys)
	want(t, len(storage.Expected(expecting)), len(keys))
	want(t, len(storage.Expected(ctx)), 0)
	const writers, each = 8, 5
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				for {
					err := e.Update(expecting, true, func(tx storage.Tx) error {
						for key, value := range map[string]string{"absent": "absent", "a": "1", "empty": "", "long": long} {
							if got := read(t, tx, key); got != value {
								t.Errorf("%s: got %.20q, want %.20q", key, got, value)
							}
						}
						n, _ := strconv.Atoi(read(t, tx, "count")) // absent is 0
						tx.Set([]byte("count"), []byte(strconv.Itoa(n+1)), nil)
						want(t, read(t, tx, "count"), strconv.Itoa(n+1))
						return nil
					})
					if err == nil {
						break
					}
					if !errors.Is(err, storage.ErrConflict) {
						t.Errorf("update: %v", err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	want(t, read(t, e, "count"), strconv.Itoa(writers*each))
}

// testGetsOfTracker checks that GetMany finds those of the keys that are there, each with its index, none twice,
// and ends with the error of its caller.
func testGetsOfTracker(t *testing.T, many storage.ManyGetter, keys ...string) {
	t.Helper()
	var all [][]byte
	for _, key := range keys {
		all = append(all, []byte(key))
	}
	var got []string
	if err := many.GetMany(all, func(i int, value []byte) error {
		got = append(got, fmt.Sprint(i, keys[i], string(value)))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if want := []string{"0k1x", "1k7x", "3k8x", "5k1x", "6k50x"}; !slices.Equal(got, want) {
		t.Errorf("many are got: %q, want %q", got, want)
	}
	stop, calls := errors.New("enough"), 0
	if err := many.GetMany(all, func(int, []byte) error { calls++; return stop }); err != stop || calls != 1 {
		t.Errorf("an error of the caller: %v after %d calls, want %v after one", err, calls, stop)
	}
}

// testMissing checks that keys are not missing if one of them is there, wherever it lies,
// and are if there are only others between them: else to ask is for nothing.
func testMissing(t *testing.T, look storage.BatchReader) {
	t.Helper()
	missing := func(keys ...string) bool {
		t.Helper()
		var all [][]byte
		for _, key := range keys {
			all = append(all, []byte(key))
		}
		missing, err := look.Missing(all)
		if err != nil {
			t.Fatal(err)
		}
		return missing
	}
	for _, keys := range [][]string{
		{"k20"},
		{"k20", "k20x"},
		{"k19x", "k20"},
		{"k19x", "k20", "k20x"},
		{"k19x", "k19y", "k20x", "k21", "k21x"},
		{"a", "k99", "l"},
	} {
		if missing(keys...) {
			t.Errorf("%q are missing, and one of them is there", keys)
		}
	}
	for _, keys := range [][]string{
		nil,
		{"k9"}, // deleted
		{"k"},
		{"k20x", "k20y", "k20z"},
		{"k2x", "k30x", "k31x", "k32x", "k33x"},
		{"l", "m"},
		{"A", "B"},
	} {
		if !missing(keys...) {
			t.Errorf("%q are not missing, and none of them is there", keys)
		}
	}
}

// Ensure that a reader that asks for the next commit, looks, and then waits, sees each
// number that a writer commits, or a later one.
func testNextCommit(t *testing.T, e storage.Engine) {
	const last = 200
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := 1; i <= last; i++ {
			err := e.Update(ctx, i%3 > 0 || i == last, func(tx storage.Tx) error {
				tx.Set([]byte("n"), fmt.Append(nil, i), nil)
				return nil
			})
			if err != nil {
				t.Errorf("update: %v", err)
			}
		}
	})
	defer writers.Wait()
	seen := "absent"
	for seen != fmt.Sprint(last) {
		next, err := e.NextCommit()
		if err != nil {
			t.Fatal(err)
		}
		if now := read(t, e, "n"); now != seen {
			seen = now
			continue
		}
		select {
		case <-next:
		case <-time.After(time.Minute):
			t.Fatalf("no commit was announced after %s was seen", seen)
		}
	}
}
