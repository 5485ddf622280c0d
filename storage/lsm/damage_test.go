package lsm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// storeOnDisk returns a directory with a store that was closed, of a few
// tables.
func storeOnDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	random := rand.NewChaCha8([32]byte{})
	for round := range 3 { // each Open writes the log before it into a table
		e, err := lsm.Open(dir, lsm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := 100 * round; i < 100*(round+1); i++ {
			err := e.Update(ctx, round == 2, func(tx storage.Tx) error {
				value := make([]byte, 1500) // not to be compressed
				_, _ = random.Read(value)
				tx.Set(fmt.Appendf(nil, "key%03d", i), value, nil)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// fileLike returns the one file, or the last of those, that match the pattern.
func fileLike(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	return names[len(names)-1]
}

// rewrite changes the bytes of a file.
func rewrite(t *testing.T, path string, change func(text []byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantDamage checks that an error is ErrCorrupt, on one line that names the
// file, with a cause.
func wantDamage(t *testing.T, err error, file string) {
	t.Helper()
	if !errors.Is(err, storage.ErrCorrupt) {
		t.Fatalf("got %v, want ErrCorrupt", err)
	}
	text := err.Error()
	if strings.Contains(text, "\n") || !strings.Contains(text, file) || !strings.Contains(text, "backup") {
		t.Errorf("%q is not a line that names %s and what to do", text, file)
	}
	for err != nil && err != storage.ErrCorrupt {
		if errors.Unwrap(err) == nil && strings.HasPrefix(err.Error(), storage.ErrCorrupt.Error()) {
			t.Errorf("%v wraps no cause", err)
		}
		err = errors.Unwrap(err)
	}
}

// Ensure that whatever Open finds damaged or missing is ErrCorrupt with the
// name of the file, that the directory is free again, and that a damaged
// OPTIONS file, on which nothing depends, does not matter.
func TestOpen_Damage(t *testing.T) {
	sample.OneGoroutine(t)
	cut := func(text []byte) []byte { return text[:len(text)-100] }
	tests := []struct {
		name     string
		file     string
		damage   func(t *testing.T, path string)
		harmless bool
	}{
		{name: "a table is missing", file: "*.sst", damage: func(t *testing.T, path string) { remove(t, path) }},
		{name: "a table is cut", file: "*.sst", damage: func(t *testing.T, path string) { rewrite(t, path, cut) }},
		{name: "a table is empty", file: "*.sst", damage: func(t *testing.T, path string) { rewrite(t, path, func([]byte) []byte { return nil }) }},
		{name: "the manifest is missing", file: "MANIFEST-*", damage: func(t *testing.T, path string) { remove(t, path) }},
		{name: "the manifest is empty", file: "MANIFEST-*", damage: func(t *testing.T, path string) { rewrite(t, path, func([]byte) []byte { return nil }) }},
		{name: "the marker of the format is missing", file: "marker.format-version.*", damage: func(t *testing.T, path string) { remove(t, path) }},
		{name: "the marker of the format has another name", file: "marker.format-version.*", damage: func(t *testing.T, path string) {
			if err := os.Rename(path, path+"x"); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a byte of the log", file: "*.log", damage: func(t *testing.T, path string) {
			rewrite(t, path, func(text []byte) []byte { text[1000] ^= 1; return text })
		}},
		{name: "the options name another order of keys", file: "OPTIONS-*", harmless: true, damage: func(t *testing.T, path string) {
			rewrite(t, path, func(text []byte) []byte {
				return bytes.Replace(text, []byte("comparer=leveldb"), []byte("comparer=levelDb"), 1)
			})
		}},
		{name: "the options cannot be parsed", file: "OPTIONS-*", harmless: true, damage: func(t *testing.T, path string) {
			rewrite(t, path, func(text []byte) []byte { return append([]byte("\xff\x00[["), text...) })
		}},
		{name: "the options are cut", file: "OPTIONS-*", harmless: true, damage: func(t *testing.T, path string) { rewrite(t, path, cut) }},
		{name: "the options are missing", file: "OPTIONS-*", harmless: true, damage: func(t *testing.T, path string) { remove(t, path) }},
		{name: "the options are a directory", file: "OPTIONS-*", harmless: runtime.GOOS != "windows", damage: func(t *testing.T, path string) {
			remove(t, path)
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}},
	}
	today := sample.Of(t, 4)
	for i, test := range tests {
		if !today.Has(i) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			dir := storeOnDisk(t)
			path := fileLike(t, dir, test.file)
			test.damage(t, path)
			e, err := lsm.Open(dir, lsm.Options{})
			if !test.harmless {
				if err == nil {
					t.Fatal("Open found nothing")
				}
				wantDamage(t, err, strings.Trim(test.file, "*"))
				if _, again := lsm.Open(dir, lsm.Options{}); errors.Is(again, storage.ErrLocked) {
					t.Errorf("after %v the directory stays locked", err)
				}
				return
			}
			for range 3 {
				if err != nil {
					t.Fatal(err)
				}
				if !has(t, e, "key000") || !has(t, e, "key299") {
					t.Error("a key is missing")
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e, err = lsm.Open(dir, lsm.Options{})
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// Ensure that damage in a table, or its loss while it is open, is ErrCorrupt
// with the table's name for every kind of read.
func TestRead_Damage(t *testing.T) {
	sample.OneGoroutine(t)
	for name, damage := range map[string]func(t *testing.T, path string){
		"flipped bytes": func(t *testing.T, path string) {
			rewrite(t, path, func(text []byte) []byte {
				for at := 100; at < len(text); at += 4000 {
					text[at] ^= 0xff
				}
				return text
			})
		},
		"missing": remove,
	} {
		t.Run(name, func(t *testing.T) {
			dir := storeOnDisk(t)
			if name != "missing" {
				damageTables(t, dir, damage)
			}
			e, err := lsm.Open(dir, lsm.Options{})
			if err != nil {
				wantDamage(t, err, ".sst") // its footer, or it was read while it was opened
				return
			}
			defer e.Close()
			if name == "missing" {
				damageTables(t, dir, damage)
			}

			s := e.Snapshot()
			defer s.Close()
			for kind, r := range map[string]storage.Reader{"engine": e, "snapshot": s} {
				corrupt := 0
				for i := range 300 {
					_, closer, err := r.Get(fmt.Appendf(nil, "key%03d", i))
					if err == nil {
						closer.Close()
						continue
					}
					wantDamage(t, err, ".sst")
					corrupt++
				}
				it, err := r.Iterate(nil, nil)
				if err == nil {
					for ok := it.First(); ok; ok = it.Next() {
					}
					err = errors.Join(it.Error(), it.Close())
				}
				if corrupt == 0 || err == nil {
					t.Errorf("%s: %d of 300 reads met the damage; an iteration over it: %v", kind, corrupt, err)
				}
				if !errors.Is(err, storage.ErrCorrupt) {
					t.Errorf("%s: iteration: %v, want ErrCorrupt", kind, err)
				}
			}
			err = e.Update(ctx, true, func(tx storage.Tx) error {
				for i := range 300 {
					if _, closer, err := tx.Get(fmt.Appendf(nil, "key%03d", i)); err != nil {
						return err
					} else {
						closer.Close()
					}
				}
				return nil
			})
			wantDamage(t, err, ".sst")
		})
	}
}

func damageTables(t *testing.T, dir string, damage func(t *testing.T, path string)) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	for _, path := range tables {
		damage(t, path)
	}
}

// Ensure that an engine that fails as a compaction met damage says so.
func TestUpdate_DamageInCompaction(t *testing.T) {
	dir := storeOnDisk(t)
	damageTables(t, dir, func(t *testing.T, path string) {
		rewrite(t, path, func(text []byte) []byte {
			for at := 100; at < len(text)*3/4; at += 1000 {
				text[at] ^= 0xff
			}
			return text
		})
	})
	e, err := lsm.Open(dir, lsm.Options{MemTableBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		wantDamage(t, err, ".sst")
		return
	}
	defer e.Close()
	value := strings.Repeat("v", 64<<10)
	begun := time.Now()
	for i := 0; err == nil && time.Since(begun) < time.Minute; i++ { // tables over the damaged ones, which are merged in the end
		err = set(e, fmt.Sprintf("key%03d", i%300), value)
		if i > 2000 {
			time.Sleep(time.Millisecond) // for the compaction, and to leave room on the disk
		}
	}
	if !errors.Is(err, storage.ErrFailed) && !errors.Is(err, storage.ErrUnknownOutcome) || !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("got %v, want ErrFailed and ErrCorrupt", err)
	}
}

// Ensure that a file that is there and cannot be read is ErrUnreadable with
// the system's error, and not taken for damaged.
func TestOpen_Unreadable(t *testing.T) {
	t.Run("reads fail", func(t *testing.T) {
		dir := storeOnDisk(t)
		disk := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileReadAt && strings.Contains(op.Path, "MANIFEST-") {
				return &fs.PathError{Op: "read", Path: op.Path, Err: syscall.EIO}
			}
			return nil
		}))
		_, err := lsm.Open(dir, lsm.Options{FS: disk})
		if !errors.Is(err, storage.ErrUnreadable) || errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), "MANIFEST-") {
			t.Errorf("got %v, want ErrUnreadable with the file", err)
		}
	})
	for _, pattern := range []string{"*.sst", "*.log", "MANIFEST-*", "JAY"} {
		t.Run(pattern+" may not be read", func(t *testing.T) {
			if runtime.GOOS == "windows" || os.Geteuid() == 0 {
				t.Skip("the system refuses this user nothing")
			}
			dir := storeOnDisk(t)
			path := fileLike(t, dir, pattern)
			if err := os.Chmod(path, 0); err != nil {
				t.Fatal(err)
			}
			e, err := lsm.Open(dir, lsm.Options{})
			if err == nil { // tables are opened when they are read
				_, _, err = e.Get([]byte("key150"))
				defer e.Close()
			}
			if !errors.Is(err, storage.ErrUnreadable) || !errors.Is(err, fs.ErrPermission) || errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("got %v, want ErrUnreadable and ErrPermission", err)
			}
		})
	}
}
