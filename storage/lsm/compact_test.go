package lsm_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Ensure that deleted keys of a range are not passed any more after Compact, whether they were in memory or in tables, and that all
// others are as they were.
func TestEngine_CompactRange(t *testing.T) {
	e, err := lsm.Open(filepath.Join(t.TempDir(), "db"), lsm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	write := func(letter byte, remove bool) {
		t.Helper()
		err := e.Update(t.Context(), true, func(tx storage.Tx) error {
			for i := range 1000 {
				if key := fmt.Appendf(nil, "%c%d", letter, i); remove {
					tx.Delete(key)
				} else {
					tx.Set(key, []byte("value"), nil)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	look := func(letter byte) (keys, passed int) {
		t.Helper()
		s := e.Snapshot()
		defer s.Close()
		it, err := s.Iterate([]byte{letter}, []byte{letter + 1})
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			keys++
		}
		return keys, it.(storage.Passer).Passed()
	}
	for _, letter := range []byte("abcd") {
		write(letter, false)
	}
	for _, tables := range []bool{false, true} {
		if tables {
			write('b', false)
			if err := e.Compact(t.Context(), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		write('b', true)
		keys, passed := look('b')
		if keys != 0 || passed < 1000 {
			t.Errorf("in tables %v: %d keys, and %d that were passed, of 1,000 deleted ones", tables, keys, passed)
		}
		if _, again := look('b'); again != passed { // with the same iterator of Pebble
			t.Errorf("in tables %v: %d keys were passed, and %d the second time", tables, passed, again)
		}
		if err := e.Compact(t.Context(), []byte("b"), []byte("c")); err != nil {
			t.Fatal(err)
		}
		for _, letter := range []byte("abcd") {
			want := 1000
			if letter == 'b' {
				want = 0
			}
			if keys, passed := look(letter); keys != want || passed != 0 {
				t.Errorf("in tables %v: %d keys of %c, want %d; %d were passed", tables, keys, letter, want, passed)
			}
		}
	}
}
