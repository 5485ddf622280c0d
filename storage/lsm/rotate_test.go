package lsm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// changing are keys whose newest one is set by the test. It has the others, too.
type changing struct {
	mu  sync.Mutex
	ids []string // the newest first
}

func (c *changing) keys(id string) (sealed.Key, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return keysOf(c.ids...)(id)
}

func (c *changing) set(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = ids
}

// rotate gives all files the newest key, and returns those that need another one still.
func rotate(t testing.TB, e *lsm.Engine, want string) []string {
	t.Helper()
	id, err := e.RenewKey("")
	if err != nil || id != want {
		t.Fatalf("renewed: got %q, %v, want %q", id, err, want)
	}
	older, err := e.OlderKeys()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range older {
		if _, err := e.Rekey(name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		left, err := e.OlderKeys()
		if err != nil {
			t.Fatal(err)
		}
		isLog := func(name string) bool { return strings.HasSuffix(name, ".log") }
		if !slices.ContainsFunc(left, isLog) || time.Now().After(until) { // Pebble removes a log soon after its writes are in tables
			return left
		}
	}
}

// Ensure that an open database gets another key in all files but its manifest, answers meanwhile, and needs no other key after its next start.
func TestRotate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := &changing{ids: []string{"a"}}
	open := func(ids ...string) (*lsm.Engine, error) {
		k.set(ids...)
		return lsm.Open(dir, lsm.Options{EncryptionKeys: k.keys, MemTableBytes: 1 << 20})
	}
	e, err := open("a")
	if err != nil {
		t.Fatal(err)
	}
	fill(t, e, 3000, "v")
	if err := errors.Join(e.FinishCreation(), e.Compact(context.Background(), nil, nil)); err != nil {
		t.Fatal(err)
	}
	fill(t, e, 100, "w")
	it, err := e.Iterate(nil, nil) // which has the old tables open
	if err != nil || !it.First() {
		t.Fatal(err)
	}
	if n := e.Stats().OlderKeys; n != 0 {
		t.Errorf("before: %d files need an older key", n)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := e.Checkpoint(context.Background(), copied); err != nil {
		t.Fatal(err)
	}
	k.set("b", "a")
	if left := rotate(t, e, "b"); len(left) != 1 || !strings.HasPrefix(left[0], "MANIFEST-") || e.Stats().OlderKeys != 1 {
		t.Errorf("%v need an older key, want the manifest only; Stats says %d", left, e.Stats().OlderKeys)
	}
	for n := 0; ; n++ {
		if !it.Next() {
			if n < 3000 || it.Error() != nil {
				t.Errorf("an iterator from before: %d keys, %v", n, it.Error())
			}
			break
		}
	}
	fill(t, e, 100, "x")
	if err := errors.Join(it.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}

	if _, err := open("a"); !errors.Is(err, storage.ErrKey) {
		t.Errorf("with the old key only: got %v, want ErrKey", err)
	}
	for _, ids := range [][]string{{"b", "a"}, {"b"}} {
		e, err := open(ids...)
		if err != nil {
			t.Fatalf("with %v: %v", ids, err)
		}
		for _, key := range []string{"key v 2999", "key w 0099", "key x 0099"} {
			if !has(t, e, key) {
				t.Errorf("with %v: %s is missing", ids, key)
			}
		}
		if n := e.Stats().OlderKeys; n != 0 {
			left, err := e.OlderKeys()
			t.Errorf("with %v: %d files need an older key: %v, %v", ids, n, left, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	k.set("a")
	c, err := lsm.Open(copied, lsm.Options{EncryptionKeys: k.keys}) // which shares no file any more
	if err != nil {
		t.Fatal(err)
	}
	if !has(t, c, "key w 0099") {
		t.Error("the checkpoint from before has lost a key")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that writers, compactions and reads go on while all files get one key after the other, and that nothing is lost.
func TestRotate_WhileWriting(t *testing.T) {
	t.Parallel()
	k := &changing{ids: []string{"0"}}
	disk := storagetest.NewDisk()
	e, err := lsm.Open("db", lsm.Options{FS: disk, EncryptionKeys: k.keys, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.FinishCreation(); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	stop := make(chan struct{})
	var written atomic.Int64
	writers.Go(func() {
		for ; ; written.Add(1) {
			select {
			case <-stop:
				return
			default:
			}
			fill(t, e, 50, fmt.Sprintf("%04d", written.Load()))
			if written.Load()%3 == 2 {
				if err := e.Compact(context.Background(), nil, nil); err != nil {
					t.Error(err)
				}
			}
		}
	})
	ids := []string{"0"}
	for i := 1; i < 8; i++ {
		id := fmt.Sprint(i)
		ids = append([]string{id}, ids...)
		k.set(ids...)
		rotate(t, e, id)
		for before := written.Load(); written.Load() < before+2; {
			time.Sleep(time.Millisecond)
		}
	}
	close(stop)
	writers.Wait()
	if left := rotate(t, e, "7"); len(left) > 1 {
		t.Errorf("%v need an older key", left)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	k.set("7", "6", "5", "4", "3", "2", "1", "0")
	e, err = lsm.Open("db", lsm.Options{FS: disk, EncryptionKeys: k.keys})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for i := range written.Load() {
		if key := fmt.Sprintf("key %04d 0049", i); !has(t, e, key) {
			t.Fatalf("%s is missing, of %d", key, written.Load())
		}
	}
}

// Ensure that a power failure at any sync of a rotation loses nothing: with both keys the database opens, has all that was written, and the rotation goes on. With the old
// key only, it opens or is refused as a whole.
func TestRotate_PowerCut(t *testing.T) {
	of := sample.Of(t, 7)
	ended := false
	for cut := 0; !ended; cut++ {
		disk := storagetest.NewDisk()
		k := &changing{ids: []string{"a"}}
		e, err := lsm.Open("db", lsm.Options{FS: disk, EncryptionKeys: k.keys})
		if err != nil {
			t.Fatal(err)
		}
		fill(t, e, 30, "v")
		if err := errors.Join(e.FinishCreation(), e.Compact(context.Background(), nil, nil)); err != nil {
			t.Fatal(err)
		}
		fill(t, e, 30, "w")
		var mu sync.Mutex
		var after *storagetest.Disk
		left := cut
		random := rand.New(rand.NewPCG(of.Seed(), uint64(cut)))
		disk.OnEverySync(func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == -1 {
				after = disk.Crash(random.IntN(101), random)
			}
		})
		k.set("b", "a")
		rotate(t, e, "b")
		mu.Lock()
		found := after
		mu.Unlock()
		disk.OnEverySync(nil)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if ended = found == nil; ended {
			t.Logf("%d syncs", cut)
			continue
		}
		if !of.Has(cut) {
			continue
		}
		where := fmt.Sprintf("cut at sync %d (seed %d)", cut, of.Seed())
		if e, err := lsm.Open("db", lsm.Options{FS: found, EncryptionKeys: keysOf("a"), ReadOnly: true}); err == nil {
			if !has(t, e, "key v 0029") {
				t.Errorf("%s: with the old key it opens, and a key is missing", where)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, storage.ErrKey) {
			t.Errorf("%s: with the old key: %v", where, err)
		}
		if e, err = lsm.Open("db", lsm.Options{FS: found, EncryptionKeys: keysOf("b", "a")}); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		for i := range 30 {
			for _, value := range []string{"v", "w"} {
				if key := fmt.Sprintf("key %s %04d", value, i); !has(t, e, key) {
					t.Fatalf("%s: %s is missing", where, key)
				}
			}
		}
		rotate(t, e, "b")
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if e, err = lsm.Open("db", lsm.Options{FS: found, EncryptionKeys: keysOf("b")}); err != nil {
			t.Fatalf("%s, rotated to the end, with the new key: %v", where, err)
		}
		if !has(t, e, "key w 0029") {
			t.Errorf("%s: rotated to the end, a key is missing", where)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that keys that cannot be had, another secret under a known ID, and a database without keys change nothing.
func TestRotate_Refused(t *testing.T) {
	t.Parallel()
	k := &changing{ids: []string{"a"}}
	dir := t.TempDir()
	e, err := lsm.Open(dir, lsm.Options{EncryptionKeys: k.keys})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, e, 10, "v")
	k.set()
	if _, err := e.RenewKey(""); !errors.Is(err, storage.ErrKey) {
		t.Errorf("no keys: got %v", err)
	}
	fill(t, e, 10, "w")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	k.set("a")
	if e, err = lsm.Open(dir, lsm.Options{EncryptionKeys: k.keys}); err != nil {
		t.Fatal(err)
	}
	if n := e.Stats().OlderKeys; n != 0 {
		t.Errorf("%d files need another key", n)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	plain, err := lsm.Open(t.TempDir(), lsm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.RenewKey(""); !errors.Is(err, storage.ErrKey) {
		t.Errorf("a plain database: got %v", err)
	}
	if _, err := plain.OlderKeys(); !errors.Is(err, storage.ErrKey) {
		t.Errorf("a plain database: got %v", err)
	}
}

// lists counts how often a directory is listed, and how often a file comes or goes.
type lists struct {
	vfs.FS
	n       atomic.Int64
	changes atomic.Int64
}

// List implements vfs.FS.
func (l *lists) List(dir string) ([]string, error) {
	l.n.Add(1)
	return l.FS.List(dir)
}

// Create implements vfs.FS.
func (l *lists) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	l.changes.Add(1)
	return l.FS.Create(name, c)
}

// Remove implements vfs.FS.
func (l *lists) Remove(name string) error {
	l.changes.Add(1)
	return l.FS.Remove(name)
}

// Rename implements vfs.FS.
func (l *lists) Rename(from, to string) error {
	l.changes.Add(1)
	return l.FS.Rename(from, to)
}

// ReuseForWrite implements vfs.FS.
func (l *lists) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	l.changes.Add(1)
	return l.FS.ReuseForWrite(from, to, c)
}

// Ensure that Stats of an encrypted database lists its directory only when files have come or gone, and while files need an older key at most once a second; and that its number is right after each
// step of a rotation.
func TestRotate_StatsAreCheap(t *testing.T) {
	t.Parallel()
	fs := &lists{FS: storagetest.NewDisk()}
	k := &changing{ids: []string{"a"}}
	e, err := lsm.Open("db", lsm.Options{FS: fs, EncryptionKeys: k.keys})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	set := func(key string) {
		t.Helper()
		if err := e.Update(context.Background(), true, func(tx storage.Tx) error {
			tx.Set([]byte(key), []byte("x"), nil)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	// Pebble removes files in the background after Open: each may cost a list more.
	listed := func(what string, stats int, perSecond int64) {
		t.Helper()
		begun, before, changes := time.Now(), fs.n.Load(), fs.changes.Load()
		for range stats {
			e.Stats()
		}
		n := fs.n.Load() - before
		if most := 1 + perSecond*(1+int64(time.Since(begun)/time.Second)) + 2*(fs.changes.Load()-changes); n > most {
			t.Errorf("%s: %d calls of Stats have listed the directory %d times, want at most %d", what, stats, n, most)
		}
	}
	set("one")
	listed("a busy database", 1000, 0)
	if n := e.Stats().OlderKeys; n != 0 {
		t.Errorf("%d files need an older key before there is a newer one", n)
	}
	k.set("b", "a")
	if _, err := e.RenewKey(""); err != nil {
		t.Fatal(err)
	}
	older, err := e.OlderKeys()
	if err != nil {
		t.Fatal(err)
	}
	if n := e.Stats().OlderKeys; n == 0 || n != uint64(len(older)) {
		t.Errorf("%d files need an older key, want %d", n, len(older))
	}
	listed("files need an older key", 1000, 1)
	left := rotate(t, e, "b")
	if n := e.Stats().OlderKeys; n != uint64(len(left)) {
		t.Errorf("%d files need an older key after the rotation, want %d", n, len(left))
	}
}
