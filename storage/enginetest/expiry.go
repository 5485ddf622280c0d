package enginetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
)

// RunShortSnapshots checks an engine whose Limits have a SnapshotAge. open returns an empty engine, which RunShortSnapshots
// closes, and a function that lets so much time pass.
func RunShortSnapshots(t *testing.T, open func(t *testing.T) (e storage.Engine, pass func(time.Duration))) {
	for name, run := range map[string]func(*testing.T, storage.Engine, func(time.Duration)){
		"a snapshot shows its moment for as long as it is said to": testYoungSnapshot,
		"an old snapshot shows what it has shown, or nothing":      testOldSnapshot,
		"an old iterator goes on as it was, or ends with an error": testOldIterator,
		"an old reader of a write tracker does, too":               testOldBatchReader,
	} {
		t.Run(name, func(t *testing.T) {
			e, pass := open(t)
			defer func() {
				if err := e.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			if e.Limits().SnapshotAge <= 0 {
				t.Fatalf("the limits say %v", e.Limits().SnapshotAge)
			}
			setAll(t, e, "before")
			run(t, e, pass)
		})
	}
}

// setAll sets the hundred keys at once.
func setAll(t *testing.T, e storage.Engine, value string) {
	t.Helper()
	var pairs []string
	for i := range 100 {
		pairs = append(pairs, fmt.Sprintf("k%02d", i), value)
	}
	set(t, e, pairs...)
}

// testYoungSnapshot: until the age is reached there is no error. Where pass sleeps, a busy machine may let more time go
// by than that, so that an error says nothing: then it takes another moment.
func testYoungSnapshot(t *testing.T, e storage.Engine, pass func(time.Duration)) {
	for range 10 {
		taken := time.Now()
		n, err := readYoung(t, e, pass)
		if time.Since(taken) < e.Limits().SnapshotAge {
			want(t, err, error(nil))
			want(t, n, 101)
			return
		}
		setAll(t, e, "before")
	}
	t.Fatalf("10 times, what takes %v took longer than %v", e.Limits().SnapshotAge/2, e.Limits().SnapshotAge)
}

// readYoung takes a moment, changes all keys, and returns how many values of that moment it could read, and with which
// error it ended.
func readYoung(t *testing.T, e storage.Engine, pass func(time.Duration)) (n int, err error) {
	s := e.Snapshot()
	defer s.Close()
	it, err := e.Iterate([]byte("k"), []byte("l"))
	if err != nil {
		return 0, err
	}
	defer it.Close()
	setAll(t, e, "after")
	pass(e.Limits().SnapshotAge / 2)
	value, closer, err := s.Get([]byte("k07"))
	if err != nil {
		return 0, err
	}
	want(t, string(value), "before")
	n = 1
	for ok := it.First(); ok; ok = it.Next() {
		want(t, string(it.Value()), "before")
		n++
	}
	return n, errors.Join(closer.Close(), it.Error())
}

// testOldSnapshot: Get, Iterate and the iterators answer as before, or with ErrSnapshotExpired.
func testOldSnapshot(t *testing.T, e storage.Engine, pass func(time.Duration)) {
	s := e.Snapshot()
	want(t, read(t, s, "k07"), "before")
	setAll(t, e, "after")
	set(t, e, "k100", "after")
	pass(2 * e.Limits().SnapshotAge)
	for _, key := range []string{"k07", "k100"} {
		value, closer, err := s.Get([]byte(key))
		switch {
		case errors.Is(err, storage.ErrSnapshotExpired):
		case errors.Is(err, storage.ErrNotFound):
			want(t, key, "k100")
		case err != nil:
			t.Errorf("get %s: %v", key, err)
		default:
			want(t, string(value), "before")
			want(t, closer.Close(), error(nil))
		}
	}
	if it, err := s.Iterate([]byte("k"), []byte("l")); err == nil {
		checkOld(t, it, it.First())
		checkOld(t, it, it.SeekGE([]byte("k50")))
		want(t, it.Close(), error(nil))
	} else if !errors.Is(err, storage.ErrSnapshotExpired) {
		t.Errorf("iterate: %v", err)
	}
	want(t, s.Close(), error(nil))

	again := e.Snapshot() // a new one is young
	defer again.Close()
	want(t, read(t, again, "k07"), "after")
}

// checkOld checks where an old iterator stands after a move.
func checkOld(t *testing.T, it storage.Iterator, moved bool) {
	t.Helper()
	switch err := it.Error(); {
	case err != nil && (!errors.Is(err, storage.ErrSnapshotExpired) || moved || it.Valid()):
		t.Errorf("moved %v, valid %v, %v", moved, it.Valid(), err)
	case moved:
		want(t, string(it.Value()), "before")
	case err == nil:
		t.Error("it ended without an error, before all keys")
	}
}

// testOldIterator: the keys that it has not come to are as they were, or there is an error: it never ends as if there were no more.
func testOldIterator(t *testing.T, e storage.Engine, pass func(time.Duration)) {
	for _, backwards := range []bool{false, true} {
		it, err := e.Iterate([]byte("k"), []byte("l"))
		if err != nil {
			t.Fatal(err)
		}
		first, move := it.First, it.Next
		if backwards {
			first, move = it.Last, it.Prev
		}
		n := 0
		for ok := first(); ok; ok = move() {
			if n++; n == 10 {
				pass(2 * e.Limits().SnapshotAge)
				update(t, e, func(tx storage.Tx) error { tx.Delete([]byte("k60")); return nil })
			}
		}
		if err := it.Error(); !errors.Is(err, storage.ErrSnapshotExpired) && (err != nil || n != 100) {
			t.Errorf("backwards %v: %d keys, %v", backwards, n, err)
		}
		want(t, it.Close(), error(nil))
		set(t, e, "k60", "before")
	}
}

// testOldBatchReader: a key that was there is not reported as missing.
func testOldBatchReader(t *testing.T, e storage.Engine, pass func(time.Duration)) {
	w := e.TrackWrites()
	defer w.Close()
	r, err := w.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pass(2 * e.Limits().SnapshotAge)
	if value, err := r.Get([]byte("k07")); err == nil {
		want(t, string(value), "before")
	} else if !errors.Is(err, storage.ErrSnapshotExpired) {
		t.Errorf("get: %v", err)
	}
	if missing, err := r.Missing([][]byte{[]byte("k07"), []byte("k08")}); missing || err != nil && !errors.Is(err, storage.ErrSnapshotExpired) {
		t.Errorf("missing: %v, %v", missing, err)
	}
}
