//go:build unix

package jay_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// smallDirectory makes a database as a killed process leaves it, and returns a function that copies it and
// finds the newest file whose name begins or ends like a given one.
func smallDirectory(t *testing.T) func(like string) (dir, file string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "db")
	db := open(t, dir, &jay.Options{NoLook: true}) // a socket cannot be copied
	put(t, db, "a", `{"n":1}`)
	must(t, db.Compact(ctx))
	put(t, db, "b", `{"n":2}`)
	must(t, db.Flush(ctx))
	left := copyOpen(t, dir)
	must(t, db.Close())
	return func(like string) (dir, file string) {
		dir = filepath.Join(t.TempDir(), "db")
		must(t, os.CopyFS(dir, os.DirFS(left)))
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), like) || strings.HasSuffix(e.Name(), like) {
				file = e.Name()
				if like == "JAY" {
					break
				}
			}
		}
		return dir, file
	}
}

// copyOpen copies the files of an open database that nobody writes to. The engine removes files that a
// compaction has replaced a moment later, so the copy is repeated until no file came or went meanwhile.
func copyOpen(t *testing.T, dir string) string {
	t.Helper()
	for {
		before, err := os.ReadDir(dir)
		must(t, err)
		to := filepath.Join(t.TempDir(), "left")
		failed := os.CopyFS(to, os.DirFS(dir))
		after, err := os.ReadDir(dir)
		must(t, err)
		if slices.EqualFunc(before, after, func(a, b os.DirEntry) bool { return a.Name() == b.Name() }) {
			must(t, failed)
			return to
		}
	}
}

// Ensure that files of a database to which 256 MB of nothing were appended are checked and repaired in
// little memory, and nothing is lost.
func TestVerifyDir_Holes(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	copied := smallDirectory(t)
	for _, like := range []string{".log", "MANIFEST", "OPTIONS", "JAY.control", "JAY"} {
		dir, file := copied(like)
		f, err := os.OpenFile(filepath.Join(dir, file), os.O_RDWR, 0)
		must(t, err)
		info, err := f.Stat()
		must(t, err)
		must(t, f.Truncate(info.Size()+256<<20))
		must(t, f.Close())

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = jay.VerifyDir(ctx, dir, nil, nil)
		must(t, err)
		report, err := jay.Repair(ctx, dir, filepath.Join(t.TempDir(), "new"), nil, nil)
		runtime.ReadMemStats(&after)
		if err != nil || report.Documents != 2 || len(report.Lost) > 0 {
			t.Errorf("%s: %+v, %v", file, report, err)
		}
		if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 128 {
			t.Errorf("%s: %d MB were allocated", file, n)
		}
	}
}

// Ensure that a named pipe, a device or a directory in the place of a file of a database keeps nobody
// waiting: Open returns an error that names it, and a check tells.
func TestVerifyDir_NoRegularFile(t *testing.T) {
	copied := smallDirectory(t)
	for _, like := range []string{"JAY", "JAY.control", ".log", "MANIFEST", ".sst", "OPTIONS"} {
		for name, make := range map[string]func(path string) error{
			"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"device":    func(path string) error { return os.Symlink("/dev/zero", path) },
			"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		} {
			dir, file := copied(like)
			must(t, os.Remove(filepath.Join(dir, file)))
			must(t, make(filepath.Join(dir, file)))

			report, err := jay.VerifyDir(ctx, dir, nil, nil)
			told := err == nil && report.Found > 0
			for _, d := range report.Damages {
				told = told || d.File == file
			}
			if err != nil || !told {
				t.Errorf("%s is a %s: VerifyDir: %+v, %v", file, name, report.Damages, err)
			}
			db, err := jay.Open(dir, nil)
			if like == "OPTIONS" && err == nil {
				must(t, db.Close())
				continue
			}
			var damage *jay.DamageError
			if !errors.As(err, &damage) || damage.File != file {
				t.Errorf("%s is a %s: Open: %v", file, name, err)
			}
		}
	}
}

// Ensure that a check tells of a damaged file of the engine's options, which Open passes over, and that nothing is
// lost by it.
func TestVerifyDir_DamagedOptions(t *testing.T) {
	copied := smallDirectory(t)
	dir, file := copied("OPTIONS")
	must(t, os.WriteFile(filepath.Join(dir, file), []byte("nonsense"), 0o600))
	report, err := jay.VerifyDir(ctx, dir, nil, nil)
	must(t, err)
	if report.Found != 1 || report.Damages[0].File != file || report.Damages[0].Kind != "file-damaged" || !strings.Contains(report.Damages[0].Problem, "writes them anew") || report.Damages[0].Remedy != "open the database for writing once" {
		t.Errorf("%+v", report.Damages)
	}
	db, err := jay.Open(dir, nil)
	must(t, err)
	must(t, db.Close())
	if report, err = jay.VerifyDir(ctx, dir, nil, nil); err != nil || report.Found != 0 {
		t.Errorf("after an Open: %+v, %v", report.Damages, err)
	}
}
