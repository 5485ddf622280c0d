package keys_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
)

// addKey appends a new key to a file, which is made if it is missing.
func addKey(t *testing.T, path, id string) {
	t.Helper()
	k, err := keys.New(id)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(keys.Line(k)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a database in use gets the key that was added to its file, first in new files and then in all, and is whole without the old one after its next start.
func TestRotate(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	path := filepath.Join(t.TempDir(), "keys")
	addKey(t, path, "old")
	o := &jay.Options{EncryptionKeys: keys.File(path)}
	db, err := jay.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	put := func(n int) {
		t.Helper()
		var b jay.Batch
		for i := range 200 {
			b.Put(fmt.Sprintf("notes/%d-%d", n, i), []byte(`{"Text":"x"}`))
		}
		if _, err := db.Apply(ctx, &b); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	if err := db.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	older := func() uint64 {
		t.Helper()
		s, err := db.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.Engine.OlderKeys
	}
	if n := older(); n != 0 {
		t.Errorf("before: %d files need an older key", n)
	}
	addKey(t, path, "new")
	if id, err := keys.Renew(db); id != "new" || err != nil {
		t.Errorf("renewed: %q, %v", id, err)
	}
	put(2)
	if n := older(); n < 3 {
		t.Errorf("after Renew: %d files need an older key", n)
	}
	if backup, err := db.BackupTo(ctx, filepath.Join(t.TempDir(), "backup")); err != nil || backup.EncryptionKey != "new" {
		t.Errorf("a backup: %q, %v", backup.EncryptionKey, err)
	}
	calls := 0
	p, err := keys.Rotate(ctx, db, func(keys.Progress) { calls++ })
	if err != nil || p.Key != "new" || p.Done == 0 || calls != p.Done {
		t.Errorf("rotated: %+v, %v, %d calls", p, err, calls)
	}
	for _, name := range p.Left {
		if !strings.HasPrefix(name, "MANIFEST-") && !strings.HasSuffix(name, ".log") {
			t.Errorf("%s needs an older key", name)
		}
	}
	put(3)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Renew(db); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("closed: %v", err)
	}

	newest, err := keys.File(path).Newest()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first start gives the key to the log and the manifest
		if db, err = jay.Open(dir, o); err != nil {
			t.Fatal(err)
		}
		if n := older(); n != 0 {
			t.Errorf("started again: %d files need an older key", n)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		o = &jay.Options{EncryptionKeys: keys.Of(newest)}
	}
	report, err := jay.VerifyDir(ctx, dir, o, nil)
	if err != nil || report.Found != 0 || report.Documents != 600 {
		t.Errorf("without the old key: %d damages, %d documents, %v", report.Found, report.Documents, err)
	}
	if db, err = jay.Open(dir, o); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := jay.Repair(ctx, dir, filepath.Join(t.TempDir(), "x"), o, nil); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("got %v", err)
	}
}

// Ensure that a database without keys, one in memory and one that is only read refuse another key.
func TestRotate_Refused(t *testing.T) {
	ctx := context.Background()
	plain := filepath.Join(t.TempDir(), "plain")
	secret := filepath.Join(t.TempDir(), "secret")
	k, err := keys.New("a")
	if err != nil {
		t.Fatal(err)
	}
	if db, err := jay.Open(secret, &jay.Options{EncryptionKeys: keys.Of(k)}); err != nil || db.Close() != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		open func() (*jay.DB, error)
		want error
	}{
		"plain":     {func() (*jay.DB, error) { return jay.Open(plain, nil) }, jay.ErrKey},
		"in memory": {func() (*jay.DB, error) { return jay.OpenMemory(nil) }, jay.ErrKey},
		"only read": {func() (*jay.DB, error) {
			return jay.Open(secret, &jay.Options{EncryptionKeys: keys.Of(k), ReadOnly: true})
		}, jay.ErrReadOnly},
	} {
		db, err := row.open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keys.Rotate(ctx, db, nil); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	db, err := jay.Open(secret, &jay.Options{EncryptionKeys: keys.Of(k)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if p, err := keys.Rotate(ended, db, nil); err != nil && !errors.Is(err, context.Canceled) || p.Key != "a" {
		t.Errorf("an ended context: %+v, %v", p, err)
	}
}

// Ensure that a program which looks into a database has its keys rotated by the program that has it open, without leave to write; that nothing is changed if that program
// has not got the key that is expected; and that what may not be done is refused.
func TestRotate_Look(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	path := filepath.Join(t.TempDir(), "keys")
	addKey(t, path, "old")
	db, err := jay.Open(dir, &jay.Options{EncryptionKeys: keys.File(path)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(ctx, "notes/1", []byte(`{"Text":"x"}`)); err != nil {
		t.Fatal(err)
	}
	if err := db.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	there, err := jay.Look(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()

	if _, err := keys.RotateTo(ctx, there, "new", nil); !errors.Is(err, jay.ErrKey) || !strings.Contains(err.Error(), `is "old", and not "new"`) {
		t.Errorf("a key that the program has not got: %v", err)
	}
	addKey(t, path, "new")
	for _, in := range []*jay.DB{db, there} {
		if _, err := keys.RotateTo(ctx, in, "old", nil); !errors.Is(err, jay.ErrKey) || !strings.Contains(err.Error(), `is "new", and not "old"`) {
			t.Errorf("another key than the newest: %v", err)
		}
	}
	if s, err := db.Stats(ctx); err != nil || s.Engine.OlderKeys != 0 {
		t.Errorf("after refusals: %d files need an older key, %v", s.Engine.OlderKeys, err)
	}
	if id, err := keys.Renew(there); id != "new" || err != nil {
		t.Errorf("renewed: %q, %v", id, err)
	}
	if s, err := db.Stats(ctx); err != nil || s.Engine.OlderKeys == 0 {
		t.Errorf("after Renew: %d files need an older key, %v", s.Engine.OlderKeys, err)
	}
	p, err := keys.RotateTo(ctx, there, "new", func(keys.Progress) {})
	if err != nil || p.Key != "new" || p.Done == 0 {
		t.Errorf("rotated: %+v, %v", p, err)
	}
	if s, err := db.Stats(ctx); err != nil || s.Engine.OlderKeys != uint64(len(p.Left)) {
		t.Errorf("%d files need an older key, and %q are left; %v", s.Engine.OlderKeys, p.Left, err)
	}

	if _, err := there.Put(ctx, "notes/2", []byte(`{}`)); !errors.Is(err, jay.ErrReadOnly) || !strings.Contains(err.Error(), "LookWrites") {
		t.Errorf("a write: %v", err)
	}
	reader, err := jay.Look(dir, &jay.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := keys.Rotate(ctx, reader, nil); !errors.Is(err, jay.ErrReadOnly) {
		t.Errorf("one that only reads: %v", err)
	}
}
