package lsm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/enginetest"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// keysOf returns encryption keys by their IDs, of which the first is the newest.
func keysOf(ids ...string) sealed.Keys {
	return func(id string) (sealed.Key, error) {
		for _, one := range ids {
			if id == "" || id == one {
				return sealed.Key{ID: one, Secret: bytes.Repeat([]byte(one[:1]), sealed.KeyBytes)}, nil
			}
		}
		return sealed.Key{}, errors.New("not in the test's list")
	}
}

func openSealed(t testing.TB, dir string, ids ...string) *lsm.Engine {
	t.Helper()
	e, err := lsm.Open(dir, lsm.Options{EncryptionKeys: keysOf(ids...)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Ensure that an encrypted engine does what any other does.
func TestSealed_Contract(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) storage.Engine { return openSealed(t, t.TempDir(), "a") })
}

// fill commits keys with values, in parts of which some are in tables and the last ones in the log.
func fill(t testing.TB, e *lsm.Engine, n int, value string) {
	t.Helper()
	for i := range n {
		if err := set(e, fmt.Sprintf("key %s %04d", value, i), fmt.Sprintf("%s %d %s", value, i, strings.Repeat("x", 50))); err != nil {
			t.Fatal(err)
		}
		if i == n/2 {
			if err := e.Compact(ctx, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Ensure that none of the files has a key or a value in the clear: of an open database with a table that is being made and a temporary
// file, of a closed one, and of a checkpoint.
func TestSealed_NoPlaintext(t *testing.T) {
	const marker = "the marker that nobody may find"
	dir := t.TempDir()
	e := openSealed(t, dir, "a")
	fill(t, e, 300, marker)

	temporary, err := e.NewTemporary()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(temporary, strings.Repeat(marker, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := temporary.Finish(); err != nil {
		t.Fatal(err)
	}
	table, err := e.NewTable(false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		if err := table.Set(fmt.Appendf(nil, "table %s %06d", marker, i), []byte(strings.Repeat(marker, 3))); err != nil {
			t.Fatal(err)
		}
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := e.Checkpoint(ctx, copied); err != nil {
		t.Fatal(err)
	}
	search := func(dir string, least int) {
		t.Helper()
		files := 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			files++
			if bytes.Contains(text, []byte(marker[:10])) || bytes.Contains(text, []byte("key the")) {
				t.Errorf("%s has the marker in the clear", path)
			}
			return err
		})
		if err != nil || files < least {
			t.Fatalf("%d files, %v", files, err)
		}
	}
	search(dir, 10)
	search(copied, 6)
	table.Abandon()
	if err := errors.Join(temporary.Remove(), e.Close()); err != nil {
		t.Fatal(err)
	}
	search(dir, 6)
}

// Ensure that a database opens with its key only, that the error says what is wrong, and that nothing is changed.
func TestSealed_Keys(t *testing.T) {
	encrypted, plain := t.TempDir(), t.TempDir()
	e := openSealed(t, encrypted, "a")
	fill(t, e, 20, "v")
	p, err := lsm.Open(plain, lsm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	wrong := func(string) (sealed.Key, error) {
		return sealed.Key{ID: "a", Secret: make([]byte, sealed.KeyBytes)}, nil
	}
	rows := []struct {
		name string
		dir  string
		keys sealed.Keys
		want string
	}{
		{"no keys", encrypted, nil, "no keys were given"},
		{"another key", encrypted, keysOf("b"), `the key "a" cannot be had`},
		{"another secret", encrypted, wrong, `the key "a" is not the one`},
		{"keys for a plain database", plain, keysOf("a"), "the database is not encrypted"},
	}
	for _, row := range rows {
		before := allBytes(t, row.dir)
		for _, readOnly := range []bool{false, true} {
			_, err := lsm.Open(row.dir, lsm.Options{EncryptionKeys: row.keys, ReadOnly: readOnly, AcceptLoss: func(*storage.DamageError) {}})
			if !errors.Is(err, storage.ErrKey) || !strings.Contains(err.Error(), row.want) || errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("%s, read only %v: got %v, want ErrKey with %q", row.name, readOnly, err, row.want)
			}
		}
		if _, err := lsm.OpenSalvage(row.dir, lsm.Options{EncryptionKeys: row.keys}); !errors.Is(err, storage.ErrKey) {
			t.Errorf("%s, salvage: got %v, want ErrKey", row.name, err)
		}
		if after := allBytes(t, row.dir); after != before {
			t.Errorf("%s: the directory was changed", row.name)
		}
	}
	format, err := os.ReadFile(filepath.Join(encrypted, "JAY"))
	if want := "jay database, format 16\nfeature 16: encrypted\n"; string(format) != want || err != nil {
		t.Errorf("the format file has %q, %v; want %q", format, err, want)
	}
	e = openSealed(t, encrypted, "b", "a")
	if !has(t, e, "key v 0019") {
		t.Error("with the key, the database does not have what was written")
	}
	if e.Format().Number != storage.BaseFormat {
		t.Errorf("the format of what is stored is %d, want %d", e.Format().Number, storage.BaseFormat)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// allBytes returns all files of a directory and what is in them.
func allBytes(t *testing.T, dir string) string {
	t.Helper()
	return bytesIn(t, vfs.Default, dir)
}

// bytesIn is allBytes on a disk.
func bytesIn(t *testing.T, disk vfs.FS, dir string) string {
	t.Helper()
	names, err := disk.List(dir)
	jaytest.Must(t, err)
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		f, err := disk.Open(disk.PathJoin(dir, name))
		jaytest.Must(t, err)
		text, err := io.ReadAll(f)
		jaytest.Must(t, errors.Join(err, f.Close()))
		fmt.Fprintf(&b, "%s %x\n", name, text)
	}
	return b.String()
}

// Ensure that an older version refuses an encrypted database by the name of the feature.
func TestSealed_OlderVersion(t *testing.T) {
	dir := t.TempDir()
	if err := openSealed(t, dir, "a").Close(); err != nil {
		t.Fatal(err)
	}
	older := storage.Features(storage.AllFeatures[:storage.FeatureEncrypted.Format-storage.BaseFormat-1])
	for _, keys := range []sealed.Keys{nil, keysOf("a")} {
		_, err := lsm.Open(dir, lsm.Options{Features: older, EncryptionKeys: keys})
		if !errors.Is(err, storage.ErrNewerFormat) || !strings.Contains(err.Error(), "encrypted") {
			t.Errorf("got %v, want ErrNewerFormat that names the feature", err)
		}
	}
	if _, err := lsm.Open(t.TempDir(), lsm.Options{Features: older, EncryptionKeys: keysOf("a")}); !errors.Is(err, storage.ErrNewerFormat) {
		t.Errorf("an encrypted database of an older version: got %v", err)
	}
}

// Ensure that after a new key was made the newest, new files use it, and the older key is still asked for.
func TestSealed_NewestKey(t *testing.T) {
	dir := t.TempDir()
	e := openSealed(t, dir, "a")
	fill(t, e, 20, "v")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = openSealed(t, dir, "b", "a")
	fill(t, e, 20, "w")
	if !has(t, e, "key v 0000") || !has(t, e, "key w 0000") {
		t.Error("a key is missing")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := lsm.Open(dir, lsm.Options{EncryptionKeys: keysOf("b")}); !errors.Is(err, storage.ErrKey) {
		t.Errorf("without the older key: got %v, want ErrKey", err)
	}
}

// Ensure that tables which were ingested open under their new names, also after a crash.
func TestSealed_Ingest(t *testing.T) {
	disk := storagetest.NewDisk()
	open := func(d *storagetest.Disk) *lsm.Engine {
		e, err := lsm.Open("db", lsm.Options{FS: d, EncryptionKeys: keysOf("a")})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open(disk)
	table, err := e.NewTable(true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		if err := table.Set(fmt.Appendf(nil, "%06d", i), []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	finished, err := table.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Ingest(ctx, []storage.Table{finished}, nil); err != nil {
		t.Fatal(err)
	}
	crashed := open(disk.Crash(0, rand.New(rand.NewPCG(1, 2))))
	if !has(t, crashed, "004999") || !has(t, e, "004999") {
		t.Error("an ingested key is missing")
	}
	if err := errors.Join(crashed.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a feature which rises keeps the format file saying that the database is encrypted, and that a transaction cannot make
// a database look as if it were.
func TestSealed_Features(t *testing.T) {
	for _, keys := range []sealed.Keys{nil, keysOf("a")} {
		dir := t.TempDir()
		for range 2 {
			e, err := lsm.Open(dir, lsm.Options{EncryptionKeys: keys})
			if err != nil {
				t.Fatal(err)
			}
			err = e.Update(ctx, true, func(tx storage.Tx) error {
				tx.RequireFeature(storage.FeatureText)
				tx.RequireFeature(storage.FeatureEncrypted)
				tx.Set([]byte("k"), []byte("v"), nil)
				return nil
			})
			if err != nil || e.Format().Number != storage.FeatureText.Format || len(e.Format().Features) != 1 {
				t.Errorf("got the format %v, %v", e.Format(), err)
			}
			copied := filepath.Join(t.TempDir(), "copy")
			if err := e.Checkpoint(ctx, copied); err != nil {
				t.Fatal(err)
			}
			c, err := lsm.Open(copied, lsm.Options{EncryptionKeys: keys})
			if err != nil {
				t.Fatal(err)
			}
			if !has(t, c, "k") {
				t.Error("the copy lacks a key")
			}
			if err := errors.Join(c.Close(), e.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
