package jay_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a checkpoint that is made while everything writes opens, has all that was acknowledged
// before and of what came later a prefix, and that neither notices the other afterwards.
func TestCheckpoint_WhileWriting(t *testing.T) {
	t.Parallel()
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		dir := t.TempDir()
		db := open(t, filepath.Join(dir, "db"), &jay.Options{Durability: durability})
		defer db.Close()
		if err := db.EnsureIndex(ctx, "Docs", jay.Index{Fields: []string{"n"}}); err != nil {
			t.Fatal(err)
		}
		const before = 200
		for i := range before {
			put(t, db, fmt.Sprint("docs/", i), fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Docs"))
		}
		var writer sync.WaitGroup
		done := make(chan struct{})
		writer.Go(func() {
			for i := before; ; i++ {
				select {
				case <-done:
					return
				default:
					put(t, db, fmt.Sprint("docs/", i), fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Docs"))
				}
			}
		})
		for round := range 3 {
			if err := db.Checkpoint(ctx, filepath.Join(dir, fmt.Sprint("copy", round))); err != nil {
				t.Fatal(err)
			}
		}
		close(done)
		writer.Wait()
		for round := range 3 {
			copied := open(t, filepath.Join(dir, fmt.Sprint("copy", round)), &jay.Options{CopyTag: "B", MustExist: true})
			all := documentsOf(t, copied)
			for i := range len(all) {
				if all[fmt.Sprint("docs/", i)] == "" {
					t.Fatalf("round %d: of %d documents, number %d is missing", round, len(all), i)
				}
			}
			if len(all) < before {
				t.Errorf("round %d: %d documents", round, len(all))
			}
			if err := errors.Join(checks.Indexes(copied), checks.Counts(copied)); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			put(t, copied, "only-here", `{}`)
			if err := copied.Compact(ctx); err != nil {
				t.Error(err)
			}
			closeDB(t, copied)
		}
		if _, err := db.Get(ctx, "only-here"); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("a document of a checkpoint: %v", err)
		}
		if err := db.Compact(ctx); err != nil {
			t.Error(err)
		}
		closeDB(t, db)
		db = open(t, filepath.Join(dir, "db"), nil)
		if err := checks.Indexes(db); err != nil {
			t.Error(err)
		}
		closeDB(t, db)
	}
}

// Ensure that a checkpoint takes the place of nothing, lies outside of the database, and
// is refused where it cannot be.
func TestCheckpoint_Refused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	db := open(t, path, nil)
	defer closeDB(t, db)
	put(t, db, "a", `{}`)
	there, unfinished := filepath.Join(dir, "there"), filepath.Join(dir, "begun.unfinished")
	for _, name := range []string{there, unfinished} {
		if err := os.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{there, path, strings.TrimSuffix(unfinished, ".unfinished")} {
		if err := db.Checkpoint(ctx, name); err == nil || name != path && !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	inside := filepath.Join(path, "copy")
	if err := db.Checkpoint(ctx, inside); err == nil {
		t.Error("a checkpoint in the directory of the database")
	}
	if _, err := os.Stat(inside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", inside, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.Checkpoint(ended, filepath.Join(dir, "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if err := memory(t, nil).Checkpoint(ctx, "x"); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("in memory: %v", err)
	}
	if err := db.Checkpoint(ctx, filepath.Join(dir, "good")); err != nil {
		t.Error(err)
	}
}

// Ensure that a disk without room for a checkpoint fails the checkpoint, and not the
// database.
func TestCheckpoint_NoRoom(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	defer closeDB(t, db)
	put(t, db, "a", `{}`)
	for files := range 80 {
		disk.FailCreationsIn("copy", files)
		err := db.Checkpoint(ctx, "copy")
		disk.Heal()
		if err == nil {
			if files < 4 {
				t.Errorf("a checkpoint of %d files", files)
			}
			return
		}
		if names, _ := disk.List("/"); len(names) != 1 {
			t.Errorf("with room for %d files, %q are left", files, names)
		}
		put(t, db, "a", `{}`)
	}
	t.Error("no checkpoint was made")
}

// Ensure that a checkpoint is refused while another one is made.
func TestCheckpoint_OneAtATime(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	defer closeDB(t, db)
	put(t, db, "a", `{}`)
	var asked atomic.Bool
	var second error
	disk.OnEverySync(func() {
		names, _ := disk.List("/")
		begun := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "first") })
		if begun && asked.CompareAndSwap(false, true) {
			second = db.Checkpoint(ctx, "second")
		}
	})
	if err := db.Checkpoint(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	disk.OnEverySync(nil)
	if second == nil || !strings.Contains(second.Error(), "another") {
		t.Errorf("a second one: %v", second)
	}
	if err := db.Checkpoint(ctx, "third"); err != nil {
		t.Error(err)
	}
}
