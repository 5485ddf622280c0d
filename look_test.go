package jay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// look opens what another DB of this process has open.
func look(t *testing.T, dir string) *jay.DB {
	t.Helper()
	db, err := jay.Look(dir, nil)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// owner opens a database that others can look into, whatever engine the tests use.
func owner(t *testing.T, dir string, o jay.Options) *jay.DB {
	t.Helper()
	db, err := jay.Open(dir, &o)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// Ensure that whoever looks into a database sees each write and each change of a definition with the next call, and
// that nothing it does writes.
func TestLook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db := owner(t, dir, jay.Options{})
	there := look(t, dir)
	for i := range 300 {
		_, err := db.Put(ctx, fmt.Sprintf("users/%03d", i), json.RawMessage(fmt.Sprintf(`{"n":%d}`, i%10)), jay.InCollection("Users"))
		must(t, err)
	}
	equal(t, dump(t, there), dump(t, db))

	count := func(q jay.Query[jay.Document]) int64 {
		t.Helper()
		n, err := q.Count(ctx)
		must(t, err)
		return n
	}
	equal(t, count(there.Query("Users").Where(jay.Eq("n", 3))), int64(30))
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"n"}}))
	equal(t, count(there.Query("Users").Where(jay.Eq("n", 3)).NoScan()), int64(30))
	must(t, db.DropIndex(ctx, "Users", "n"))
	_, err := db.Put(ctx, "users/new", json.RawMessage(`{"n":3}`), jay.InCollection("Users"))
	must(t, err)
	equal(t, count(there.Query("Users").Where(jay.Eq("n", 3))), int64(31))

	must(t, db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{Disabled: true}))
	here, err := db.Stats(ctx)
	must(t, err)
	seen, err := there.Stats(ctx)
	must(t, err)
	if !seen.Expiry.Disabled || seen.Engine.Commits != here.Engine.Commits || !reflect.DeepEqual(seen.Collections, here.Collections) || !reflect.DeepEqual(seen.Counters, here.Counters) {
		t.Errorf("its figures: %+v, want %+v", seen, here)
	}
	usage, err := there.DiskUsage(ctx)
	must(t, err)
	if usage.TotalBytes == 0 || usage.FreeBytes <= 0 || len(usage.Collections) != 1 {
		t.Errorf("its disk usage: %+v", usage)
	}
	report, err := there.Verify(ctx, nil)
	must(t, err)
	if report.Found+report.Warned > 0 || report.Documents != 301 {
		t.Errorf("its check: %+v", report)
	}

	var backup bytes.Buffer
	_, err = there.Backup(ctx, &backup)
	must(t, err)
	whole, err := jay.VerifyBackup(ctx, nil, &backup)
	must(t, err)
	equal(t, whole[0].Documents, int64(301))

	_, err = there.Put(ctx, "a", json.RawMessage(`{}`))
	for name, err := range map[string]error{
		"Put": err, "Delete": there.Delete(ctx, "users/new"), "EnsureIndex": there.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"n"}}),
		"Compact": there.Compact(ctx),
	} {
		if !errors.Is(err, jay.ErrReadOnly) || !strings.Contains(err.Error(), "another program") {
			t.Errorf("%s: %v, want ErrReadOnly", name, err)
		}
	}
}

// Ensure that the numbers of a database that reserves them ahead are those that it has used.
func TestLook_Relaxed(t *testing.T) {
	dir := t.TempDir()
	db := owner(t, dir, jay.Options{Durability: jay.Relaxed})
	for range 3 {
		put(t, db, "users|", `{}`)
	}
	want, err := db.Counters(ctx)
	must(t, err)
	got, err := look(t, dir).Counters(ctx)
	must(t, err)
	if !reflect.DeepEqual(got, want) || got.Identities["users|"] != 3 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Ensure that of two programs that open a directory at once, one has it, and each time others look into what that one has.
func TestLook_Race(t *testing.T) {
	dir := t.TempDir()
	for round := range 20 {
		opened := make(chan *jay.DB, 2)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				db, err := jay.Open(dir, nil)
				if err == nil {
					opened <- db
				} else if !errors.Is(err, jay.ErrLocked) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(opened) == 0 {
			t.Fatalf("round %d: no owner", round)
		}
		db := <-opened
		if len(opened) > 0 {
			t.Fatalf("round %d: two owners", round)
		}
		put(t, db, "a", fmt.Sprintf(`{"n":%d}`, round))
		there, err := jay.Look(dir, nil)
		must(t, err)
		equal(t, body(t, there, "a"), fmt.Sprintf(`{"n":%d}`, round))
		must(t, errors.Join(there.Close(), db.Close()))
	}
}

// BenchmarkLook is what a program's own inserts and gets take: with NoLook, with a socket that nobody uses, and while
// another one lists all documents again and again.
func BenchmarkLook(b *testing.B) {
	for _, name := range []string{"noLook", "listening", "looked"} {
		dir := b.TempDir()
		db, err := jay.Open(dir, &jay.Options{Durability: jay.Relaxed, NoLook: name == "noLook"})
		must(b, err)
		for i := range 10_000 {
			_, err := db.Put(ctx, fmt.Sprintf("users/%d", i), json.RawMessage(`{"Name":"Ann","n":1}`))
			must(b, err)
		}
		done, stop := make(chan error, 1), make(chan struct{})
		go func() { done <- nil }()
		if name == "looked" {
			there, err := jay.Look(dir, nil)
			must(b, err)
			<-done
			go func() { done <- errors.Join(listAgain(there, stop), there.Close()) }()
		}
		b.Run(name+"/insert", func(b *testing.B) {
			for b.Loop() {
				_, err := db.Put(ctx, "", json.RawMessage(`{"Name":"Ann","n":1}`))
				must(b, err)
			}
		})
		b.Run(name+"/get", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				_, err := db.Get(ctx, fmt.Sprintf("users/%d", i%10_000))
				must(b, err)
			}
		})
		close(stop)
		must(b, errors.Join(<-done, db.Close()))
	}
}

// listAgain lists all documents again and again until stop is closed.
func listAgain(db *jay.DB, stop chan struct{}) error {
	for {
		for _, err := range db.Documents(ctx, jay.Scan{}) {
			select {
			case <-stop:
				return nil
			default:
			}
			if err != nil {
				return err
			}
		}
	}
}

// Ensure that a feed through the socket follows what the owner writes.
func TestLook_Changes(t *testing.T) {
	dir := t.TempDir()
	db := owner(t, dir, jay.Options{})
	put(t, db, "a", `{}`)
	var ids []string
	for change, err := range look(t, dir).Changes(ctx, "") {
		must(t, err)
		if ids = append(ids, change.ID); change.ID == "b" {
			break
		}
		put(t, db, "b", `{}`)
	}
	equal(t, fmt.Sprint(ids), "[a b]")
}

// Ensure that a database that is closed is told from one that lets none look, and that Close leaves neither a goroutine nor
// a file.
func TestLook_Closed(t *testing.T) {
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	db := owner(t, dir, jay.Options{})
	put(t, db, "a", `{}`)
	there := look(t, dir)
	must(t, db.Close())
	if _, err := there.Get(ctx, "a"); !errors.Is(err, jay.ErrUnavailable) {
		t.Errorf("a get after Close of the owner: %v, want ErrUnavailable", err)
	}
	must(t, there.Close())
	for deadline := time.Now().Add(jaytest.HangGuard); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
	owner(t, dir, jay.Options{NoLook: true})
	if _, err := os.Lstat(filepath.Join(dir, "LOOK")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket: %v", err)
	}
	if _, err := jay.Look(dir, nil); !errors.Is(err, jay.ErrUnavailable) || !strings.Contains(err.Error(), dir) {
		t.Errorf("NoLook: %v, want ErrUnavailable", err)
	}
}

// Ensure that ErrLocked says who has the database open, if that lets others look, and that options which are the owner's are
// refused.
func TestLook_Refused(t *testing.T) {
	dir := t.TempDir()
	owner(t, dir, jay.Options{})
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("a second Open: %v", err)
	}
	for name, o := range map[string]jay.Options{
		"FS":         {FS: storagetest.NewDisk()},
		"CacheBytes": {CacheBytes: 1 << 20},
		"CopyTag":    {CopyTag: "B"},
		"AcceptLoss": {AcceptLoss: func(*jay.DamageError) {}},
	} {
		if _, err := jay.Look(dir, &o); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want ErrOption", name, err)
		}
	}
	if _, err := jay.Look(dir, &jay.Options{DocumentCacheBytes: 1}); !errors.Is(err, jay.ErrShared) {
		t.Errorf("DocumentCacheBytes: %v, want ErrShared", err)
	}
	if _, err := jay.Look(filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v, want fs.ErrNotExist", err)
	}
}

// Ensure that what a killed owner has left does not hinder a check, a reader or the next owner.
func TestLook_LeftOver(t *testing.T) {
	dir := t.TempDir()
	must(t, owner(t, dir, jay.Options{}).Close())
	name := filepath.Join(dir, "LOOK")
	must(t, os.WriteFile(name, []byte("/run/user/1/jay-1/0"), 0o600))
	report, err := jay.VerifyDir(ctx, dir, nil, nil)
	must(t, err)
	equal(t, report.Found+report.Warned, int64(0))
	must(t, owner(t, dir, jay.Options{ReadOnly: true}).Close())
	if _, err := os.Lstat(name); err != nil {
		t.Errorf("a reader has changed it: %v", err)
	}
	db := owner(t, dir, jay.Options{})
	put(t, db, "a", `{}`)
	equal(t, dump(t, look(t, dir)), dump(t, db))
	must(t, db.Checkpoint(ctx, filepath.Join(t.TempDir(), "copy")))
}
