package storagetest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a held operation returns when the hold says so and with the
// error that it says, and that the others do not wait.
func TestDisk_Hold(t *testing.T) {
	disk := storagetest.NewDisk()
	create := func(name string) (vfs.File, error) { return disk.Create(name, vfs.WriteCategoryUnspecified) }
	log, err := create("1.log")
	if err != nil {
		t.Fatal(err)
	}
	syncing := func() <-chan error {
		done := make(chan error, 1)
		go func() { done <- log.Sync() }()
		return done
	}

	h := disk.Hold(storagetest.Logs, storagetest.Syncs)
	done := syncing()
	<-h.Met()
	if _, err := log.Write([]byte("x")); err != nil {
		t.Errorf("a write: %v", err)
	}
	if table, err := create("2.sst"); err != nil || table.Sync() != nil {
		t.Errorf("a table: %v", err)
	}
	select {
	case err := <-done:
		t.Fatalf("a held sync returned %v", err)
	default:
	}
	h.Release()
	if err := <-done; err != nil {
		t.Errorf("after Release: %v", err)
	}
	if err := log.Sync(); err != nil {
		t.Errorf("later: %v", err)
	}

	h = disk.Hold(storagetest.Logs, storagetest.Syncs)
	done = syncing()
	<-h.Met()
	h.Refuse()
	if err := <-done; !errors.Is(err, storagetest.ErrInjected) {
		t.Errorf("after Refuse: %v", err)
	}
	if err := log.Sync(); !errors.Is(err, storagetest.ErrInjected) {
		t.Errorf("after Refuse, later: %v", err)
	}
	h.Release()
	if err := log.Sync(); err != nil {
		t.Errorf("after Refuse and Release: %v", err)
	}

	h = disk.HoldFor(time.Nanosecond, storagetest.Tables|storagetest.Manifests, storagetest.Creations)
	for _, name := range []string{"3.sst", "MANIFEST-000001"} {
		if _, err := create(name); !errors.Is(err, storagetest.ErrInjected) {
			t.Errorf("create %s: %v", name, err)
		}
	}
	if _, err := create("4.log"); err != nil {
		t.Errorf("create a log: %v", err)
	}
	h.Release()

	if err := disk.MkdirAll("dir", 0o755); err != nil {
		t.Fatal(err)
	}
	h = disk.HoldFor(time.Nanosecond, storagetest.Directories, storagetest.Syncs)
	dir, err := disk.OpenDir("dir")
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Sync(); !errors.Is(err, storagetest.ErrInjected) {
		t.Errorf("sync a directory: %v", err)
	}
	h.Release()
	if err := dir.Sync(); err != nil {
		t.Errorf("sync a directory after Release: %v", err)
	}
}
