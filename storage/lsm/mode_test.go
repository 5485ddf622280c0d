package lsm_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/jaydb/jay/storage/lsm"
)

// Ensure that other users of the machine cannot enter a new database or a checkpoint, and
// that a directory that is there keeps its mode.
func TestOpen_DirectoryIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories have no mode")
	}
	parent := t.TempDir()
	given := filepath.Join(parent, "given")
	if err := os.Mkdir(given, 0o750); err != nil {
		t.Fatal(err)
	}
	dir, copied := filepath.Join(parent, "new"), filepath.Join(parent, "copy")
	for _, d := range []string{dir, given} {
		e, err := lsm.Open(d, lsm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d == dir {
			if err := e.Checkpoint(t.Context(), copied); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for d, want := range map[string]os.FileMode{dir: 0o700, copied: 0o700, given: 0o750} {
		info, err := os.Stat(d)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", filepath.Base(d), got, want)
		}
	}
}
