package lsm

// These tests look at which counts are remembered; enginetest checks that they are right.

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/jaydb/jay/storage"
)

// countedKeys is how many keys rememberCounts writes.
const countedKeys = 1000

// rememberCounts writes keys and has the engine remember parts of 99 of them, which do not touch.
func rememberCounts(t *testing.T, e *Engine) {
	t.Helper()
	setMany(t, e, 0, countedKeys)
	offerCounts(t, e, countedKeys/100)
	if n := knownParts(t, e); n != countedKeys/100 {
		t.Fatalf("%d parts are known", n)
	}
}

func manyKey(i int) []byte { return fmt.Appendf(nil, "x%06d", i) }

// setMany sets the keys of [from, to) in one commit.
func setMany(t *testing.T, e *Engine, from, to int) {
	t.Helper()
	err := e.Update(context.Background(), true, func(tx storage.Tx) error {
		for i := from; i < to; i++ {
			tx.Set(manyKey(i), nil, nil)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// offerCounts offers parts of 99 keys, and one between them, as counted now, without counting.
func offerCounts(t *testing.T, e *Engine, n int) {
	t.Helper()
	s := e.Snapshot()
	defer s.Close()
	var parts []storage.RangeCount
	for i := range n {
		parts = append(parts, storage.RangeCount{Lo: manyKey(100 * i), Hi: manyKey(100*i + 99), Keys: 99})
	}
	s.(storage.CountMemory).KeepCounts(parts)
}

func knownParts(t *testing.T, e *Engine) int {
	t.Helper()
	s := e.Snapshot()
	defer s.Close()
	return len(s.(storage.CountMemory).KnownCounts([]byte("x"), []byte("y")))
}

// Ensure that a commit makes the parts unknown that it writes in, and no others, both for readers
// of the newest state and for those of what is on disk.
func TestKeyCounts_Written(t *testing.T) {
	for _, durable := range []bool{false, true} {
		e := openStates(t, durable)
		rememberCounts(t, e)
		set(t, e, "y", "") // beside them
		set(t, e, "w", "")
		if n := knownParts(t, e); n != 10 {
			t.Errorf("durable reads %v: %d parts after writes beside them", durable, n)
		}
		setMany(t, e, 250, 251)
		setMany(t, e, 299, 301)
		if n := knownParts(t, e); n != 8 {
			t.Errorf("durable reads %v: %d parts after writes in two", durable, n)
		}
	}
}

// Ensure that a reader of what is on disk knows counts while a newer commit waits for its sync, and
// that those it makes are kept as far as that commit has written elsewhere.
func TestKeyCounts_Unsynced(t *testing.T) {
	e := openStates(t, true)
	rememberCounts(t, e)
	err := e.Update(context.Background(), false, func(tx storage.Tx) error {
		tx.Set(manyKey(150), nil, nil)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	view := &durableSnapshot{engine: e, view: e.durability.acquire()}
	defer e.durability.release(view.view)
	if n := len(view.KnownCounts([]byte("x"), []byte("y"))); n != 9 {
		t.Errorf("%d parts are known", n)
	}
	view.KeepCounts([]storage.RangeCount{{Lo: manyKey(100), Hi: manyKey(199), Keys: 99}, {Lo: manyKey(countedKeys), Hi: manyKey(countedKeys + 100)}})
	if n := len(view.KnownCounts([]byte("x"), []byte("y"))); n != 10 {
		t.Errorf("%d parts are known when two were offered", n)
	}
}

// Ensure that large commits, ingested tables, many writes without a count, and too many parts or
// bytes, make everything unknown, and that counts are remembered again afterwards.
func TestKeyCounts_Forget(t *testing.T) {
	t.Cleanup(func(parts, size, written, unused int) func() {
		return func() {
			maxRemembered, maxRememberedBytes, maxWrittenKeys, maxUnusedKeys = parts, size, written, unused
		}
	}(maxRemembered, maxRememberedBytes, maxWrittenKeys, maxUnusedKeys))
	tests := map[string]struct {
		do   func(e *Engine)
		on   bool // commits go on to note their keys
		left int
	}{
		"a large commit":     {do: func(e *Engine) { setMany(t, e, 0, maxWrittenKeys+1) }},
		"as large as may be": {do: func(e *Engine) { setMany(t, e, 0, 50) }, on: true, left: 9},
		"writes without count": {do: func(e *Engine) {
			for i := range maxUnusedKeys + 1 {
				setMany(t, e, i%100, i%100+1)
			}
		}},
		"tables": {do: func(e *Engine) { ingestOne(t, e, "x000050a") }},
		"too many parts": {do: func(e *Engine) {
			maxRemembered = 12
			defer func() { maxRemembered = 10 }()
			setMany(t, e, countedKeys, countedKeys+1)
			s := e.Snapshot()
			defer s.Close()
			for i := range 3 {
				s.(storage.CountMemory).KeepCounts([]storage.RangeCount{{Lo: manyKey(5000 + i), Hi: manyKey(5001 + i)}})
			}
		}, on: true},
		"too many bytes": {do: func(e *Engine) {
			s := e.Snapshot()
			defer s.Close()
			s.(storage.CountMemory).KeepCounts([]storage.RangeCount{{Lo: manyKey(5000), Hi: append(manyKey(5001), bytes.Repeat([]byte("x"), maxRememberedBytes)...)}})
		}, on: true},
	}
	for name, test := range tests {
		maxRemembered, maxRememberedBytes, maxWrittenKeys, maxUnusedKeys = 10, 1000, 50, 500
		e := openStates(t, true)
		rememberCounts(t, e)
		test.do(e)
		if n := knownParts(t, e); n != test.left || e.keyCounts.on.Load() != test.on {
			t.Errorf("%s: %d parts are known, keys are noted %v", name, n, e.keyCounts.on.Load())
		}
		offerCounts(t, e, 10)
		if n := knownParts(t, e); n != 10 {
			t.Errorf("%s: %d parts are known again", name, n)
		}
	}
}

// ingestOne takes in a table with one key.
func ingestOne(t *testing.T, e *Engine, key string) {
	t.Helper()
	w, err := e.NewTable(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Set([]byte(key), nil); err != nil {
		t.Fatal(err)
	}
	table, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Ingest(context.Background(), []storage.Table{table}, nil); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a count of a state after which more was written than is kept is not remembered, and
// one of a later state is.
func TestKeyCounts_Dropped(t *testing.T) {
	defer func(old int) { maxWrittenKeys = old }(maxWrittenKeys)
	maxWrittenKeys = 10
	e := openStates(t, false)
	rememberCounts(t, e)
	before := e.Snapshot()
	defer before.Close()
	setMany(t, e, 0, 1)
	for i := range 7 {
		setMany(t, e, 900+i, 901+i)
	}
	after := e.Snapshot()
	defer after.Close()
	for i := range 3 { // with the last one, the oldest half is dropped, and the first commit with it
		setMany(t, e, 907+i, 908+i)
	}
	if n := len(e.keyCounts.written); n != 6 {
		t.Fatalf("%d keys are kept", n)
	}
	parts := []storage.RangeCount{{Lo: manyKey(0), Hi: manyKey(99), Keys: 99}}
	before.(storage.CountMemory).KeepCounts(parts)
	if n := knownParts(t, e); n != 8 {
		t.Errorf("%d parts are known after a count of too old a state", n)
	}
	after.(storage.CountMemory).KeepCounts(parts)
	if n := knownParts(t, e); n != 9 {
		t.Errorf("%d parts are known", n)
	}
}

// Ensure that a snapshot of which it is not known exactly what it shows neither knows nor keeps counts.
func TestKeyCounts_Inexact(t *testing.T) {
	e := openStates(t, false)
	rememberCounts(t, e)
	s := &latest{&state{of: &e.states, snapshot: e.db.NewSnapshot(), commit: e.visible.Load()}, e}
	defer s.Close()
	if known := s.KnownCounts([]byte("x"), []byte("y")); known != nil {
		t.Errorf("%d parts are known", len(known))
	}
	s.KeepCounts([]storage.RangeCount{{Lo: manyKey(countedKeys), Hi: manyKey(countedKeys + 100)}})
	if n := knownParts(t, e); n != 10 {
		t.Errorf("%d parts are known", n)
	}
}

// Ensure that parts that touch are known as one, and that nothing is known of a piece of a part.
func TestKeyCounts_Joined(t *testing.T) {
	e := openStates(t, false)
	s := e.Snapshot()
	defer s.Close()
	memory := s.(storage.CountMemory)
	a, b, c, d := []byte("x1"), []byte("x2"), []byte("x3"), []byte("x4")
	memory.KeepCounts([]storage.RangeCount{{Lo: a, Hi: b, Keys: 3}, {Lo: c, Hi: d, Keys: 5}})
	memory.KeepCounts([]storage.RangeCount{{Lo: b, Hi: c, Keys: 4}})
	for _, test := range []struct {
		lo, hi []byte
		keys   int64
	}{{a, d, 12}, {[]byte("x"), c, 7}, {b, []byte("y"), 9}, {b, c, 4}} {
		known := memory.KnownCounts(test.lo, test.hi)
		if len(known) != 1 || known[0].Keys != test.keys {
			t.Errorf("%q to %q: %+v, want %d keys", test.lo, test.hi, known, test.keys)
		}
	}
	if known := memory.KnownCounts([]byte("x11"), []byte("x19")); len(known) != 0 {
		t.Errorf("%+v are known of a piece of a part", known)
	}
}

// Ensure that a range over keys of several spaces, or without a first byte, is not remembered.
func TestKeyCounts_Spaces(t *testing.T) {
	e := openStates(t, false)
	s := e.Snapshot()
	defer s.Close()
	for _, part := range []storage.RangeCount{{Lo: nil, Hi: []byte("x")}, {Lo: []byte("x"), Hi: []byte("y0")}, {Lo: []byte{0xff}, Hi: []byte{0xff, 1}}} {
		s.(storage.CountMemory).KeepCounts([]storage.RangeCount{part})
		if e.keyCounts.on.Load() {
			t.Errorf("%q to %q is remembered", part.Lo, part.Hi)
		}
	}
}
