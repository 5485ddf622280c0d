package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/embedded"
	"github.com/jaydb/jay/cluster/etcd"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// patience bounds what should happen soon, on a machine that is busy.
const patience = 3 * time.Minute

// TestMain lets several tests run at once even on few processors: they mostly wait, for
// elections above all. More would disturb the elections of three members on a busy machine.
func TestMain(m *testing.M) {
	jaytest.Parallel(3)
	m.Run()
}

// longTests are the tests that take many seconds, mostly of waiting for elections.
var longTests = []string{
	"TestConformance_Three", "TestDatabases_Faults", "TestDatabases_Partition", "TestDatabases_Tags", "TestFaults_LeaderKilled",
	"TestFaults_MajorityLostAndBack", "TestFaults_MinorityCutOff", "TestFaults_SilentMember", "TestMember_AddRemove",
}

// long skips a test of longTests in a short run on another day, and with the race detector: etcd
// takes many times as long with it, and its leaders then change on a busy machine as they like.
// The tests with one member remain.
func long(t *testing.T) {
	t.Helper()
	i := slices.Index(longTests, t.Name())
	switch {
	case i < 0:
		t.Fatal("it is not one of longTests")
	case jaytest.Race:
		t.Skip("it waits for elections")
	case !sample.Of(t, len(longTests)).Has(i):
		t.Skip("not today")
	}
}

// cell is members of etcd with a proxy before each of their addresses.
type cell struct {
	t       *testing.T
	configs []embedded.Config
	members []*embedded.Member // nil for those that are down
	peers   []*proxy
	clients []*proxy
}

// startCell starts n members, and returns when they have a leader.
func startCell(t *testing.T, n int, change func(*embedded.Config)) *cell {
	t.Helper()
	c := &cell{t: t}
	all := make(map[string]string)
	for i := range n {
		c.peers, c.clients = append(c.peers, newProxy(t)), append(c.clients, newProxy(t))
		all[name(i)] = c.peers[i].url()
	}
	base := t.TempDir()
	for i := range n {
		config := embedded.Config{
			Name: name(i), Dir: filepath.Join(base, name(i)), Peers: all,
			PeerURL: c.peers[i].url(), ListenPeer: "127.0.0.1:0",
			ClientURL: c.clients[i].url(), ListenClient: "127.0.0.1:0",
			Heartbeat: 200 * time.Millisecond, UnsafeNoSync: true, Logger: testLogger(),
		}
		if change != nil {
			change(&config)
		}
		c.configs, c.members = append(c.configs, config), append(c.members, nil)
	}
	t.Cleanup(func() {
		for i := range c.members {
			c.stop(i)
		}
	})
	for i := range n {
		c.start(i)
	}
	c.waitForLeader()
	return c
}

func name(i int) string { return string(rune('a' + i)) }

// testLogger shows etcd's log if JAY_CLUSTER_LOG is set.
func testLogger() *slog.Logger {
	if os.Getenv("JAY_CLUSTER_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (c *cell) start(i int) {
	c.t.Helper()
	m, err := embedded.Start(c.configs[i])
	if err != nil {
		c.t.Fatalf("member %s: %v", name(i), err)
	}
	c.members[i] = m
	c.peers[i].set(func() { c.peers[i].target = m.PeerAddress() })
	c.clients[i].set(func() { c.clients[i].target = m.ClientAddress() })
}

func (c *cell) stop(i int) {
	if c.members[i] == nil {
		return
	}
	if err := c.members[i].Close(); err != nil {
		c.t.Errorf("member %s: %v", name(i), err)
	}
	c.members[i] = nil
}

// isolate cuts a member off from the others, in both directions.
func (c *cell) isolate(i int) {
	id := c.members[i].ID()
	for j, p := range c.peers {
		p.set(func() {
			if j == i {
				p.down = true
			} else {
				p.refuse[id] = true
			}
		})
	}
}

// hide makes a member's client address refuse connections.
func (c *cell) hide(i int) { c.clients[i].set(func() { c.clients[i].down = true }) }

// mend undoes what was done to proxies.
func (c *cell) mend() {
	for _, p := range slices.Concat(c.peers, c.clients) {
		p.set(func() {
			p.down = false
			clear(p.refuse)
		})
		// What was accepted while the proxy was silent is cut: it would be so for ever.
		p.set(func() { p.silent = false })
	}
}

// leader returns the member that leads, as it says itself, or -1.
func (c *cell) leader() int {
	return slices.IndexFunc(c.members, func(m *embedded.Member) bool { return m != nil && m.Leader() })
}

func (c *cell) waitForLeader() {
	c.t.Helper()
	c.eventually("a leader that all know", func() bool {
		return c.leader() >= 0 && !slices.ContainsFunc(c.members, func(m *embedded.Member) bool { return m != nil && !m.HasLeader() })
	})
}

func (c *cell) waitForNoLeader() {
	c.t.Helper()
	c.eventually("no leader", func() bool {
		return !slices.ContainsFunc(c.members, func(m *embedded.Member) bool { return m != nil && m.HasLeader() })
	})
}

func (c *cell) eventually(what string, so func() bool) {
	c.t.Helper()
	eventually(c.t, what, so)
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); {
		if time.Now().After(deadline) {
			t.Fatalf("there was to be %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *cell) endpoints() []string {
	var list []string
	for _, p := range c.clients {
		list = append(list, p.url())
	}
	return list
}

// open returns a coordinator that knows all members, or those that are named.
func (c *cell) open(t *testing.T, only ...int) *etcd.Coordinator {
	t.Helper()
	config := etcd.Config{Endpoints: c.endpoints(), Prefix: "test/" + t.Name() + "/"}
	if len(only) > 0 {
		config.Endpoints = nil
		for _, i := range only {
			config.Endpoints = append(config.Endpoints, c.clients[i].url())
		}
	}
	return open(t, config)
}

// open returns a coordinator that is closed with the test.
func open(t *testing.T, config etcd.Config) *etcd.Coordinator {
	t.Helper()
	config.Logger = testLogger()
	coordinator, err := etcd.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := coordinator.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return coordinator
}

// alone starts one member without proxies, and returns its client URL.
func alone(t *testing.T, change func(*embedded.Config)) *embedded.Member {
	t.Helper()
	config := embedded.Config{Name: "alone", Dir: t.TempDir(), ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0", UnsafeNoSync: true, Logger: testLogger()}
	if change != nil {
		change(&config)
	}
	m, err := embedded.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := m.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	return m
}

// within returns a context for what should succeed.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func put(key, value string) cluster.Change {
	return cluster.Change{Key: key, Value: []byte(value)}
}

// commit makes changes that must be made.
func commit(t *testing.T, c cluster.Coordinator, conditions []cluster.Condition, changes ...cluster.Change) uint64 {
	t.Helper()
	result, err := c.Commit(within(t), conditions, changes)
	if err != nil || !result.Committed() {
		t.Fatalf("commit: %+v, %v", result, err)
	}
	return result.Index
}

// commitAnyway writes a value, and again if the answer was lost, as it is when the leader changes.
func commitAnyway(t *testing.T, c cluster.Coordinator, key, value string) {
	t.Helper()
	ctx := within(t)
	for {
		result, err := c.Commit(ctx, nil, []cluster.Change{put(key, value)})
		if err == nil && result.Committed() {
			return
		}
		if !errors.Is(err, cluster.ErrUnknownOutcome) {
			t.Fatalf("commit: %+v, %v", result, err)
		}
	}
}

// value reads what must be there.
func value(t *testing.T, c cluster.Coordinator, key string) string {
	t.Helper()
	found, err := c.Read(within(t), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(found[0].Value)
}

// goroutines returns the stacks of all goroutines but those of tests, by what they run.
func goroutines() map[string]int {
	buf := make([]byte, 8<<20)
	counts := make(map[string]int)
	for stack := range bytes.SplitSeq(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
		text := string(stack)
		if strings.Contains(text, "testing.(*T).Run") || strings.Contains(text, "testing.tRunner") || strings.Contains(text, "os/signal.") {
			continue
		}
		_, text, _ = strings.Cut(text, "\n")
		if i := strings.LastIndex(text, "created by "); i >= 0 {
			text, _, _ = strings.Cut(text[i:], " in goroutine")
		}
		counts[text]++
	}
	return counts
}

// noneLeft fails if there are goroutines beside those before.
func noneLeft(t *testing.T, before map[string]int) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left = left[:0]
		for what, n := range goroutines() {
			if n > before[what] {
				left = append(left, fmt.Sprintf("%d × %s", n-before[what], what))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines are left:\n%s", strings.Join(left, "\n"))
		}
	}
}

// syncBuffer is a bytes.Buffer for several goroutines.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// rawClient returns a client of etcd.
func rawClient(t *testing.T, url, user, password string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Username: user, Password: password, DialTimeout: patience, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}
