package lsm

// This test writes to a log as Pebble does, which nothing outside the package can do.

import (
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fullFile takes half of its first write, and all of the others, as a full disk on which others free space.
type fullFile struct {
	vfs.File
	writes, syncs int
}

// Write implements vfs.File.
func (f *fullFile) Write(p []byte) (int, error) {
	if f.writes++; f.writes == 1 {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, syscall.ENOSPC
	}
	return f.File.Write(p)
}

// Sync implements vfs.File.
func (f *fullFile) Sync() error { f.syncs++; return nil }

// SyncData implements vfs.File.
func (f *fullFile) SyncData() error { f.syncs++; return nil }

// SyncTo implements vfs.File.
func (f *fullFile) SyncTo(int64) (bool, error) { f.syncs++; return true, nil }

// Ensure that nothing reaches a log after a write that a full disk took in part: a sync made the part count as
// synced, and the next Open called the database corrupt, also when the disk had room again.
func TestLogFile_NothingAfterFailure(t *testing.T) {
	inner, err := vfs.NewMem().Create("000001.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	full := &fullFile{File: inner}
	var failure error
	var log *logFile
	log = &logFile{File: full, name: "000001.log", fail: func(err error) {
		failure = err
		if log.broken.Load() {
			t.Error("a sync of the broken log succeeds before the engine has failed")
		}
	}}
	for range 2 {
		if n, err := log.Write([]byte("record")); n != 6 || err != nil {
			t.Errorf("a write: %d, %v", n, err)
		}
		_, errTo := log.SyncTo(6)
		if err := log.Sync(); err != nil || log.SyncData() != nil || errTo != nil {
			t.Errorf("a sync: %v, %v", err, errTo)
		}
	}
	if failure == nil || full.writes != 1 || full.syncs != 0 {
		t.Errorf("failure %v; %d writes and %d syncs reached the file, want 1 and 0", failure, full.writes, full.syncs)
	}
}

// Ensure that no log comes on the disk behind one whose write has failed: a log that ends in a part of a record with
// another log behind it was damage to the next Open. Pebble begins one for a new memtable, as it knows of no failure.
func TestLogFS_NoLogAfterFailure(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		disk := vfs.NewMem()
		old, err := disk.Create("000001.log", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		fs := &logFS{FS: disk, fail: func(error) {}, failed: func() bool { return false }}
		if _, err := fs.file("000002.log", &fullFile{File: old}, nil); err != nil {
			t.Fatal(err)
		}
		begin := func(name string) vfs.File {
			f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
			if reuse {
				f, err = fs.ReuseForWrite("000001.log", name, vfs.WriteCategoryUnspecified)
			}
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if _, err := fs.current.Load().Write([]byte("record")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"000003.log", "000004.log"} {
			f := begin(name)
			if n, err := f.Write([]byte("record")); n != 6 || err != nil || f.Sync() != nil || f.Close() != nil {
				t.Errorf("a write: %d, %v", n, err)
			}
			if _, err := disk.Stat(name); err == nil {
				t.Errorf("%s is on the disk", name)
			}
		}
		if f, err := fs.Create("table.sst", vfs.WriteCategoryUnspecified); err != nil || f.Close() != nil {
			t.Errorf("a table: %v", err)
		}
	}
}
