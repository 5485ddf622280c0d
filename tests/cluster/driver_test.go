//go:build unix

package cluster_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long the tests wait for what must come: long enough for a machine that is
// busy with other things. What must not come is never waited for.
const patience = 90 * time.Second

// errGone is the error of a call of a node whose process has ended.
var errGone = errors.New("the node has ended")

// node is a process that the test drives.
type node struct {
	t      testing.TB
	name   string
	within []string // the command that runs the process, such as ip netns exec
	config nodeConfig

	cmd    *exec.Cmd
	in     io.WriteCloser
	ended  chan struct{} // closed when the process has ended
	stderr bytes.Buffer  // to be read when the process has ended

	mu      sync.Mutex
	waiting map[int64]chan reply // nil when the process has ended. Guarded by mu.
	last    int64
}

// startNode starts a process, and waits until it has opened its database, or could not.
func startNode(t testing.TB, name string, config nodeConfig, within ...string) (*node, error) {
	t.Helper()
	n := &node{t: t, name: name, within: within, config: config}
	return n, n.start()
}

// mustStartNode ends the test if the node does not open its database.
func mustStartNode(t testing.TB, name string, config nodeConfig, within ...string) *node {
	t.Helper()
	n, err := startNode(t, name, config, within...)
	if err != nil {
		t.Fatalf("start node %s: %v", name, err)
	}
	return n
}

// start starts the process. It returns the error of the opening as a *nodeError.
func (n *node) start() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(n.config)
	if err != nil {
		return err
	}
	args := append(append([]string{}, n.within...), program)
	n.cmd = exec.Command(args[0], args[1:]...)
	n.cmd.Env = append(os.Environ(), nodeVariable+"="+string(text))
	n.stderr.Reset()
	n.cmd.Stderr = &n.stderr
	if n.in, err = n.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := n.cmd.Start(); err != nil {
		return err
	}
	opened := make(chan reply, 1)
	n.mu.Lock()
	n.waiting = map[int64]chan reply{0: opened}
	n.mu.Unlock()
	n.ended = make(chan struct{})
	go n.read(out)
	n.t.Cleanup(n.kill)
	r, err := n.await(opened, "opening")
	if err == nil {
		err = r.err()
	}
	if err != nil {
		n.kill()
	}
	return err
}

// nodeError is an error of a node.
type nodeError struct{ kind, text string }

func (e *nodeError) Error() string { return e.kind + ": " + e.text }

func (r reply) err() error {
	if r.Kind == "" {
		return nil
	}
	return &nodeError{r.Kind, r.Error}
}

// read hands replies to those who wait for them, until the process has ended.
func (n *node) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			n.t.Logf("node %s: %q: %v", n.name, lines.Text(), err)
			continue
		}
		n.mu.Lock()
		waiting := n.waiting[r.N]
		delete(n.waiting, r.N)
		n.mu.Unlock()
		if waiting != nil {
			waiting <- r
		}
	}
	_ = n.cmd.Wait()
	n.mu.Lock()
	n.waiting = nil
	n.mu.Unlock()
	close(n.ended)
}

// call sends a request and returns the reply, whose error is in it; or errGone if the
// process has ended.
func (n *node) call(r request) (reply, error) {
	answer := make(chan reply, 1)
	n.mu.Lock()
	if n.waiting == nil {
		n.mu.Unlock()
		return reply{}, errGone
	}
	n.last++
	r.N = n.last
	n.waiting[r.N] = answer
	text, err := json.Marshal(r)
	if err == nil {
		_, err = n.in.Write(append(text, '\n')) // a node that is stopped has a pipe of 64 KiB
	}
	n.mu.Unlock()
	if err != nil {
		return reply{}, errGone
	}
	return n.await(answer, r.Verb)
}

// must is call for what must succeed.
func (n *node) must(r request) reply {
	n.t.Helper()
	out, err := n.call(r)
	if err == nil {
		err = out.err()
	}
	if err != nil {
		n.t.Fatalf("node %s: %s %s: %v", n.name, r.Verb, r.ID, err)
	}
	return out
}

func (n *node) await(answer <-chan reply, what string) (reply, error) {
	select {
	case r := <-answer:
		return r, nil
	case <-n.ended:
		select {
		case r := <-answer:
			return r, nil
		default:
			return reply{}, fmt.Errorf("%s: %w: %s", what, errGone, n.stderr.String())
		}
	case <-time.After(2 * patience):
		return reply{}, fmt.Errorf("node %s: %s takes longer than %v", n.name, what, 2*patience)
	}
}

// close ends the node in good order, and returns the error of that.
func (n *node) close() error {
	answer := make(chan reply, 1)
	n.mu.Lock()
	if n.waiting == nil {
		n.mu.Unlock()
		return errGone
	}
	n.waiting[-1] = answer
	_, err := n.in.Write([]byte("{\"Verb\":\"close\"}\n"))
	n.mu.Unlock()
	if err != nil {
		return err
	}
	r, err := n.await(answer, "closing")
	if err != nil {
		return err
	}
	<-n.ended
	return r.err()
}

// kill ends the process at once.
func (n *node) kill() {
	if n.cmd == nil || n.cmd.Process == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	<-n.ended
}

// stop stops the process without ending it, and carryOn continues it.
func (n *node) stop() { n.signal(syscall.SIGSTOP) }

func (n *node) carryOn() { n.signal(syscall.SIGCONT) }

func (n *node) signal(s syscall.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Fatalf("node %s: %v: %v", n.name, s, err)
	}
}

// eventually calls fn until it returns nil, and ends the test if that takes longer than
// patience.
func eventually(t testing.TB, what string, fn func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		err := fn()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: after %v still: %v", what, patience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
