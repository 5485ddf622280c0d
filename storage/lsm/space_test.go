package lsm_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// allocFS is a file system in memory that counts the bytes that logs allocate in
// advance, and those that are written to them.
type allocFS struct {
	vfs.FS
	mu         sync.Mutex
	allocated  int64 // Guarded by mu.
	written    int64 // Guarded by mu.
	allocCalls int   // Guarded by mu.
}

func (fs *allocFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	if err == nil && strings.HasSuffix(name, ".log") {
		f = &allocFile{f, fs}
	}
	return f, err
}

type allocFile struct {
	vfs.File
	fs *allocFS
}

// Fd returns any descriptor but the invalid one: Pebble allocates nothing without.
func (*allocFile) Fd() uintptr { return 0 }

func (f *allocFile) Preallocate(offset, length int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.allocated += length
	f.fs.allocCalls++
	return nil
}

func (f *allocFile) Write(p []byte) (int, error) {
	f.fs.mu.Lock()
	f.fs.written += int64(len(p))
	f.fs.mu.Unlock()
	return f.File.Write(p)
}

// Ensure that a database with a few writes takes kilobytes: its log was allocated
// in advance for a whole memtable, 36 MB.
func TestEngine_SmallDatabaseTakesKilobytes(t *testing.T) {
	fs := &allocFS{FS: vfs.NewMem()}
	e, err := lsm.Open("db", lsm.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		mustSet(t, e, fmt.Sprint(i), "value")
	}
	if fs.mu.Lock(); fs.allocated > 0 || fs.written == 0 {
		t.Errorf("the log allocated %d bytes in advance for %d", fs.allocated, fs.written)
	}
	fs.mu.Unlock()

	// A log that grows is allocated in advance, in few steps: as much as it has, and
	// for the next one as much as that.
	value := strings.Repeat("v", 32<<10)
	for i := range 64 {
		mustSet(t, e, fmt.Sprint(i), value)
	}
	fs.mu.Lock()
	if fs.allocated < fs.written || fs.allocated > 4*fs.written+64<<10 {
		t.Errorf("the log allocated %d bytes in advance for %d", fs.allocated, fs.written)
	}
	if fs.allocCalls > 16 {
		t.Errorf("%d steps of allocation for %d bytes", fs.allocCalls, fs.written)
	}
	fs.mu.Unlock()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustSet(t *testing.T, e storage.Engine, key, value string) {
	t.Helper()
	if err := set(e, key, value); err != nil {
		t.Fatal(err)
	}
}

// Ensure that many short runs leave few files: each Open makes tables of what the
// log of the run before holds, and they do not overlap, so that only their number
// makes Pebble merge them.
func TestEngine_ShortRunsLeaveFewTables(t *testing.T) {
	sample.OneGoroutine(t)
	fs := vfs.NewMem()
	const runs = 200
	most := 0
	for i := range runs {
		e, err := lsm.Open("db", lsm.Options{FS: fs, TableBounds: [][]byte{[]byte("e"), []byte("f")}})
		if err != nil {
			t.Fatal(err)
		}
		for _, space := range []string{"d", "e", "m"} {
			mustSet(t, e, fmt.Sprintf("%s%05d", space, i), "value")
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		most = max(most, countFiles(t, fs))
	}
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("at most %d tables; in the end %d files: %v", most, len(names), names)
	if most > 40 || len(names) > most+10 {
		t.Errorf("%d runs left up to %d tables, and %d files in the end", runs, most, len(names))
	}
}

func countFiles(t *testing.T, fs vfs.FS) (tables int) {
	t.Helper()
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if filepath.Ext(name) == ".sst" {
			tables++
		}
	}
	return tables
}

// Ensure that merging the tables of short runs loses and changes no key.
func TestEngine_ShortRunsKeepKeys(t *testing.T) {
	fs := vfs.NewMem()
	for i := range 60 {
		e, err := lsm.Open("db", lsm.Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		mustSet(t, e, fmt.Sprintf("a%05d", i), fmt.Sprint(i))
		if i%2 == 1 { // the first key of the tables merged, and others
			if err := e.Update(ctx, true, func(tx storage.Tx) error {
				tx.Delete(fmt.Appendf(nil, "a%05d", i-1))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		for j := range i + 1 {
			value, closer, err := e.Get(fmt.Appendf(nil, "a%05d", j))
			deleted := j%2 == 0 && j < i
			switch {
			case deleted && err != storage.ErrNotFound:
				t.Fatalf("run %d: key %d was deleted and is %q, %v", i, j, value, err)
			case !deleted && (err != nil || string(value) != fmt.Sprint(j)):
				t.Fatalf("run %d: key %d is %q, %v", i, j, value, err)
			}
			if err == nil {
				closer.Close()
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := countFiles(t, fs); n > 40 {
		t.Errorf("%d tables: none were merged", n)
	}
}
