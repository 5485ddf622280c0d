package enginetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay/storage"
)

// numberText is numbers as Tx.Add leaves them.
func numberText(numbers ...int64) string {
	var text []byte
	for _, n := range numbers {
		text = binary.BigEndian.AppendUint64(text, uint64(n))
	}
	return string(text)
}

func testAdd(t *testing.T, e storage.Engine) {
	key := []byte("k")
	add := func(deltas ...int64) {
		t.Helper()
		update(t, e, func(tx storage.Tx) error {
			for _, d := range deltas {
				tx.Add(key, d)
			}
			return nil
		})
	}
	add(5)
	want(t, read(t, e, "k"), numberText(5))
	add(1, -3)
	want(t, read(t, e, "k"), numberText(3))
	before := e.Snapshot()
	add(-10)
	want(t, read(t, e, "k"), numberText(-7))
	want(t, read(t, before, "k"), numberText(3))
	if err := before.Close(); err != nil {
		t.Error(err)
	}

	// A key beside it that is no number, and is removed and set again, does not become one.
	for _, text := range []string{"a text of many bytes", "", "another text"} {
		update(t, e, func(tx storage.Tx) error {
			if tx.Delete([]byte("k text")); text != "" {
				tx.Set([]byte("k text"), []byte(text), nil)
			}
			return nil
		})
		if text == "" {
			text = "absent"
		}
		want(t, read(t, e, "k text"), text)
	}

	// A transaction that fails adds nothing.
	wrong := errors.New("wrong")
	if err := e.Update(ctx, true, func(tx storage.Tx) error {
		tx.Add(key, 100)
		return wrong
	}); err != wrong {
		t.Errorf("got %v, want the function's error", err)
	}
	want(t, read(t, e, "k"), numberText(-7))

	// A sum of 0 is no key.
	add(7)
	want(t, read(t, e, "k"), "absent")

	// A transaction sees what it has added, and set or removed before.
	update(t, e, func(tx storage.Tx) error {
		tx.Set(key, []byte(numberText(40)), nil)
		want(t, txRead(t, tx, "k"), numberText(40))
		tx.Add(key, 2)
		want(t, txRead(t, tx, "k"), numberText(42))
		tx.Add([]byte("other"), 1)
		return nil
	})
	want(t, read(t, e, "k"), numberText(42))
	update(t, e, func(tx storage.Tx) error {
		tx.Add(key, 1)
		tx.Delete(key)
		tx.Add(key, 3)
		return nil
	})
	want(t, read(t, e, "k"), numberText(3))
	update(t, e, func(tx storage.Tx) error {
		tx.Delete(key)
		return nil
	})
	add(4)
	want(t, read(t, e, "k"), numberText(4))
	want(t, read(t, e, "other"), numberText(1))
}

// A key has several numbers, each with its sum.
func testAddSeveral(t *testing.T, e storage.Engine) {
	key := []byte("k")
	add := func(deltas ...int64) {
		t.Helper()
		update(t, e, func(tx storage.Tx) error { tx.Add(key, deltas...); return nil })
	}
	add(5, 100)
	want(t, read(t, e, "k"), numberText(5, 100))
	add(1) // fewer, and more, than there are
	want(t, read(t, e, "k"), numberText(6, 100))
	add(0, 0, 7)
	want(t, read(t, e, "k"), numberText(6, 100, 7))
	add(-6, -100) // one that is not 0 keeps the key
	want(t, read(t, e, "k"), numberText(0, 0, 7))
	add(0, 0, -7)
	want(t, read(t, e, "k"), "absent")
	add(1) // and a key that was removed begins anew
	want(t, read(t, e, "k"), numberText(1))

	// A transaction sees what it has added, also to what it has set.
	update(t, e, func(tx storage.Tx) error {
		tx.Add(key, 1, 2)
		want(t, txRead(t, tx, "k"), numberText(2, 2))
		tx.Set(key, []byte(numberText(3)), nil)
		tx.Add(key, 1, 9)
		want(t, txRead(t, tx, "k"), numberText(4, 9))
		tx.Add(key, -4, -9)
		want(t, txRead(t, tx, "k"), "absent")
		tx.Add(key, 0, 0, 0, 0, 0, 0, 0, 8)
		return nil
	})
	want(t, read(t, e, "k"), numberText(0, 0, 0, 0, 0, 0, 0, 8))
}

// Keys beside those of numbers have values of their own, which may be as long as numbers.
func testAddBeside(t *testing.T, e storage.Engine) {
	update(t, e, func(tx storage.Tx) error { tx.Add([]byte("n"), 1); return nil })
	for _, text := range []string{strings.Repeat("a", 16), strings.Repeat("b", 28), strings.Repeat("c", 64), strings.Repeat("d", 65), "", strings.Repeat("e", 8)} {
		update(t, e, func(tx storage.Tx) error {
			tx.Set([]byte("nother"), []byte(text), nil)
			tx.Add([]byte("n"), 1)
			return nil
		})
		want(t, read(t, e, "nother"), text)
	}
	update(t, e, func(tx storage.Tx) error {
		tx.Set([]byte("n"), []byte(numberText(5, 6)), nil)
		return nil
	})
	update(t, e, func(tx storage.Tx) error { tx.Add([]byte("n"), 1); return nil })
	want(t, read(t, e, "n"), numberText(6, 6))
}

// Several goroutines add to several numbers, remove them and fail, so that some of
// their transactions share a commit. What each has added is known at the end.
func testAddTogether(t *testing.T, e storage.Engine) {
	const goroutines, each, numbers = 8, 200, 3
	var mu sync.Mutex
	total := make(map[string]int64)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range each {
				key, delta, fails := fmt.Sprint("n", r.IntN(numbers)), r.Int64N(7)-3, r.IntN(5) == 0
				err := e.Update(ctx, r.IntN(20) == 0, func(tx storage.Tx) error {
					tx.Add([]byte(key), delta)
					tx.Set([]byte(fmt.Sprint("own", g)), []byte(key), nil)
					if fails {
						return errors.New("fails")
					}
					return nil
				})
				if fails != (err != nil) {
					t.Errorf("got %v, fails %v", err, fails)
				}
				if !fails {
					mu.Lock()
					total[key] += delta
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for key, n := range total {
		expected := numberText(n)
		if n == 0 {
			expected = "absent"
		}
		want(t, read(t, e, key), expected)
	}
}
