package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that the commands of docs/operations.md run, in their order, as they stand there.
func TestOperations_Commands(t *testing.T) {
	sample.OneGoroutine(t) // a process for each command
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```sh\n(.*?)\n```\n").FindAllSubmatch(text, -1)
	if len(blocks) < 4 {
		t.Fatalf("%d blocks of commands, want at least 4: are they found?", len(blocks))
	}

	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "jay")); err != nil { // by that name the test binary is the command
		t.Skip(err) // Windows, where links need a privilege
	}
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
	for _, block := range blocks {
		command := exec.CommandContext(t.Context(), bash, "--norc", "-euo", "pipefail", "-c", string(block[1]))
		command.Dir = dir
		command.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "JAY_DB=")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v:\n%s\n%s", err, block[1], out)
		}
	}
	for _, name := range []string{"restored.jay", "moved.jay"} {
		got := runJay(t.Context(), nil, "--db", filepath.Join(dir, name), "query", "--json", "from Orders select count()")
		if got.code != 0 || got.stdout != "{\"Count\":10}\n" {
			t.Errorf("%s: got %+v, want 10 orders", name, got)
		}
	}
}
