package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
)

// RunShared checks what the contract of storage.Engine says of engines that have one store
// open, such as those of two processes. open returns two on an empty store; RunShared closes them. Each of
// them must pass Run, too.
func RunShared(t *testing.T, open func(t *testing.T) (a, b storage.Engine)) {
	tests := []struct {
		name string
		run  func(t *testing.T, a, b storage.Engine)
	}{
		{"each says that it is shared", testSaysShared},
		{"each sees what the other has committed", testSeesOther},
		{"a key that was read is unchanged at the commit", testReadConflict},
		{"a key that was absent is absent at the commit", testAbsentConflict},
		{"a range that was walked is unchanged at the commit", testRangeConflict},
		{"two that read what the other writes do not both commit", testWriteSkew},
		{"a snapshot does not see what the other commits", testSnapshotOfOther},
		{"increments by both lose nothing", testIncrementsOfBoth},
		{"additions by both all count, and do not conflict", testAddOfBoth},
		{"of two inserts of a key one finds it", testInsertOnceOfBoth},
		{"a write tracker notices what the other writes", testTrackOther},
		{"the next commit may be the other's", testNextCommitOfOther},
		{"each has a sequence of its own", testSequenceOfEach},
		{"the creation is finished for both", testCreationOfBoth},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, b := open(t)
			defer func() {
				if err := errors.Join(a.Close(), b.Close()); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			test.run(t, a, b)
		})
	}
}

func testSaysShared(t *testing.T, a, b storage.Engine) {
	want(t, a.Shared(), true)
	want(t, b.Shared(), true)
}

func testSeesOther(t *testing.T, a, b storage.Engine) {
	for i, e := range []storage.Engine{a, b, a} {
		other := []storage.Engine{b, a, b}[i]
		value := fmt.Sprint(i)
		set(t, e, "k", value)
		want(t, read(t, other, "k"), value)
		latest := other.Latest()
		want(t, read(t, latest, "k"), value)
		want(t, latest.Close(), error(nil))
		update(t, other, func(tx storage.Tx) error {
			want(t, txRead(t, tx, "k"), value)
			return nil
		})
	}
	update(t, a, func(tx storage.Tx) error { tx.Delete([]byte("k")); return nil })
	want(t, read(t, b, "k"), "absent")
	want(t, keys(t, b, "", "z"), "")
}

// between runs change once, between what fn reads and its commit, and fn until it has committed.
// It returns how often fn has run.
func between(t *testing.T, e storage.Engine, fn func(storage.Tx) error, change func()) (runs int) {
	t.Helper()
	err := retried(e, true, func(tx storage.Tx) error {
		runs++
		err := fn(tx)
		if runs == 1 {
			change()
		}
		return err
	})
	want(t, err, error(nil))
	return runs
}

func testReadConflict(t *testing.T, a, b storage.Engine) {
	set(t, a, "n", "1")
	runs := between(t, a, func(tx storage.Tx) error {
		tx.Set([]byte("copy"), []byte(txRead(t, tx, "n")), nil)
		return nil
	}, func() { set(t, b, "n", "2") })
	want(t, read(t, b, "copy"), "2")
	want(t, runs > 1, true)

	// A key that was not read does not matter.
	runs = between(t, a, func(tx storage.Tx) error {
		tx.Set([]byte("copy"), []byte(txRead(t, tx, "n")), nil)
		return nil
	}, func() { set(t, b, "other", "3") })
	want(t, read(t, b, "copy"), "2")
	t.Logf("beside a write of another key it ran %d times", runs)
}

func testAbsentConflict(t *testing.T, a, b storage.Engine) {
	found := ""
	between(t, a, func(tx storage.Tx) error {
		if found = txRead(t, tx, "k"); found == "absent" {
			tx.Set([]byte("k"), []byte("a"), nil)
		}
		return nil
	}, func() { set(t, b, "k", "b") })
	want(t, found, "b")
	want(t, read(t, a, "k"), "b")

	// A removal is a change.
	between(t, a, func(tx storage.Tx) error {
		found = txRead(t, tx, "k")
		tx.Set([]byte("seen"), []byte(found), nil)
		return nil
	}, func() {
		update(t, b, func(tx storage.Tx) error { tx.Delete([]byte("k")); return nil })
	})
	want(t, read(t, b, "seen"), "absent")
}

func testRangeConflict(t *testing.T, a, b storage.Engine) {
	set(t, a, "n1", "", "n3", "")
	list := func(tx storage.Tx) error {
		tx.Set([]byte("list"), []byte(keys(t, tx, "n", "o")), nil)
		return nil
	}
	between(t, a, list, func() { set(t, b, "n2", "") })
	want(t, read(t, b, "list"), "n1 n2 n3")
	between(t, a, list, func() {
		update(t, b, func(tx storage.Tx) error { tx.Delete([]byte("n1")); return nil })
	})
	want(t, read(t, b, "list"), "n2 n3")
}

// Ensure that of two transactions that each read what the other writes, the one that commits
// second sees the first: snapshot isolation would let both.
func testWriteSkew(t *testing.T, a, b storage.Engine) {
	set(t, a, "x", "on", "y", "on")
	off := func(tx storage.Tx, mine, others string) {
		if txRead(t, tx, others) == "on" {
			tx.Set([]byte(mine), []byte("off"), nil)
		} else {
			tx.Set([]byte(mine), []byte("on"), nil)
		}
	}
	between(t, a, func(tx storage.Tx) error { off(tx, "x", "y"); return nil }, func() {
		update(t, b, func(tx storage.Tx) error { off(tx, "y", "x"); return nil })
	})
	want(t, read(t, a, "x")+read(t, b, "y"), "onoff")
}

func testSnapshotOfOther(t *testing.T, a, b storage.Engine) {
	set(t, a, "k", "1", "gone", "1")
	s := a.Snapshot()
	set(t, b, "k", "2", "new", "2")
	update(t, b, func(tx storage.Tx) error { tx.Delete([]byte("gone")); return nil })
	want(t, b.Compact(ctx, nil, nil), error(nil))
	want(t, read(t, s, "k")+read(t, s, "gone")+read(t, s, "new"), "11absent")
	want(t, keys(t, s, "", "z"), "gone k")
	want(t, s.Close(), error(nil))
	want(t, keys(t, a, "", "z"), "k new")
}

func testIncrementsOfBoth(t *testing.T, a, b storage.Engine) { increments(t, 4, 25, a, b) }

func testAddOfBoth(t *testing.T, a, b storage.Engine) {
	key := []byte("sum")
	add := func(e storage.Engine, deltas ...int64) {
		update(t, e, func(tx storage.Tx) error { tx.Add(key, deltas...); return nil })
	}
	runs := between(t, a, func(tx storage.Tx) error { tx.Add(key, 1, 10); return nil }, func() { add(b, 2, 20, 200) })
	want(t, runs, 1)
	number := func(n int64) string { return string([]byte{0, 0, 0, 0, 0, 0, byte(n >> 8), byte(n)}) }
	for _, e := range []storage.Engine{a, b} {
		want(t, read(t, e, "sum"), number(3)+number(30)+number(200))
	}
	// One that reads the sum conflicts.
	between(t, a, func(tx storage.Tx) error {
		tx.Set([]byte("copy"), []byte(txRead(t, tx, "sum")), nil)
		return nil
	}, func() { add(b, 1) })
	want(t, read(t, b, "copy"), number(4)+number(30)+number(200))
	add(a, -4, -30, -200)
	want(t, read(t, b, "sum"), "absent")
}

func testInsertOnceOfBoth(t *testing.T, a, b storage.Engine) {
	const keys = 100
	var mu sync.Mutex
	inserted := make(map[string]int)
	var wg sync.WaitGroup
	for _, e := range []storage.Engine{a, b} {
		wg.Go(func() {
			for i := range keys {
				key := fmt.Sprintf("k%03d", i)
				absent := false
				insert := func(tx storage.Tx) error {
					if absent = txRead(t, tx, key) == "absent"; absent {
						tx.Set([]byte(key), nil, nil)
					}
					return nil
				}
				if err := retried(e, false, insert); err != nil {
					t.Errorf("insert: %v", err)
				}
				if absent {
					mu.Lock()
					inserted[key]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i := range keys {
		key := fmt.Sprintf("k%03d", i)
		if inserted[key] != 1 {
			t.Errorf("%s was inserted %d times", key, inserted[key])
		}
	}
}

func testTrackOther(t *testing.T, a, b storage.Engine) {
	set(t, a, "k1", "1", "k2", "1")
	w := a.TrackWrites()
	defer w.Close()
	set(t, b, "k1", "2")
	update(t, a, func(tx storage.Tx) error {
		want(t, tx.Unchanged(w, []byte("k1")), false)
		return nil
	})
	// True counts as a read.
	unchanged := false
	runs := between(t, a, func(tx storage.Tx) error {
		unchanged = tx.Unchanged(w, []byte("k2"))
		tx.Set([]byte("unchanged"), fmt.Append(nil, unchanged), nil)
		return nil
	}, func() { set(t, b, "k2", "2") })
	want(t, unchanged, false)
	t.Logf("it ran %d times", runs)
}

func testNextCommitOfOther(t *testing.T, a, b storage.Engine) {
	for i := range 20 {
		next, err := a.NextCommit()
		if err != nil {
			t.Fatal(err)
		}
		set(t, b, "n", fmt.Sprint(i))
		select {
		case <-next:
		case <-time.After(time.Minute):
			t.Fatalf("commit %d of the other engine was not announced", i)
		}
		want(t, read(t, a, "n"), fmt.Sprint(i))
	}
}

func testSequenceOfEach(t *testing.T, a, b storage.Engine) {
	draw := func(e storage.Engine) (n uint64) {
		update(t, e, func(tx storage.Tx) (err error) {
			n, err = tx.Sequence()
			tx.Set([]byte("n"), fmt.Append(nil, n), nil)
			return err
		})
		return n
	}
	a.StartSequence(100)
	b.StartSequence(7)
	want(t, draw(a), uint64(101))
	want(t, draw(b), uint64(8))
	want(t, draw(a), uint64(102))
	// The number of a run that did not commit is drawn again.
	var numbers []uint64
	between(t, a, func(tx storage.Tx) error {
		n, err := tx.Sequence()
		numbers = append(numbers, n)
		tx.Set([]byte("copy"), []byte(txRead(t, tx, "k")), nil)
		return err
	}, func() { set(t, b, "k", "1") })
	want(t, numbers[len(numbers)-1], uint64(103))
	want(t, draw(b), uint64(9))
}

func testCreationOfBoth(t *testing.T, a, b storage.Engine) {
	want(t, a.Creating() && b.Creating(), true)
	want(t, a.FinishCreation(), error(nil))
	want(t, b.Creating(), false)
}

// Ensure that an engine refuses what is above its Limits, and takes what is at them.
func testLimits(t *testing.T, e storage.Engine) {
	limits := e.Limits()
	refuses := func(what string, key, value int) {
		t.Helper()
		err := e.Update(ctx, true, func(tx storage.Tx) error {
			tx.Set([]byte("beside"), nil, nil)
			tx.Set(bytes.Repeat([]byte("k"), key), nil, bytes.Repeat([]byte("v"), value))
			return nil
		})
		var limit *storage.LimitError
		if !errors.As(err, &limit) || !errors.Is(err, storage.ErrTooLarge) || limit.What != what || limit.Bytes <= limit.Most {
			t.Errorf("a key of %d bytes with a value of %d: %v, want a LimitError of a %s", key, value, err, what)
		}
		want(t, read(t, e, "beside"), "absent")
	}
	takes := func(key, value int) {
		t.Helper()
		name := bytes.Repeat([]byte("k"), key)
		update(t, e, func(tx storage.Tx) error {
			tx.Set(name, nil, bytes.Repeat([]byte("v"), value))
			return nil
		})
		want(t, len(read(t, e, string(name))), value)
	}
	if n := limits.KeyBytes; n > 0 {
		takes(n, 1)
		refuses("key", n+1, 1)
	}
	if n := limits.ValueBytes; n > 0 {
		takes(1, n)
		refuses("value", 1, n+1)
	}
	if n := limits.TxBytes; n > 0 && n <= 64<<20 && limits.ValueBytes == 0 { // more would need too much memory for a test
		refuses("transaction", 1, int(n))
	}
}

// Ensure that many keys are got as single ones are, if a snapshot is a storage.ManyGetter.
func testGetMany(t *testing.T, e storage.Engine) {
	set(t, e, "a", "1", "b", "2", "c", "3")
	s := e.Snapshot()
	defer s.Close()
	many, ok := s.(storage.ManyGetter)
	if !ok {
		t.Skip("a snapshot is no storage.ManyGetter")
	}
	set(t, e, "b", "4")
	got := make(map[int]string)
	get := func(keys ...string) error {
		var all [][]byte
		for _, key := range keys {
			all = append(all, []byte(key))
		}
		clear(got)
		return many.GetMany(all, func(i int, value []byte) error {
			got[i] += string(value)
			return nil
		})
	}
	want(t, get("c", "x", "b", "c", "a"), error(nil))
	want(t, fmt.Sprint(got), "map[0:3 2:2 3:3 4:1]")
	want(t, get(), error(nil))
	want(t, fmt.Sprint(got), "map[]")
	err := many.GetMany([][]byte{[]byte("a"), []byte("b")}, func(int, []byte) error { return errRefused })
	want(t, err, errRefused)
}
