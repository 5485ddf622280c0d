//go:build nosqlite && nomember && nopostgres && noetcd

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that a build without SQLite, etcd, its client and the engine on PostgreSQL compiles none of them, and says what it is asked in vain.
func TestLeftOut(t *testing.T) {
	list := exec.Command("go", "list", "-tags", "nosqlite,nomember,nopostgres,noetcd", "-deps", ".")
	list.Stderr = os.Stderr
	packages, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(packages), "github.com/cockroachdb/pebble/v2\n") {
		t.Fatalf("go list says %.200q, want the packages of the command", packages)
	}
	for _, out := range []string{"modernc.org/sqlite", "github.com/jackc/pgx", "go.etcd.io/etcd", "go.etcd.io/raft", "google.golang.org/grpc"} {
		if strings.Contains(string(packages), out) {
			t.Errorf("the build has %s", out)
		}
	}

	dir := t.TempDir()
	db, given, made := filepath.Join(dir, "db"), filepath.Join(dir, "given.sqlite"), filepath.Join(dir, "made.sqlite")
	if err := os.WriteFile(given, []byte("SQLite format 3\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runJay(t.Context(), strings.NewReader(`{"a":1}`), "--db", db, "put", "--id", "a/1"); got.code != 0 {
		t.Fatalf("put: %+v", got)
	}
	const noSQLite = "this jay was built without SQLite's format: build it without the tag nosqlite"
	for _, asked := range []struct {
		args []string
		want string
	}{
		{[]string{"--db", db, "import", "--collection", "X", given}, noSQLite},
		{[]string{"--db", db, "export", made}, noSQLite},
		{[]string{"--db", "postgres://ada@localhost/app", "get", "a/1"}, "this jay was built without the engine on PostgreSQL: build it without the tag nopostgres"},
		{
			[]string{"serve", "--data", filepath.Join(dir, "data"), "--node-tag", "A", "--cluster", "http://127.0.0.1:1", "--cluster-member", "a", "--cluster-peers", "a=http://127.0.0.1:2"},
			"this jay was built without etcd's client: build it without the tag noetcd",
		},
		{[]string{"--db", db, "--cluster", "http://127.0.0.1:1", "get", "a/1"}, "this jay was built without etcd's client: build it without the tag noetcd"},
		{[]string{"--cluster", "http://127.0.0.1:1", "cluster", "status"}, "this jay was built without etcd's client: build it without the tag noetcd"},
	} {
		if got := runJay(t.Context(), strings.NewReader(""), asked.args...); got.code != 1 || !strings.Contains(got.stderr, asked.want) {
			t.Errorf("%v: %+v, want exit code 1 and %q", asked.args, got, asked.want)
		}
	}
	if _, err := os.Stat(made); err == nil {
		t.Errorf("%s is there", made)
	}
}
