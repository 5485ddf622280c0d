package crash_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// fixtures returns the databases of testdata to upgrade, one of each older format and of the first one that features raise.
func fixtures(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join("..", "..", "testdata", "format*", "db"))
	must(t, err)
	if len(dirs) < 4 {
		t.Fatalf("got %q, want a database of each format that was released", dirs)
	}
	return dirs
}

// loadDisk copies a directory to a disk in memory, and syncs it.
func loadDisk(t *testing.T, from, to string) *storagetest.Disk {
	t.Helper()
	disk := storagetest.NewDisk()
	must(t, disk.MkdirAll(to, 0o755))
	entries, err := os.ReadDir(from)
	must(t, err)
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(from, entry.Name()))
		must(t, err)
		f, err := disk.Create(disk.PathJoin(to, entry.Name()), vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = f.Write(text)
		must(t, err)
		must(t, f.Sync())
		must(t, f.Close())
	}
	for _, dir := range []string{to, ""} {
		d, err := disk.OpenDir(dir)
		must(t, err)
		must(t, d.Sync())
		must(t, d.Close())
	}
	return disk
}

// diskFiles returns the names and contents of the files of a directory.
func diskFiles(t *testing.T, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	names, err := fs.List(dir)
	must(t, err)
	files := make(map[string]string)
	for _, name := range names {
		f, err := fs.Open(fs.PathJoin(dir, name))
		must(t, err)
		text, err := io.ReadAll(f)
		must(t, err)
		must(t, f.Close())
		files[name] = string(text)
	}
	return files
}

// upgrade opens a database, waits until all is done that its upgrade has to do, and
// closes it. It returns what it holds.
func upgrade(t *testing.T, disk *storagetest.Disk) (string, error) {
	t.Helper()
	db, err := jay.Open("db", &jay.Options{FS: disk, MustExist: true})
	if err != nil {
		return "", err
	}
	must(t, checks.Counts(db))
	must(t, checks.Indexes(db))
	must(t, checks.Revisions(db))
	text := dump(t, db)
	closeDB(t, db)
	return text, nil
}

// Ensure that a power failure at any sync of the upgrade of an older database loses
// nothing: the next Open finishes it.
func TestUpgrade_PowerCut(t *testing.T) {
	t.Parallel()
	for _, fixture := range fixtures(t) {
		t.Run(filepath.Base(filepath.Dir(fixture)), func(t *testing.T) {
			t.Parallel()
			from := fixture
			want, err := upgrade(t, loadDisk(t, from, "db"))
			must(t, err)
			cuts := 0
			today := sample.Of(t, 5)
			for happened := true; happened; cuts++ {
				if !today.Has(cuts) {
					continue
				}
				for _, keep := range []int{0, 50, 100} {
					if happened = upgradeCut(t, from, cuts, keep, want); !happened || t.Failed() {
						break
					}
				}
				if t.Failed() {
					return
				}
			}
			if cuts < 4 {
				t.Errorf("%d syncs, want those of the control file, of the format and of a close", cuts)
			}
			t.Logf("%d syncs", cuts-1)
		})
	}
}

// upgradeCut cuts the power at the sync of an upgrade that n others precede, and upgrades
// what is left. It returns false if the upgrade has no such sync.
func upgradeCut(t *testing.T, from string, n, keep int, want string) bool {
	t.Helper()
	disk := loadDisk(t, from, "db")
	var mu sync.Mutex // syncs come from several goroutines
	var found *storagetest.Disk
	left := n
	disk.OnEverySync(func() {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == -1 {
			found = disk.Crash(keep, rand.New(rand.NewPCG(uint64(n), uint64(keep))))
		}
	})
	_, err := upgrade(t, disk)
	must(t, err)
	disk.OnEverySync(nil)
	mu.Lock()
	defer mu.Unlock()
	if found == nil {
		return false
	}
	format := diskFiles(t, found, "db")["JAY"]
	if !strings.HasPrefix(format, "jay database, format ") {
		t.Errorf("sync %d, %d %% kept: JAY is %q", n, keep, format)
	}
	if got, err := upgrade(t, found); err != nil || got != want {
		t.Errorf("sync %d, %d %% kept: got %s, %v\nwant %s", n, keep, got, err, want)
	}
	if got := diskFiles(t, found, "db")["JAY"]; got != fmt.Sprintf("jay database, format %d\n", storage.BaseFormat) {
		t.Errorf("sync %d, %d %% kept: JAY is %q after the upgrade", n, keep, got)
	}
	return true
}

// Ensure that an older program leaves a newer database as it is, and that its error has
// both formats and what to do.
func TestFormat_Newer(t *testing.T) {
	for _, text := range []string{
		fmt.Sprintf("jay database, format %d\n", storage.Format+1),
		"jay database, format 1000\n",
		"jay database, format 1000\nand lines that only it knows\n",
	} {
		disk := storagetest.NewDisk()
		closeDB(t, open(t, "db", &jay.Options{FS: disk}))
		f, err := disk.Create("db/JAY", vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = f.Write([]byte(text))
		must(t, err)
		must(t, f.Close())
		before := diskFiles(t, disk, "db")

		for name, opts := range map[string]*jay.Options{
			"open":   {FS: disk},
			"copy":   {FS: disk, CopyTag: "B"},
			"repair": {FS: disk, AcceptLoss: func(*jay.DamageError) {}},
		} {
			_, err = jay.Open("db", opts)
			var newer *jay.FormatError
			if !errors.As(err, &newer) || !errors.Is(err, jay.ErrNewerFormat) {
				t.Fatalf("%s: got %v, want a FormatError", name, err)
			}
			equal(t, newer.What, "database")
			equal(t, newer.Newest, storage.Format)
			for _, part := range []string{`"db"`, fmt.Sprintf("format %d", newer.Found), fmt.Sprintf("up to %d", storage.Format), "use the newer version", "backup"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: got %q, want %q in it", name, err, part)
				}
			}
		}
		if after := diskFiles(t, disk, "db"); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("the refusal has changed the directory")
		}
	}
}
