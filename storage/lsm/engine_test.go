package lsm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/enginetest"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

var ctx = context.Background()

func openDisk(t *testing.T, d *storagetest.Disk) *lsm.Engine {
	t.Helper()
	e, err := lsm.Open("db", lsm.Options{FS: d})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// set commits one key, synced.
func set(e storage.Engine, key, value string) error {
	return e.Update(ctx, true, func(tx storage.Tx) error {
		tx.Set([]byte(key), []byte(value), nil)
		return nil
	})
}

func has(t *testing.T, e storage.Engine, key string) bool {
	t.Helper()
	_, closer, err := e.Get([]byte(key))
	if errors.Is(err, storage.ErrNotFound) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	closer.Close()
	return true
}

func TestEngine_Contract(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		if testing.Short() {
			t.Skip("the disk has the same, and more")
		}
		enginetest.Run(t, func(t *testing.T) storage.Engine {
			e, err := lsm.Open("db", lsm.Options{InMemory: true})
			if err != nil {
				t.Fatal(err)
			}
			return e
		})
	})
	t.Run("disk", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T) storage.Engine {
			e, err := lsm.Open(t.TempDir(), lsm.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return e
		})
	})
}

// Ensure that a commit that was acknowledged as synced survives the loss of
// everything unsynced, and that one without sync is there after a Close.
func TestEngine_Update_Crash(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	if err := set(e, "synced", "1"); err != nil {
		t.Fatal(err)
	}
	if err := e.Update(ctx, false, func(tx storage.Tx) error { tx.Set([]byte("loose"), nil, nil); return nil }); err != nil {
		t.Fatal(err)
	}
	crashed := openDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))))
	if !has(t, crashed, "synced") || has(t, crashed, "loose") {
		t.Errorf("after a crash: synced %v, loose %v; want true, false", has(t, crashed, "synced"), has(t, crashed, "loose"))
	}
	if err := errors.Join(crashed.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}

	after := openDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))))
	defer after.Close()
	if !has(t, after, "loose") {
		t.Error("a commit without sync was lost by a clean Close")
	}
}

// Ensure that a transaction that asks for a sync gets it.
func TestEngine_RequireSync(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	defer e.Close()
	err := e.Update(ctx, false, func(tx storage.Tx) error {
		tx.Set([]byte("a"), nil, nil)
		tx.RequireSync()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	crashed := openDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))))
	defer crashed.Close()
	if !has(t, crashed, "a") {
		t.Error("the commit was acknowledged before it was on disk")
	}
}

// Ensure that a disk that stops taking writes costs an error, not the
// process: the outcome is unknown, later writes are refused, reads go on,
// Close returns, and a reopen finds every acknowledged commit.
func TestEngine_Update_DiskFails(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	if err := set(e, "before", "1"); err != nil {
		t.Fatal(err)
	}
	disk.Fail()

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := set(e, "after", "1")
			if !errors.Is(err, storage.ErrUnknownOutcome) && !errors.Is(err, storage.ErrFailed) {
				t.Errorf("write on a failing disk: %v, want ErrUnknownOutcome or ErrFailed", err)
			}
		})
	}
	wg.Wait()
	if err := set(e, "later", "1"); !errors.Is(err, storage.ErrFailed) {
		t.Errorf("write after a failure: %v, want ErrFailed", err)
	}
	if !has(t, e, "before") {
		t.Error("a read after a failure does not find what was committed")
	}
	_ = e.Close() // may not be able to close cleanly; it must return

	again := openDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))))
	defer again.Close()
	if !has(t, again, "before") || has(t, again, "later") {
		t.Error("after a reopen: an acknowledged commit is lost, or a refused one is there")
	}
}

// Ensure that a disk that fills up while tables are written makes writers
// fail, not wait for ever.
func TestEngine_Update_TablesFail(t *testing.T) {
	disk := storagetest.NewDisk()
	e, err := lsm.Open("db", lsm.Options{FS: disk, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	disk.FailTables()
	value := string(make([]byte, 64<<10))
	for range 1000 {
		if err = set(e, "key", value); err != nil {
			break
		}
	}
	if !errors.Is(err, storage.ErrFailed) && !errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("64 MB into a memory of 4 MB: got %v, want ErrFailed", err)
	}
	_ = e.Close() // must return
}

// Ensure that a disk on which no new file can be made, as when it is full,
// does not end the process when the log is rotated. Pebble panics there, with
// a mutex in a state that no recover can mend.
func TestEngine_Update_NoNewLog(t *testing.T) {
	disk := storagetest.NewDisk()
	e, err := lsm.Open("db", lsm.Options{FS: disk, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	disk.FailCreations()
	value := string(make([]byte, 64<<10))
	acknowledged := 0
	for i := range 1000 {
		if err = set(e, fmt.Sprint(i), value); err != nil {
			break
		}
		acknowledged++
	}
	if !errors.Is(err, storage.ErrFailed) && !errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("64 MB and no new file: got %v, want ErrUnknownOutcome or ErrFailed", err)
	}
	_ = e.Close() // must return

	again := openDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))))
	defer again.Close()
	for i := range acknowledged {
		if !has(t, again, fmt.Sprint(i)) {
			t.Fatalf("commit %d of %d was acknowledged and is lost", i, acknowledged)
		}
	}
}

// copyOpen copies the files of an open database. One that goes meanwhile is left out.
func copyOpen(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range strings.Fields(listing(t, from)) {
		text, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that a damaged byte in the log is an error at the next Open, in a new
// database too, and never the silent loss of what was acknowledged.
func TestOpen_DamagedLog(t *testing.T) {
	dir := t.TempDir()
	e, err := lsm.Open(dir, lsm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := set(e, fmt.Sprintf("key%03d", i), strings.Repeat("v", 500)); err != nil {
			t.Fatal(err)
		}
	}
	// The files as kill -9 would leave them.
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	killed := t.TempDir()
	copyOpen(t, dir, killed)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(killed, filepath.Base(logs[len(logs)-1])) // one of before may be about to go
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{1000, 40_000, 70_000} {
		damaged := bytes.Clone(text)
		damaged[at] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := lsm.Open(killed, lsm.Options{})
		if err == nil {
			t.Errorf("byte %d of the log is damaged, and Open does not say so", at)
			_ = e.Close()
			return
		}
	}
}

// Ensure that a damaged table is ErrCorrupt to its readers, and that the
// process and the rest of the data live on.
func TestEngine_Get_DamagedTable(t *testing.T) {
	sample.OneGoroutine(t)
	dir := t.TempDir()
	e, err := lsm.Open(dir, lsm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if err := set(e, fmt.Sprintf("key%04d", i), strings.Repeat(fmt.Sprint(i), 100)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second Open writes the log into a table
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if e, err = lsm.Open(dir, lsm.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	for _, path := range tables {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := 100; at < len(text)/2; at += 5000 {
			text[at] ^= 0xff
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if e, err = lsm.Open(dir, lsm.Options{}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	corrupt := 0
	step := 1
	if testing.Short() {
		step = 7
	}
	for i := 0; i < 2000; i += step {
		_, closer, err := e.Get(fmt.Appendf(nil, "key%04d", i))
		switch {
		case err == nil:
			closer.Close()
		case errors.Is(err, storage.ErrCorrupt):
			corrupt++
		default:
			t.Fatalf("got %v, want ErrCorrupt", err)
		}
	}
	if corrupt == 0 {
		t.Error("no read met the damage")
	}
	it, err := e.Iterate([]byte("a"), []byte("z"))
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
	}
	if err := it.Error(); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("iterate: got %v, want ErrCorrupt", err)
	}
	_ = it.Close()
}

// Ensure that each way a directory can be wrong has its own error, that the
// error names the directory, and that nothing is written there.
func TestOpen_WrongDirectory(t *testing.T) {
	write := func(t *testing.T, dir, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string)
		opts    lsm.Options
		want    error
	}{
		{"other files", func(t *testing.T, dir string) { write(t, dir, "letter.txt", "dear") }, lsm.Options{}, storage.ErrNotDatabase},
		{"a marker of another program", func(t *testing.T, dir string) { write(t, dir, "JAY", "a bird\n") }, lsm.Options{}, storage.ErrNotDatabase},
		{"a newer format", func(t *testing.T, dir string) {
			write(t, dir, "JAY", fmt.Sprintf("jay database, format %d\n", storage.Format+1))
		}, lsm.Options{}, storage.ErrNewerFormat},
		{"nothing, but it must exist", func(*testing.T, string) {}, lsm.Options{MustExist: true}, storage.ErrNoDatabase},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.prepare(t, dir)
			before := listing(t, dir)
			_, err := lsm.Open(dir, test.opts)
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("%v does not name the directory", err)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("the directory changed from %q to %q", before, after)
			}
		})
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// Ensure that a file in place of the directory has an error of its own.
func TestOpen_File(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lsm.Open(path, lsm.Options{}); !errors.Is(err, storage.ErrNotDatabase) {
		t.Errorf("got %v, want ErrNotDatabase", err)
	}
}

// Ensure that a second engine on a directory is refused at once, and let in
// after Close.
func TestOpen_Locked(t *testing.T) {
	dir := t.TempDir()
	e, err := lsm.Open(dir, lsm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lsm.Open(dir, lsm.Options{}); !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second open: %v, want ErrLocked with the directory", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, err = lsm.Open(dir, lsm.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a creation cut short at any sync can be repeated.
func TestOpen_CrashDuringCreation(t *testing.T) {
	for cut := range 20 {
		disk := storagetest.NewDisk()
		disk.FailAfter(cut)
		if e, err := lsm.Open("db", lsm.Options{FS: disk}); err == nil {
			_ = set(e, "a", "1")
			_ = e.Close()
		}
		again := openDisk(t, disk.Crash(50, rand.New(rand.NewPCG(uint64(cut), 7))))
		if err := set(again, "b", "1"); err != nil {
			t.Errorf("cut %d: %v", cut, err)
		}
		if err := again.Close(); err != nil {
			t.Errorf("cut %d: %v", cut, err)
		}
	}
}
