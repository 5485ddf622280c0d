package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/jaydb/jay"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"jay": main})
}

// The scripts in testdata run the command as its users do. Each opens with
// the claim that it tests.
func TestScripts(t *testing.T) {
	files, here := scripts(t)
	defer debug.SetGCPercent(debug.SetGCPercent(600)) // each command allocates much and keeps nothing
	testscript.RunT(inTurn{T: t, here: here}, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		Condition:           scriptCondition,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"run":       scriptRun,
			"input":     scriptInput,
			"fails":     scriptFails,
			"hold":      scriptHold,
			"appears":   scriptAppears,
			"damage":    scriptDamage,
			"write":     scriptWrite,
			"repeat":    scriptRepeat,
			"gzip":      scriptGzip,
			"lines":     scriptLines,
			"canonical": scriptCanonical,
			"flipbit":   scriptFlipBit,
			"sqlite":    scriptSQLite,
			"select":    scriptSelect,
		},
		Setup: func(env *testscript.Env) error {
			// Else each process built with -race sleeps for a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=10")
			// For the go command, which the demo runs.
			variables, err := goEnvironment()
			for _, v := range variables {
				env.Setenv(v[0], v[1])
			}
			env.Values[inputs{}] = new(string)
			return err
		},
	})
}

// goEnvironment returns the variables that the go command needs beside a user's.
var goEnvironment = sync.OnceValues(func() (variables [][2]string, err error) {
	names := []string{"GOCACHE", "GOROOT", "GOPATH"}
	output, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	for i, value := range strings.Split(strings.TrimSpace(string(output)), "\n") {
		variables = append(variables, [2]string{names[i], strings.TrimSpace(value)})
	}
	return variables, err
})

func scriptCondition(name string) (bool, error) {
	if name == "permissions" { // whether the system refuses this user anything
		return runtime.GOOS != "windows" && os.Geteuid() > 0, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// fails CODE COMMAND... runs a command that must exit with this code and say
// why in exactly one line on stderr.
func scriptFails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails code command...")
	}
	code, text := 0, ""
	if args[1] == "run" {
		code, text = runHere(ts, args[3:])
	} else {
		err := ts.Exec(args[1], args[2:]...)
		exit, is := err.(*exec.ExitError)
		if !is {
			ts.Fatalf("got %v, want exit code %s", err, args[0])
		}
		code, text = exit.ExitCode(), ts.ReadFile("stderr")
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("got exit code %d, want %s", code, args[0])
	}
	if strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "jay: ") && !strings.HasPrefix(text, `{"error":`) {
		ts.Fatalf("stderr is not one clear line: %q", text)
	}
}

// hold DIR keeps a database open in this process until the script ends. Others cannot look into it, but with hold -look DIR.
func scriptHold(ts *testscript.TestScript, _ bool, args []string) {
	dir := args[len(args)-1]
	db, err := jay.Open(ts.MkAbs(dir), &jay.Options{NoLook: args[0] != "-look"})
	ts.Check(err)
	ts.Defer(func() { ts.Check(db.Close()) })
}

// appears FILE waits until there is a file, which a command in the background makes.
func scriptAppears(ts *testscript.TestScript, _ bool, args []string) {
	for range 3000 {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s does not appear", args[0])
}

// damage HOW PATTERN removes, cuts in half, or flips a byte every hundred of,
// each file that matches the pattern.
func scriptDamage(ts *testscript.TestScript, _ bool, args []string) {
	paths, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(paths) == 0 {
		ts.Fatalf("no file matches %s", args[1])
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		ts.Check(err)
		switch args[0] {
		case "remove":
			ts.Check(os.Remove(path))
			continue
		case "cut":
			text = text[:len(text)/2]
		case "flip":
			for i := 0; i < len(text); i += 100 {
				text[i] ^= 0xff
			}
		default:
			ts.Fatalf("unknown damage %s", args[0])
		}
		ts.Check(os.WriteFile(path, text, 0o666))
	}
}

// write FILE TEXT writes the text, a Go string without its quotes.
func scriptWrite(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(unescaped(ts, args[1])), 0o666))
}

func unescaped(ts *testscript.TestScript, text string) string {
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	ts.Check(err)
	return text
}

// repeat FILE HEAD N TEXT TAIL writes the head, n times the text, the tail.
func scriptRepeat(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	var b bytes.Buffer
	b.WriteString(unescaped(ts, args[1]))
	for range n {
		b.WriteString(args[3])
	}
	b.WriteString(unescaped(ts, args[4]))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o666))
}

// flipbit PATTERN OFFSET flips a bit of the newest file whose name fits.
func scriptFlipBit(ts *testscript.TestScript, _ bool, args []string) {
	names, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	name := names[len(names)-1]
	text, err := os.ReadFile(name)
	ts.Check(err)
	text[at] ^= 1
	ts.Check(os.WriteFile(name, text, 0o666))
}

// gzip FILE writes the file, packed, to FILE.gz.
func scriptGzip(ts *testscript.TestScript, _ bool, args []string) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, ts.ReadFile(args[0]))
	ts.Check(err)
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0])+".gz", b.Bytes(), 0o666))
}

// lines FILE N checks the number of lines.
func scriptLines(ts *testscript.TestScript, _ bool, args []string) {
	if got := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(got) != args[1] {
		ts.Fatalf("got %d lines, want %s", got, args[1])
	}
}

// sqlite FILE STATEMENT... runs statements of SQL on a SQLite database.
func scriptSQLite(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	for _, statement := range args[1:] {
		_, err := db.Exec(statement)
		ts.Check(err)
	}
}

// select FILE QUERY prints the rows of a query on a SQLite database.
func scriptSelect(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	rows, err := db.Query(args[1])
	ts.Check(err)
	defer rows.Close()
	names, err := rows.Columns()
	ts.Check(err)
	for rows.Next() {
		values, targets := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			targets[i] = &values[i]
		}
		ts.Check(rows.Scan(targets...))
		fmt.Fprintln(ts.Stdout(), values...)
	}
	ts.Check(rows.Err())
}

var volatile = regexp.MustCompile(`"@change-vector":"[^"]*",|,"@last-modified":"[^"]*"|"etag":[0-9]+,?`)

// canonical FILE TO takes out of an export what differs between copies.
func scriptCanonical(ts *testscript.TestScript, _ bool, args []string) {
	text := volatile.ReplaceAllString(ts.ReadFile(args[0]), "")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o666))
}

// result is what one run of the command came to.
type result struct {
	code           int
	stdout, stderr string
}

func runJay(ctx context.Context, stdin io.Reader, args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, stdin, &stdout, &stderr, func(string) string { return "" })
	return result{code, stdout.String(), stderr.String()}
}

// endless repeats one byte for ever, and counts how much was read.
type endless struct {
	c    byte
	read atomic.Int64 // in the background
}

// Read implements io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.c
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

// Ensure that an input without end is refused at the limit.
func TestRun_EndlessInput(t *testing.T) {
	for _, command := range []string{"put", "import"} {
		t.Run(command, func(t *testing.T) {
			rest := &endless{c: 'x'}
			stdin := io.MultiReader(strings.NewReader(`{"a":"`), rest)
			got := runJay(t.Context(), stdin, "--db", t.TempDir(), "--max-document-bytes", "1000000", command, "--id", "a")
			if got.code != 1 || !strings.Contains(got.stderr, "at most 1000000 bytes") {
				t.Errorf("got %+v, want exit code 1 and the limit", got)
			}
			if read, limit := rest.read.Load(), int64(1_000_000+(chunksAhead+2)*chunkBytes); read > limit {
				t.Errorf("read %d bytes, want at most %d", read, limit)
			}
		})
	}
}

// Ensure that an interrupted import ends although no more input comes, says
// how many documents are stored, and gives the unused HiLo numbers back.
func TestRun_InterruptedImport(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	go func() {
		for range 1001 { // one more than a batch has
			_, _ = io.WriteString(w, "{}\n")
		}
		// A read of the last line shows that the others are on their way; the
		// first batch is stored when the next document comes.
		cancel()
	}()
	got := runJay(ctx, r, "--db", dir, "import", "--collection", "Users")
	if got.code != exitInterrupted || !strings.HasPrefix(got.stderr, "jay: import standard input: ") || !strings.Contains(got.stderr, "interrupted") || !strings.HasSuffix(got.stderr, " stored\n") {
		t.Errorf("got %+v, want exit code 130 and what is stored", got)
	}

	stats := runJay(t.Context(), nil, "--db", dir, "list", "--collection", "Users", "--ids-only")
	stored := strings.Count(stats.stdout, "\n")
	if want := thousands(int64(stored)) + " documents are stored"; !strings.Contains(got.stderr, want) {
		t.Errorf("got %q, want %q", got.stderr, want)
	}
	next := runJay(t.Context(), strings.NewReader("{}"), "--db", dir, "put", "--collection", "Users")
	if want := fmt.Sprintf("users/%d-A\n", stored+1); next.stdout != want {
		t.Errorf("got next id %+v, want %q; %+v", next, want, got)
	}
}

// Ensure that a command that was interrupted before it began changes nothing.
func TestRun_InterruptedBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if got := runJay(ctx, strings.NewReader("{}"), "--db", dir, "put", "--id", "a"); got.code != exitInterrupted {
		t.Errorf("got %+v, want exit code %d", got, exitInterrupted)
	}
}

// Ensure that the demo says what it lacks where there is no go command, and
// leaves nothing behind.
func TestRun_DemoWithoutGo(t *testing.T) {
	t.Setenv("PATH", "")
	dir := filepath.Join(t.TempDir(), "new")
	got := runJay(t.Context(), nil, "--db", dir, "demo")
	if got.code != 1 || !strings.HasPrefix(got.stderr, "jay: demo needs the go command") {
		t.Errorf("got %+v, want exit code 1 and the reason", got)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("got a database, want none")
	}
}

// Ensure that output that cannot be written is one error, once.
func TestRun_BrokenOutput(t *testing.T) {
	dir := t.TempDir()
	runJay(t.Context(), strings.NewReader("{}"), "--db", dir, "put", "--id", "a")
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"--db", dir, "list"}, nil, brokenWriter{}, &stderr, os.Getenv)
	if code != 1 || stderr.String() != "jay: pipe is broken\n" {
		t.Errorf("got %d, %q, want 1 and the writer's error", code, stderr.String())
	}
}

// brokenWriter refuses every byte.
type brokenWriter struct{}

// Write implements io.Writer.
func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("pipe is broken") }
