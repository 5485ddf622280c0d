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
	"sync"
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
	mounted := tmpfs(t, "16m")
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
		if e, err := lsm.Open(dir, lsm.Options{CloseTimeout: time.Minute}); !errors.Is(err, storage.ErrNotWritable) || !errors.Is(err, storage.ErrDiskFull) || strings.Contains(err.Error(), "stays locked") {
			t.Errorf("on a full disk: %v, want ErrNotWritable and ErrDiskFull, and nothing left", err)
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

// tmpfs mounts a disk of a size in memory, until the test ends. It skips the test where that is not permitted.
func tmpfs(t *testing.T, size string) (mounted string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs tmpfs")
	}
	mounted = t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", mounted).CombinedOutput(); err != nil {
		t.Skipf("mount is not permitted: %v, %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", mounted).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return mounted
}

// Ensure that each of 32 writers is answered when the disk fills, and that with more room the database opens and
// has all that was acknowledged: the log ends in a part of a record then.
func TestEngine_DiskFills(t *testing.T) {
	mounted := tmpfs(t, "8m")
	dir := filepath.Join(mounted, "db")
	e, err := lsm.Open(dir, lsm.Options{MemTableBytes: 64 << 20}) // no tables, so that it is the log that fills the disk
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var stored []string
	var writers sync.WaitGroup
	for w := range 32 {
		writers.Go(func() {
			random := rand.NewChaCha8([32]byte{byte(w)})
			value := make([]byte, 10_000+100*w) // not to be compressed
			for i := 0; ; i++ {
				_, _ = random.Read(value)
				key := fmt.Sprintf("key%02d/%04d", w, i)
				if err := set(e, key, string(value)); err != nil {
					if !errors.Is(err, storage.ErrFailed) && !errors.Is(err, storage.ErrDiskFull) && !errors.Is(err, storage.ErrUnknownOutcome) {
						t.Errorf("%s: %v", key, err)
					}
					return
				}
				mu.Lock()
				stored = append(stored, key)
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	_ = e.Close() // says that the disk is full, or nothing
	if again, err := lsm.Open(dir, lsm.Options{MemTableBytes: 1 << 20, CloseTimeout: time.Minute}); err == nil {
		_ = again.Close() // compactions had left room
	} else if !errors.Is(err, storage.ErrNotWritable) && !errors.Is(err, storage.ErrDiskFull) {
		t.Errorf("on the full disk: %v", err)
	}

	if out, err := exec.Command("mount", "-o", "remount,size=64m", mounted).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	again, err := lsm.Open(dir, lsm.Options{})
	if err != nil {
		t.Fatalf("with more room, after %d writes: %v", len(stored), err)
	}
	for _, key := range stored {
		if !has(t, again, key) {
			t.Errorf("%s is lost", key)
		}
	}
	if len(stored) == 0 {
		t.Error("nothing was stored before the disk was full")
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
