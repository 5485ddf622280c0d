package enginetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/jaydb/jay/storage"
)

// ingester returns e as a storage.Ingester, and skips the test if it is none.
func ingester(t *testing.T, e storage.Engine) storage.Ingester {
	t.Helper()
	in, ok := e.(storage.Ingester)
	if !ok {
		t.Skip("the engine takes in no tables, and need not")
	}
	return in
}

// table writes a table of keys and values.
func table(t *testing.T, in storage.Ingester, lookups bool, pairs ...string) storage.Table {
	t.Helper()
	w, err := in.NewTable(lookups)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if err := w.Set([]byte(pairs[i]), []byte(pairs[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	made, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Tables replace what was at their keys, in one commit that later transactions and
// snapshots see, and earlier ones do not; nothing is remembered of their keys.
func testIngest(t *testing.T, e storage.Engine) {
	in := ingester(t, e)
	set(t, e, "a", "1", "c", "1", "e", "1")
	earlier := e.Snapshot()
	defer earlier.Close()
	w := e.TrackWrites()
	defer w.Close()

	calls := 0
	err := in.Ingest(ctx, []storage.Table{table(t, in, false, "a", "10", "b", "11"), table(t, in, true, "d", "12", "e", "13")}, func(before storage.Snapshot) {
		calls++
		if got := keys(t, before, "a", "z"); got != "a c e" || read(t, before, "a") != "1" {
			t.Errorf("before the tables: %s", got)
		}
		if err := before.Close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil || calls != 1 {
		t.Fatalf("ingest: %v, told %d times", err, calls)
	}
	for key, want := range map[string]string{"a": "10", "b": "11", "c": "1", "d": "12", "e": "13", "f": "absent"} {
		if got := read(t, e, key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
		if key == "b" || key == "d" || key == "f" {
			want = "absent"
		} else {
			want = "1"
		}
		if got := read(t, earlier, key); got != want {
			t.Errorf("an earlier snapshot has %s at %s, want %s", got, key, want)
		}
	}
	update(t, e, func(tx storage.Tx) error {
		for _, key := range []string{"a", "b", "d", "e"} {
			if tx.Unchanged(w, []byte(key)) {
				t.Errorf("%s is unchanged, and came with a table", key)
			}
			value, closer, err := tx.Get([]byte(key))
			if err != nil || len(value) != 2 {
				t.Errorf("in a transaction %s is %q, %v", key, value, err)
				continue
			}
			_ = closer.Close()
		}
		tx.Set([]byte("a"), []byte("2"), nil)
		tx.Delete([]byte("b"))
		return nil
	})
	if got := keys(t, e, "a", "z"); got != "a c d e" || read(t, e, "a") != "2" {
		t.Errorf("after later writes: %s, a is %s", got, read(t, e, "a"))
	}

	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := in.Ingest(ended, []storage.Table{table(t, in, false, "x", "1")}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if got := read(t, e, "x"); got != "absent" {
		t.Errorf("what was refused is there: %s", got)
	}
	if err := table(t, in, false, "x", "1").Remove(); err != nil {
		t.Error(err)
	}
	if abandoned, err := in.NewTable(false); err != nil {
		t.Error(err)
	} else {
		abandoned.Abandon()
	}
}

// Tables that come while transactions read and write lose nothing of these.
func testIngestBeside(t *testing.T, e storage.Engine) {
	in := ingester(t, e)
	const goroutines, increments, ingestions = 4, 50, 10
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			key := fmt.Appendf(nil, "k%d", g)
			for range increments {
				err := e.Update(ctx, g%2 == 0, func(tx storage.Tx) error {
					n := uint64(0)
					if value, closer, err := tx.Get(key); err == nil {
						n = binary.BigEndian.Uint64(value)
						if err := closer.Close(); err != nil {
							return err
						}
					} else if !errors.Is(err, storage.ErrNotFound) {
						return err
					}
					tx.Set(key, binary.BigEndian.AppendUint64(nil, n+1), nil)
					tx.Add([]byte("#"), 1)
					return nil
				})
				if err != nil {
					t.Errorf("increment: %v", err)
					return
				}
			}
		})
	}
	for i := range ingestions {
		// j and l make the table overlap the keys between.
		if err := in.Ingest(ctx, []storage.Table{table(t, in, false, "j", fmt.Sprint(i), "l", "")}, nil); err != nil {
			t.Errorf("ingest: %v", err)
		}
	}
	group.Wait()
	for g := range goroutines {
		if got := read(t, e, fmt.Sprintf("k%d", g)); got != string(binary.BigEndian.AppendUint64(nil, increments)) {
			t.Errorf("k%d is %x, want %d", g, got, increments)
		}
	}
	if got := read(t, e, "#"); got != string(binary.BigEndian.AppendUint64(nil, goroutines*increments)) {
		t.Errorf("the number is %x", got)
	}
	if got := read(t, e, "j"); got != fmt.Sprint(ingestions-1) {
		t.Errorf("j is %s", got)
	}
}

// A temporary file holds what was written to it.
func testTemporary(t *testing.T, e storage.Engine) {
	f, err := ingester(t, e).NewTemporary()
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789"), 10_000)
	for part := range slices.Chunk(want, 7777) {
		if _, err := f.Write(bytes.Clone(part)); err != nil { // files in memory may change it, if built with invariants
			t.Fatal(err)
		}
	}
	if err := f.Finish(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v, want %d", len(got), err, len(want))
		}
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
}
