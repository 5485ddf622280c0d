// Package child runs a test binary again as another process, for tests of what
// only a second process, or the death of one, can show.
//
// The other process runs one test function, which skips itself unless the
// environment asks for it:
//
//	func TestKill_Process(t *testing.T) {
//		dir := os.Getenv("JAY_CRASH_WRITER")
//		if dir == "" {
//			t.Skip("only in a process of TestKill")
//		}
//		// write, and print what was acknowledged, until it is killed
//	}
package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Process is another process of the test binary. It is killed when the test ends.
type Process struct {
	// In is the process's standard input. Its standard error is the test's.
	In io.WriteCloser

	t   testing.TB
	cmd *exec.Cmd
	out *bufio.Reader
}

// Start runs the test function of that name in another process, with variables
// ("NAME=value") added to the environment.
func Start(t testing.TB, test string, variables ...string) *Process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &Process{In: in, t: t, cmd: cmd, out: bufio.NewReader(out)}
}

// Line returns the next line that the process prints, and fails the test if the
// process ends before.
func (p *Process) Line() string {
	p.t.Helper()
	line, err := p.line()
	if err != nil {
		p.t.Fatalf("the other process ended after %q: %v", line, err)
	}
	return line
}

// line returns the next complete line, without its end.
func (p *Process) line() (string, error) {
	line, err := p.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// KillAt calls reached with each line that the process prints, kills the process
// when reached first returns true, and returns when it is dead. Lines that were
// complete by then still come to reached; one that the kill has cut does not.
// The test fails if the process ends in another way.
func (p *Process) KillAt(reached func(line string) bool) {
	p.t.Helper()
	for killed := false; ; {
		line, err := p.line()
		if err != nil {
			break
		}
		if reached(line) && !killed {
			killed = true
			p.kill()
		}
	}
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		p.t.Fatalf("the process ended without being killed: %v", err)
	}
}

// Kill kills the process and waits for its death.
func (p *Process) Kill() {
	p.t.Helper()
	p.kill()
	_ = p.cmd.Wait() // its error is the kill
}

func (p *Process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
}

// Wait ends the input of the process and waits for its end, which must be a
// success.
func (p *Process) Wait() {
	p.t.Helper()
	_ = p.In.Close() // the process may have ended already
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatal(fmt.Errorf("the other process: %w", err))
	}
}
