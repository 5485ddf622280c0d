package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// jayOn runs the command on a directory, and returns what it prints.
func jayOn(t *testing.T, want int, dir, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"--db", dir}, args...)
	if got := run(context.Background(), args, strings.NewReader(stdin), &out, &errs, func(string) string { return "" }); got != want {
		t.Fatalf("jay %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, &errs)
	}
	return out.String(), errs.String()
}

// Ensure that each command that reads prints of a database that a program has open, byte by byte, what it prints of the
// closed directory, and that figures have the same members; and that commands that write say why they cannot.
func TestLook_SameOutput(t *testing.T) {
	sample.OneGoroutine(t)
	t.Setenv("HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "shop")
	for _, args := range [][]string{
		{"put", "--id", "users/ann", "--collection", "Users"},
		{"put", "--id", "users|", "--collection", "Users"},
		{"put", "--collection", "Orders"},
		{"put", "--id", "gone"},
		{"revisions", "configure", "Users", "--all"},
		{"index", "create", "Users", "Name"},
		{"put", "--id", "users/ann", "--collection", "Users"},
		{"delete", "gone"},
		{"cmpxchg", "put", "lock", "1"},
	} {
		jayOn(t, 0, dir, `{"Name":"Ann","n":1.50}`, args...)
	}
	same := [][]string{
		{"get", "users/ann", "users/1"},
		{"list"}, {"list", "--system"}, {"list", "--prefix", "users/", "--ids-only"},
		{"query", "from Users where Name = 'ann'"}, {"query", "--json", "from Users"},
		{"ids"}, {"ids", "list"}, {"index", "list"}, {"index", "list", "--json"}, {"collections", "list"},
		{"changes"}, {"changes", "--documents", "--collection", "Users"},
		{"export", "-"}, {"revisions", "list", "users/ann"}, {"cmpxchg", "list"}, {"subscriptions", "list"}, {"expiration"},
		{"shell"},
	}
	members := [][]string{{"stats", "--json"}, {"stats", "--json", "--disk"}, {"check", "--json"}, {"backup", "--json", "--once", filepath.Join(t.TempDir(), "backup")}}
	const script = "from Orders;\nfrom Users where Name = 'ann';"

	closed := make(map[string]string)
	for _, args := range append(same, members...) {
		closed[strings.Join(args, " ")], _ = jayOn(t, 0, dir, script, args...)
	}
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range same {
		got, _ := jayOn(t, 0, dir, script, args...)
		if want := closed[strings.Join(args, " ")]; got != want || want == "" && args[0] != "subscriptions" {
			t.Errorf("jay %s: got\n%s\nwant\n%s", strings.Join(args, " "), got, want)
		}
	}
	for _, args := range members {
		got, _ := jayOn(t, 0, dir, "", args...)
		if got, want := membersOf(t, got), membersOf(t, closed[strings.Join(args, " ")]); !slices.Equal(got, want) {
			t.Errorf("jay %s: got the members %q, want %q", strings.Join(args, " "), got, want)
		}
	}
	for _, args := range [][]string{
		{"put", "--id", "x"}, {"delete", "users/ann"}, {"ids", "next", "users|"}, {"compact"}, {"index", "create", "Users", "n"}, {"import", "-"},
		{"update", "--yes", "from Users update { this.n = 2 }"},
	} {
		_, said := jayOn(t, 1, dir, `{"@metadata":{"@id":"y"}}`, args...)
		if !strings.Contains(said, "another program has it open") {
			t.Errorf("jay %s: %s", strings.Join(args, " "), said)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	after, _ := jayOn(t, 0, dir, "", "export", "-")
	if after != closed["export -"] {
		t.Errorf("a refused command has written: %s", after)
	}
}

// Ensure that top shows the figures of a database that a program has open, with the members that it has of metrics.
func TestLook_Top(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	shop(t, dir)
	_, said := jayOn(t, 1, dir, "", "top", "--count", "1")
	if !strings.Contains(said, "no program listens") {
		t.Errorf("a closed database: %s", said)
	}
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			_, _ = db.Put(ctx, "orders/2", json.RawMessage(`{}`))
		}
	}()
	got, _ := jayOn(t, 0, dir, "", "--json", "top", "--count", "1", "--interval", "200ms")
	var all []topResult
	if err := json.Unmarshal([]byte(got), &all); err != nil || len(all) != 1 {
		t.Fatalf("%v: %s", err, got)
	}
	if r := all[0]; !r.Up || r.Documents != 2 && r.Documents != 1 || r.Commits <= 0 || r.DiskBytes <= 0 || len(r.Collections) != 1 {
		t.Errorf("got %s", got)
	}
}

// membersOf returns the names of the members of a line of JSON, those that are the same for a database of any
// process: what is compared is listed for the database as it is.
func membersOf(t *testing.T, line string) []string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &all); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	delete(all, "notCompared") // names what is not read
	return slices.Sorted(maps.Keys(all))
}

// Ensure that the studio shows a database that another program has open, follows it, and changes nothing.
func TestLook_Studio(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	shop(t, dir)
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := startStudio(t, &studioCommand{}, dir, jay.Options{})
	u, own := r.address(), browser(t)
	if status, _ := visit(t, own, "GET", u, "", ""); status != 200 {
		t.Fatalf("the studio: got %d", status)
	}
	if status, text := visit(t, own, "GET", u, "/databases/shop/docs?id=orders/1", ""); status != 200 || !strings.Contains(text, `"Total":1.10`) {
		t.Errorf("got %d %s", status, text)
	}
	if _, err := db.Put(t.Context(), "orders/2", json.RawMessage(`{"Total":2.20}`)); err != nil {
		t.Fatal(err)
	}
	if status, text := visit(t, own, "GET", u, "/databases/shop/docs?id=orders/2", ""); status != 200 || !strings.Contains(text, `"Total":2.20`) {
		t.Errorf("a new document: got %d %s", status, text)
	}
	if status, text := visit(t, own, "PUT", u, "/databases/shop/docs?id=x", `{}`); status != 403 {
		t.Errorf("a write: got %d %s", status, text)
	}
	if _, err := os.Lstat(filepath.Join(dir, "LOOK")); err != nil {
		t.Error(err)
	}
}
