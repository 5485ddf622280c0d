package files_test

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/files"
	"github.com/jaydb/jay/storage/storagetest"
)

// names returns what is in the root of a disk.
func names(t *testing.T, disk *storagetest.Disk) []string {
	t.Helper()
	all, err := disk.List("/")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Ensure that of two files of one name that are written at a time the last to be complete stays, and nothing else.
func TestFile_TwoAtATime(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	write := func(text string) *files.File {
		f, err := files.Create(disk, "x")
		if err == nil {
			_, err = io.WriteString(f, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second, third := write("first"), write("second"), write("third")
	if err := errors.Join(second.Commit(), first.Commit(), third.Abandon(), first.Abandon()); err != nil {
		t.Fatal(err)
	}
	r, err := files.NewReader(disk, "x")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "first" {
		t.Errorf("got %q, %v", text, err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
	if all := names(t, disk); len(all) != 1 {
		t.Errorf("%q are there", all)
	}
}

// Ensure that a file that cannot be synced or renamed leaves what was there before.
func TestFile_Fails(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	old, err := files.Create(disk, "x")
	if err := errors.Join(err, old.Commit()); err != nil {
		t.Fatal(err)
	}
	f, err := files.Create(disk, "x")
	if err != nil {
		t.Fatal(err)
	}
	disk.FailCreationsIn("x", 0) // renames, too
	if err := f.Commit(); !errors.Is(err, storagetest.ErrInjected) {
		t.Errorf("a rename that fails: %v", err)
	}
	disk.Heal()
	if all := names(t, disk); len(all) != 1 || all[0] != "x" {
		t.Errorf("%q are there", all)
	}
	if err := disk.MkdirAll("dir", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"": ids.ErrUsage, "dir": ids.ErrUsage} {
		if _, err := files.Create(disk, name); !errors.Is(err, want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]error{"none": fs.ErrNotExist, "dir": ids.ErrUsage} {
		if _, err := files.NewReader(disk, name); !errors.Is(err, want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	r, err := files.NewReader(disk, "x")
	if err := errors.Join(err, r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
}
