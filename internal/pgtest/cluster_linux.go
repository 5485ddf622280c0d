package pgtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Times of a Cluster, in seconds. A leader that does not renew its key for leaderTTL is not the leader any more. With shorter ones, a machine that is busy with
// other tests loses its leaders for no other reason.
const (
	leaderTTL    = 20
	loopWait     = 2
	retryTimeout = 9
)

// Cluster is three machines, each a network namespace of Linux with PostgreSQL, Patroni and a member of etcd, and a switch between them, on
// which this process has an address as well. One server is the primary one; of the others one is synchronous, and takes over when the primary one
// is gone. It needs root, and Debian's packages patroni and etcd-server.
type Cluster struct {
	dir, prefix, subnet string
	nodes               []*Node
	guard               *exec.Cmd
	stop                io.Closer
	client              http.Client
}

// Node is a machine of a Cluster.
type Node struct {
	c *Cluster
	i int
}

// The namespaces, what runs in them, and the files go when the process of the tests does, however that ends. Its arguments are the directory and
// the names of the bridge and the machines.
const clusterGuard = `read _; dir=$1; bridge=$2; shift 2
for n in "$@"; do
	for p in $(ip netns pids "$n"); do kill -KILL "$p"; done
done
for n in "$@"; do ip netns del "$n"; done
ip link del "$bridge"
for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$dir" && break; sleep 0.2; done`

// StartCluster starts a cluster of three machines, and returns when a synchronous standby follows the primary server.
func StartCluster() (_ *Cluster, err error) {
	if os.Getuid() != 0 {
		return nil, errors.New("network namespaces need root")
	}
	for _, program := range []string{"ip", "patroni", "etcd", "runuser"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: run storage/sqlkv/install.sh cluster", err)
		}
	}
	bin, err := find()
	if err != nil {
		return nil, err
	}
	pid := os.Getpid()
	c := &Cluster{prefix: fmt.Sprintf("jpg%d", pid%100000), subnet: fmt.Sprintf("10.%d.%d", 192+pid>>8&63, pid&255), client: http.Client{Timeout: time.Second}}
	if c.dir, err = os.MkdirTemp("", "jay-patroni-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(c.dir, 0o755); err != nil {
		return nil, err
	}
	args := []string{"-c", clusterGuard, "sh", c.dir, c.prefix + "b"}
	for i := range 3 {
		c.nodes = append(c.nodes, &Node{c, i})
		args = append(args, c.nodes[i].machine())
	}
	c.guard = exec.Command("/bin/sh", args...)
	c.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it outlives an interrupt
	if c.stop, err = c.guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.guard.Start(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, errors.New(c.Logs()))
			c.Stop()
		}
	}()
	if err := c.wire(); err != nil {
		return nil, err
	}
	for _, n := range c.nodes {
		if err := n.configure(bin); err != nil {
			return nil, err
		}
	}
	for _, n := range c.nodes {
		if err := n.Start(); err != nil {
			return nil, err
		}
	}
	_, err = c.Whole(5 * time.Minute)
	return c, err
}

// wire makes the machines and the switch.
func (c *Cluster) wire() error {
	commands := [][]string{{"link", "add", c.prefix + "b", "type", "bridge"}, {"addr", "add", c.subnet + ".254/24", "dev", c.prefix + "b"}, {"link", "set", c.prefix + "b", "up"}}
	for _, n := range c.nodes {
		end := fmt.Sprint(c.prefix, "e", n.i)
		commands = append(commands, []string{"netns", "add", n.machine()},
			[]string{"link", "add", n.line(), "type", "veth", "peer", "name", end},
			[]string{"link", "set", end, "netns", n.machine()},
			[]string{"link", "set", n.line(), "master", c.prefix + "b"},
			[]string{"link", "set", n.line(), "up"},
			[]string{"-n", n.machine(), "link", "set", "lo", "up"},
			[]string{"-n", n.machine(), "addr", "add", n.Host() + "/24", "dev", end},
			[]string{"-n", n.machine(), "link", "set", end, "up"})
	}
	for _, args := range commands {
		if err := ip(args...); err != nil {
			return err
		}
	}
	return nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Name returns the name of the node, as Patroni knows it, and Host its address.
func (n *Node) Name() string { return fmt.Sprint("n", n.i+1) }

// Host returns the address of the node.
func (n *Node) Host() string { return fmt.Sprint(n.c.subnet, ".", n.i+1) }

func (n *Node) machine() string { return fmt.Sprint(n.c.prefix, "m", n.i) }
func (n *Node) line() string    { return fmt.Sprint(n.c.prefix, "v", n.i) }
func (n *Node) dir() string     { return filepath.Join(n.c.dir, n.Name()) }

// each joins what fn returns for each node.
func (c *Cluster) each(fn func(n *Node) string) string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, fn(n))
	}
	return strings.Join(all, ",")
}

// configure writes the files of Patroni. It uses the interface of etcd's version 2, in which Patroni keeps its lock by a comparison with its own name. By the
// interface of version 3 Patroni 3.0.2 puts the lock unconditionally if a view that may be old says that it is its own: a primary server that comes back
// from a partition becomes the primary one again beside the next, and acknowledged commits are lost.
func (n *Node) configure(bin string) error {
	if err := os.Mkdir(n.dir(), 0o700); err != nil {
		return err
	}
	postgres := filepath.Join(n.dir(), "postgres")
	if err := os.Mkdir(postgres, 0o700); err != nil {
		return err
	}
	if err := giveAway(n.dir(), postgres); err != nil {
		return err
	}
	text := fmt.Sprintf(`scope: jay
name: %[1]s
restapi: {listen: '%[2]s:8008', connect_address: '%[2]s:8008'}
etcd: {hosts: '%[3]s'}
bootstrap:
  dcs:
    ttl: %[4]d
    loop_wait: %[5]d
    retry_timeout: %[6]d
    primary_start_timeout: 0
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters: {max_connections: 300, wal_keep_size: 512MB, shared_buffers: 32MB, wal_log_hints: 'on'}
  initdb: [{encoding: UTF8}, {locale: C}]
postgresql:
  listen: '%[2]s:5432'
  connect_address: '%[2]s:5432'
  data_dir: %[7]s/data
  bin_dir: %[8]s
  pgpass: %[7]s/pgpass
  authentication: {superuser: {username: jay}, replication: {username: follower}, rewind: {username: rewinder}}
  parameters: {unix_socket_directories: %[7]s}
  pg_hba: ['local all all trust', 'host all all 0.0.0.0/0 trust', 'host replication all 0.0.0.0/0 trust']
`, n.Name(), n.Host(), n.c.each(func(n *Node) string { return n.Host() + ":2379" }), leaderTTL, loopWait, retryTimeout, postgres, bin)
	return os.WriteFile(n.config(), []byte(text), 0o644)
}

func (n *Node) config() string { return filepath.Join(n.c.dir, n.Name()+".yml") }
func (n *Node) log() string    { return filepath.Join(n.c.dir, n.Name()+".log") }

// Start starts etcd and Patroni, which starts PostgreSQL, also on a node that was killed.
func (n *Node) Start() error {
	http, peer := "http://"+n.Host()+":2379", "http://"+n.Host()+":2380"
	err := n.run("etcd", "--name", n.Name(), "--data-dir", filepath.Join(n.c.dir, n.Name()+".etcd"), "--listen-client-urls", http, "--advertise-client-urls", http,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster-state", "new", "--initial-cluster-token", "jay-tests",
		"--initial-cluster", n.c.each(func(n *Node) string { return n.Name() + "=http://" + n.Host() + ":2380" }), "--enable-v2", "--heartbeat-interval", "300", "--election-timeout", "3000", "--logger", "zap", "--log-level", "error")
	if err != nil {
		return err
	}
	return n.run("runuser", "-u", "postgres", "--", "patroni", n.config())
}

// run starts a program on the node.
func (n *Node) run(args ...string) error {
	log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.machine()}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = n.c.dir
	cmd.Env = append(os.Environ(), "ETCD_UNSUPPORTED_ARCH=arm64") // for Debian's on ARM
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() // it ends by a signal
	return nil
}

// Signal sends a signal to all processes of the node.
func (n *Node) Signal(s syscall.Signal) error {
	for range 20 { // a process may make another one meanwhile
		out, err := exec.Command("ip", "netns", "pids", n.machine()).Output()
		if err != nil {
			return err
		}
		pids := strings.Fields(string(out))
		for _, text := range pids {
			pid, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		switch {
		case s == syscall.SIGKILL && len(pids) == 0, s == syscall.SIGCONT:
			return nil
		case s == syscall.SIGKILL:
			time.Sleep(50 * time.Millisecond)
		case len(pids) > 0 && s == syscall.SIGSTOP:
			again, err := exec.Command("ip", "netns", "pids", n.machine()).Output()
			if err != nil || string(again) == string(out) {
				return err
			}
		}
	}
	return fmt.Errorf("the processes of %s do not end", n.Name())
}

// Pull cuts the node off from everything: packets vanish, and no connection is closed. Plug ends that.
func (n *Node) Pull() error { return ip("link", "set", n.line(), "down") }

// Plug ends Pull.
func (n *Node) Plug() error { return ip("link", "set", n.line(), "up") }

// Part cuts the node off from the other nodes, and not from this process. Join ends that.
func (n *Node) Part() error { return n.route("add") }

// Join ends Part.
func (n *Node) Join() error { return n.route("del") }

func (n *Node) route(verb string) error {
	for _, other := range n.c.nodes {
		if other != n {
			if err := ip("-n", n.machine(), "route", verb, "blackhole", other.Host()+"/32"); err != nil {
				return err
			}
		}
	}
	return nil
}

// URL returns the address of a database, with all nodes and parameters such as "a=b".
func (c *Cluster) URL(parameters ...string) string {
	return "postgres://jay@" + c.each(func(n *Node) string { return n.Host() + ":5432" }) + "/postgres?sslmode=disable&target_session_attrs=read-write&" + strings.Join(parameters, "&")
}

// view is what Patroni says of the cluster.
type view struct {
	Members []struct{ Name, Role, State string }
}

// view returns what a node says.
func (n *Node) view() (v view, err error) {
	reply, err := n.c.client.Get("http://" + n.Host() + ":8008/cluster")
	if err != nil {
		return v, err
	}
	defer reply.Body.Close()
	return v, json.NewDecoder(reply.Body).Decode(&v)
}

// Whole waits until there are a primary server, a synchronous standby and another standby, and all nodes say so. It returns the
// primary one.
func (c *Cluster) Whole(patience time.Duration) (*Node, error) {
	said := ""
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		said = ""
		var leaders []*Node
		for _, n := range c.nodes {
			v, err := n.view()
			leader, roles := n.leads(v)
			said += fmt.Sprintf("%s: %+v %v; ", n.Name(), v, err)
			if err == nil && roles["leader"] == 1 && roles["sync_standby"] == 1 && roles["replica"] == 1 {
				leaders = append(leaders, leader)
			}
		}
		if len(leaders) == 3 && leaders[0] == leaders[1] && leaders[0] == leaders[2] {
			return leaders[0], nil
		}
	}
	return nil, fmt.Errorf("the cluster is not whole after %v: %s", patience, said)
}

// Primary waits until a node says which one is the primary server, and runs, and returns its name. The cluster need not be whole.
func (c *Cluster) Primary(patience time.Duration) (string, error) {
	var failed error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		for _, n := range c.nodes {
			v, err := n.view()
			if leader, _ := n.leads(v); err == nil && leader != nil {
				return leader.Name(), nil
			}
			failed = err
		}
	}
	return "", fmt.Errorf("no node names a primary server after %v: %w", patience, failed)
}

// leads returns the leader in a view, and how many members run in each role.
func (n *Node) leads(v view) (leader *Node, roles map[string]int) {
	roles = make(map[string]int)
	for _, m := range v.Members {
		if m.State != "running" && m.State != "streaming" {
			continue
		}
		roles[m.Role]++
		for _, other := range n.c.nodes {
			if m.Role == "leader" && m.Name == other.Name() {
				leader = other
			}
		}
	}
	return leader, roles
}

// Logs returns the ends of what the nodes have printed, and what Patroni says.
func (c *Cluster) Logs() string {
	return c.each(func(n *Node) string {
		text, _ := os.ReadFile(n.log())
		v, err := n.view()
		return fmt.Sprintf("%s: %s\n%+v %v\n", n.Name(), text[max(0, len(text)-4000):], v, err)
	})
}

// Stop ends the cluster and removes its files.
func (c *Cluster) Stop() error {
	c.stop.Close()
	return c.guard.Wait()
}
