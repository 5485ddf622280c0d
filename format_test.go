package jay_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a database of each format, written by the version that released it
// (internal/fixture), opens and says what it said then.
func TestFormat1(t *testing.T) { testFormat(t, "format1") }

func TestFormat2(t *testing.T) { testFormat(t, "format2") }

func TestFormat3(t *testing.T) { testFormat(t, "format3") }

func testFormat(t *testing.T, format string) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", format, "db"), dir)
	db := open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	number, err := os.ReadFile(filepath.Join(dir, "JAY"))
	must(t, err)
	equal(t, string(number), "jay database, format 4\n")

	const written = `"@last-modified":"2026-11-21T12:00:00.0000000Z"`
	want := []string{
		`{"n":9007199254740993,"@metadata":{"@collection":"Users"|F:4|"@id":"away"`,
		`{"Max":1,"@metadata":{"@collection":"@hilo"|F:11|"@id":"Raven/HiLo/users"`,
		`{"@metadata":{"@collection":"Users"|F:6|"@id":"users/0000000000000000006-F"`,
		`{"@metadata":{"@collection":"Users"|F:5|"@id":"users/1"`,
		`{"@metadata":{"@collection":"Users"|F:10|"@id":"users/1-F"`,
		`{"Name":"Ann","@metadata":{"mine":1,"@collection":"Users"|F:2|"@id":"users/ann"`,
		`{"Name":"Bob","@metadata":{"@collection":"Users"|F:3|"@id":"Users/BOB"`,
		`{"@metadata":{|F:9|"@id":"users/stranger"`,
	}
	lines := strings.Split(dump(t, db), "\n")
	if len(lines) != len(want)+1 {
		t.Fatalf("got %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for i, w := range want {
		for _, part := range append(strings.Split(w, "|"), written) {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d: got %s, want %s in it", i+1, lines[i], part)
			}
		}
	}
	equal(t, lines[len(want)], `{"etag":11,"identities":{"users|":1},"hilo":{"users":1}}`)

	users := 0
	for range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		users++
	}
	equal(t, users, 6)
	collections, err := db.Collections(ctx)
	must(t, err)
	equal(t, fmt.Sprint(collections), "[{@empty 1} {@hilo 1} {Users 6}]")
	equal(t, put(t, db, "users|", `{}`).ID, "users/2")
	equal(t, store(t, db, "Users"), "users/2-F")
}

// Ensure that a database of format 1 becomes one of the newest format when it is
// opened, so that a program that does not write the control file, or does not count the
// documents, leaves it alone from then on, and that damage to it is noticed from the
// first close on.
func TestFormat1_Upgrade(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format1", "db"), dir)
	closeDB(t, open(t, dir, &jay.Options{MustExist: true}))
	text, err := os.ReadFile(filepath.Join(dir, "JAY"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, string(text), "jay database, format 4\n")
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	if err := os.Remove(logs[len(logs)-1]); err != nil {
		t.Fatal(err)
	}
	var damage *jay.DamageError
	if _, err := jay.Open(dir, nil); !errors.As(err, &damage) || damage.File != filepath.Base(logs[len(logs)-1]) {
		t.Errorf("the newest log is missing: got %v", err)
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, filepath.Base(path)), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
