package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that the commands of docs/operations.md run, in their order, as they stand there.
func TestOperations_Commands(t *testing.T) {
	dir := t.TempDir()
	db, err := jay.Open(filepath.Join(dir, "shop.jay"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := db.Put(t.Context(), fmt.Sprintf("orders/%d", i), json.RawMessage(`{"Total":1}`), jay.InCollection("Orders")); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	runGuide(t, "operations.md", 4, dir)
	for _, name := range []string{"restored.jay", "moved.jay"} {
		got := runJay(t.Context(), nil, "--db", filepath.Join(dir, name), "query", "--json", "from Orders select count()")
		if got.code != 0 || got.stdout != "{\"Count\":10}\n" {
			t.Errorf("%s: got %+v, want 10 orders", name, got)
		}
	}
}

// Ensure that the commands of docs/aggregates.md run, and that the dashboard that they make says what it must.
func TestAggregates_Commands(t *testing.T) {
	dir := t.TempDir()
	runGuide(t, "aggregates.md", 4, dir)
	for query, want := range map[string]string{
		"from index 'Orders/ByDay' order by Day, Customer":              `{"Day":"2026-11-27","Customer":"ann","Orders":2,"Total":17.4,"Status":"open"} {"Day":"2026-11-28","Customer":"bob","Orders":1,"Total":49.1,"Status":"open"} `,
		"from index 'Stock' where Warehouse = 'north' order by Product": `{"Warehouse":"north","Product":"acorns","Pieces":97} {"Warehouse":"north","Product":"nuts","Pieces":21} `,
	} {
		got := runJay(t.Context(), nil, "--db", filepath.Join(dir, "dashboard.jay"), "query", "--json", query)
		if got.code != 0 || strings.ReplaceAll(got.stdout, "\n", " ") != want {
			t.Errorf("%s: got %+v, want %s", query, got, want)
		}
	}
}

// runGuide runs the commands of the sh blocks of a guide in a directory, in their order, as they stand there.
func runGuide(t *testing.T, guide string, least int, dir string) {
	t.Helper()
	sample.OneGoroutine(t) // a process for each command
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	text, err := os.ReadFile(filepath.Join("../../docs", guide))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```sh\n(.*?)\n```\n").FindAllSubmatch(text, -1)
	if len(blocks) < least {
		t.Fatalf("%d blocks of commands, want at least %d: are they found?", len(blocks), least)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "jay")); err != nil { // by that name the test binary is the command
		t.Skip(err) // Windows, where links need a privilege
	}
	for _, block := range blocks {
		command := exec.CommandContext(t.Context(), bash, "--norc", "-euo", "pipefail", "-c", string(block[1]))
		command.Dir = dir
		command.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "JAY_DB=")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v:\n%s\n%s", err, block[1], out)
		}
	}
}
