//go:build !windows

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/jaydb/jay"
)

// ptyShell is jay shell on a pseudo-terminal.
type ptyShell struct {
	t       *testing.T
	tty     *os.File
	command *exec.Cmd
	ended   chan struct{} // closed when all output was read

	mu     sync.Mutex
	screen bytes.Buffer // what has not been looked at. Guarded by mu.
	more   chan struct{}
	stopAt string        // when the screen has it, nothing more is read until goOn is closed. Guarded by mu.
	goOn   chan struct{} // set with stopAt
}

// startShell starts a shell on a terminal of this size.
func startShell(t *testing.T, dir string, rows, columns uint16) *ptyShell {
	t.Helper()
	s := startOnTerminal(t, nil, &pty.Winsize{Rows: rows, Cols: columns}, "JAY_HISTORY="+filepath.Join(filepath.Dir(dir), "history"), "shell", dir)
	s.expect(shellPrompt)
	return s
}

// startOnTerminal starts the command on a terminal of this size. stdin, if not nil, is its standard input in place of the terminal. variable is added to its environment.
func startOnTerminal(t *testing.T, stdin io.Reader, of *pty.Winsize, variable string, args ...string) *ptyShell {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	jayProgram := filepath.Join(t.TempDir(), "jay") // by that name the test binary is the command
	if err := os.Symlink(program, jayProgram); err != nil {
		t.Fatal(err)
	}
	s := &ptyShell{t: t, ended: make(chan struct{}), more: make(chan struct{}, 1)}
	s.command = exec.Command(jayProgram, args...)
	s.command.Env = append(os.Environ(), variable, "TERM=xterm")
	s.command.Stdin = stdin
	if s.tty, err = pty.StartWithAttrs(s.command, of, &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}); err != nil {
		t.Fatal(err)
	}
	go s.read()
	t.Cleanup(func() {
		_ = s.command.Process.Kill()
		_ = s.tty.Close()
	})
	return s
}

// read reads what the shell prints.
func (s *ptyShell) read() {
	defer close(s.ended)
	b := make([]byte, 4096)
	for {
		n, err := s.tty.Read(b)
		s.mu.Lock()
		s.screen.Write(b[:n])
		var stop chan struct{}
		if s.stopAt != "" && strings.Contains(s.screen.String(), s.stopAt) {
			s.stopAt, stop = "", s.goOn
		}
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if stop != nil {
			<-stop
		}
		if err != nil {
			return
		}
	}
}

// stopReadingAt has nothing more read once the screen has a text, until what it returns is closed.
func (s *ptyShell) stopReadingAt(text string) (goOn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopAt, s.goOn = text, make(chan struct{})
	return s.goOn
}

// send types keys.
func (s *ptyShell) send(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// ptyPatience is how long a test waits for what must come.
const ptyPatience = time.Minute

// expect waits until one of the texts is on the screen, and forgets all up to it. It
// returns that.
func (s *ptyShell) expect(texts ...string) string {
	s.t.Helper()
	deadline := time.After(ptyPatience)
	for {
		if seen, found := s.look(texts...); found {
			return seen
		}
		select {
		case <-s.more:
		case <-deadline:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Fatalf("%q does not come; the screen is %q", texts, s.screen.String())
		}
	}
}

// look is expect without waiting.
func (s *ptyShell) look(texts ...string) (seen string, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range texts {
		if i := strings.Index(s.screen.String(), text); i >= 0 {
			return string(s.screen.Next(i + len(text))), true
		}
	}
	return "", false
}

// end waits until the shell has ended, with an exit code.
func (s *ptyShell) end(code int) {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(ptyPatience):
		s.t.Fatal("the shell does not end")
	}
	_ = s.command.Wait()
	if got := s.command.ProcessState.ExitCode(); got != code {
		s.t.Errorf("got exit code %d, want %d", got, code)
	}
}

// ptyDatabase makes a database with n documents of a collection.
func ptyDatabase(t *testing.T, n int, body string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop.jay")
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b jay.Batch
	for i := range n {
		b.Put(fmt.Sprintf("users/%d", i), []byte(body), jay.InCollection("Users"))
	}
	if _, err := db.Apply(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Ensure that a user on a terminal edits, completes, asks over several lines, stores, and
// leaves, and that what was typed is there the next time.
func TestShell_Terminal(t *testing.T) {
	t.Parallel()
	dir := ptyDatabase(t, 2, `{"Name":"Ann"}`)
	s := startShell(t, dir, 24, 80)
	s.send("store Us\t{\"Name\":\"Zoë\"}\r")
	s.expect("users/1-A")
	s.expect(shellPrompt)
	s.send("from Us\twhere Na\t = 'zoe' or Name = 'Zoë'\r")
	s.expect("from Users where Name")
	s.expect(shellPromptMore)
	s.send("select Name;\r")
	s.expect("│ Zoë")
	s.expect("1 row, ")
	s.expect(shellPrompt)
	s.send("get users/\t\t")
	s.expect("users/0")
	s.expect("users/1-A")
	s.send("1-\t\r")
	s.expect("\"Name\": \"Zoë\"")
	s.expect(shellPrompt)
	s.send("from Users where nonsense nonsense;\r")
	s.expect("jay: query: line 1, column")
	s.expect("^")
	s.expect(shellPrompt)
	s.send("get abc\x03") // abandoned
	s.expect(shellPrompt)
	s.send("from Users update { this.Seen = true };\r")
	s.expect("change 3 documents? [y/N] ")
	s.send("y\r")
	s.expect("changed 3 documents")
	s.expect(shellPrompt)
	s.send("\x04")
	s.end(0)

	again := startShell(t, dir, 24, 80)
	again.send("select\x12\r") // Ctrl-R
	again.expect("from Users where Name = 'zoe' or Name = 'Zoë' select Name;")
	again.expect("1 row, ")
	again.expect(shellPrompt)
	again.send("exit\r")
	again.end(0)
	info, err := os.Stat(filepath.Join(filepath.Dir(dir), "history"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history: %v, %v, want mode 0600", info, err)
	}
}

// Ensure that Ctrl-C cancels a query that reads for long, and one that prints without end,
// and not the shell, which runs the next one.
func TestShell_Interrupt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("abab", 1000)
	dir := ptyDatabase(t, 4000, `{"Text":"`+long+`"}`)
	s := startShell(t, dir, 24, 80)
	s.send("from Users where regex(Text, '(a|b|ab)*(ab|ba){3,20}c') or regex(Text, '(b|ba)*(ab|ba){3,20}d');\r")
	// The terminal makes a signal of the key only once the shell has left raw mode, at which
	// the query begins: the key is repeated until one was a signal.
	for interrupted, tries := false, 0; !interrupted; tries++ {
		s.send("\x03")
		time.Sleep(10 * time.Millisecond)
		if _, interrupted = s.look("jay: interrupted"); tries > 6000 {
			s.t.Fatalf("the query is not interrupted: %q", s.screen.String())
		}
	}
	s.expect(shellPrompt)

	s.send("\x15pager off\r")
	s.expect(shellPrompt)
	goOn := s.stopReadingAt("│ users/") // the shell waits for its terminal
	s.send("from Users;\r")
	s.expect("│ users/")
	s.send("\x03")
	close(goOn)
	s.expect("jay: interrupted")
	s.expect(shellPrompt)
	s.send("get users/7 nothing\r")
	s.expect("\"@id\": \"users/7\"")
	s.expect("no document \"nothing\"")
	s.expect(shellPrompt)
	s.send("\x04")
	s.end(0)
}

// Ensure that results wait after each page of the terminal, and that Ctrl-C there ends
// the result, and not the shell.
func TestShell_Pages(t *testing.T) {
	t.Parallel()
	s := startShell(t, ptyDatabase(t, 100, `{"n":1}`), 10, 60)
	for _, row := range []struct {
		keys string
		all  bool
	}{{" q", false}, {" \x03", false}, {"a", true}} {
		s.send("list users/\r")
		seen := ""
		for _, key := range row.keys {
			seen += s.expect("-- more")
			s.send(string(key))
		}
		seen += s.expect(shellPrompt)
		if got := strings.Contains(seen, "users/99"); got != row.all {
			t.Errorf("%q: the last ID is there: %v, want %v", row.keys, got, row.all)
		}
	}
	s.send("\x04")
	s.end(0)
}

// Ensure that a shell that is asked to end does, and leaves a whole database.
func TestShell_Terminated(t *testing.T) {
	t.Parallel()
	dir := ptyDatabase(t, 1, `{}`)
	s := startShell(t, dir, 24, 80)
	s.send("put users/x {}\r")
	s.expect("users/x\r\n")
	s.expect(shellPrompt)
	if err := s.command.Process.Signal(os.Interrupt); err != nil { // kill -INT is Ctrl-C
		t.Fatal(err)
	}
	for stored := false; !stored; { // the signal may come when the statement runs
		s.send("put users/y {}\r")
		seen := s.expect("users/y\r\n", "jay: interrupted")
		stored = strings.HasSuffix(seen, "users/y\r\n")
		s.expect(shellPrompt)
	}
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.end(exitInterrupted)
	db, err := jay.Open(dir, &jay.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := db.Exists(t.Context(), "users/y"); !found || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
