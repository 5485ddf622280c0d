package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// complete returns what jay __complete prints, without the line that says how.
func complete(t *testing.T, dir, shell string, words ...string) (directive string, all []string) {
	t.Helper()
	args := append([]string{"--db", dir, "__complete", "--shell", shell, "--breaks", " \t\n\"'><=;|&(:", "--"}, words...)
	got := runJay(t.Context(), nil, args...)
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("%q: got %+v", words, got)
	}
	lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
	return lines[0], lines[1:]
}

// completionDatabase has a few documents.
func completionDatabase(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop.jay")
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for id, collection := range map[string]string{"users/ann": "Users", "users/bob": "Users", "o:1/a b": "My People"} {
		if _, err := db.Put(t.Context(), id, json.RawMessage(`{}`), jay.InCollection(collection)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Ensure that what may stand at the cursor is a command, a flag, a value of it, a file, a
// collection or an ID, as the command line before it says.
func TestComplete(t *testing.T) {
	sample.OneGoroutine(t)
	dir := completionDatabase(t)
	for _, row := range []struct {
		words     []string
		directive string
		want      []string
	}{
		{[]string{"expo"}, completeWords, []string{"export"}},
		{[]string{"index", ""}, completeWords, []string{"create", "list", "drop", "computed", "errors", "terms"}},
		{[]string{"collections", "re"}, completeWords, []string{"rename"}},
		{[]string{"--js"}, completeWords, []string{"--json"}},
		{[]string{"get", "--js"}, completeWords, []string{"--json"}},
		{[]string{"put", "--coll"}, completeWords, []string{"--collection"}},
		{[]string{"put", "--collection", ""}, completeWords, []string{"My People", "Users"}},
		{[]string{"put", "--collection=U"}, completeWords, []string{"--collection=Users"}},
		{[]string{"--hilo-mode", ""}, completeWords, []string{"4", "2", "2010"}},
		{[]string{"completion", "z"}, completeWords, []string{"zsh"}},
		{[]string{"get", "u"}, completeNoSpace, []string{"users/"}},
		{[]string{"get", "users/"}, completeWords, []string{"users/ann", "users/bob"}},
		{[]string{"get", "users/ann", "users/b"}, completeWords, []string{"users/bob"}},
		{[]string{"--json", "delete", "--", "users/a"}, completeWords, []string{"users/ann"}},
		{[]string{"index", "list", ""}, completeWords, []string{"My People", "Users"}},
		{[]string{"import", "some"}, completeFiles, nil},
		{[]string{"query", "-f", "so"}, completeFiles, nil},
		{[]string{"--db", "so"}, completeFiles, nil},
		{[]string{"stats", "x"}, completeWords, nil},
		{[]string{"nothing", "x"}, completeWords, nil},
	} {
		directive, got := complete(t, dir, "zsh", row.words...)
		if len(got) == 0 {
			got = nil
		}
		if directive != row.directive || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%q: got %s %q, want %s %q", row.words, directive, got, row.directive, row.want)
		}
	}
	if _, all := complete(t, dir, "zsh", ""); slices.Contains(all, "__complete") || !slices.Contains(all, "shell") {
		t.Errorf("got %q, want all commands but the hidden one", all)
	}
	if _, all := complete(t, dir, "fish", "expo"); !reflect.DeepEqual(all, []string{"export\tWrite documents as a stream that import takes back."}) {
		t.Errorf("fish: got %q, want a description", all)
	}
}

// Ensure that a database that another program has open completes, too.
func TestComplete_Look(t *testing.T) {
	dir := completionDatabase(t)
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, all := complete(t, dir, "zsh", "get", "users/"); len(all) == 0 {
		t.Error("it completes nothing")
	}
}

// Ensure that a database that lets none look, or is missing, completes nothing, and is not waited for.
func TestComplete_NoDatabase(t *testing.T) {
	dir := completionDatabase(t)
	db, err := jay.Open(dir, &jay.Options{NoLook: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, dir := range []string{dir, missing} {
		if directive, all := complete(t, dir, "zsh", "get", "users/"); directive != completeWords || len(all) > 0 {
			t.Errorf("%s: got %s %q", dir, directive, all)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a completion has made a database")
	}
}

// Ensure that bash, with the script, completes what is typed.
func TestComplete_Bash(t *testing.T) {
	sample.OneGoroutine(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	dir := completionDatabase(t)
	script := runJay(t.Context(), nil, "completion", "bash")
	if script.code != 0 {
		t.Fatalf("got %+v", script)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "jay")); err != nil {
		t.Skip(err) // Windows, where links need a privilege
	}
	for line, want := range map[string]string{
		"jay expo":                  "export",
		"jay index ":                "computed create drop errors list terms",
		"jay get users/b":           "users/bob",
		"jay put --collection=U":    "Users",
		"jay put --collection My":   `My\ People`,
		"jay get o:1/":              `1/a\ b`,
		"jay get 'o:1/":             "o:1/a b",
		"jay import " + dir + "/JA": dir + "/JAY " + dir + "/JAY.control",
		"jay nonsense ":             "",
	} {
		words := strings.Fields(line)
		if strings.HasSuffix(line, " ") {
			words = append(words, "")
		}
		last := words[len(words)-1]
		test := script.stdout + `
COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=(jay "$2") COMP_CWORD=1
_jay
printf '%s\n' "${COMPREPLY[@]}"
`
		command := exec.CommandContext(t.Context(), bash, "--norc", "-c", test, "bash", line, last)
		command.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "JAY_DB="+dir)
		out, err := command.CombinedOutput()
		got := strings.Split(strings.TrimSpace(string(out)), "\n")
		slices.Sort(got)
		if text := strings.Join(got, " "); err != nil || text != want {
			t.Errorf("%q: got %q, %v, want %q", line, text, err, want)
		}
	}
}

// Ensure that each shell that is there accepts its script, and that an unknown one is refused.
func TestCompletion_Scripts(t *testing.T) {
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}} {
		got := runJay(t.Context(), nil, "completion", shell)
		if got.code != 0 || !strings.Contains(got.stdout, "__complete --shell "+shell) {
			t.Errorf("%s: got %+v", shell, got)
		}
		program, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("there is no %s", shell)
			continue
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(got.stdout), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), program, append(check, file)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
	if got := runJay(t.Context(), nil, "completion", "tcsh"); got.code != exitUsage {
		t.Errorf("tcsh: got %+v, want wrong usage", got)
	}
}

// Ensure that a line is split as bash does.
func TestBashWords(t *testing.T) {
	for line, want := range map[string]struct {
		words []string
		raw   string
	}{
		"":                 {[]string{""}, ""},
		"jay get ":         {[]string{"jay", "get", ""}, ""},
		"jay get a":        {[]string{"jay", "get", "a"}, "a"},
		`jay get 'a b`:     {[]string{"jay", "get", "a b"}, "'a b"},
		`jay "a \"b" c\ d`: {[]string{"jay", `a "b`, "c d"}, `c\ d`},
		`jay 'a\' b`:       {[]string{"jay", `a\`, "b"}, "b"},
		`jay --x='a b' ''`: {[]string{"jay", "--x=a b", ""}, "''"},
	} {
		words, raw := bashWords(line)
		if !reflect.DeepEqual(words, want.words) || raw != want.raw {
			t.Errorf("%q: got %q %q, want %q %q", line, words, raw, want.words, want.raw)
		}
	}
}
