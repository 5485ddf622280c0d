package readme_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block returns the first code block of README that begins with these lines.
func block(t *testing.T, language, begins string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "```"+language+"\n"+begins)
	rest, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		t.Fatalf("README has no block of %q that begins with %q", language, begins)
	}
	return begins + rest + "\n"
}

// work is the folder of the clone. All tests use one, as the go command compiles the packages of
// another folder again.
var work string

func TestMain(m *testing.M) {
	var err error
	if work, err = os.MkdirTemp("", "readme"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(work); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// clone returns a copy of what git has of the repository, as it is in the work tree, and
// a folder beside it.
func clone(t *testing.T) (repository, beside string) {
	t.Helper()
	if os.Getenv("JAY_README") == "" {
		t.Skip("builds for minutes; make readme runs it")
	}
	repository, beside = filepath.Join(work, "jay"), filepath.Join(work, "try")
	if err := os.Mkdir(beside, 0o777); errors.Is(err, fs.ErrExist) {
		return repository, beside
	} else if err != nil {
		t.Fatal(err)
	}
	files, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // removed in the work tree
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(repository, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return repository, beside
}

// shell runs a line in dir and returns what it prints.
func shell(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", line, err, out, stderr.String())
	}
	return string(out)
}

// Ensure that README's program runs in an empty module beside a clone, by the
// command that README gives.
func TestReadme_Program(t *testing.T) {
	_, beside := clone(t)
	program := block(t, "go", "package main\n")
	if err := os.WriteFile(filepath.Join(beside, "main.go"), []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	got := shell(t, beside, strings.TrimSpace(block(t, "", "go mod init")))

	// What a line prints stands behind it in a comment.
	printed := 0
	for _, m := range regexp.MustCompile(`fmt\.Print\w*\(.*\) +// (.+)`).FindAllStringSubmatch(program, -1) {
		printed++
		if !strings.Contains(got, m[1]+"\n") {
			t.Errorf("README promises %q, and the program prints:\n%s", m[1], got)
		}
	}
	if printed == 0 {
		t.Error("README promises nothing that its program prints")
	}

	// The user's module has what package jay compiles, and not what the command,
	// the suites and the linter are made with.
	modules := shell(t, beside, "go list -m all")
	for _, name := range []string{"alecthomas/kong", "jedib0t/go-pretty", "honnef.co", "pgregory.net/rapid", "porcupine"} {
		if strings.Contains(modules, name) {
			t.Errorf("a user's module graph has %s", name)
		}
	}
	t.Logf("go list -m all: %d modules", strings.Count(modules, "\n"))

}

// Ensure that the commands of README work in a clone, and print what it says, and
// that the command can be installed from there.
func TestReadme_Commands(t *testing.T) {
	repository, _ := clone(t)
	orders := `{"Total":1}` + "\n" + `{"Total":2}` + "\n"
	if err := os.WriteFile(filepath.Join(repository, "orders.ndjson"), []byte(orders), 0o666); err != nil {
		t.Fatal(err)
	}
	shell(t, repository, "gzip orders.ndjson")
	lines := 0
	for line := range strings.SplitSeq(strings.TrimSpace(block(t, "", "go build -o bin/jay ./cmd/jay\n")), "\n") {
		command, comment, _ := strings.Cut(line, " #")
		if strings.TrimSpace(command) == "" {
			continue
		}
		lines++
		got := shell(t, repository, command)
		if id := regexp.MustCompile(`^ *([a-z]+/[0-9]+(?:-A)?)$`).FindStringSubmatch(comment); id != nil && got != id[1]+"\n" {
			t.Errorf("%s\ngot %q, want %q", command, got, id[1])
		}
	}
	if lines < 5 {
		t.Errorf("README has %d commands, want at least 5", lines)
	}

	// None of them changes a file of the clone, nor does what looks at all modules, as go doc
	// does: it writes go.work.sum if that lacks one.
	shell(t, repository, "go list -m all")
	files, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		before, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // removed in the work tree
		}
		if err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadFile(filepath.Join(repository, name)); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s is not as it was in the clone: %v", name, err)
		}
	}

	shell(t, repository, "GOBIN=$PWD/installed go install ./cmd/jay && installed/jay --version")
	shell(t, repository, "GOWORK=off go build -C cmd/jay -o ../../installed/ . && installed/jay --version")
}
