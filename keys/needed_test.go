package keys_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
)

// Ensure that the key that a database needs is told without any key, also while the database is in use and after a rotation, and that a plain database needs none.
func TestNeededBy(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "keys")
	needs := func(name, want string) {
		t.Helper()
		if got, err := keys.NeededBy(filepath.Join(dir, name)); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	if id, err := keys.NeededBy(filepath.Join(dir, "none")); !errors.Is(err, jay.ErrNoDatabase) {
		t.Errorf("none: got %q, %v, want ErrNoDatabase", id, err)
	}
	plain, err := jay.Open(filepath.Join(dir, "plain"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	needs("plain", "")
	addKey(t, path, "one")
	db, err := jay.Open(filepath.Join(dir, "shop"), &jay.Options{EncryptionKeys: keys.File(path)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	needs("shop", "one")
	addKey(t, path, "two")
	needs("shop", "one")
	if _, err := keys.Renew(db); err != nil {
		t.Fatal(err)
	}
	needs("shop", "two")
}

// Ensure that a secret is read from a file of its owner only, that is not too long, and that no message shows it.
func TestReadSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("abcde"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := keys.ReadSecret(path, 5); err != nil || string(got) != "abcde" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := keys.ReadSecret(path, 4); !errors.Is(err, jay.ErrKey) || strings.Contains(err.Error(), "abcd") || len(got) > 4 {
		t.Errorf("one byte too long: got %q, %v", got, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := keys.ReadSecret(path, 5); filepath.Separator == '/' && (!errors.Is(err, jay.ErrKey) || got != nil) {
		t.Errorf("others can read it: got %q, %v", got, err)
	}
}
