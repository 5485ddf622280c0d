package jay_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/storage/storagetest"
)

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
	// An older format would have to be upgraded.
	for format := 1; format <= 3; format++ {
		old := filepath.Join(t.TempDir(), "old")
		if err := os.CopyFS(old, os.DirFS(fmt.Sprintf("testdata/format%d/db", format))); err != nil {
			t.Fatal(err)
		}
		before := hashesOf(t, old)
		if _, err := jay.Open(old, &jay.Options{ReadOnly: true}); !errors.Is(err, jay.ErrReadOnly) || !strings.Contains(err.Error(), "format") {
			t.Errorf("format %d: %v", format, err)
		}
		if !slices.Equal(before, hashesOf(t, old)) {
			t.Errorf("format %d: files have changed", format)
		}
	}
}
