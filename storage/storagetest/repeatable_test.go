package storagetest_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage/storagetest"
)

// contents returns the names and the contents of the files in a directory, in order.
func contents(t *testing.T, d *storagetest.Disk, dir string) string {
	t.Helper()
	names, err := d.List(dir)
	check(t, err)
	slices.Sort(names)
	var all strings.Builder
	for _, name := range names {
		f, err := d.Open(d.PathJoin(dir, name))
		check(t, err)
		text, err := io.ReadAll(f)
		check(t, err)
		check(t, f.Close())
		fmt.Fprintf(&all, "%s %q\n", name, text)
	}
	return all.String()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that a repeatable disk loses the same pieces with the same numbers, and keeps all that was synced.
func TestRepeatable(t *testing.T) {
	d := storagetest.NewDisk().Repeatable()
	check(t, d.MkdirAll("db", 0o755))
	write := func(name string, blocks int, sync bool) {
		f, err := d.Create(d.PathJoin("db", name), vfs.WriteCategoryUnspecified)
		check(t, err)
		_, err = f.Write([]byte(strings.Repeat(name, blocks*4096/len(name))))
		check(t, err)
		if sync {
			check(t, f.Sync())
		}
		check(t, f.Close())
	}
	write("kept", 3, true)
	for _, dir := range []string{"db", ""} {
		f, err := d.OpenDir(dir)
		check(t, err)
		check(t, f.Sync())
		check(t, f.Close())
	}
	for i := range 12 {
		write(fmt.Sprintf("file%d", i), 3, false)
	}
	crash := func(seed uint64) string { return contents(t, d.Crash(50, rand.New(rand.NewPCG(seed, 0))), "db") }
	first := crash(1)
	for range 20 {
		if again := crash(1); again != first {
			t.Fatalf("got %.300s\nwant %.300s", again, first)
		}
	}
	if crash(2) == first {
		t.Error("another generator loses the same pieces")
	}
	if !strings.Contains(first, "kept "+fmt.Sprintf("%q", strings.Repeat("kept", 3*1024))) || first == contents(t, d, "db") {
		t.Errorf("got %.300s, want what was synced and a part of the rest", first)
	}
}

// Ensure that a file that Pebble has removed, and that is back after a loss of power or not, changes nothing for the others.
func TestRepeatable_OtherFiles(t *testing.T) {
	crash := func(seed uint64, older bool) (with, without string) {
		d := storagetest.NewDisk().Repeatable()
		for i := range 12 {
			if i == 0 && !older {
				continue
			}
			f, err := d.Create(fmt.Sprintf("%06d.log", i), vfs.WriteCategoryUnspecified)
			check(t, err)
			_, err = f.Write([]byte(strings.Repeat("x", 3*4096)))
			check(t, err)
			check(t, f.Close())
		}
		with = contents(t, d.Crash(50, rand.New(rand.NewPCG(seed, 0))), "")
		for line := range strings.Lines(with) {
			if !strings.HasPrefix(line, "000000.log ") {
				without += line
			}
		}
		return with, without
	}
	stays := 0
	for seed := range uint64(20) {
		with, got := crash(seed, true)
		_, want := crash(seed, false)
		if got != want {
			t.Errorf("seed %d: got %.300s\nwant %.300s", seed, got, want)
		}
		if with != got {
			stays++
		}
	}
	if stays == 0 || stays == 20 {
		t.Errorf("the older file stays in %d of 20 losses of power, want some", stays)
	}
}

// Ensure that on one processor other goroutines run between the operations of a repeatable disk.
func TestRepeatable_OthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	d := storagetest.NewDisk().Repeatable()
	f, err := d.Create("000001.log", vfs.WriteCategoryUnspecified)
	check(t, err)
	var turns atomic.Int64
	var end atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !end.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	}()
	const writes = 100
	for range writes {
		_, err = f.Write([]byte("x"))
		check(t, err)
	}
	if n := turns.Load(); n < writes/2 {
		t.Errorf("another goroutine has run %d times beside %d writes", n, writes)
	}
	end.Store(true)
	<-ended
	check(t, f.Close())
}
