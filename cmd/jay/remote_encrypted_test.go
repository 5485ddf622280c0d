package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
	"github.com/jaydb/jay/server"
)

// encryptedCommands returns three functions for tests of the command: the name of a file in a folder of the test; what the command prints, which must
// end with an exit code; and a check that a text has a part.
func encryptedCommands(t *testing.T) (file func(name string) string, call func(want int, args ...string) string, says func(text, part string)) {
	dir := t.TempDir()
	file = func(name string) string { return filepath.Join(dir, name) }
	call = func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(context.Background(), args, strings.NewReader(`{}`), &out, &errs, func(string) string { return "" }); got != want {
			t.Fatalf("jay %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, &errs)
		}
		return out.String() + errs.String()
	}
	says = func(text, part string) {
		t.Helper()
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
	return file, call, says
}

// Ensure that a backup of a server with encrypted databases is read on its way with the keys that the command has, that no file is kept without
// them, and that --plain gets one in the clear; and that a program's open database is backed up through it with the command's keys.
func TestRemote_EncryptedBackup(t *testing.T) {
	file, call, says := encryptedCommands(t)
	call(0, "key", "new", "--id", "one", file("keys"))
	s, err := server.Open(server.Options{Data: file("data"), Database: jay.Options{EncryptionKeys: keys.File(file("keys"))}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	defer func() {
		h.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	r := &remote{access{"", h.Client()}, h.URL}
	if _, err := r.read(t.Context(), "PUT", "/admin/databases", map[string][]string{"name": {"acorns"}}, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	at := "--url=" + h.URL + "/databases/acorns"
	call(0, at, "put", "--id", "a")

	says(call(1, at, "backup", file("none")), `encrypted with the key "one", and no keys were given`)
	if _, err := os.Stat(file("none")); err == nil {
		t.Error("a backup that could not be read is kept")
	}
	says(call(0, at, "--key-file", file("keys"), "backup", file("full")), `encrypted with the key "one"`)
	says(call(0, at, "--key-file", file("keys"), "backup", "--since", file("full"), file("more")), `encrypted with the key "one"`)
	says(call(0, "--key-file", file("keys"), "verify", file("full"), file("more")), "is whole")
	if text := call(0, at, "backup", "--plain", file("plain")); strings.Contains(text, "with the key") {
		t.Errorf("--plain: %s", text)
	}
	says(call(2, at, "backup", "--backup-key-file", file("keys"), file("x")), "go without --url")

	db, err := jay.Open(file("db"), &jay.Options{EncryptionKeys: keys.File(file("keys"))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	says(call(1, "--db", file("db"), "backup", file("looked")), "--backup-key-file")
	says(call(0, "--db", file("db"), "--key-file", file("keys"), "backup", file("looked")), `encrypted with the key "one"`)
}

// Ensure that jay encrypt --rotate has the program that has a database open rotate its keys, shows what is left, and changes nothing if that program has not got the key.
func TestRotate_Open(t *testing.T) {
	file, call, says := encryptedCommands(t)
	call(0, "key", "new", "--id", "one", file("keys"))
	call(0, "key", "new", "--id", "other", file("others"))
	says(call(2, "encrypt", "--rotate", file("db")), "must name the keys") // nothing is there
	db, err := jay.Open(file("db"), &jay.Options{EncryptionKeys: keys.File(file("keys"))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(t.Context(), "a", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	says(call(1, "--key-file", file("others"), "encrypt", "--rotate", file("db")), `is "one", and not "other"`)
	call(0, "key", "add", "--id", "two", file("keys"))
	says(call(0, "--key-file", file("keys"), "encrypt", "--rotate", file("db")), "has the key two in its new files")
	call(0, "key", "add", "--id", "three", file("keys"))
	text := call(0, "--json", "encrypt", "--rotate", file("db")) // without a key file: the program has it
	says(text, `"key":"three","done":`)
	says(text, `"left":["MANIFEST-`)
	s, err := db.Stats(t.Context())
	if err != nil || s.Engine.OlderKeys == 0 || s.Engine.OlderKeys > 2 {
		t.Errorf("%d files need an older key, %v", s.Engine.OlderKeys, err)
	}
	says(call(1, "--key-file", file("keys"), "encrypt", file("db")), "encrypted already")
}
