package jay_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
	stores "github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

// keyOf returns a key whose secret follows from its ID.
func keyOf(id string) jay.EncryptionKey {
	return jay.EncryptionKey{ID: id, Secret: []byte(strings.Repeat(id, 32)[:32])}
}

// keyring returns the keys with these IDs, the newest first.
func keyring(newest string, older ...string) jay.EncryptionKeys {
	var all []jay.EncryptionKey
	for _, id := range older {
		all = append(all, keyOf(id))
	}
	return keys.Of(keyOf(newest), all...)
}

// filesOf returns the names and contents of the files of a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	}))
	return all
}

// Ensure that an encrypted database opens with its keys only, that a plain one opens without only, whichever function opens the directory, and that
// a refusal changes no file.
func TestEncryption_Doors(t *testing.T) {
	t.Parallel()
	plain, secret := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "secret")
	for dir, k := range map[string]jay.EncryptionKeys{plain: nil, secret: keyring("a")} {
		db, err := jay.Open(dir, &jay.Options{EncryptionKeys: k})
		must(t, err)
		put(t, db, "users/1", `{"Name":"Ada"}`)
		must(t, db.Close())
	}
	wrong := keys.Of(jay.EncryptionKey{ID: "a", Secret: bytes.Repeat([]byte("x"), 32)})
	for _, row := range []struct {
		name string
		dir  string
		keys jay.EncryptionKeys
		want string // "" for none
	}{
		{"encrypted", secret, keyring("a"), ""},
		{"plain", plain, nil, ""},
		{"encrypted, with a newer key too", secret, keyring("b", "a"), ""},
		{"encrypted, without keys", secret, nil, "no keys were given"},
		{"encrypted, without its key", secret, keyring("b"), `key "a"`},
		{"encrypted, with another secret", secret, wrong, "not the one that the database was encrypted with"},
		{"plain, with keys", plain, keyring("a"), "the database is not encrypted"},
	} {
		for name, call := range map[string]func(o *jay.Options) error{
			"Open, read only": func(o *jay.Options) error {
				o.ReadOnly = true
				return openAndClose(row.dir, o)
			},
			"VerifyDir": func(o *jay.Options) error {
				r, err := jay.VerifyDir(ctx, row.dir, o, nil)
				if err == nil && (r.Found != 0 || r.Documents != 1) {
					t.Errorf("%s: VerifyDir found %d damages and %d documents", row.name, r.Found, r.Documents)
				}
				return err
			},
			"Repair": func(o *jay.Options) error {
				into := filepath.Join(t.TempDir(), "into")
				r, err := jay.Repair(ctx, row.dir, into, o, nil)
				if err == nil && r.Documents != 1 {
					t.Errorf("%s: Repair saved %d documents", row.name, r.Documents)
				}
				if err == nil && (o.EncryptionKeys == nil) != (openAndClose(into, nil) == nil) {
					t.Errorf("%s: what Repair has made is not encrypted as its original is", row.name)
				}
				return err
			},
			"Promote": func(o *jay.Options) error {
				_, err := jay.Promote(ctx, row.dir, jay.PromoteOptions{CopyTag: "B", Options: o})
				if row.want == "" && errors.Is(err, jay.ErrStandby) {
					return nil // it opens, and is no standby
				}
				return err
			},
		} {
			before := filesOf(t, row.dir)
			err := call(&jay.Options{EncryptionKeys: row.keys})
			if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, jay.ErrKey) || errors.Is(err, jay.ErrCorrupt) || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%s, %s: got %v, want ErrKey with %q", row.name, name, err, row.want)
			}
			if row.want == "" {
				continue
			}
			after := filesOf(t, row.dir)
			for path, text := range after {
				if before[path] != text {
					t.Errorf("%s, %s: %s was changed", row.name, name, path)
				}
			}
			equal(t, len(after), len(before))
		}
		before := filesOf(t, row.dir)
		err := openAndClose(row.dir, &jay.Options{EncryptionKeys: row.keys})
		if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, jay.ErrKey) || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), row.dir)) {
			t.Errorf("%s, Open: got %v, want ErrKey with %q and the directory", row.name, err, row.want)
		}
		if after := filesOf(t, row.dir); row.want != "" && len(after) != len(before) {
			t.Errorf("%s: Open has changed the directory", row.name)
		}
	}
}

func openAndClose(dir string, o *jay.Options) error {
	db, err := jay.Open(dir, o)
	if err != nil {
		return err
	}
	return db.Close()
}

// Ensure that keys are refused where nothing would be encrypted.
func TestEncryption_OtherEngines(t *testing.T) {
	t.Parallel()
	o := func() *jay.Options { return &jay.Options{EncryptionKeys: keyring("a")} }
	other := o()
	other.Engine = new(stores.Driver)
	_, memory := jay.OpenMemory(o())
	_, look := jay.Look(t.TempDir(), o())
	_, convert := jay.EncryptDir(ctx, "db", other, nil)
	for name, err := range map[string]error{"another engine": openAndClose("db", other), "memory": memory, "Look": look, "EncryptDir": convert} {
		if !errors.Is(err, jay.ErrOption) {
			t.Errorf("%s: got %v, want ErrOption", name, err)
		}
	}
}

// Ensure that keys that cannot be had are an ErrKey with the cause, and that a directory which would be made is not.
func TestEncryption_NoKeys(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	path := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(path, []byte(keys.Line(keyOf("a"))), 0o644))
	must(t, os.Chmod(path, 0o644))
	for name, k := range map[string]jay.EncryptionKeys{
		"a missing file":  keys.File(path + ".missing"),
		"no variable":     keys.Env("JAY_TEST_NO_SUCH_VARIABLE"),
		"a short secret":  keys.Of(jay.EncryptionKey{ID: "a", Secret: make([]byte, 16)}),
		"a long ID":       keys.Of(jay.EncryptionKey{ID: strings.Repeat("a", 65), Secret: make([]byte, 32)}),
		"no ID":           keys.Of(jay.EncryptionKey{Secret: make([]byte, 32)}),
		"others can read": keys.File(path),
	} {
		if err := openAndClose(dir, &jay.Options{EncryptionKeys: k}); !errors.Is(err, jay.ErrKey) {
			t.Errorf("%s: got %v, want ErrKey", name, err)
		}
		if db, err := jay.Open(dir, &jay.Options{MustExist: true}); !errors.Is(err, jay.ErrNoDatabase) {
			t.Errorf("%s: there is a database: %v, %v", name, db, err)
		}
	}
}

// Ensure that a database is encrypted, gets a new key and is decrypted in its directory, and that each asks for the right state.
func TestEncryptDir(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	options := func(k jay.EncryptionKeys) *jay.Options { return &jay.Options{FS: disk, EncryptionKeys: k} }
	opens := func(step string, k jay.EncryptionKeys) {
		t.Helper()
		db, err := jay.Open("db", options(k))
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		equal(t, body(t, db, "users/1"), `{"Name":"Ada"}`)
		must(t, db.Close())
	}
	db := open(t, "db", options(nil))
	put(t, db, "users/1", `{"Name":"Ada"}`)
	must(t, db.Close())

	refused := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	_, err := jay.RotateDir(ctx, "db", options(keyring("a")), nil)
	refused("RotateDir of a plain database", err, jay.ErrUsage)
	_, err = jay.DecryptDir(ctx, "db", options(keyring("a")), nil)
	refused("DecryptDir of a plain database", err, jay.ErrUsage)
	_, err = jay.EncryptDir(ctx, "db", options(nil), nil)
	refused("EncryptDir without keys", err, jay.ErrKey)
	_, err = jay.EncryptDir(ctx, "none", options(keyring("a")), nil)
	refused("EncryptDir of nothing", err, jay.ErrNoDatabase)

	calls := 0
	done, err := jay.EncryptDir(ctx, "db", options(keyring("a")), func(p jay.ConvertProgress) {
		if calls++; p.Files != calls || p.Bytes > p.Total {
			t.Errorf("progress %+v after %d files", p, calls)
		}
	})
	must(t, err)
	if done.Files != calls || done.Copied != calls || done.Bytes != done.Total || calls < 3 {
		t.Errorf("done is %+v after %d calls", done, calls)
	}
	opens("encrypted", keyring("a"))
	_, err = jay.EncryptDir(ctx, "db", options(keyring("a")), nil)
	refused("EncryptDir of an encrypted database", err, jay.ErrUsage)

	_, err = jay.RotateDir(ctx, "db", options(keyring("b", "a")), nil)
	must(t, err)
	opens("with the newer key", keyring("b"))
	_, err = jay.Open("db", options(keyring("a")))
	refused("Open with the older key", err, jay.ErrKey)
	done, err = jay.RotateDir(ctx, "db", options(keyring("b")), nil)
	must(t, err)
	if done.Copied != 0 {
		t.Errorf("a second RotateDir has copied %d files", done.Copied)
	}

	_, err = jay.DecryptDir(ctx, "db", options(keyring("a")), nil)
	refused("DecryptDir with the older key", err, jay.ErrKey)
	_, err = jay.DecryptDir(ctx, "db", options(keyring("b")), nil)
	must(t, err)
	opens("decrypted", nil)
}
