//go:build unix

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// member is a process of etcd.
type member struct {
	t      testing.TB
	name   string
	host   string // that it listens on
	client string // URLs
	peer   string
	args   []string
	within []string // the command that runs it, such as ip netns exec
	cmd    *exec.Cmd
	log    string
}

// etcdProgram returns the etcd of the system, which install.sh puts there; JAY_ETCD names
// another one.
func etcdProgram(t testing.TB) string {
	t.Helper()
	if program := os.Getenv("JAY_ETCD"); program != "" {
		return program
	}
	program, err := exec.LookPath("etcd")
	if err != nil {
		t.Fatalf("%v: run tests/cluster/install.sh, or name an etcd in JAY_ETCD", err)
	}
	return program
}

// newMembers returns members of one etcd cluster on hosts, which do not run yet. within has
// the command that runs each.
func newMembers(t testing.TB, hosts []string, within [][]string, extra ...string) []*member {
	t.Helper()
	program := etcdProgram(t)
	var initial []string
	members := make([]*member, len(hosts))
	ports := freePorts(t, 2*len(hosts))
	for i, host := range hosts {
		client, peer := "2379", "2380"
		if host == "127.0.0.1" {
			client, peer = ports[2*i], ports[2*i+1]
		}
		members[i] = &member{t: t, name: fmt.Sprint("m", i+1), host: host, client: "http://" + net.JoinHostPort(host, client), peer: "http://" + net.JoinHostPort(host, peer)}
		if within != nil {
			members[i].within = within[i]
		}
		initial = append(initial, members[i].name+"="+members[i].peer)
	}
	for _, m := range members {
		dir := t.TempDir()
		m.log = filepath.Join(dir, "log")
		m.args = append([]string{program, "--name", m.name, "--data-dir", filepath.Join(dir, "data"),
			"--listen-client-urls", m.client, "--advertise-client-urls", m.client,
			"--listen-peer-urls", m.peer, "--initial-advertise-peer-urls", m.peer,
			"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-token", "jay-tests", "--initial-cluster-state", "new",
			"--heartbeat-interval", "100", "--election-timeout", "1000", "--logger", "zap"}, extra...)
	}
	return members
}

// freePorts returns n different ports of the loopback address that nothing listens on.
func freePorts(t testing.TB, n int) (ports []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // when all have theirs
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return ports
}

// start starts the member, also one that was killed.
func (m *member) start() {
	m.t.Helper()
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	args := append(append([]string{}, m.within...), m.args...)
	m.cmd = exec.Command(args[0], args[1:]...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.Env = append(os.Environ(), "ETCD_UNSUPPORTED_ARCH=arm64") // for Debian's on ARM
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	cmd := m.cmd
	m.t.Cleanup(func() {
		if cmd == m.cmd {
			m.kill()
		}
		if m.t.Failed() && os.Getenv("JAY_ETCD_LOG") != "" {
			text, _ := os.ReadFile(m.log)
			m.t.Logf("etcd %s:\n%s", m.name, text)
		}
	})
}

// kill ends the member at once.
func (m *member) kill() {
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
	m.cmd = nil
}

// signal stops and continues the process.
func (m *member) signal(s syscall.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Fatal(err)
	}
}

// clientURLs returns those of all members.
func clientURLs(members []*member) (urls []string) {
	for _, m := range members {
		urls = append(urls, m.client)
	}
	return urls
}

// dial returns a client of etcd, which looks at the members and does what an operator does.
func dial(t testing.TB, urls []string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: urls, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// leader returns the index of the URL whose member leads, as soon as one does.
func leader(t testing.TB, c *clientv3.Client, urls []string) (index int) {
	t.Helper()
	eventually(t, "a leader of etcd", func() error {
		var problems []error
		for i, url := range urls {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			status, err := c.Status(ctx, url)
			cancel()
			if err != nil {
				problems = append(problems, err)
			} else if status.Leader == status.Header.MemberId {
				index = i
				return nil
			}
		}
		return errors.Join(append(problems, errors.New("no member leads"))...)
	})
	return index
}

// within runs fn with a context of patience.
func within(t testing.TB, what string, fn func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := fn(ctx); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// areFree reports whether nothing listens on n ports of the loopback address.
func areFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}
