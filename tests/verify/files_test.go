package verify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
)

// tables makes a closed database of several tables in a directory.
func tables(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	db, err := jay.Open(dir, &jay.Options{MemTableBytes: 64 << 10})
	must(t, err)
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Name"}}))
	for i := range 12 {
		var b jay.Batch
		for j := range 100 {
			b.Put(fmt.Sprintf("users/%04d", i*100+j), json.RawMessage(fmt.Sprintf(`{"Name":"%d","Text":%q}`, rand.Uint64(), strings.Repeat("x", 100))), jay.InCollection("Users"))
		}
		_, err := db.Apply(ctx, &b)
		must(t, err)
	}
	must(t, db.Close())
}

// contentsOf returns all files of a directory.
func contentsOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	all := make(map[string][]byte)
	for _, e := range entries {
		if e.Name() != "LOCK" {
			all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
			must(t, err)
		}
	}
	return all
}

func copyOf(t *testing.T, all map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range all {
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	return dir
}

func kindsOf(r jay.VerifyReport) string {
	return strings.Join(slices.Sorted(maps.Keys(r.ByKind)), " ")
}

// Ensure that a directory without damage has none, is read whole, and stays as it is.
func TestVerifyDir_Whole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tables(t, dir)
	before := contentsOf(t, dir)
	steps := make(map[string]bool)
	r, err := jay.VerifyDir(context.Background(), dir, nil, &jay.VerifyOptions{Progress: func(p jay.VerifyProgress) { steps[p.Step] = true }})
	must(t, err)
	if r.Found+r.Warned > 0 || len(r.NotCompared) > 0 || r.Documents != 1200 || r.IndexEntries != 1200 || r.Files < 3 {
		t.Errorf("%+v", r)
	}
	if !maps.EqualFunc(before, contentsOf(t, dir), bytes.Equal) {
		t.Error("the directory has changed")
	}
	if !steps["files"] || !steps["documents"] || !steps["attachments"] || steps["damages"] {
		t.Errorf("steps: %v", steps)
	}
	size := int64(0)
	for name, text := range before {
		if strings.HasSuffix(name, ".sst") {
			size += int64(len(text))
		}
	}
	if r.FileBytes < size*99/100-int64(100*r.Files) || r.FileBytes > size {
		t.Errorf("%d of %d bytes of tables were read", r.FileBytes, size)
	}
}

// Ensure that a flipped bit anywhere in a table is found, in its file, and that what is
// not damaged is still read.
func TestVerifyDir_FlippedTables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tables(t, dir)
	whole := contentsOf(t, dir)
	copied := copyOf(t, whole)
	flips, today := 3, sample.Of(t, 3)
	if testing.Short() {
		flips = 1
	}
	random := rand.New(rand.NewPCG(1, 2+today.Seed()))
	tried := 0
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		for range flips {
			text := bytes.Clone(whole[name])
			at := random.IntN(len(text))
			text[at] ^= 1 << random.IntN(8)
			must(t, os.WriteFile(filepath.Join(copied, name), text, 0o644))
			r, err := jay.VerifyDir(context.Background(), copied, nil, nil)
			must(t, err)
			if !slices.ContainsFunc(r.Damages, func(d jay.Damage) bool { return d.File == name }) {
				t.Errorf("%s at %d of %d: %v", name, at, len(text), r.Damages)
			}
			tried++
		}
		must(t, os.WriteFile(filepath.Join(copied, name), whole[name], 0o644))
	}
	if tried < 2*flips {
		t.Errorf("%d flips", tried)
	}
}

// largest returns the largest table.
func largest(all map[string][]byte) (name string) {
	for other := range all {
		if strings.HasSuffix(other, ".sst") && len(all[other]) > len(all[name]) {
			name = other
		}
	}
	return name
}

// Ensure that a block that cannot be read ends neither the check nor what follows the
// block, and that what is behind it is not taken for missing.
func TestVerifyDir_UnreadableBlock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tables(t, dir)
	db, err := jay.Open(dir, nil)
	must(t, err)
	must(t, db.Compact(context.Background())) // the documents are in one table, the largest
	must(t, db.Close())
	whole := contentsOf(t, dir)
	name := largest(whole)
	text := whole[name]
	text[len(text)/4] ^= 1
	must(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	r, err := jay.VerifyDir(context.Background(), dir, nil, &jay.VerifyOptions{SkipFiles: true})
	must(t, err)
	if r.ByKind["unreadable"] == 0 || r.Documents < 600 || r.Documents+r.IndexEntries+r.Changes > 3*1200-10 {
		t.Errorf("%+v", r)
	}
	for _, kind := range []string{"index-extra", "member-extra", "change-stale", "count-wrong"} {
		if r.ByKind[kind] > 0 {
			t.Errorf("%d of kind %s, though nothing of it is known", r.ByKind[kind], kind)
		}
	}
}

// Ensure that a directory that Open refuses is checked as far as it can be, and says what
// is wrong with which file.
func TestVerifyDir_DoesNotOpen(t *testing.T) {
	t.Parallel()
	made := t.TempDir()
	tables(t, made)
	whole := contentsOf(t, made)
	some := func(prefix, suffix string) string {
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(whole))) {
			if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
				return name
			}
		}
		t.Fatalf("no %s…%s", prefix, suffix)
		return ""
	}
	for _, one := range []struct {
		name, file string
		change     func(text []byte) []byte // nil to remove it
		kind       string
		documents  int64 // at least
	}{
		{"a table is missing", largest(whole), nil, "file-missing", 1},
		{"a table is cut off", largest(whole), func(b []byte) []byte { return b[:len(b)/2] }, "file-damaged", 1},
		{"the manifest has a flipped bit", some("MANIFEST", ""), func(b []byte) []byte { b[len(b)/2] ^= 4; return b }, "file-damaged", 0},
		{"the manifest is missing", some("MANIFEST", ""), nil, "file-missing", 0},
		{"the marker of the manifest is missing", some("marker.manifest", ""), nil, "file-missing", 1200},
		{"the marker of the version is missing", some("marker.format", ""), nil, "file-missing", 1200},
		{"the log has a flipped bit", some("", ".log"), func(b []byte) []byte { b[8] ^= 4; return b }, "file-damaged", 1},
		{"the log is missing", some("", ".log"), nil, "file-missing", 1},
		{"JAY is missing", "JAY", nil, "file-missing", 1200},
		{"JAY.control is missing", "JAY.control", nil, "file-missing", 1200},
		{"JAY.control is zeros", "JAY.control", func(b []byte) []byte { clear(b); return b }, "file-damaged", 1200},
	} {
		dir := copyOf(t, whole)
		path := filepath.Join(dir, one.file)
		if one.change == nil {
			must(t, os.Remove(path))
		} else {
			must(t, os.WriteFile(path, one.change(bytes.Clone(whole[one.file])), 0o644))
		}
		before := contentsOf(t, dir)
		r, err := jay.VerifyDir(context.Background(), dir, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", one.name, err)
			continue
		}
		if r.Found == 0 || r.ByKind[one.kind] == 0 || r.Documents < one.documents {
			t.Errorf("%s: %s, %d documents: %v %v", one.name, kindsOf(r), r.Documents, r.Damages[:min(5, len(r.Damages))], r.NotCompared)
		}
		if !maps.EqualFunc(before, contentsOf(t, dir), bytes.Equal) {
			t.Errorf("%s: the directory has changed", one.name)
		}
	}
}

// Ensure that directories without a database, and those in use, are errors.
func TestVerifyDir_Refused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	if _, err := jay.VerifyDir(ctx, filepath.Join(dir, "none"), nil, nil); !errors.Is(err, jay.ErrNoDatabase) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := jay.VerifyDir(ctx, "", nil, nil); !errors.Is(err, jay.ErrOption) {
		t.Errorf("no name: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "letter.txt"), []byte("x"), 0o644))
	if _, err := jay.VerifyDir(ctx, dir, nil, nil); !errors.Is(err, jay.ErrNotDatabase) {
		t.Errorf("other files: %v", err)
	}
	open := t.TempDir()
	db, err := jay.Open(open, nil)
	must(t, err)
	defer db.Close()
	if _, err := jay.VerifyDir(ctx, open, nil, nil); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("in use: %v", err)
	}
	if _, err := db.Verify(ctx, &jay.VerifyOptions{MaxDamages: -1}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("MaxDamages: %v", err)
	}
	if _, err := db.Verify(ctx, &jay.VerifyOptions{MaxDamages: 100_001}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("MaxDamages: %v", err)
	}
	if _, err := db.Verify(ctx, &jay.VerifyOptions{BytesPerSecond: 10}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("BytesPerSecond: %v", err)
	}
}

// Ensure that Verify of a database in use finds a flipped bit in a table, though what it
// holds is in the cache, and in a log whose records are in memory.
func TestVerify_FilesInUse(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	tables(t, dir)
	db, err := jay.Open(dir, nil)
	must(t, err)
	defer func() { _ = db.Close() }() // it may refuse the damaged log
	_, err = db.Put(ctx, "users/new", json.RawMessage(`{"Name":"new"}`), jay.InCollection("Users"))
	must(t, err)
	r, err := db.Verify(ctx, nil)
	must(t, err)
	if r.Found > 0 || r.Documents != 1201 {
		t.Fatalf("%+v", r)
	}
	must(t, db.Compact(ctx)) // so that no table comes or goes
	files, err := checks.Engine(db).(storage.FileChecker).Files()
	must(t, err)
	flipped := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name, ".sst") && !strings.HasPrefix(file.Name, "MANIFEST") {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, file.Name), os.O_RDWR, 0)
		must(t, err)
		one, at := make([]byte, 1), file.Bytes/3
		flip := func() {
			_, err := f.ReadAt(one, at)
			must(t, err)
			one[0] ^= 1
			_, err = f.WriteAt(one, at)
			must(t, err)
		}
		flip()
		r, err := db.Verify(ctx, nil)
		must(t, err)
		if !slices.ContainsFunc(r.Damages, func(d jay.Damage) bool { return d.File == file.Name && d.Kind == "file-damaged" }) {
			t.Errorf("%s: %v", file.Name, r.Damages)
		}
		flip()
		must(t, f.Close())
		flipped++
	}
	if flipped < 2 {
		t.Errorf("%d files", flipped)
	}
}

// Ensure that the end of a context, and Close, end a Verify, and that the report lists no
// more than it is asked to and counts all.
func TestVerify_Ends(t *testing.T) {
	t.Parallel()
	db, err := jay.OpenMemory(nil)
	must(t, err)
	ctx := context.Background()
	for i := range 30 {
		_, err := db.Put(ctx, fmt.Sprintf("users/%d", i), json.RawMessage(`{}`), jay.InCollection("Users"))
		must(t, err)
		checks.SetEntry(db, []byte(fmt.Sprintf("cusers\x00zoe%d\x00", i)), nil)
	}
	must(t, db.Flush(ctx))
	r, err := db.Verify(ctx, &jay.VerifyOptions{MaxDamages: 7})
	must(t, err)
	if r.Found != 30 || len(r.Damages) != 7 || r.ByKind["member-extra"] != 30 {
		t.Errorf("%d found, %d listed", r.Found, len(r.Damages))
	}
	if text := r.Damages[0].String(); !strings.HasPrefix(text, "member-extra: entry of document \"zoe0\" in collection \"users\": ") {
		t.Error(text)
	}
	cancelled, cancel := context.WithCancel(ctx)
	_, err = db.Verify(cancelled, &jay.VerifyOptions{Progress: func(p jay.VerifyProgress) {
		if p.Step == "documents" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	_, err = db.Verify(ctx, &jay.VerifyOptions{Progress: func(p jay.VerifyProgress) {
		if p.Step == "documents" {
			must(t, db.Close())
		}
	}})
	if !errors.Is(err, jay.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := db.Verify(ctx, nil); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("of a closed database: %v", err)
	}
}
