package lsm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Ensure that what is no file of a store, such as a backup that was written into its
// directory, is not copied into memory.
func TestSalvageFS_OtherFiles(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int64{"JAY": 10, "000004.log": 2 * largestOther, "OPTIONS-000005": 2 * largestOther, "monday.backup": 2 * largestOther} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "a directory"), 0o777); err != nil {
		t.Fatal(err)
	}
	s, err := newSalvageFS(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"JAY": true, "000004.log": true, "OPTIONS-000005": false, "monday.backup": false, "a directory": false} {
		if _, err := s.Stat(filepath.Join(dir, name)); (err == nil) != want || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
