//go:build !windows

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// Ensure that --passphrase asks on the terminal without an echo: twice for a new database, once for one that is there, and also if standard input has a document. Two that differ make
// no database, another one is refused, and Ctrl-C at the question leaves a terminal that echoes.
func TestPassphrase_Terminal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "notes.db")
	size := &pty.Winsize{Rows: 24, Cols: 80}
	jay := func(stdin string, args ...string) *ptyShell {
		t.Helper()
		args = append([]string{"--passphrase", "--db", dir}, args...)
		if stdin == "" {
			return startOnTerminal(t, nil, size, "LANG=C", args...)
		}
		return startOnTerminal(t, strings.NewReader(stdin), size, "LANG=C", args...)
	}
	says := func(s *ptyShell, prompt, typed string) {
		t.Helper()
		s.expect(prompt)
		s.send(typed + "\r")
	}
	const words = "oak elm ash"

	s := jay(`{"n":1}`, "put", "--id", "a")
	says(s, "New passphrase: ", words)
	says(s, "The same again: ", "oak elm fir")
	s.expect("the two passphrases are not the same: nothing was changed")
	s.end(exitError)
	if _, err := os.Stat(filepath.Join(dir, "JAY")); err == nil {
		t.Error("a database was made")
	}

	s = jay(`{"n":1}`, "put", "--id", "a")
	says(s, "New passphrase: ", words)
	says(s, "The same again: ", words)
	if screen := s.expect("note: "); strings.Contains(screen, "oak") {
		t.Errorf("the passphrase is on the screen: %q", screen)
	}
	s.end(0)

	s = jay("", "get", "a")
	says(s, "Passphrase: ", words)
	s.expect(`"n":1`)
	s.end(0)

	s = jay("", "get", "a")
	says(s, "Passphrase: ", "oak")
	s.expect("the passphrase is another one")
	s.end(exitError)

	s = jay("", "get", "a")
	s.expect("Passphrase: ")
	s.send("\x03")
	s.expect("interrupted")
	s.end(exitInterrupted)
	if out, err := exec.Command("stty", "-F", s.tty.Name(), "-a").CombinedOutput(); err == nil && strings.Contains(string(out), "-echo ") {
		t.Errorf("the terminal does not echo: %s", out)
	}

	s = jay("", "encrypt", "--rotate", "--new-passphrase", dir)
	says(s, "New passphrase: ", "new")
	says(s, "The same again: ", "new")
	says(s, "Passphrase: ", words)
	s.expect("has the new key in all files")
	s.end(0)

	s = jay("", "get", "a")
	says(s, "Passphrase: ", "new")
	s.expect(`"n":1`)
	s.end(0)
}

// Ensure that without a terminal --passphrase is an error that says what to do, and not a wait.
func TestPassphrase_NoTerminal(t *testing.T) {
	t.Parallel()
	if f, err := os.OpenFile(terminalName, os.O_RDWR, 0); err == nil {
		_ = f.Close()
		t.Skip("the test has a terminal")
	}
	file, call, says := encryptedCommands(t)
	says(call(exitError, "--passphrase", "--db", file("db"), "put", "--id", "a"), "there is no terminal to ask for the passphrase: name a file that has it with --passphrase-file")
}
