package crash_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// indexedDocs returns a database with 30 documents and an index.
func indexedDocs(t testing.TB) *jay.DB {
	t.Helper()
	db := memory(t, nil)
	if err := db.EnsureIndex(ctx, "Docs", jay.Index{Fields: []string{"n"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		put(t, db, fmt.Sprint("docs/", i), fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Docs"))
	}
	return db
}

// Ensure that a restore which is killed at any sync, or loses its power there, leaves nothing that opens as a
// database but the whole one.
func TestRestore_Crash_AtAnySync(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := indexedDocs(t)
	info, full := backUp(t, db)
	put(t, db, "docs/30", `{"n":30}`, jay.InCollection("Docs"))
	_, more := backUp(t, db, jay.BackupSince(info.ID))

	today := sample.Of(t, 4)
	for _, percent := range []int{0, 50, 100} { // 100 is a process that was killed
		disk := storagetest.NewDisk()
		random := rand.New(rand.NewPCG(uint64(percent), 51))
		var mu sync.Mutex // guards crashed
		var crashed []*storagetest.Disk
		disk.OnEverySync(func() {
			mu.Lock()
			defer mu.Unlock()
			crashed = append(crashed, disk.Crash(percent, random))
		})
		o := jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{FS: disk}}
		if _, err := jay.Restore(ctx, "new", o, bytes.NewReader(full), bytes.NewReader(more)); err != nil {
			t.Fatal(err)
		}
		disk.OnEverySync(nil)
		crashed = append(crashed, disk.Crash(percent, random))
		opened, refused := 0, 0
		for i, d := range crashed {
			if !today.Has(i) && i < len(crashed)-1 {
				continue
			}
			names, err := d.List("/")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				one, err := jay.Open(name, &jay.Options{FS: d, MustExist: true})
				switch {
				case err == nil:
					opened++
					if n := len(documentsOf(t, one)); n != 31 {
						// Before the mark is on disk there is nothing.
						if n != 0 || !strings.HasSuffix(name, ".unfinished") {
							t.Errorf("%d%%, crash %d: %s opens with %d documents", percent, i, name, n)
						}
					}
					closeDB(t, one)
				case !strings.HasSuffix(name, ".unfinished"):
					t.Errorf("%d%%, crash %d: %s: %v", percent, i, name, err)
				case errors.Is(err, jay.ErrRestoring):
					refused++
				}
			}
		}
		if opened == 0 || refused == 0 || len(crashed) < 10 {
			t.Errorf("%d%%: of %d crashes %d are opened, %d refused as not restored to the end", percent, len(crashed), opened, refused)
		}
	}
}

// Ensure that a restore without room for so many files, or on a disk that fails after so many
// syncs, returns an error and leaves nothing that opens.
func TestRestore_NoRoom(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := indexedDocs(t)
	_, full := backUp(t, db)
	today := sample.Of(t, 4)
	for _, fault := range []struct {
		name string
		set  func(disk *storagetest.Disk, n int)
	}{
		{"files", func(disk *storagetest.Disk, n int) { disk.FailCreationsIn("new", n) }},
		{"syncs of the log", func(disk *storagetest.Disk, n int) { disk.FailAfter(n) }},
	} {
		whole := false
		for n := 0; n < 60 && !whole; n++ {
			if !today.Has(n) {
				continue
			}
			disk := storagetest.NewDisk()
			fault.set(disk, n)
			o := jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{FS: disk}}
			_, err := jay.Restore(ctx, "new", o, bytes.NewReader(full))
			disk.Heal()
			names, listErr := disk.List("/")
			if listErr != nil {
				t.Fatal(listErr)
			}
			if whole = err == nil; whole {
				continue
			}
			for _, name := range names {
				if one, err := jay.Open(name, &jay.Options{FS: disk, MustExist: true}); err == nil {
					// Where the disk fails at the end, the directory is whole and cannot be renamed.
					if found := len(documentsOf(t, one)); found != 0 && found != 30 || !strings.HasSuffix(name, ".unfinished") {
						t.Errorf("after %d %s, %s opens with %d documents", n, fault.name, name, found)
					}
					closeDB(t, one)
				}
			}
		}
		if !whole {
			t.Errorf("%s: no restore ended well", fault.name)
		}
	}
}
