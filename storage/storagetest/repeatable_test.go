package storagetest_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
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
