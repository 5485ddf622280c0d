package lsm

import (
	"os"
	"path/filepath"
	"testing"
)

// Ensure that the table of this process knows a directory by any spelling, as
// on a file system without locks nothing else does. Internal, as elsewhere the
// lock on the directory hides the table.
func TestOwn_Spellings(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skipf("no symbolic links: %v", err)
	}
	id := func(path string) dirID {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return dirID{info: info}
	}
	if !own(id(dir), false) {
		t.Fatal("a new directory has an owner")
	}
	for _, spelling := range []string{dir, dir + "/.", link} {
		if own(id(spelling), false) {
			t.Errorf("%s has a second owner", spelling)
		}
	}
	if other := id(t.TempDir()); !own(other, false) {
		t.Error("another directory is taken for this one")
	} else {
		disown(other, false)
	}
	disown(id(link), false)
	if !own(id(dir), false) {
		t.Error("it still has an owner after it was given up")
	}
	disown(id(dir), false)
}
