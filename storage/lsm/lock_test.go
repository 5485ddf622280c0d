package lsm_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// lockVariable is set to what it has to do in the other process, which runs
// TestLock_Process.
const lockVariable = "JAY_LOCK_CHILD"

// startChild starts another process that does action on dir.
func startChild(t *testing.T, action, dir string) *child.Process {
	t.Helper()
	return child.Start(t, "TestLock_Process", lockVariable+"="+action, "JAY_LOCK_DIR="+dir)
}

// openElsewhere opens dir in another process, closes it, and returns what that
// process has to say: "open", "locked" or an error's text.
func openElsewhere(t *testing.T, dir string) string {
	t.Helper()
	other := startChild(t, "open", dir)
	answer := other.Line()
	other.Wait()
	return answer
}

// TestLock_Process is what the other processes of these tests do.
func TestLock_Process(t *testing.T) {
	dir := os.Getenv("JAY_LOCK_DIR")
	switch os.Getenv(lockVariable) {
	case "":
		t.Skip("this is for the other process")
	case "open": // and hold it until the input ends
		e, err := lsm.Open(dir, lsm.Options{})
		switch {
		case errors.Is(err, storage.ErrLocked):
			fmt.Println("locked")
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("open")
			_, _ = io.Copy(io.Discard, os.Stdin)
			_ = e.Close()
		}
	case "race": // open each directory whose name comes in, and hold those that are ours
		for {
			var name string
			if _, err := fmt.Scanln(&name); err != nil {
				return
			}
			e, err := lsm.Open(filepath.Join(dir, name), lsm.Options{})
			switch {
			case errors.Is(err, storage.ErrLocked):
				fmt.Println("locked")
			case err != nil:
				fmt.Println(err)
			default:
				fmt.Println("open")
				defer e.Close()
			}
		}
	}
}

func openIn(t *testing.T, dir string) *lsm.Engine {
	t.Helper()
	e, err := lsm.Open(dir, lsm.Options{MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// wantLocked checks that neither this process nor another one can open dir.
func wantLocked(t *testing.T, when, dir string) {
	t.Helper()
	if e, err := lsm.Open(dir, lsm.Options{}); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("%s: a second Open of %q in this process: %v, want ErrLocked", when, dir, err)
		if err == nil {
			_ = e.Close()
		}
	}
	if answer := openElsewhere(t, dir); answer != "locked" {
		t.Errorf("%s: an Open of %q in another process: %s, want ErrLocked", when, dir, answer)
	}
}

// Ensure that a directory has one owner whatever the spelling of its path.
func TestLock_Spellings(t *testing.T) {
	sample.OneGoroutine(t)
	root := t.TempDir()
	dir := filepath.Join(root, "db")
	e := openIn(t, dir)
	t.Chdir(root)
	link := filepath.Join(root, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skipf("no symbolic links: %v", err)
	}
	spellings := []string{
		dir, "db", "./db", "db/", "../" + filepath.Base(root) + "/db", root + "//db/.", "link", link, link + "/",
	}
	if _, err := os.Stat(filepath.Join(root, "DB")); err == nil { // a file system that folds case
		spellings = append(spellings, "DB")
	}
	for _, spelling := range spellings {
		wantLocked(t, "while it is open", spelling)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, spelling := range spellings {
		e, err := lsm.Open(spelling, lsm.Options{MustExist: true})
		if err != nil {
			t.Fatalf("after Close, by %q: %v", spelling, err)
		}
		if _, err := lsm.Open(dir, lsm.Options{}); !errors.Is(err, storage.ErrLocked) {
			t.Errorf("open by %q, then by its first path: %v, want ErrLocked", spelling, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that a bind mount of the directory is the same directory.
func TestLock_BindMount(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("bind mounts are a thing of Linux")
	}
	dir, mounted := t.TempDir(), t.TempDir()
	if out, err := exec.Command("mount", "--bind", dir, mounted).CombinedOutput(); err != nil {
		t.Skipf("mount is not permitted: %v, %s", err, out)
	}
	defer func() {
		if out, err := exec.Command("umount", mounted).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	e := openIn(t, dir)
	wantLocked(t, "by a bind mount", mounted)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a program that opens, reads and closes every file of the open
// directory, in this process, takes nothing away from the owner, and that the
// removal of the lock file does not either.
func TestLock_BackupAndRemoval(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the lock file can be neither read nor removed there")
	}
	dir := t.TempDir()
	e := openIn(t, dir)
	if err := set(e, "a", "1"); err != nil {
		t.Fatal(err)
	}
	read := make(map[string]bool)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
			return nil // files come and go while the database is open
		}
		read[d.Name()] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !read["JAY"] || !read["LOCK"] {
		t.Fatalf("read %v, which is not a whole database", read)
	}
	wantLocked(t, "after a backup", dir)

	if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil {
		t.Fatal(err)
	}
	wantLocked(t, "without the lock file", dir)
	if err := set(e, "b", "1"); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if again := openIn(t, dir); !has(t, again, "a") || !has(t, again, "b") {
		t.Error("what the owner wrote is not there")
	}
}

// Ensure that a directory that is renamed while it is open keeps its owner,
// under its new name and, as the files are written by path, under its old one.
func TestLock_Rename(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be renamed there")
	}
	root := t.TempDir()
	dir, renamed := filepath.Join(root, "db"), filepath.Join(root, "renamed")
	e := openIn(t, dir)
	if err := os.Rename(dir, renamed); err != nil {
		t.Fatal(err)
	}
	wantLocked(t, "renamed", renamed)
	if err := os.Rename(renamed, dir); err != nil {
		t.Fatal(err)
	}
	wantLocked(t, "renamed back", dir)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that an open database stays in its directory when the program changes
// its working directory, and when the link it was opened by leads elsewhere.
func TestOpen_PathChangesMeaning(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"here", "elsewhere", "first", "second"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink("first", link); err != nil {
		t.Skipf("no symbolic links: %v", err)
	}
	t.Chdir(filepath.Join(root, "here"))
	relative, linked := openIn(t, "db"), openIn(t, link)
	t.Chdir(filepath.Join(root, "elsewhere"))
	if err := errors.Join(os.Remove(link), os.Symlink("second", link)); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*lsm.Engine{relative, linked} {
		for i := range 64 { // through several logs and tables
			if err := set(e, fmt.Sprint(i), strings.Repeat("x", 100_000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"elsewhere", "second"} {
		if found := listing(t, filepath.Join(root, name)); found != "" {
			t.Errorf("%s has the files %s", name, found)
		}
	}
	for _, dir := range []string{filepath.Join(root, "here", "db"), filepath.Join(root, "first")} {
		if e := openIn(t, dir); !has(t, e, "0") || !has(t, e, "63") {
			t.Errorf("%s does not have what was written", dir)
		}
	}
}

// Ensure that of several engines that create a database in the same empty
// directory at once, in two processes, one becomes its owner.
func TestLock_CreatorsRace(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	root := t.TempDir()
	other := startChild(t, "race", root)
	for round := range rounds {
		name := strconv.Itoa(round)
		dir := filepath.Join(root, name)
		if round%2 == 0 { // else Open makes it
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := fmt.Fprintln(other.In, name); err != nil {
			t.Fatal(err)
		}
		var owners atomic.Int32
		var ours atomic.Pointer[lsm.Engine]
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				e, err := lsm.Open(dir, lsm.Options{})
				switch {
				case err == nil:
					owners.Add(1)
					ours.Store(e)
				case !errors.Is(err, storage.ErrLocked):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		switch answer := other.Line(); answer {
		case "open":
			owners.Add(1)
		case "locked":
		default:
			t.Error(answer)
		}
		if n := owners.Load(); n != 1 {
			t.Fatalf("round %d: %d owners, want 1", round, n)
		}
		if e := ours.Load(); e != nil {
			if err := errors.Join(set(e, "a", "1"), e.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Ensure that the death of a process by kill -9 frees its directory.
func TestLock_Kill(t *testing.T) {
	dir := t.TempDir()
	other := startChild(t, "open", dir)
	if answer := other.Line(); answer != "open" {
		t.Fatal(answer)
	}
	wantLocked(t, "open in another process", dir)
	other.Kill()
	if err := openIn(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that an Open that fails gives up whatever it had taken.
func TestLock_FailedOpen(t *testing.T) {
	dir := t.TempDir()
	if err := openIn(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("manifests %v, %v", manifests, err)
	}
	for _, path := range manifests {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if _, err := lsm.Open(dir, lsm.Options{}); err == nil || errors.Is(err, storage.ErrLocked) {
			t.Fatalf("without a manifest: %v, want an error that is not ErrLocked", err)
		}
	}
	for _, path := range manifests {
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	if answer := openElsewhere(t, dir); answer != "open" {
		t.Errorf("in another process: %s, want open", answer)
	}
	openIn(t, dir)
}

// Ensure that a child process, forked while the directory is open, does not
// keep it from being opened again after Close.
func TestLock_Forks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no fork there")
	}
	dir := t.TempDir()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = exec.Command("/bin/true").Run()
			}
		}
	})
	for range 30 {
		e, err := lsm.Open(dir, lsm.Options{})
		if err != nil {
			t.Error(err)
			break
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

// Ensure that a directory in memory has one owner, too, through any wrapper of
// its file system, and that a copy of the file system is another one.
func TestLock_Memory(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	for _, path := range []string{"db", "/db", "db/", "x/../db"} {
		if _, err := lsm.Open(path, lsm.Options{FS: disk}); !errors.Is(err, storage.ErrLocked) {
			t.Errorf("second Open of %q: %v, want ErrLocked", path, err)
		}
	}
	clone := openDisk(t, disk.Crash(100, rand.New(rand.NewPCG(1, 2))))
	if err := errors.Join(clone.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	if err := openDisk(t, disk).Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // each in a memory of its own
		e, err := lsm.Open("memory", lsm.Options{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
	}
}
