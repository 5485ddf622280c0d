package backups_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
	"github.com/jaydb/jay/keys"
	"github.com/jaydb/jay/storage/storagetest"
)

func keyOf(id string) jay.EncryptionKey {
	return jay.EncryptionKey{ID: id, Secret: bytes.Repeat([]byte(id[:1]), keys.SecretBytes)}
}

// encrypted is an encrypted database and the directory of its backups, both on one disk.
type encrypted struct {
	t    *testing.T
	disk *storagetest.Disk
	now  time.Time
}

// with calls fn with a Keeper of the database, which is opened with these keys.
func (e *encrypted) with(k jay.EncryptionKeys, o backups.Options, fn func(*jay.DB, *backups.Keeper)) {
	e.t.Helper()
	db, err := jay.Open("db", &jay.Options{FS: e.disk, EncryptionKeys: k})
	if err != nil {
		e.t.Fatal(err)
	}
	o.Dir, o.FS, o.Now = "/copies", e.disk, func() time.Time { return e.now }
	keeper, err := backups.Open(db, o)
	if err != nil {
		e.t.Fatal(err)
	}
	fn(db, keeper)
	if err := errors.Join(keeper.Close(), db.Close()); err != nil {
		e.t.Fatal(err)
	}
}

func (e *encrypted) make(db *jay.DB, k *backups.Keeper) backups.Backup {
	e.t.Helper()
	e.now = e.now.Add(time.Hour)
	if _, err := db.Put(ctx, "notes|", []byte(`{"Text":"markerbody"}`)); err != nil {
		e.t.Fatal(err)
	}
	b, err := k.Make(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	return b
}

// Ensure that the backups of an encrypted database are encrypted with its keys, go on after the key has changed, and are read, restored and drilled with them.
func TestKeeper_Encrypted(t *testing.T) {
	t.Parallel()
	e := &encrypted{t, storagetest.NewDisk(), time.Now()}
	e.with(keys.Of(keyOf("a")), backups.Options{}, func(db *jay.DB, k *backups.Keeper) {
		for range 2 {
			if b := e.make(db, k); b.EncryptionKey != "a" {
				t.Errorf("%s is encrypted with %q", b.Path, b.EncryptionKey)
			}
		}
	})
	both := keys.Of(keyOf("b"), keyOf("a"))
	e.with(both, backups.Options{}, func(db *jay.DB, k *backups.Keeper) {
		if s := k.Status(); s.Backups != 2 || len(s.Broken) > 0 {
			t.Errorf("after a restart: %+v", s)
		}
		b := e.make(db, k)
		if b.EncryptionKey != "b" || b.Base == "" {
			t.Errorf("after the key has changed: %+v", b)
		}
		info, err := k.Drill(ctx, "/drill")
		if err != nil || info.Documents != 3 || len(info.Backups) != 3 {
			t.Errorf("drill: %+v, %v", info, err)
		}
	})
	f := backups.Files{FS: e.disk, EncryptionKeys: both}
	chain, err := f.Chain("/copies")
	if err != nil || len(chain) != 3 || chain[2].EncryptionKey != "b" || chain[0].EncryptionKey != "a" {
		t.Errorf("the chain: %+v, %v", chain, err)
	}
	_, err = backups.Chain(e.disk, "/copies")
	if !errors.Is(err, backups.ErrNoBackup) || !errors.Is(err, jay.ErrKey) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("without keys: %v", err)
	}
	if _, err := backups.Drill(ctx, e.disk, "/drill", chain[0].Path); !errors.Is(err, jay.ErrKey) {
		t.Errorf("a drill without keys: %v", err)
	}
}

// Ensure that backups whose key is missing stay, and that a new chain begins.
func TestKeeper_MissingKey(t *testing.T) {
	t.Parallel()
	e := &encrypted{t, storagetest.NewDisk(), time.Now()}
	var first backups.Backup
	both := keys.Of(keyOf("b"), keyOf("a"))
	backupKeys := keys.Of(keyOf("x"))
	e.with(both, backups.Options{EncryptionKeys: backupKeys}, func(db *jay.DB, k *backups.Keeper) {
		if first = e.make(db, k); first.EncryptionKey != "x" {
			t.Errorf("the key of the options: %+v", first)
		}
	})
	e.with(both, backups.Options{Keep: 1, Full: time.Minute}, func(db *jay.DB, k *backups.Keeper) {
		if s := k.Status(); s.Backups != 0 || len(s.Broken) != 1 {
			t.Errorf("its key is missing: %+v", s)
		}
		for range 3 {
			if b := e.make(db, k); b.Base != "" || b.EncryptionKey != "b" {
				t.Errorf("after it: %+v", b)
			}
		}
		if _, err := e.disk.Stat(first.Path); err != nil {
			t.Errorf("the backup without a key: %v", err)
		}
		if s := k.Status(); s.Backups != 1 {
			t.Errorf("of those with a key, older ones are removed: %+v", s)
		}
	})
}

// Ensure that Plain makes backups in the clear, of a database that is not always open, too, and reads encrypted ones that are there.
func TestKeeper_Plain(t *testing.T) {
	t.Parallel()
	e := &encrypted{t, storagetest.NewDisk(), time.Now()}
	e.with(keys.Of(keyOf("a")), backups.Options{}, func(db *jay.DB, k *backups.Keeper) { e.make(db, k) })
	db, err := jay.Open("db", &jay.Options{FS: e.disk, EncryptionKeys: keys.Of(keyOf("a"))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	source := func(context.Context) (*jay.DB, func(), error) { return db, func() {}, nil }
	o := backups.Options{Dir: "/copies", FS: e.disk, Plain: true, Now: func() time.Time { return e.now }}
	k, err := backups.OpenFrom(ctx, source, o)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if b := e.make(db, k); b.Base == "" || b.EncryptionKey != "" {
		t.Errorf("got %+v, want one in the clear that follows the encrypted one", b)
	}
	if s := k.Status(); s.Backups != 2 || s.Chains != 1 {
		t.Errorf("got %+v", s)
	}
	o.EncryptionKeys = keys.Of(keyOf("a"))
	if _, err := backups.Open(db, o); !errors.Is(err, jay.ErrOption) {
		t.Errorf("both: %v", err)
	}
}
