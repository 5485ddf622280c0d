package jay_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/room"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a clock in a year that no date of RFC 3339 has is refused by name, and that
// the directory can be opened afterwards.
func TestOpen_ClockFarOff(t *testing.T) {
	for _, year := range []int{-5, 10_000, 250_000} {
		dir := filepath.Join(t.TempDir(), "db")
		now := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		_, err := jay.Open(dir, &jay.Options{Now: func() time.Time { return now }})
		if !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), "the clock") {
			t.Errorf("year %d: got %v, want an ErrOption that names the clock", year, err)
		}
		db, err := jay.Open(dir, nil)
		must(t, err)
		must(t, db.Close())
	}
}

// Ensure that a clock that jumps out of the years that a date has is refused by name by
// whatever stores its time, that this changes nothing, and that the database goes on when
// the clock is right again.
func TestClock_JumpsFarOff(t *testing.T) {
	for _, year := range []int{10_000, 70_000, 250_000} {
		var jumped atomic.Bool
		db, err := jay.Open(filepath.Join(t.TempDir(), "db"), &jay.Options{Now: func() time.Time {
			if jumped.Load() {
				return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			}
			return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		}})
		must(t, err)
		_, err = db.Put(ctx, "users/1", []byte(`{"A":1}`), jay.InCollection("Users"))
		must(t, err)
		jumped.Store(true)
		for what, do := range map[string]func() error{
			"put":          func() error { _, err := db.Put(ctx, "users/2", []byte(`{}`)); return err },
			"delete":       func() error { return db.Delete(ctx, "users/1") },
			"hilo":         func() error { _, err := db.Put(ctx, "orders/", []byte(`{}`)); return err },
			"rename":       func() error { _, err := db.RenameCollection(ctx, "Users", "People"); return err },
			"drop":         func() error { _, err := db.DropCollection(ctx, "Users"); return err },
			"backup":       func() error { _, err := db.Backup(ctx, io.Discard); return err },
			"subscription": func() error { return db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "s", Query: "from Users"}) },
		} {
			if err := do(); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), "the clock") {
				t.Errorf("year %d, %s: got %v, want an ErrOption that names the clock", year, what, err)
			}
		}
		jumped.Store(false)
		if doc, err := db.Get(ctx, "users/1"); err != nil || string(doc.Body()) != `{"A":1}` || doc.Collection() != "Users" {
			t.Errorf("year %d: the document is %v, %v", year, doc, err)
		}
		_, err = db.Put(ctx, "orders/", []byte(`{}`))
		must(t, err)
		must(t, db.Close())
	}
}

// useDirectory makes databases in dir in each way there is, with files of each kind.
func useDirectory(t *testing.T, dir string, group bool) {
	t.Helper()
	options := func() *jay.Options { return &jay.Options{GroupReadable: group, MemTableBytes: 1 << 20} }
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	used, ctx := filepath.Join(dir, "made", "used"), t.Context()
	db, err := jay.Open(used, options())
	do(err)
	do(db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"N"}}))
	filler := strings.Repeat("x", 1<<10)
	for i := range 4 { // logs are made, and used again
		for j := range 20 {
			_, err := db.Put(ctx, fmt.Sprint("users/", j), fmt.Appendf(nil, `{"N":%d,"Filler":%q,"@metadata":{"@collection":"Users"}}`, i*j, filler))
			do(err)
		}
		do(db.Compact(ctx))
	}
	_, err = db.Attachments("users/1").Put(ctx, "a", strings.NewReader(strings.Repeat(filler, 100)))
	do(err)
	var backup bytes.Buffer
	_, err = db.Backup(ctx, &backup)
	do(err)
	do(db.Checkpoint(ctx, filepath.Join(dir, "checkpoint")))
	do(db.Close())
	_, err = jay.Restore(ctx, filepath.Join(dir, "restored"), jay.RestoreOptions{CopyTag: "B", Options: options()}, &backup)
	do(err)
	_, err = jay.Repair(ctx, used, filepath.Join(dir, "repaired"), options(), nil)
	do(err)
	do(os.Remove(filepath.Join(used, "LOCK")))
	_, err = jay.VerifyDir(ctx, used, options(), nil)
	do(err)
}

// Ensure that the files and directories of a database are for their owner only, and with
// Options.GroupReadable for the group to read, too: logs, tables, manifests, checkpoints,
// restored and repaired databases.
func TestOpen_FilesAreNotForOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode")
	}
	for _, group := range []bool{false, true} {
		t.Run(fmt.Sprint("group=", group), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			useDirectory(t, dir, group)
			files, dirs := fs.FileMode(0o600), fs.FileMode(0o700)
			if group {
				files, dirs = 0o640, 0o750
			}
			kinds := map[string]bool{}
			err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
				if err != nil || name == dir {
					return err
				}
				info, err := d.Info()
				if err != nil {
					return err
				}
				want := files
				if d.IsDir() {
					want = dirs
				}
				kinds[filepath.Ext(name)] = true
				if got := info.Mode().Perm(); got != want {
					t.Errorf("%s has mode %o, want %o", name, got, want)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !kinds[".sst"] || !kinds[".log"] {
				t.Errorf("the database has files of kinds %v only", kinds)
			}
		})
	}
}

// Ensure that files that others can read are told in the log, and keep their modes.
func TestOpen_FilesForOthersAreTold(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode")
	}
	dir := t.TempDir()
	open := func() string {
		t.Helper()
		var log bytes.Buffer
		db, err := jay.Open(dir, &jay.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	const told = "other users of the machine can read"
	if log := open(); strings.Contains(log, told) {
		t.Error(log)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if log := open(); strings.Contains(log, told) {
		t.Error("nothing in the directory is for others:", log)
	}
	if err := os.Chmod(filepath.Join(dir, "JAY"), 0o644); err != nil {
		t.Fatal(err)
	}
	if log := open(); strings.Count(log, told) != 1 || !strings.Contains(log, "file=JAY") {
		t.Error(log)
	}
	info, err := os.Stat(filepath.Join(dir, "JAY"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Error(info.Mode(), err)
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if log := open(); strings.Contains(log, told) {
		t.Error("others cannot enter the directory:", log)
	}
}

// recordingFS notes which files are created on the file system that it wraps.
type recordingFS struct {
	lsm.FS
	mu      sync.Mutex
	created []string // Guarded by mu.
}

func (r *recordingFS) Unwrap() lsm.FS { return r.FS }

func (r *recordingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	r.mu.Lock()
	r.created = append(r.created, name)
	r.mu.Unlock()
	return r.FS.Create(name, category)
}

// Ensure that a database uses the file system of its options, and that a wrapped
// one locks the directory of the operating system as Open without it does.
func TestOptions_FS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	recorder := &recordingFS{FS: vfs.Default}
	db := open(t, dir, &jay.Options{FS: recorder})
	equal(t, put(t, db, "users/1", `{"n":1}`).ID, "users/1")
	for name, opts := range map[string]*jay.Options{
		"the same wrapper": {FS: recorder},
		"another wrapper":  {FS: &recordingFS{FS: vfs.Default}},
		"no wrapper":       nil,
	} {
		if _, err := jay.Open(dir, opts); !errors.Is(err, jay.ErrLocked) {
			t.Errorf("open by %s: %v, want ErrLocked", name, err)
		}
	}
	closeDB(t, db)

	kinds := make(map[string]bool)
	for _, name := range recorder.created {
		base := filepath.Base(name)
		kinds[strings.TrimRight(base, "0123456789-")] = true
		kinds[filepath.Ext(base)] = true
	}
	for _, kind := range []string{"JAY.tmp", "MANIFEST", ".log"} {
		if !kinds[kind] {
			t.Errorf("no %s was created through the file system: %v", kind, recorder.created)
		}
	}
	db = open(t, dir, &jay.Options{MustExist: true})
	equal(t, body(t, db, "users/1"), `{"n":1}`)
	closeDB(t, db)
}

// Ensure that a database in memory refuses a file system.
func TestOptions_FS_Memory(t *testing.T) {
	if _, err := jay.OpenMemory(&jay.Options{FS: vfs.NewMem()}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("got %v, want ErrOption", err)
	}
}

// lookAlways makes each write look at what is free on the disk.
func lookAlways(t *testing.T) {
	old := room.Interval
	room.Interval = 0
	t.Cleanup(func() { room.Interval = old })
}

// Ensure that no write gets through while less is free on the disk than must stay free,
// that deletions and reads do, and that writes go on when there is room again.
func TestMinFreeBytes(t *testing.T) {
	lookAlways(t)
	ctx := context.Background()
	disk := storagetest.NewDisk()
	disk.SetFreeBytes(10 << 20)
	var log bytes.Buffer
	db := open(t, "db", &jay.Options{FS: disk, MinFreeBytes: 1 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range 10 {
		_, err := db.Put(ctx, fmt.Sprint("users/", i), json.RawMessage(`{"n":1}`), jay.InCollection("Users"))
		must(t, err)
	}

	writes := map[string]func() error{
		"put":     func() error { _, err := db.Put(ctx, "users/1", json.RawMessage(`{"n":2}`)); return err },
		"insert":  func() error { _, err := db.Insert(ctx, "users/x", json.RawMessage(`{}`)); return err },
		"store":   func() error { _, err := db.Store(ctx, "Users", json.RawMessage(`{}`)); return err },
		"replace": func() error { _, err := db.Replace(ctx, "users/1", json.RawMessage(`{"n":2}`)); return err },
		"patch":   func() error { _, err := db.Patch(ctx, "users/1", jay.Set("n", 3)); return err },
		"batch": func() error {
			var b jay.Batch
			b.Delete("users/2")
			b.Put("users/3", json.RawMessage(`{"n":4}`))
			_, err := db.Apply(ctx, &b)
			return err
		},
		"update": func() error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				_, err := tx.Put(ctx, "users/1", json.RawMessage(`{"n":5}`))
				return err
			})
		},
		"query": func() error {
			_, err := db.Query("Users").Patch(ctx, jay.Set("n", 6))
			return err
		},
		"bulk": func() error {
			w, err := db.BulkInsert(nil)
			if err != nil {
				return err
			}
			_, err = w.Put(ctx, "users/y", json.RawMessage(`{}`))
			return errors.Join(err, w.Close())
		},
		"attachment": func() error {
			_, err := db.Attachments("users/1").Put(ctx, "a", strings.NewReader(strings.Repeat("a", 1<<20)))
			return err
		},
		"value":  func() error { _, err := db.CompareExchange().Put(ctx, "lock", 1, 0); return err },
		"rename": func() error { _, err := db.RenameCollection(ctx, "Users", "People"); return err },
	}
	disk.SetFreeBytes(1<<20 - 1)
	before, err := db.Counters(ctx)
	must(t, err)
	for name, write := range writes {
		err := write()
		var full *jay.DiskFullError
		if !errors.As(err, &full) || !errors.Is(err, jay.ErrDiskFull) {
			t.Errorf("%s: got %v, want a DiskFullError", name, err)
			continue
		}
		if *full != (jay.DiskFullError{Dir: "db", FreeBytes: 1<<20 - 1, MinFreeBytes: 1 << 20}) {
			t.Errorf("%s: %+v", name, *full)
		}
	}
	after, err := db.Counters(ctx)
	must(t, err)
	if after.Etag != before.Etag {
		t.Errorf("the etag has gone from %d to %d", before.Etag, after.Etag)
	}
	if s, err := db.Stats(ctx); err != nil || !s.DiskFull {
		t.Errorf("Stats: DiskFull %v, %v", s.DiskFull, err)
	}
	for i := range 10 {
		doc, err := db.Get(ctx, fmt.Sprint("users/", i))
		must(t, err)
		if string(doc.Body()) != `{"n":1}` {
			t.Errorf("users/%d has changed: %s", i, doc.Body())
		}
	}
	must(t, db.Delete(ctx, "users/0"))
	must(t, db.Update(ctx, func(tx *jay.Tx) error { return tx.Delete(ctx, "users/9") }))
	if _, err := db.Query("Nobody").Delete(ctx); err != nil {
		t.Error(err)
	}
	must(t, db.Compact(ctx))

	disk.SetFreeBytes(10 << 20)
	for _, name := range []string{"put", "insert", "store", "replace", "patch", "batch", "update", "query", "bulk", "attachment", "value", "rename"} {
		if err := writes[name](); err != nil {
			t.Errorf("%s, with room: %v", name, err)
		}
	}
	if s, err := db.Stats(ctx); err != nil || s.DiskFull {
		t.Errorf("Stats, with room: DiskFull %v, %v", s.DiskFull, err)
	}
	must(t, checks.Counts(db))
	must(t, db.Close())
	for _, text := range []string{"level=ERROR msg=\"jay: the disk is almost full", "level=INFO msg=\"jay: the disk has room again"} {
		if strings.Count(log.String(), text) != 1 {
			t.Errorf("the log has %d times %q:\n%s", strings.Count(log.String(), text), text, log.String())
		}
	}
}

// Ensure that writes which follow the last look at the disk are counted: together they
// do not take what must stay free, and neither does one large one.
func TestMinFreeBytes_BetweenLooks(t *testing.T) {
	old := room.Interval
	room.Interval = time.Hour
	defer func() { room.Interval = old }()
	ctx := context.Background()
	disk := storagetest.NewDisk()
	disk.SetFreeBytes(3 << 20)
	db := open(t, "db", &jay.Options{FS: disk, MinFreeBytes: 1 << 20})
	large := json.RawMessage(`{"a":"` + strings.Repeat("a", 1<<20) + `"}`) // is written twice: log and table
	if _, err := db.Put(ctx, "large", large); !errors.Is(err, jay.ErrDiskFull) {
		t.Errorf("got %v, want ErrDiskFull", err)
	}
	small := json.RawMessage(`{"a":"` + strings.Repeat("a", 100<<10) + `"}`)
	must(t, errOf(db.Put(ctx, "small", small)))
	disk.SetFreeBytes(1<<20 + 100<<10) // less than was expected: a look follows soon
	refused := 0
	for i := range 10 {
		if err := errOf(db.Put(ctx, fmt.Sprint("small/", i), small)); errors.Is(err, jay.ErrDiskFull) {
			refused++
		} else {
			must(t, err)
		}
	}
	if refused < 8 {
		t.Errorf("%d of 10 writes were refused, want all but the first two", refused)
	}
	must(t, db.Close())
}

// errOf returns the error of a call with a result.
func errOf[T any](_ T, err error) error { return err }

// Ensure that what has expired is deleted while the disk is almost full, also where a refresh, which would be
// written, is due at the same time.
func TestMinFreeBytes_Sweep(t *testing.T) {
	defer checks.NoSweeper()()
	lookAlways(t)
	ctx := context.Background()
	disk, now := storagetest.NewDisk(), time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	disk.SetFreeBytes(10 << 20)
	db := open(t, "db", &jay.Options{FS: disk, MinFreeBytes: 1 << 20, Now: func() time.Time { return now }})
	_, err := db.Put(ctx, "a", []byte(`{}`), jay.ExpiresAt(now.Add(time.Minute)))
	must(t, err)
	_, err = db.Put(ctx, "b", []byte(`{}`), jay.RefreshAt(now.Add(time.Minute)))
	must(t, err)
	disk.SetFreeBytes(1<<20 - 1)
	if _, err = db.Put(ctx, "c", []byte(`{}`)); !errors.Is(err, jay.ErrDiskFull) {
		t.Errorf("got %v, want ErrDiskFull", err)
	}

	now = now.Add(time.Hour)
	swept, err := db.Sweep(ctx)
	must(t, err)
	equal(t, swept, jay.Swept{Deleted: 1})
	disk.SetFreeBytes(10 << 20)
	_, err = db.Put(ctx, "c", []byte(`{}`)) // looks
	must(t, err)
	now = now.Add(time.Hour) // it is tried again after a minute
	swept, err = db.Sweep(ctx)
	must(t, err)
	equal(t, swept, jay.Swept{Refreshed: 1})
	closeDB(t, db)
}

// Ensure that Open refuses MinFreeBytes on a file system that does not know what is free,
// and that it does not matter in memory.
func TestMinFreeBytes_Unknown(t *testing.T) {
	if _, err := jay.Open("db", &jay.Options{FS: storagetest.NewDisk(), MinFreeBytes: 1}); err == nil {
		t.Error("opened, though nothing is known of the disk")
	}
	if _, err := jay.Open("db", &jay.Options{FS: storagetest.NewDisk(), MinFreeBytes: -1}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("got %v, want ErrOption", err)
	}
	db, err := jay.OpenMemory(&jay.Options{MinFreeBytes: 1 << 60})
	must(t, err)
	must(t, errOf(db.Put(context.Background(), "a", json.RawMessage(`{}`))))
	must(t, db.Close())
	real, err := jay.Open(t.TempDir(), &jay.Options{MinFreeBytes: 1})
	must(t, err)
	must(t, errOf(real.Put(context.Background(), "a", json.RawMessage(`{}`))))
	must(t, real.Close())
}

// Ensure that the build of an index waits until there is room, and that Close ends it.
func TestMinFreeBytes_IndexBuild(t *testing.T) {
	old := room.Interval
	room.Interval = time.Millisecond
	defer func() { room.Interval = old }()
	ctx := context.Background()
	disk := storagetest.NewDisk()
	disk.SetFreeBytes(10 << 20)
	db := open(t, "db", &jay.Options{FS: disk, MinFreeBytes: 1 << 20})
	must(t, errOf(db.Put(ctx, "users/1", json.RawMessage(`{"n":1}`), jay.InCollection("Users"))))
	disk.SetFreeBytes(0)
	for errOf(db.Put(ctx, "x", json.RawMessage(`{}`))) == nil {
		time.Sleep(time.Millisecond) // until the next look
	}
	waiting, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := db.EnsureIndex(waiting, "Users", jay.Index{Fields: []string{"n"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context: the build waits", err)
	}
	disk.SetFreeBytes(10 << 20)
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"n"}}))
	must(t, db.Close())
}

// Ensure that a database of each format, written by the version that released it
// (internal/fixture), opens and says what it said then.
func TestFormat1(t *testing.T) { testFormat(t, "format1") }

func TestFormat2(t *testing.T) { testFormat(t, "format2") }

func TestFormat3(t *testing.T) { testFormat(t, "format3") }

func testFormat(t *testing.T, format string) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", format, "db"), dir)
	db := open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	number, err := os.ReadFile(filepath.Join(dir, "JAY"))
	must(t, err)
	equal(t, string(number), "jay database, format 4\n")

	const written = `"@last-modified":"2026-11-21T12:00:00.0000000Z"`
	want := []string{
		`{"n":9007199254740993,"@metadata":{"@collection":"Users"|F:4|"@id":"away"`,
		`{"Max":1,"@metadata":{"@collection":"@hilo"|F:11|"@id":"Raven/HiLo/users"`,
		`{"@metadata":{"@collection":"Users"|F:6|"@id":"users/0000000000000000006-F"`,
		`{"@metadata":{"@collection":"Users"|F:5|"@id":"users/1"`,
		`{"@metadata":{"@collection":"Users"|F:10|"@id":"users/1-F"`,
		`{"Name":"Ann","@metadata":{"mine":1,"@collection":"Users"|F:2|"@id":"users/ann"`,
		`{"Name":"Bob","@metadata":{"@collection":"Users"|F:3|"@id":"Users/BOB"`,
		`{"@metadata":{|F:9|"@id":"users/stranger"`,
	}
	lines := strings.Split(dump(t, db), "\n")
	if len(lines) != len(want)+1 {
		t.Fatalf("got %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for i, w := range want {
		for _, part := range append(strings.Split(w, "|"), written) {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d: got %s, want %s in it", i+1, lines[i], part)
			}
		}
	}
	equal(t, lines[len(want)], `{"etag":11,"identities":{"users|":1},"hilo":{"users":1}}`)

	users := 0
	for range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		users++
	}
	equal(t, users, 6)
	collections, err := db.Collections(ctx)
	must(t, err)
	equal(t, fmt.Sprint(collections), "[{@empty 1} {@hilo 1} {Users 6}]")
	equal(t, put(t, db, "users|", `{}`).ID, "users/2")
	equal(t, store(t, db, "Users"), "users/2-F")
}

// Ensure that a database of format 1 becomes one of the newest format when it is
// opened, so that a program that does not write the control file, or does not count the
// documents, leaves it alone from then on, and that damage to it is noticed from the
// first close on.
func TestFormat1_Upgrade(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format1", "db"), dir)
	closeDB(t, open(t, dir, &jay.Options{MustExist: true}))
	text, err := os.ReadFile(filepath.Join(dir, "JAY"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, string(text), "jay database, format 4\n")
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	if err := os.Remove(logs[len(logs)-1]); err != nil {
		t.Fatal(err)
	}
	var damage *jay.DamageError
	if _, err := jay.Open(dir, nil); !errors.As(err, &damage) || damage.File != filepath.Base(logs[len(logs)-1]) {
		t.Errorf("the newest log is missing: got %v", err)
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, filepath.Base(path)), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFormat4(t *testing.T) { testFormat(t, "format4") }

// zeroReader makes the ID of a database that of the fixture.
type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Ensure that the database of format 4 with revisions, attachments, documents that expire,
// subscriptions and records of deletions (internal/fixture) opens, says what it said
// then, and goes on.
func TestFormat4_Time(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format4", "time"), dir)
	db := open(t, dir, &jay.Options{MustExist: true, Rand: zeroReader{}, Now: func() time.Time { return now }})
	defer closeDB(t, db)

	rules, err := json.Marshal(db.Revisions().Configuration())
	must(t, err)
	equal(t, string(rules), `{"default":{"keep":3},"collections":{"Logs":{"disabled":true},"Orders":{"keepForNs":3600000000000}}}`)
	equal(t, jaytest.RevisionBodies(t, db, "users/ann", jay.RevisionPage{}), `{"n":3} {"n":3} {"n":3}`)
	equal(t, jaytest.RevisionBodies(t, db, "users/bob", jay.RevisionPage{}), `- {"n":1}`)
	equal(t, jaytest.RevisionBodies(t, db, "logs/1", jay.RevisionPage{}), "")
	for rev, err := range db.Revisions().Deleted(ctx, "") {
		must(t, err)
		equal(t, rev.ID(), "users/bob")
	}
	must(t, checks.Revisions(db))

	large := []byte(strings.Repeat("0123456789abcdef", 20_000))
	for _, a := range []struct {
		id, name string
		content  []byte
	}{{"users/ann", "small", []byte("hello")}, {"users/ann", "large", large}, {"leases/1", "../copy", large}} {
		got, err := attached(t, db.Attachments(a.id), a.name)
		must(t, err)
		equal(t, bytes.Equal(got, a.content), true)
	}
	equal(t, jaytest.AttachmentCounts(t, db), jay.AttachmentStats{Attachments: 3, Bytes: 640_005, Contents: 2, StoredBytes: 320_005})
	jaytest.CheckContents(t, db)

	equal(t, custom(t, db, "leases/1"), `{"@expires":"2926-11-21T12:00:00.0000000Z","@refresh":"2826-11-21T12:00:00.0000000Z"}`)
	must(t, checks.Times(db))

	equal(t, jaytest.ChangesText(changed(t, db, "F:4-AAAAAAAAAAAAAAAAAAAAAA")), "-users/bob@5 -logs/1@7 +users/ann@10 +leases/1@11 +users/cyd@12")
	all, err := db.Subscriptions().List(ctx)
	must(t, err)
	text, err := json.Marshal(all)
	must(t, err)
	equal(t, string(text), `[`+
		`{"name":"deletions","query":"from Users","deletions":true,"maxFailures":5,"retryDelayNs":1000000000,"created":"2026-11-21T12:00:00Z","position":0,"behind":12,"acknowledged":0},`+
		`{"name":"mail","query":"from Users where n \u003e 2 select n","maxFailures":7,"retryDelayNs":1000000000,"created":"2026-11-21T12:00:00Z","position":11,"behind":1,"acknowledged":0,"lastBatch":"2026-11-21T12:00:00Z","failing":1},`+
		`{"name":"off","query":"from @all_docs","maxFailures":5,"retryDelayNs":1000000000,"created":"2026-11-21T12:00:00Z","disabled":true,"position":0,"behind":12,"acknowledged":0}]`)
	failures, err := db.Subscriptions().Failures(ctx, "mail")
	must(t, err)
	equal(t, fmt.Sprintf("%+v", failures), "[{ID:users/ann Etag:10 Failures:1 Dead:false Error:no such address Due:2026-11-21 12:00:01 +0000 UTC Deleted:false}]")

	// It goes on.
	equal(t, sent(t, db, "deletions", jay.WorkOptions{}), "-users/bob users/ann users/cyd")
	put(t, db, "users/ann", `{"n":4}`, jay.InCollection("Users"))
	equal(t, sent(t, db, "mail", jay.WorkOptions{}), "users/cyd users/ann")
	must(t, db.Delete(ctx, "users/ann"))
	must(t, db.Delete(ctx, "leases/1"))
	jaytest.CheckContents(t, db)
	equal(t, jaytest.AttachmentCounts(t, db).Contents, int64(0))
	must(t, checks.Revisions(db))
	must(t, checks.Times(db))
}

// Ensure that the database of format 5 with definitions (internal/fixture) opens, says what it said then, and goes on; and that
// a program which does not know definitions refuses it by that name.
func TestFormat5_Definitions(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format5", "definitions"), dir)
	before := hashesOf(t, dir)
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: storage.Features{}}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 5 || newer.Newest != 4 || !slices.Equal(newer.Features, []string{"definitions"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)

	said := func(db *jay.DB) (text string) {
		t.Helper()
		for _, kind := range []string{"colors", "raven-index", "none"} {
			all, err := db.Definitions().List(ctx, kind)
			must(t, err)
			for _, d := range all {
				text += fmt.Sprintf("%s %s %d %s; ", kind, d.Name, d.Number, d.Value)
			}
		}
		last, err := db.Definitions().Last(ctx)
		must(t, err)
		return text + fmt.Sprint(last)
	}
	const want = `colors sky 3 {"is": "grey", "unknown": [1.50]}; raven-index users/byname 4 {"Maps":[]}; 4`
	db := open(t, dir, &jay.Options{ReadOnly: true})
	equal(t, said(db), want)
	closeDB(t, db)

	db = open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	equal(t, said(db), want)
	jaytest.Verify(t, db)
	must(t, db.Definitions().Change(ctx, jay.DefinitionChange{Kind: "colors", Name: "sky", Value: json.RawMessage(`{"is":"red"}`)}))
	equal(t, said(db), `colors sky 5 {"is":"red"}; raven-index users/byname 4 {"Maps":[]}; 5`)
	put(t, db, "users/bob", `{}`, jay.InCollection("Users"))
	jaytest.Verify(t, db)
}

// Ensure that the database of format 6 with indexes as utc (internal/fixture) opens, answers as it did, and goes on; and that
// a program which does not know them refuses it by that name.
func TestFormat6_UTC(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format6", "as-utc"), dir)
	before := hashesOf(t, dir)
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: storage.Features{storage.FeatureDefinitions}}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 6 || newer.Newest != 5 || !slices.Equal(newer.Features, []string{"as utc"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)

	found := func(db *jay.DB, cond jay.Condition, name string) (ids string) {
		t.Helper()
		docs, err := db.Query("Logs").Where(cond).OrderBy("At as utc").UseIndex(name).All(ctx)
		must(t, err)
		for _, d := range docs {
			ids += d.ID() + " "
		}
		return ids
	}
	since := jay.Ge("At as utc", "2026-01-31T23:00:00")
	february := jay.And(jay.Ge("At", "2026"), jay.Eq("month(At as utc)", "2026-02"))
	db := open(t, dir, &jay.Options{ReadOnly: true})
	equal(t, found(db, since, "At as utc"), "logs/0 logs/1 ")
	closeDB(t, db)

	db = open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	put(t, db, "logs/4", `{"At":"2026-02-01 00:00:00"}`, jay.InCollection("Logs"))
	equal(t, found(db, since, "At as utc"), "logs/0 logs/4 logs/1 ")
	equal(t, found(db, february, "february"), "logs/4 logs/1 ")
	jaytest.Verify(t, db)
}

// Ensure that the database of format 8 with IDs of deleted documents (internal/fixture) opens, shows them as they were written, and
// goes on; and that a program which does not know them refuses it by that name.
func TestFormat8_DeletedIDs(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format8", "deleted-ids"), dir)
	before := hashesOf(t, dir)
	older := storage.Features{storage.FeatureDefinitions, storage.FeatureUTC, storage.FeatureStandby}
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 8 || newer.Newest != 7 || !slices.Equal(newer.Features, []string{"deleted ids"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)

	const deletions = "+notes/2-F@2 -notes/1-F@5 -notes/plain@6 -Other@7"
	db := open(t, dir, &jay.Options{ReadOnly: true})
	equal(t, jaytest.ChangesText(changed(t, db, "")), deletions)
	closeDB(t, db)

	db = open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	put(t, db, "other", `{}`)
	must(t, db.Delete(ctx, "notes/2-f"))
	equal(t, jaytest.ChangesText(changed(t, db, "")), deletions[len("+notes/2-F@2 "):]+" +other@8 -notes/2-F@9")
	jaytest.Verify(t, db)
}

// Ensure that the database of format 9 with kept sums (internal/fixture) opens, answers as it did, and goes on; and that a
// program which does not know them refuses it by that name.
func TestFormat9_KeptSums(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format9", "kept-sums"), dir)
	before := hashesOf(t, dir)
	older := storage.Features{storage.FeatureDefinitions, storage.FeatureUTC, storage.FeatureStandby, storage.FeatureDeletedIDs}
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 9 || newer.Newest != 8 || !slices.Equal(newer.Features, []string{"kept sums"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)

	said := func(db *jay.DB) string {
		t.Helper()
		q, err := db.RQL("from Orders group by Customer, year(At) order by Customer select Customer, year(At) as Year, count() as N, sum(Total) as T, avg(Total) as A, sum(Price * Quantity) as P", nil)
		must(t, err)
		rows, err := q.NoScan().All(ctx)
		must(t, err)
		text := ""
		for _, row := range rows {
			text += strings.ReplaceAll(string(row.JSON), strings.Repeat("x", 600), "x…") + "\n"
		}
		return text
	}
	const want = `{"Customer":null,"Year":null,"N":1,"T":0,"A":null,"P":0}
{"Customer":"Ann","Year":"2026","N":2,"T":12,"A":6,"P":12}
{"Customer":"Bob","Year":null,"N":1,"T":1e+300,"A":1e+300,"P":1234567890123.000000001}
{"Customer":"x…","Year":null,"N":1,"T":7,"A":7,"P":0}
`
	db := open(t, dir, &jay.Options{ReadOnly: true})
	equal(t, said(db), want)
	closeDB(t, db)

	db = open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	equal(t, said(db), want)
	jaytest.Verify(t, db)
	must(t, db.Delete(ctx, "orders/2"))
	put(t, db, "orders/0", `{"Customer":"Ann","At":"2026-01-31T12:00:00Z","Total":1}`, jay.InCollection("Orders"))
	equal(t, said(db), `{"Customer":null,"Year":null,"N":1,"T":0,"A":null,"P":0}
{"Customer":"Ann","Year":"2026","N":2,"T":0.5,"A":0.25,"P":0}
{"Customer":"x…","Year":null,"N":1,"T":7,"A":7,"P":0}
`)
	jaytest.Verify(t, db)
}

// Ensure that the database of format 11 with an index of words (internal/fixture) opens, answers as it did, and goes on; and that a
// program which does not know it refuses it by that name.
func TestFormat11_Text(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format11", "text"), dir)
	before := hashesOf(t, dir)
	older := storage.Features(storage.AllFeatures[:6])
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 11 || newer.Newest != 10 || !slices.Equal(newer.Features, []string{"text"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)

	said := func(db *jay.DB, field, search string) string {
		t.Helper()
		var ids []string
		for doc, err := range db.Query("Notes").Where(jay.Search(field, search, jay.WithAnalyzer("whitespace"))).NoScan().Iter(ctx) {
			must(t, err)
			ids = append(ids, doc.ID()[len("notes/"):])
		}
		slices.Sort(ids)
		return strings.Join(ids, "")
	}
	saysAll := func(db *jay.DB) {
		t.Helper()
		for search, want := range map[string]string{"leaves": "125", "fallen": "1", "green": "2", `"leaves of"`: "", `"oak oak"`: "1", "lea* -fallen": "25", "gone": ""} {
			equal(t, said(db, "Text", search), want)
		}
		equal(t, said(db, "Title", "Oak Jay oak gone"), "13")
	}
	db := open(t, dir, &jay.Options{ReadOnly: true})
	saysAll(db)
	closeDB(t, db)

	db = open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	saysAll(db)
	jaytest.Verify(t, db)
	put(t, db, "notes/7", `{"Text":"fallen again"}`, jay.InCollection("Notes"))
	must(t, db.Delete(ctx, "notes/1"))
	equal(t, said(db, "Text", "fallen leaves"), "257")
	jaytest.Verify(t, db)
}

// Ensure that the database of format 12 with computed indexes (internal/fixture) opens, answers as it did, and goes on; and that a
// program which does not know them refuses it by that name.
func TestFormat12_Computed(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format12", "computed"), dir)
	before := hashesOf(t, dir)
	older := storage.Features(storage.AllFeatures[:7])
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 12 || newer.Newest != 11 || !slices.Equal(newer.Features, []string{"computed indexes"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)

	said := func(db *jay.DB, rql string) string {
		t.Helper()
		q, err := db.RQL(rql, nil)
		must(t, err)
		rows, err := q.NoScan().All(ctx)
		must(t, err)
		var all []string
		for _, r := range rows {
			all = append(all, string(r.JSON))
		}
		return strings.Join(all, " ")
	}
	stock, cents := "from index 'Stock' order by Product", "from index 'returns/byprice' where Cents > 20"
	saysAll := func(db *jay.DB) {
		t.Helper()
		equal(t, said(db, stock), `{"Product":"ash","Count":1,"Total":2} {"Product":"oak","Count":2,"Total":5}`)
		equal(t, said(db, cents), `{"Cents":30,"Product":"oak"}`)
	}
	db := open(t, dir, &jay.Options{ReadOnly: true})
	saysAll(db)
	closeDB(t, db)

	db = open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	saysAll(db)
	jaytest.Verify(t, db)
	put(t, db, "returns/2", `{"Product":"ash","Price":5}`, jay.InCollection("Returns"))
	must(t, db.Delete(ctx, "returns/1"))
	equal(t, said(db, stock), `{"Product":"ash","Count":1,"Total":-3} {"Product":"oak","Count":2,"Total":5.3}`)
	equal(t, said(db, cents), `{"Cents":500,"Product":"ash"}`)
	jaytest.Verify(t, db)
}

// Ensure that the database of format 10 with indexes of expressions (internal/fixture) opens, answers as it did, and goes on; and
// that a program which does not know them refuses it by that name.
func TestFormat10_IndexExpressions(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format10", "index-expressions"), dir)
	before := hashesOf(t, dir)
	older := storage.Features{storage.FeatureDefinitions, storage.FeatureUTC, storage.FeatureStandby, storage.FeatureDeletedIDs, storage.FeatureKeptSums}
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 10 || newer.Newest != 9 || !slices.Equal(newer.Features, []string{"index expressions"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)

	said := func(db *jay.DB) string {
		t.Helper()
		text := ""
		for _, rql := range []string{"from Orders where Total / Quantity > 0 select Customer", "from Orders order by Total / Quantity, year(At) desc select Customer, year(At) as Y", "from Orders use index 'Large' where Total - coalesce(Discount, 0) > 5 and 'year(At)' = 'member' select Customer"} {
			q, err := db.RQL(rql, nil)
			must(t, err)
			rows, err := q.NoScan().All(ctx)
			must(t, err)
			for _, row := range rows {
				text += string(row.JSON) + " "
			}
			text += "\n"
		}
		list, err := jay.IndexOf(db, "Orders", "ByEach").Errors(ctx, "", 0)
		must(t, err)
		for _, e := range list {
			text += e.ID + " " + e.Reason + "\n"
		}
		return text
	}
	const want = `{"Customer":"Ann"} 
{"Customer":null,"Y":null} {"Customer":"Bob","Y":null} {"Customer":"Ann","Y":"2025"} {"Customer":"Cyd","Y":null} {"Customer":"Ann","Y":"2026"} 
{"Customer":"Cyd"} 
orders/1 /: a division by zero
orders/2 /: a number is wanted, not the text "one"
`
	db := open(t, dir, &jay.Options{ReadOnly: true})
	first := said(db)
	closeDB(t, db)

	db = open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	equal(t, said(db), first)
	equal(t, sortedWords(first), sortedWords(want))
	jaytest.Verify(t, db)
	must(t, db.Delete(ctx, "orders/1"))
	put(t, db, "orders/2", `{"Customer":"Bob","Total":1}`, jay.InCollection("Orders"))
	list, err := jay.IndexOf(db, "Orders", "ByEach").Errors(ctx, "", 0)
	must(t, err)
	equal(t, len(list), 0)
	jaytest.Verify(t, db)
}

// sortedWords returns the words of a text in their order: those of documents with equal values come by ID.
func sortedWords(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// hashesOf returns the names of all files below dir, with their sizes, times of change and hashes.
func hashesOf(t testing.TB, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprint(path, " ", info.Mode(), " ", info.ModTime().UnixNano())
		if entry.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d %x", len(text), sha256.Sum256(text))
		}
		out = append(out, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// readOnlyFiles makes a checkpoint of a database with some of everything, and returns its directory.
func readOnlyFiles(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "db"), nil)
	defer closeDB(t, db)
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"n"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		put(t, db, fmt.Sprint("users/", i), fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Users"))
	}
	if _, err := db.Attachments("users/1").Put(ctx, "a.txt", strings.NewReader("hello")); err != nil {
		t.Fatal(err)
	}
	if err := db.Checkpoint(ctx, filepath.Join(dir, "copy")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "copy")
}

// Ensure that a checkpoint is read by several handles and processes at once, and that
// neither reads nor refused writes change a byte, a name or a time in it.
func TestReadOnly_SeveralProcesses(t *testing.T) {
	t.Parallel()
	dir := readOnlyFiles(t)
	before := hashesOf(t, dir)
	options := &jay.Options{ReadOnly: true}
	first, second := open(t, dir, options), open(t, dir, options)
	other := child.Start(t, "TestReadOnly_Reader", "JAY_READ_ONLY="+dir)
	if line := other.Line(); line != "50" {
		t.Errorf("another process counts %s", line)
	}
	for _, db := range []*jay.DB{first, second} {
		checkReadOnly(t, db)
	}
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("open to write while others read: %v", err)
	}
	closeDB(t, first)
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("open to write while one reads: %v", err)
	}
	closeDB(t, second)
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("open to write while another process reads: %v", err)
	}
	fmt.Fprintln(other.In)
	if line := other.Line(); line != "closed" {
		t.Errorf("another process: %s", line)
	}
	if after := hashesOf(t, dir); !slices.Equal(before, after) {
		t.Errorf("the directory was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}

	// And a writer keeps readers out.
	writer := open(t, dir, &jay.Options{CopyTag: "B"})
	if _, err := jay.Open(dir, options); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("read while one writes: %v", err)
	}
	put(t, writer, "users/new", `{}`)
	closeDB(t, writer)
	reader := open(t, dir, options)
	if _, err := reader.Get(ctx, "users/new"); err != nil {
		t.Error(err)
	}
	closeDB(t, reader)
}

// TestReadOnly_Reader is the other process of TestReadOnly_SeveralProcesses.
func TestReadOnly_Reader(t *testing.T) {
	dir := os.Getenv("JAY_READ_ONLY")
	if dir == "" {
		t.Skip("only in a process of TestReadOnly_SeveralProcesses")
	}
	db := open(t, dir, &jay.Options{ReadOnly: true})
	n, err := db.Query("Users").Count(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(n)
	var line string
	fmt.Scanln(&line)
	closeDB(t, db)
	fmt.Println("closed")
}

// checkReadOnly checks that a database of readOnlyFiles is read, and not written to.
func checkReadOnly(t testing.TB, db *jay.DB) {
	t.Helper()
	doc, err := db.Get(ctx, "users/7")
	if err != nil || string(doc.Body()) != `{"n":7}` {
		t.Errorf("get: %v, %v", doc, err)
	}
	n, err := db.Query("Users").Where(jay.Ge("n", 10)).Count(ctx)
	if err != nil || n != 40 {
		t.Errorf("count: %d, %v", n, err)
	}
	if _, err := db.Stats(ctx); err != nil {
		t.Errorf("stats: %v", err)
	}
	for name, write := range map[string]func() error{
		"put":        func() error { _, err := db.Put(ctx, "a", json.RawMessage(`{}`)); return err },
		"store":      func() error { _, err := db.Store(ctx, "Users", json.RawMessage(`{}`)); return err },
		"identity":   func() error { _, err := db.Put(ctx, "a|", json.RawMessage(`{}`)); return err },
		"delete":     func() error { return db.Delete(ctx, "users/1") },
		"index":      func() error { return db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"m"}}) },
		"drop":       func() error { _, err := db.DropCollection(ctx, "Users"); return err },
		"rename":     func() error { _, err := db.RenameCollection(ctx, "Users", "People"); return err },
		"attachment": func() error { _, err := db.Attachments("users/1").Put(ctx, "b", strings.NewReader("x")); return err },
		"counters":   func() error { return db.RaiseCounters(ctx, jay.Counters{Etag: 1 << 40}) },
		"compact":    func() error { return db.Compact(ctx) },
		"checkpoint": func() error { return db.Checkpoint(ctx, filepath.Join(t.TempDir(), "x")) },
		"revisions": func() error {
			return db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}})
		},
		"subscription": func() error {
			return db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "s", Query: "from Users"})
		},
		"transaction": func() error {
			return db.Update(ctx, func(tx *jay.Tx) error { _, err := tx.Put(ctx, "a", json.RawMessage(`{}`)); return err })
		},
	} {
		if err := write(); !errors.Is(err, jay.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	info, stream := backUp(t, db)
	if info.Documents < 50 || len(stream) == 0 {
		t.Errorf("a backup has %+v", info)
	}
}

// Ensure that a database is read on a disk that refuses every write.
func TestReadOnly_Disk(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	for i := range 50 {
		put(t, db, fmt.Sprint("users/", i), fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Users"))
	}
	// Not closed: what it has is in its log.
	crashed := disk.Crash(0, rand.New(rand.NewPCG(1, 2)))
	closeDB(t, db)
	for _, d := range []*storagetest.Disk{disk, crashed} {
		d.Fail()
		d.FailCreations()
		db := onDisk(t, d, jay.Options{ReadOnly: true})
		checkReadOnly(t, db)
		closeDB(t, db)
	}
}

// Ensure that ReadOnly creates nothing, and refuses what would be written.
func TestReadOnly_Refused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	if _, err := jay.Open(dir, &jay.Options{ReadOnly: true}); !errors.Is(err, jay.ErrNoDatabase) {
		t.Errorf("no database: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
	for _, o := range []jay.Options{{CopyTag: "B"}, {AcceptLoss: func(*jay.DamageError) {}}, {PrefixCollections: jay.PrefixCollectionsOn}} {
		o.ReadOnly = true
		if _, err := jay.Open(dir, &o); !errors.Is(err, jay.ErrOption) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := jay.OpenMemory(&jay.Options{ReadOnly: true}); !errors.Is(err, jay.ErrNoDatabase) {
		t.Errorf("in memory: %v", err)
	}
}

// Ensure that a database of an older format is read as it is, says what it says once it was upgraded, and
// that none of its files changes.
func TestReadOnly_OlderFormats(t *testing.T) {
	for format := 1; format <= 3; format++ {
		dir := filepath.Join(t.TempDir(), "old")
		if err := os.CopyFS(dir, os.DirFS(fmt.Sprintf("testdata/format%d/db", format))); err != nil {
			t.Fatal(err)
		}
		before := hashesOf(t, dir)
		db := open(t, dir, &jay.Options{ReadOnly: true})
		read := readAll(t, db)
		if _, err := db.Put(ctx, "x", []byte(`{}`)); !errors.Is(err, jay.ErrReadOnly) {
			t.Errorf("format %d: got %v, want ErrReadOnly", format, err)
		}
		report, err := db.Verify(ctx, nil)
		must(t, err)
		if report.Found > 0 {
			t.Errorf("format %d: damage: %+v", format, report)
		}
		must(t, db.Close())
		if !slices.Equal(before, hashesOf(t, dir)) {
			t.Errorf("format %d: files have changed", format)
		}

		db = open(t, dir, nil)
		if upgraded := readAll(t, db); read != upgraded {
			t.Errorf("format %d: read only it says\n%s\nand upgraded\n%s", format, read, upgraded)
		}
		closeDB(t, db)
	}
}

// readAll returns what a database says of its documents, collections and counters.
func readAll(t *testing.T, db *jay.DB) string {
	t.Helper()
	collections, err := db.Collections(ctx)
	must(t, err)
	counters, err := db.Counters(ctx)
	must(t, err)
	found, err := db.Query("Users").Where(jay.Exists("Name")).All(ctx)
	must(t, err)
	stats, err := db.Stats(ctx)
	must(t, err)
	return fmt.Sprintf("%s\n%v\n%+v\n%d found\n%+v", dump(t, db), collections, counters, len(found), stats.Revisions)
}

// Ensure that a copy opened under a new tag never makes an ID that its
// original makes, whatever both do, and that identities wait for a floor
// (A20).
func TestCopyTag(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, nil)
	put(t, db, "users|", `{}`)
	store(t, db, "Users")
	closeDB(t, db)
	copied := t.TempDir()
	copyTree(t, dir, copied)

	original := open(t, dir, nil)
	defer closeDB(t, original)
	open(t, copied, &jay.Options{CopyTag: "B"}).Close()
	twin := open(t, copied, &jay.Options{CopyTag: "B"}) // the option can stay
	defer closeDB(t, twin)

	seen := make(map[string]bool)
	for range 50 {
		for _, db := range []*jay.DB{original, twin} {
			for _, id := range []string{store(t, db, "Users"), put(t, db, "users/", `{}`).ID, store(t, db, "New")} {
				if seen[id] {
					t.Errorf("%s was made by both", id)
				}
				seen[id] = true
			}
		}
	}
	if !seen["users/2-A"] || !seen["users/2-B"] {
		t.Error("the twins do not count on under their own tags")
	}

	before := dump(t, twin)
	for _, request := range []string{"users|", "never-used|"} {
		if _, err := twin.Put(ctx, request, []byte(`{}`)); !errors.Is(err, jay.ErrNeedsFloor) {
			t.Errorf("%s: got %v, want ErrNeedsFloor", request, err)
		}
		if _, err := twin.NextIdentity(ctx, request); !errors.Is(err, jay.ErrNeedsFloor) {
			t.Errorf("next %s: got %v, want ErrNeedsFloor", request, err)
		}
	}
	equal(t, dump(t, twin), before)
	n, err := twin.SeedIdentity(ctx, "users", 1000, false)
	equal(t, fmt.Sprint(n, err), "1000 <nil>")
	equal(t, put(t, twin, "users|", `{}`).ID, "users/1001")
	n, err = twin.SeedIdentity(ctx, "never-used", 0, false)
	equal(t, fmt.Sprint(n, err), "0 <nil>")
	equal(t, put(t, twin, "never-used|", `{}`).ID, "never-used/1")
	equal(t, put(t, original, "users|", `{}`).ID, "users/2")

	// What the original wrote keeps its version; what the twin writes has its own.
	doc, err := twin.Get(ctx, "users/1")
	if err != nil {
		t.Fatal(err)
	}
	old, err := original.Get(ctx, "users/1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, doc.ChangeVector(), old.ChangeVector())
	m := put(t, twin, "users/1", `{"again":1}`, jay.IfMatch(doc.ChangeVector()))
	equal(t, m.ChangeVector[:2], "B:")
}

// Ensure that ranges that the original's clients hold are void in the copy.
func TestCopyTag_Leases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, nil)
	r := nextRange(t, db, jay.RangeRequest{Tag: "users"})
	closeDB(t, db)
	twin := open(t, dir, &jay.Options{CopyTag: "B"})
	defer closeDB(t, twin)
	equal(t, returnRange(t, twin, "users", 1, r.High), false)
	equal(t, span(nextRange(t, twin, jay.RangeRequest{Tag: "users"})), "users/33..64-B")
}

// IDs of the older generations carry no node tag: the original and its copy
// both made users/33.
func TestCopyTag_UntaggedIDs(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	for _, mode := range []jay.HiLoMode{jay.HiLo2, jay.HiLo2010} {
		opts := func(mode jay.HiLoMode, tag string) *jay.Options {
			return &jay.Options{HiLoMode: mode, HiLoCapacity: 4, HiLo2Growth: jay.GrowthNone, CopyTag: tag}
		}
		dir, copied := t.TempDir(), t.TempDir()
		db := open(t, dir, opts(mode, ""))
		equal(t, store(t, db, "Users"), "users/1")
		closeDB(t, db)
		copyTree(t, dir, copied)
		original := open(t, dir, opts(mode, ""))
		seen := make(map[string]bool)
		make := func(db *jay.DB, collection string) {
			t.Helper()
			id := store(t, db, collection)
			if seen[id] {
				t.Errorf("mode %d: %s was made by both", mode, id)
			}
			seen[id] = true
		}
		refuse := func(db *jay.DB, collection string) {
			t.Helper()
			before := dump(t, db)
			_, stored := db.Store(ctx, collection, []byte(`{}`))
			_, drawn := db.NewHiLoClient().Next(ctx, strings.ToLower(collection))
			if !errors.Is(stored, jay.ErrNeedsFloor) || !errors.Is(drawn, jay.ErrNeedsFloor) {
				t.Errorf("mode %d, %s: got %v and %v, want ErrNeedsFloor", mode, collection, stored, drawn)
			}
			equal(t, dump(t, db), before)
		}

		// One that was there, and one that is new to both.
		twin := open(t, copied, opts(mode, "B"))
		for range 2 {
			refuse(twin, "Users")
			refuse(twin, "Orders")
			closeDB(t, twin)
			twin = open(t, copied, opts(mode, ""))
		}
		equal(t, kinds(inspect(t, twin)), "needs-floor users")

		// HiLo4 goes on, and releases nothing.
		closeDB(t, twin)
		twin = open(t, copied, opts(jay.HiLo4, ""))
		equal(t, store(t, twin, "Users"), "users/5-B")
		equal(t, store(t, twin, "Orders"), "orders/1-B")
		equal(t, kinds(inspect(t, twin)), "")
		closeDB(t, twin)
		twin = open(t, copied, opts(mode, ""))
		refuse(twin, "Users")
		refuse(twin, "Orders")

		// A floor releases its tag, for good, and no other.
		must(t, twin.RaiseCounters(ctx, jay.Counters{HiLo: map[string]int64{"USERS": 1000}}))
		refuse(twin, "Orders")
		for range 50 {
			make(original, "Users")
			make(twin, "Users")
			make(original, "Orders")
		}
		closeDB(t, twin)
		twin = open(t, copied, opts(mode, ""))
		make(twin, "Users")
		refuse(twin, "Orders")
		equal(t, kinds(inspect(t, twin)), "needs-floor orders")

		// A copy of the copy waits again.
		closeDB(t, twin)
		twin = open(t, copied, opts(mode, "C"))
		refuse(twin, "Users")
		closeDB(t, twin)
		closeDB(t, original)
	}
}

// Ensure that a copy can be copied again, and that a wrong tag changes nothing.
func TestCopyTag_Again(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	dir := t.TempDir()
	closeDB(t, open(t, dir, nil))
	for _, tag := range []string{"b", "RAFT", "ABCDE"} {
		if _, err := jay.Open(dir, &jay.Options{CopyTag: tag}); !errors.Is(err, jay.ErrOption) {
			t.Errorf("tag %q: got %v, want ErrOption", tag, err)
		}
	}
	for _, tag := range []string{"B", "C", "D"} {
		db := open(t, dir, &jay.Options{CopyTag: tag})
		id := store(t, db, "Users")
		equal(t, id[len(id)-1:], tag)
		if _, err := db.Put(ctx, "users|", []byte(`{}`)); !errors.Is(err, jay.ErrNeedsFloor) {
			t.Errorf("tag %s: got %v, want ErrNeedsFloor", tag, err)
		}
		if _, err := db.SeedIdentity(ctx, "users", 5, false); err != nil {
			t.Fatal(err)
		}
		closeDB(t, db)
	}
	if _, err := jay.Open(dir, &jay.Options{NodeTag: "A"}); !errors.Is(err, jay.ErrFixed) {
		t.Errorf("got %v, want ErrFixed", err)
	}
}

// Ensure that a copy cannot take a tag that it had before, over any number of
// copies, with an error that says why, and that it stays as it was.
func TestCopyTag_HadBefore(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, &jay.Options{NodeTag: "X"})
	store(t, db, "Users")
	closeDB(t, db)
	for _, tag := range []string{"B", "C", "D"} {
		closeDB(t, open(t, dir, &jay.Options{CopyTag: tag}))
	}
	for _, tag := range []string{"X", "B", "C"} {
		_, err := jay.Open(dir, &jay.Options{CopyTag: tag})
		if !errors.Is(err, jay.ErrFixed) || !strings.Contains(err.Error(), fmt.Sprintf(`its node tag is "D", and CopyTag %q is one that it had before`, tag)) {
			t.Errorf("%s: got %v, want ErrFixed", tag, err)
		}
	}
	db = open(t, dir, &jay.Options{CopyTag: "D"})
	equal(t, store(t, db, "Users"), "users/2-D")
	closeDB(t, db)
	db = open(t, dir, &jay.Options{CopyTag: "A"}) // never had, though it is the default
	equal(t, store(t, db, "Users"), "users/3-A")
	closeDB(t, db)
}

// Ensure that the database of format 15 with indexes that load documents (internal/fixture) opens, answers as it did, and goes on; and that a program which does
// not know it refuses it by that name.
func TestFormat15_Loads(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format15", "loads"), dir)
	before := hashesOf(t, dir)
	older := storage.Features(storage.AllFeatures[:10])
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 15 || newer.Newest != 14 || !slices.Equal(newer.Features, []string{"loads"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)

	rows := func(db *jay.DB, text string) string {
		t.Helper()
		q, err := db.RQL(text, nil)
		must(t, err)
		all, err := q.NoScan().All(ctx)
		must(t, err)
		text = ""
		for _, row := range all {
			text += string(row.JSON)
		}
		return text
	}
	const byName, byCity = "from index 'ByName' where Name = 'Ann' select id() as id", "from index 'ByCity' order by City"
	db := open(t, dir, nil)
	equal(t, rows(db, byName), `{"id":"orders/1"}`)
	equal(t, rows(db, byCity), `{"City":null,"Total":0,"Most":null}{"City":"Bern","Total":9,"Most":9}{"City":"Rome","Total":20,"Most":20}`)
	put(t, db, "customers/3", `{"Name":"Ann","City":"Bern","Rate":2}`, jay.InCollection("Customers"))
	must(t, db.Delete(ctx, "customers/1"))
	equal(t, rows(db, byName), `{"id":"orders/3"}`)
	equal(t, rows(db, byCity), `{"City":null,"Total":0,"Most":null}{"City":"Bern","Total":60,"Most":60}{"City":"Rome","Total":20,"Most":20}`)
	report, err := db.Verify(ctx, nil)
	must(t, err)
	equal(t, len(report.Damages), 0)
	closeDB(t, db)
}

// Ensure that the database of format 13 with indexes of places (internal/fixture) opens, answers as it did, and goes on; and that a
// program which does not know it refuses it by that name.
func TestFormat13_Places(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format13", "places"), dir)
	before := hashesOf(t, dir)
	older := storage.Features(storage.AllFeatures[:8])
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 13 || newer.Newest != 12 || !slices.Equal(newer.Features, []string{"places"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)

	found := func(db *jay.DB, c jay.Condition) string {
		t.Helper()
		var ids []string
		for doc, err := range db.Query("Shops").Where(c).NoScan().Iter(ctx) {
			must(t, err)
			ids = append(ids, doc.ID()[len("shops/"):])
		}
		slices.Sort(ids)
		return strings.Join(ids, "")
	}
	nearest := func(db *jay.DB, field string, lat, lng float64) string {
		t.Helper()
		var ids []string
		for doc, err := range db.Query("Shops").OrderBy(jay.Near(field, lat, lng)).NoScan().Iter(ctx) {
			must(t, err)
			ids = append(ids, doc.ID()[len("shops/"):])
		}
		return strings.Join(ids, "")
	}
	const spot = "spatial.point(Lat, Lng)"
	saysAll := func(db *jay.DB) {
		t.Helper()
		equal(t, found(db, jay.Within("At", jay.Circle(52.5, 13.4, 20))), "13")
		equal(t, found(db, jay.Intersects("At", jay.Box(52.3, 13, 52.45, 14))), "23")
		equal(t, found(db, jay.Covers("At", jay.Point(52.4, 13.8))), "2")
		equal(t, found(db, jay.Within(spot, jay.Circle(0, -179.5, 100))), "2")
		equal(t, nearest(db, "At", 48.85, 2.35), "32154")
		equal(t, nearest(db, spot, -80, 10), "32145")
	}
	db := open(t, dir, &jay.Options{ReadOnly: true})
	saysAll(db)
	closeDB(t, db)

	db = open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	saysAll(db)
	jaytest.Verify(t, db)
	put(t, db, "shops/7", `{"At":"POINT(2.35 48.86)","Lat":0,"Lng":-179.9}`, jay.InCollection("Shops"))
	must(t, db.Delete(ctx, "shops/3"))
	equal(t, nearest(db, "At", 48.85, 2.35), "72154")
	equal(t, found(db, jay.Within(spot, jay.Circle(0, -179.5, 100))), "27")
	jaytest.Verify(t, db)
}

// Ensure that the database of format 14 with an index of vectors (internal/fixture) opens, answers as it did, and goes on; and that a
// program which does not know it refuses it by that name.
func TestFormat14_Vectors(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format14", "vectors"), dir)
	before := hashesOf(t, dir)
	older := storage.Features(storage.AllFeatures[:9])
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 14 || newer.Newest != 13 || !slices.Equal(newer.Features, []string{"vectors"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)

	nearest := func(db *jay.DB, to ...float32) string {
		t.Helper()
		var ids []string
		for doc, err := range db.Query("Notes").OrderBy(jay.Distance("Embedding", to, "euclidean")).Limit(9).NoScan().Iter(ctx) {
			must(t, err)
			ids = append(ids, doc.ID()[len("notes/"):])
		}
		return strings.Join(ids, "")
	}
	similar := func(db *jay.DB, to ...float32) string {
		t.Helper()
		var ids []string
		for doc, err := range db.Query("Notes").Where(jay.Similar("Embedding", to, 0.9)).NoScan().Iter(ctx) {
			must(t, err)
			ids = append(ids, doc.ID()[len("notes/"):])
		}
		slices.Sort(ids)
		return strings.Join(ids, "")
	}
	db := open(t, dir, &jay.Options{ReadOnly: true})
	equal(t, nearest(db, 1, 2, 3), "126354")
	equal(t, similar(db, 3, 2, 1), "235")
	closeDB(t, db)

	db = open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	equal(t, nearest(db, 1, 2, 3), "126354")
	jaytest.Verify(t, db)
	put(t, db, "notes/7", `{"Embedding":[1,2,3.5]}`, jay.InCollection("Notes"))
	must(t, db.Delete(ctx, "notes/2"))
	equal(t, nearest(db, 1, 2, 3), "176354")
	jaytest.Verify(t, db)
}
