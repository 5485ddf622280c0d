package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/keys"
	"github.com/jaydb/jay/keys/passphrase"
)

// Ensure that a change of the passphrase that is interrupted after any number of files goes on with the same two passphrases, and refuses another new one; and that afterwards the old one
// opens nothing.
func TestPassphrase_ChangeInterrupted(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	file, call, says := encryptedCommands(t)
	for name, text := range map[string]string{"old": "one", "new": "two", "third": "three"} {
		if err := os.WriteFile(file(name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := jay.Open(file("db"), &jay.Options{EncryptionKeys: passphrase.InDir(file("db"), passphrase.File(file("old")))})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} { // a table for each
		if _, err := db.Put(t.Context(), id, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if err := db.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	a := &app{getenv: func(string) string { return "" }, dir: file("db"), stderr: io.Discard}
	change := func(stopAfter int) (jay.ConvertProgress, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		old, err := keyFlags{PassphraseFile: file("old")}.keys(a)
		if err != nil {
			t.Fatal(err)
		}
		k := newOtherKeys(old, a.dir, "", newWords(file("new"), a.stdin, a.stderr))
		return jay.RotateDir(ctx, a.dir, &jay.Options{EncryptionKeys: k}, func(p jay.ConvertProgress) {
			if p.Copied == stopAfter {
				cancel()
			}
		})
	}
	interrupted := 0
	for ; ; interrupted++ {
		done, err := change(1)
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) || done.Copied != 1 || interrupted == 20 {
			t.Fatalf("after %d interruptions: %+v, %v; want one file more each time", interrupted, done, err)
		}
		says(call(exitError, "--db", file("db"), "--passphrase-file", file("old"), "get", "a"), "has not ended")
		says(call(exitError, "--passphrase-file", file("old"), "encrypt", "--rotate", "--new-passphrase-file", file("third"), file("db")), "it goes on with the same new one only")
	}
	if interrupted == 0 {
		t.Error("no change was interrupted")
	}
	call(0, "--db", file("db"), "--passphrase-file", file("new"), "get", "a")
	says(call(exitError, "--db", file("db"), "--passphrase-file", file("old"), "get", "a"), "the passphrase is another one")
}

// Ensure that jay serve makes one key from a passphrase for its own database and all others, has it again after a restart, and lets its databases be read with the passphrase; and that
// another passphrase does not start it.
func TestPassphrase_Serve(t *testing.T) {
	t.Parallel()
	file, call, says := encryptedCommands(t)
	for name, text := range map[string]string{"words": "one", "other": "two"} {
		if err := os.WriteFile(file(name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(use func(url string)) {
		ctx, cancel := context.WithCancel(t.Context())
		out, in := io.Pipe()
		ended := make(chan int, 1)
		var errs bytes.Buffer
		go func() {
			ended <- run(ctx, []string{"--passphrase-file", file("words"), "serve", "--data", file("data"), "--listen", "127.0.0.1:0"}, strings.NewReader(""), in, &errs, func(string) string { return "" })
			in.Close()
		}()
		line := make([]byte, 200)
		n, err := out.Read(line)
		if err != nil {
			t.Errorf("the server does not start: %v, %s", err, &errs)
		} else {
			use(strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "Serving ")))
		}
		cancel()
		if code := <-ended; code != 0 && code != exitInterrupted {
			t.Errorf("exit %d: %s", code, &errs)
		}
	}
	put := func(url, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode >= 300 {
			t.Fatalf("%s: %s", url, reply.Status)
		}
	}
	serve(func(url string) {
		put(url+"/admin/databases?name=acorns", `{}`)
		put(url+"/databases/acorns/docs?id=a", `{"n":1}`)
	})
	serve(func(url string) {
		put(url+"/databases/acorns/docs?id=b", `{"n":2}`)
		put(url+"/admin/databases?name=leaves", `{}`)
		put(url+"/databases/leaves/docs?id=c", `{"n":3}`)
	})
	ids := make(map[string]bool)
	for _, dir := range []string{"system", "databases/acorns", "databases/leaves"} {
		id, err := keys.NeededBy(file(filepath.Join("data", dir)))
		if err != nil || !hasWords(id) {
			t.Errorf("%s: %q, %v", dir, id, err)
		}
		ids[id] = true
	}
	if len(ids) != 1 {
		t.Errorf("the databases have the keys %v, want one", ids)
	}
	says(call(0, "--db", file("data/databases/acorns"), "--passphrase-file", file("words"), "get", "b"), `"n":2`)
	says(call(exitError, "--passphrase-file", file("other"), "serve", "--data", file("data"), "--listen", "127.0.0.1:0"), "is not the one that the database was encrypted with")
}
