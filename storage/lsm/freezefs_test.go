package lsm_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that an Open that fails as the disk refuses writes leaves nothing
// behind: no goroutine that holds the directory, and no change on disk, so that
// the next Open, on a disk with room, finds everything.
func TestOpen_DiskRefusesWrites(t *testing.T) {
	for name, refuse := range map[string]func(d *storagetest.Disk){
		"tables":    (*storagetest.Disk).FailTables,
		"new files": (*storagetest.Disk).FailCreations,
		"all":       (*storagetest.Disk).Fail,
	} {
		t.Run(name, func(t *testing.T) {
			disk := storagetest.NewDisk()
			e, err := lsm.Open("db", lsm.Options{FS: disk, MemTableBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 30 { // into several logs and tables
				if err := set(e, fmt.Sprintf("key%02d", i), strings.Repeat("v", 100_000)); err != nil {
					t.Fatal(err)
				}
			}
			killed := disk.Crash(0, rand.New(rand.NewPCG(1, 2)))
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}

			for range 3 {
				refuse(killed)
				if _, err := lsm.Open("db", lsm.Options{FS: killed, MemTableBytes: 1 << 20}); !errors.Is(err, storagetest.ErrInjected) || strings.Contains(err.Error(), "stays locked") {
					t.Fatalf("on a disk that refuses writes: %v, want the disk's error and nothing left", err)
				}
				killed.Heal()
				if names, err := killed.List("db"); err != nil || len(names) < 5 {
					t.Fatalf("the files are %v, %v", names, err)
				}
			}
			again, err := lsm.Open("db", lsm.Options{FS: killed, MemTableBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 30 {
				if key := fmt.Sprintf("key%02d", i); !has(t, again, key) {
					t.Errorf("%s is lost", key)
				}
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Ensure the same on a real disk that is full.
func TestOpen_DiskFull(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs tmpfs")
	}
	mounted := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", mounted).CombinedOutput(); err != nil {
		t.Skipf("mount is not permitted: %v, %s", err, out)
	}
	defer func() {
		if out, err := exec.Command("umount", mounted).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	dir, ballast := filepath.Join(mounted, "db"), filepath.Join(mounted, "ballast")
	e := openIn(t, dir)
	random := rand.NewChaCha8([32]byte{})
	for i := range 30 {
		value := make([]byte, 100_000) // not to be compressed
		_, _ = random.Read(value)
		if err := set(e, fmt.Sprintf("key%02d", i), string(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 3 {
		for err = nil; err == nil; { // again: an Open may have removed a file that was no longer needed
			_, err = f.Write(make([]byte, 4096))
		}
		if e, err := lsm.Open(dir, lsm.Options{CloseTimeout: time.Minute}); !errors.Is(err, storage.ErrNotWritable) || strings.Contains(err.Error(), "stays locked") {
			t.Errorf("on a full disk: %v, want ErrNotWritable and nothing left", err)
			if err == nil {
				_ = e.Close()
			}
		}
	}
	if err := errors.Join(f.Close(), os.Remove(ballast)); err != nil {
		t.Fatal(err)
	}
	again := openIn(t, dir)
	for i := range 30 {
		if key := fmt.Sprintf("key%02d", i); !has(t, again, key) {
			t.Errorf("%s is lost", key)
		}
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
