// Package examples_test runs every program in this directory and compares what
// it prints with its output.txt.
package examples_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	// The programs are built anew when the tests are, and the tests when the
	// package has changed: else go test would take an old result for theirs.
	_ "github.com/jaydb/jay"

	"github.com/jaydb/jay/internal/sample"
)

var rewrite = flag.Bool("rewrite", false, "write what the programs print into their output.txt")

// leaves are the files that a program leaves behind on purpose.
var leaves = map[string][]string{"readme": {"library.jay"}}

// unstable is what no two runs print alike, and what stands for it.
var unstable = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<GUID>"},
	{regexp.MustCompile(`\b[0-9.]+(ns|µs|ms|s)\b`), "<time>"},
}

// Ensure that every program, in a short run those of today, runs without arguments from an empty directory,
// ends well and prints what it is known to print, says nothing on standard
// error and leaves no file behind but those of leaves.
func TestExamples(t *testing.T) {
	mains, err := filepath.Glob("*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	mains = slices.DeleteFunc(mains, func(main string) bool { // a module of its own has its own test
		_, err := os.Stat(filepath.Join(filepath.Dir(main), "go.mod"))
		return err == nil
	})
	if len(mains) < 8 {
		t.Fatalf("got %d programs, want at least 8: %v", len(mains), mains)
	}
	today := sample.Of(t, sample.Fortnight)
	build := exec.Command("go", "build")
	var names []string
	for i, main := range mains {
		if today.Has(i) {
			names = append(names, filepath.Dir(main))
		}
	}
	bin := t.TempDir()
	// Without tables for a debugger the linker is done in a fifth of the time.
	build.Args = append(build.Args, "-ldflags=-s -w", "-o", bin+string(filepath.Separator))
	for _, name := range names {
		build.Args = append(build.Args, "./"+name)
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			got := execute(t, filepath.Join(bin, name), leaves[name]...)
			golden := filepath.Join(name, "output.txt")
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; make it with: go test ./examples -rewrite", err)
			}
			if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// execute runs a program and returns what it prints. It may leave only the given
// files behind.
func execute(t *testing.T, program string, leaves ...string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a hang
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	temp := t.TempDir()
	cmd.Dir = temp
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil || complaints.Len() > 0 {
		t.Fatalf("%v\n%s%s", err, out.String(), complaints.String())
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(left))
	for i, file := range left {
		names[i] = file.Name()
	}
	if !slices.Equal(names, leaves) {
		t.Errorf("the program has left %q behind, want %q", names, leaves)
	}

	text := out.String()
	for _, u := range unstable {
		text = u.pattern.ReplaceAllString(text, u.instead)
	}
	return text
}
