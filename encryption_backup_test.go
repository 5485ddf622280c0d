package jay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// encryptedChain is a full backup and an incremental one, between which the key has changed.
type encryptedChain struct {
	infos   []jay.BackupInfo
	streams [][]byte
}

// newEncryptedChain backs up a database of some documents under the keys a and b.
func newEncryptedChain(t *testing.T) encryptedChain {
	t.Helper()
	disk := storagetest.NewDisk()
	var c encryptedChain
	random := rand.New(rand.NewPCG(1, 2)) // so that the stream has several pages
	for i, k := range []jay.EncryptionKeys{keyring("a"), keyring("b", "a")} {
		db := open(t, "db", &jay.Options{FS: disk, EncryptionKeys: k})
		for n := range 50 {
			put(t, db, fmt.Sprintf("users/%d-%d", i, n), fmt.Sprintf(`{"Text":"markerbody %x"}`, random.Perm(4000)))
		}
		var opts []jay.BackupOption
		if i > 0 {
			opts = append(opts, jay.BackupSince(c.infos[0].ID))
		}
		var stream bytes.Buffer
		info, err := db.Backup(ctx, &stream, opts...)
		must(t, err)
		must(t, db.Close())
		c.infos, c.streams = append(c.infos, info), append(c.streams, stream.Bytes())
	}
	return c
}

// readers returns readers of the streams, without keys.
func (c encryptedChain) readers() (all []io.Reader) {
	for _, stream := range c.streams {
		all = append(all, bytes.NewReader(stream))
	}
	return all
}

// keyed returns readers of the streams, with keys.
func (c encryptedChain) keyed(k jay.EncryptionKeys) (all []io.Reader) {
	for _, r := range c.readers() {
		all = append(all, jay.EncryptedBackup(r, k))
	}
	return all
}

// Ensure that a backup of an encrypted database is encrypted, says with which key, and is restored with it, also if the key has changed between it and its base.
func TestBackup_Encrypted(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	c := newEncryptedChain(t)
	for i, want := range []string{"a", "b"} {
		equal(t, c.infos[i].EncryptionKey, want)
		equal(t, c.infos[i].Bytes, int64(len(c.streams[i])))
		if !bytes.HasPrefix(c.streams[i], []byte("jay backup, format 2\n")) {
			t.Errorf("backup %d begins with %q", i, c.streams[i][:25])
		}
		info, err := jay.ReadBackup(jay.EncryptedBackup(bytes.NewReader(c.streams[i]), keyring("b", "a")))
		must(t, err)
		equal(t, info.ID, c.infos[i].ID)
		equal(t, info.EncryptionKey, want)
	}
	found, err := jay.VerifyBackup(ctx, nil, c.keyed(keyring("b", "a"))...)
	must(t, err)
	for i := range found {
		equal(t, found[i], c.infos[i])
	}

	// The keys of the restored database are those of the backups, unless others are given.
	for name, o := range map[string]jay.RestoreOptions{
		"the same keys": {Options: &jay.Options{EncryptionKeys: keyring("b", "a")}},
		"other keys":    {Options: &jay.Options{EncryptionKeys: keyring("c")}, BackupKeys: keyring("b", "a")},
		"no keys":       {BackupKeys: keyring("b", "a")},
	} {
		disk, open := storagetest.NewDisk(), jay.Options{}
		if o.Options != nil {
			open = *o.Options
		}
		open.FS, o.CopyTag, o.Options = disk, "B", &open
		restored, err := jay.Restore(ctx, "copy", o, c.readers()...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		equal(t, restored.Documents, int64(100))
		equal(t, restored.Backups[1].EncryptionKey, "b")
		db, err := jay.Open("copy", &open)
		must(t, err)
		stats, err := db.Stats(ctx)
		must(t, err)
		equal(t, stats.Engine.Encrypted, open.EncryptionKeys != nil)
		if got := body(t, db, "users/1-7"); !strings.Contains(got, "markerbody") {
			t.Errorf("%s: got %.40q", name, got)
		}
		must(t, db.Close())
	}
}

// Ensure that without its key an encrypted backup is an ErrKey that names the key, before anything is made, and that no keys and wrong keys are never damage.
func TestBackup_Encrypted_NoKey(t *testing.T) {
	t.Parallel()
	c := newEncryptedChain(t)
	dir := t.TempDir()
	var names []string
	for i, stream := range c.streams {
		names = append(names, filepath.Join(dir, fmt.Sprint(i)))
		must(t, os.WriteFile(names[i], stream, 0o600))
	}
	for name, row := range map[string]struct {
		keys jay.EncryptionKeys
		key  string // that is missing or wrong
	}{
		"no keys":         {nil, "a"},
		"another key":     {keyring("c"), "a"},
		"another secret":  {otherSecret{}, "a"},
		"only the oldest": {keyring("a"), "b"},
	} {
		refused := func(call string, err error) {
			t.Helper()
			var backup *jay.BackupError
			if !errors.Is(err, jay.ErrKey) || errors.Is(err, jay.ErrCorrupt) || !errors.As(err, &backup) || backup.Key != row.key || !strings.Contains(err.Error(), fmt.Sprintf("%q", row.key)) {
				t.Errorf("%s, %s: got %v, want ErrKey that names the key %q", name, call, err, row.key)
			}
		}
		into := filepath.Join(t.TempDir(), "copy")
		o := jay.RestoreOptions{CopyTag: "B", BackupKeys: row.keys}
		_, err := jay.VerifyBackup(ctx, nil, c.keyed(row.keys)...)
		refused("VerifyBackup", err)
		_, err = jay.RestoreFrom(watchDir{ctx, t, into}, into, o, names...)
		refused("RestoreFrom", err)
		_, err = jay.Restore(ctx, into, o, c.readers()...)
		refused("Restore", err)
		if left, err := os.ReadDir(filepath.Dir(into)); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
		i := slices.Index([]string{"a", "b"}, row.key)
		info, err := jay.ReadBackup(jay.EncryptedBackup(bytes.NewReader(c.streams[i]), row.keys))
		refused("ReadBackup", err)
		equal(t, info, jay.BackupInfo{EncryptionKey: row.key})
	}
}

// watchDir is a context whose Err fails the test if a directory is being made: Restore asks it between its steps.
type watchDir struct {
	context.Context
	t   *testing.T
	dir string
}

// Err implements context.Context.
func (w watchDir) Err() error {
	if _, err := os.Stat(w.dir + ".unfinished"); err == nil {
		w.t.Error("the directory is made before the keys of all files are known to be there")
	}
	return w.Context.Err()
}

// otherSecret has the same IDs as keyring, with other secrets.
type otherSecret struct{}

func (otherSecret) Newest() (jay.EncryptionKey, error) { return otherSecret{}.Key("a") }

func (otherSecret) Key(id string) (jay.EncryptionKey, error) {
	return jay.EncryptionKey{ID: id, Secret: make([]byte, 32)}, nil
}

// Ensure that damage to an encrypted backup is ErrBackup and ErrCorrupt, at a place that the error names, and that nothing is restored of it.
func TestBackup_Encrypted_Damage(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	c := newEncryptedChain(t)
	stream := c.streams[0]
	const line = len("jay backup, format 2\n")
	today, step := sample.Of(t, 5), max(1, len(stream)/97)
	for i := line; i < len(stream); i += step {
		if !today.Has(i / step) {
			continue
		}
		flipped := bytes.Clone(stream)
		flipped[i] ^= 4
		for name, damaged := range map[string][]byte{"flipped": flipped, "cut": stream[:i]} {
			_, err := jay.VerifyBackup(ctx, nil, jay.EncryptedBackup(bytes.NewReader(damaged), keyring("a")))
			var backup *jay.BackupError
			if !errors.Is(err, jay.ErrBackup) || !errors.Is(err, jay.ErrCorrupt) || errors.Is(err, jay.ErrKey) || !errors.As(err, &backup) || backup.Offset < 0 || backup.Offset > int64(i) {
				t.Fatalf("%s at byte %d: got %v", name, i, err)
			}
			into := filepath.Join(t.TempDir(), "copy")
			if _, err := jay.Restore(ctx, into, jay.RestoreOptions{CopyTag: "B", BackupKeys: keyring("a")}, bytes.NewReader(damaged)); !errors.Is(err, errs.ErrBackup) {
				t.Fatalf("restored, %s at byte %d: got %v", name, i, err)
			}
			if left, err := os.ReadDir(filepath.Dir(into)); err != nil || len(left) > 0 {
				t.Fatalf("%s at byte %d: %v is left, %v", name, i, left, err)
			}
		}
	}
}

// Ensure that the options choose whether a backup is encrypted, whatever the database is, and exclude each other.
func TestBackup_EncryptedOrPlain(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		database jay.EncryptionKeys
		opts     []jay.BackupOption
		want     string
	}{
		"plain":                     {nil, nil, ""},
		"plain, to be encrypted":    {nil, []jay.BackupOption{jay.BackupEncrypted(keyring("c"))}, "c"},
		"encrypted, to be plain":    {keyring("a"), []jay.BackupOption{jay.BackupPlain()}, ""},
		"encrypted, by another key": {keyring("a"), []jay.BackupOption{jay.BackupEncrypted(keyring("c"))}, "c"},
		"plain, to be plain":        {nil, []jay.BackupOption{jay.BackupPlain()}, ""},
	} {
		db := open(t, "db", &jay.Options{FS: storagetest.NewDisk(), EncryptionKeys: row.database})
		put(t, db, "users/1", `{"Text":"markerbody"}`)
		var stream bytes.Buffer
		info, err := db.Backup(ctx, &stream, row.opts...)
		must(t, err)
		equal(t, info.EncryptionKey, row.want)
		found, err := jay.VerifyBackup(ctx, nil, jay.EncryptedBackup(&stream, keyring("c")))
		if err != nil || found[0] != info {
			t.Errorf("%s: got %+v and %v, want %+v", name, found, err, info)
		}
		if _, err := db.Backup(ctx, io.Discard, jay.BackupPlain(), jay.BackupEncrypted(keyring("c"))); !errors.Is(err, jay.ErrOption) {
			t.Errorf("both: got %v, want ErrOption", err)
		}
		var none bytes.Buffer
		if _, err := db.Backup(ctx, &none, jay.BackupEncrypted(noKeys{})); !errors.Is(err, jay.ErrKey) || none.Len() > 0 {
			t.Errorf("keys that cannot be had: got %v and %d bytes", err, none.Len())
		}
		must(t, db.Close())
	}
}

// noKeys are keys that cannot be had.
type noKeys struct{}

func (noKeys) Newest() (jay.EncryptionKey, error) { return jay.EncryptionKey{}, io.ErrNoProgress }

func (noKeys) Key(string) (jay.EncryptionKey, error) { return jay.EncryptionKey{}, io.ErrNoProgress }

// Ensure that a program that looks into an encrypted database, without its keys, does not back it up in the clear unless it says so.
func TestBackup_LookEncrypted(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	owner := open(t, dir, &jay.Options{EncryptionKeys: keyring("a")})
	defer owner.Close()
	put(t, owner, "users/1", `{}`)
	db, err := jay.Look(dir, nil)
	must(t, err)
	defer db.Close()
	var stream bytes.Buffer
	if _, err := db.Backup(ctx, &stream); !errors.Is(err, jay.ErrKey) || stream.Len() > 0 {
		t.Errorf("got %v and %d bytes, want ErrKey", err, stream.Len())
	}
	if info, err := db.Backup(ctx, &stream, jay.BackupEncrypted(keyring("c"))); err != nil || info.EncryptionKey != "c" {
		t.Errorf("with a key: got %+v, %v", info, err)
	}
	if info, err := db.Backup(ctx, io.Discard, jay.BackupPlain()); err != nil || info.EncryptionKey != "" {
		t.Errorf("in the clear: got %+v, %v", info, err)
	}
}
