package keys_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
)

func secretOf(b byte) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(b), 32)))
}

// Ensure that a file that is not one of keys is told with its line, what is wrong and what to do, and that no message shows a secret.
func TestFile_Problems(t *testing.T) {
	a, b := secretOf('a'), secretOf('b')
	for _, row := range []struct{ name, text, want string }{
		{"empty", "", "no key"},
		{"comments only", "# nothing\n\n", "no key"},
		{"no secret", "one\n", "line 1: a key is an ID, a space and a secret"},
		{"three words", "# keys\none " + a + " " + b + "\n", "line 2: a key is an ID"},
		{"short secret", "one " + base64.StdEncoding.EncodeToString(make([]byte, 31)) + "\n", "has 31 bytes, and must have 32"},
		{"long secret", "one " + base64.StdEncoding.EncodeToString(make([]byte, 33)) + "\n", "has 33 bytes"},
		{"not base64", "one " + a[:43] + "!\n", "is not base64"},
		{"bits that say nothing", "one " + a[:42] + "B=\n", "is not base64"},
		{"twice", "one " + a + "\none " + b + "\n", `line 2: the key "one" is there twice`},
		{"long ID", strings.Repeat("x", 65) + " " + a + "\n", "1 to 64 characters"},
		{"ID not ASCII", "schlüssel " + a + "\n", "printable ASCII"},
		{"too long", strings.Repeat("# no key\n", 10_000), "more than 65536 bytes"},
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := keys.File(path).Newest()
		problem := (*keys.Error)(nil)
		if !errors.As(err, &problem) || !errors.Is(err, jay.ErrKey) || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want an ErrKey with %q and the path", row.name, err, row.want)
			continue
		}
		if strings.Contains(err.Error(), a[:20]) || strings.Contains(err.Error(), b[:20]) {
			t.Errorf("%s: the message shows a secret: %v", row.name, err)
		}
	}
}

// Ensure that a file that others can read or change is refused with the command that mends it, and one that the group can read is not.
func TestFile_Mode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("access lists")
	}
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("one "+secretOf('a')+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{0o400: true, 0o600: true, 0o640: true, 0o440: true, 0o644: false, 0o604: false, 0o660: false, 0o602: false, 0o601: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := keys.File(path).Newest()
		if good != (err == nil) || !good && (!errors.Is(err, jay.ErrKey) || !strings.Contains(err.Error(), "chmod 600")) {
			t.Errorf("mode %04o: got %v", mode, err)
		}
	}
	if _, err := keys.File(filepath.Dir(path)).Newest(); !errors.Is(err, jay.ErrKey) || !strings.Contains(err.Error(), "regular") {
		t.Errorf("a directory: got %v", err)
	}
	if _, err := keys.File(path + ".missing").Newest(); !errors.Is(err, jay.ErrKey) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
}

// Ensure that the last key of a file or a variable is the newest, that older ones are found, that a key which was appended counts at once, and that a missing one is told.
func TestKeys_Newest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	text := "# keys\n\n one  " + secretOf('a') + " \r\ntwo " + secretOf('b') + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JAY_TEST_KEYS", "one "+secretOf('a')+"; two "+secretOf('b'))
	one := jay.EncryptionKey{ID: "one", Secret: []byte(strings.Repeat("a", 32))}
	two := jay.EncryptionKey{ID: "two", Secret: []byte(strings.Repeat("b", 32))}
	for name, k := range map[string]jay.EncryptionKeys{"file": keys.File(path), "env": keys.Env("JAY_TEST_KEYS"), "of": keys.Of(two, one)} {
		newest, err := k.Newest()
		if err != nil || newest.ID != "two" || string(newest.Secret) != string(two.Secret) {
			t.Errorf("%s: newest is %v, %v", name, newest, err)
		}
		older, err := k.Key("one")
		if err != nil || older.ID != "one" || string(older.Secret) != string(one.Secret) {
			t.Errorf("%s: key one is %v, %v", name, older, err)
		}
		if _, err := k.Key("three"); !errors.Is(err, jay.ErrKey) || !strings.Contains(err.Error(), `no key "three"`) {
			t.Errorf("%s: got %v, want ErrKey", name, err)
		}
	}
	three, err := keys.New("three")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text+keys.Line(three)), 0o600); err != nil {
		t.Fatal(err)
	}
	if newest, err := keys.File(path).Newest(); err != nil || newest.ID != "three" || string(newest.Secret) != string(three.Secret) {
		t.Errorf("after a key was appended: %v, %v", newest, err)
	}
	if _, err := keys.Env("JAY_TEST_KEYS_MISSING").Newest(); !errors.Is(err, jay.ErrKey) || !strings.Contains(err.Error(), "not set") {
		t.Errorf("a variable that is not set: got %v", err)
	}
}

// Ensure that new keys are not the same, and that an ID that no file could have is refused.
func TestNew(t *testing.T) {
	a, err := keys.New("k")
	b, err2 := keys.New("k")
	if err != nil || err2 != nil || len(a.Secret) != keys.SecretBytes || string(a.Secret) == string(b.Secret) {
		t.Errorf("got %v and %v, %v, %v", a, b, err, err2)
	}
	for _, id := range []string{"", "a b", "#a", "ä", strings.Repeat("x", 65), "a\n"} {
		if _, err := keys.New(id); !errors.Is(err, jay.ErrKey) {
			t.Errorf("%q: got %v, want ErrKey", id, err)
		}
	}
}
