package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/jaydb/jay/cluster/embedded"
	"github.com/jaydb/jay/cluster/etcd"
)

// Ensure that a configuration that cannot be is refused, with the field and the value, and that
// nothing is created.
func TestStart_Config(t *testing.T) {
	t.Parallel()
	files := newAuthority(t, "ours").issue("server", "127.0.0.1", time.Now().Add(time.Hour))
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		change   func(*embedded.Config)
		says     string
		insecure bool
	}{
		{func(c *embedded.Config) { c.Name = "" }, "Name", false},
		{func(c *embedded.Config) { c.Name = "a,b=c" }, `"a,b=c"`, false},
		{func(c *embedded.Config) { c.Dir = "" }, "Dir", false},
		{func(c *embedded.Config) { c.Dir = file }, file, false},
		{func(c *embedded.Config) { c.ClientURL = "127.0.0.1:2379" }, "ClientURL", false},
		{func(c *embedded.Config) { c.ClientURL = "http://127.0.0.1" }, "ClientURL", false},
		{func(c *embedded.Config) { c.ClientURL = "http://db.example.com:2379" }, "ListenClient", false},
		{func(c *embedded.Config) { c.PeerURL = "ftp://127.0.0.1:1" }, "PeerURL", false},
		{func(c *embedded.Config) { c.ListenPeer = "localhost" }, "ListenPeer", false},
		{func(c *embedded.Config) { c.ClientURL = "http://0.0.0.0:2379" }, "ClientTLS", true},
		{func(c *embedded.Config) { c.ListenPeer = "0.0.0.0:2380" }, "PeerTLS", true},
		{func(c *embedded.Config) { c.PeerURL = "http://10.1.2.3:2380" }, "Insecure", true},
		{func(c *embedded.Config) { c.PeerURL = "https://127.0.0.1:2380" }, "PeerTLS", true},
		{func(c *embedded.Config) {
			c.ClientURL, c.ClientTLS = "https://127.0.0.1:2379", embedded.TLS{Certificate: files.Certificate, Key: files.Key}
		}, "Authorities", true},
		{func(c *embedded.Config) { c.ClientTLS = files }, "is http", false},
		{func(c *embedded.Config) {
			c.ClientURL, c.ClientTLS = "https://127.0.0.1:2379", embedded.TLS{Certificate: file + "x", Key: files.Key, Authorities: files.Authorities}
		}, file + "x", false},
		{func(c *embedded.Config) { c.QuotaBytes = 1 }, "QuotaBytes", false},
		{func(c *embedded.Config) { c.Keep = time.Second }, "Keep", false},
		{func(c *embedded.Config) { c.Heartbeat = time.Microsecond }, "Heartbeat", false},
		{func(c *embedded.Config) { c.Token = "a b" }, "Token", false},
		{func(c *embedded.Config) { c.Join = true }, "Peers", false},
		{func(c *embedded.Config) { c.Peers = map[string]string{"b": "http://127.0.0.1:1"} }, "Peers", false},
		{func(c *embedded.Config) {
			c.Peers = map[string]string{c.Name: c.PeerURL, "b": c.PeerURL}
		}, "same URL", false},
		{func(c *embedded.Config) {
			c.Peers = map[string]string{c.Name: c.PeerURL}
			for i := range 9 {
				c.Peers[fmt.Sprint(i)] = fmt.Sprint("http://127.0.0.1:", i+1)
			}
		}, "at most 9", false},
	} {
		config := embedded.Config{Name: "a", Dir: filepath.Join(t.TempDir(), "new"), ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:1"}
		row.change(&config)
		m, err := embedded.Start(config)
		if err == nil {
			t.Errorf("%s: started", row.says)
			m.Close()
			continue
		}
		if !errors.Is(err, embedded.ErrConfig) || errors.Is(err, embedded.ErrInsecure) != row.insecure || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v", row.says, err)
		}
		if _, err := os.Stat(config.Dir); err == nil && config.Dir != file {
			t.Errorf("%s: the directory was created", row.says)
		}
	}
}

// Ensure that an address in use and a damaged directory are errors, and do not end the process.
func TestStart_Failed(t *testing.T) {
	t.Parallel()
	first := alone(t, nil)
	config := embedded.Config{Name: "b", Dir: t.TempDir(), ClientURL: first.ClientURL(), PeerURL: "http://127.0.0.1:0"}
	if _, err := embedded.Start(config); !errors.Is(err, embedded.ErrFailed) || !strings.Contains(err.Error(), strings.TrimPrefix(first.ClientURL(), "http://")) {
		t.Errorf("an address in use: got %v", err)
	}

	config = embedded.Config{Name: "c", Dir: t.TempDir(), ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0"}
	m, err := embedded.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(config.Dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	content, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		content[40+i] ^= 0xff
	}
	if err := os.WriteFile(logs[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := embedded.Start(config); !errors.Is(err, embedded.ErrFailed) {
		t.Errorf("a damaged log: got %v", err)
		if err == nil {
			m.Close()
		}
	}
}

// Ensure that members are added and removed while nodes work, that the cluster refuses what
// would stop it, and that a member that was removed says so.
func TestMember_AddRemove(t *testing.T) {
	long(t)
	t.Parallel()
	c := startCell(t, 1, nil)
	node := c.open(t)
	commitAnyway(t, node, "x", "1")
	for i := 1; i < 3; i++ {
		c.peers, c.clients = append(c.peers, newProxy(t)), append(c.clients, newProxy(t))
		config := c.configs[0]
		config.Name, config.Dir = name(i), filepath.Join(filepath.Dir(config.Dir), name(i))
		config.PeerURL, config.ClientURL, config.Join = c.peers[i].url(), c.clients[i].url(), true
		var err error
		c.eventually("a member that is added", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			config.Peers, err = c.members[0].Add(ctx, config.Name, config.PeerURL)
			return err == nil || !errors.Is(err, embedded.ErrChange) // until the others are connected
		})
		if err != nil {
			t.Fatal(err)
		}
		c.configs, c.members = append(c.configs, config), append(c.members, nil)
		c.start(i)
		if err := c.members[i].Ready(within(t)); err != nil {
			t.Fatal(err)
		}
		commitAnyway(t, node, "x", fmt.Sprint(i+1))
	}
	c.eventually("three members", func() bool { return len(c.members[0].Peers()) == 3 && c.members[0].Peers()["c"] == c.peers[2].url() })
	if _, err := c.members[0].Add(within(t), "c", "http://127.0.0.1:1"); !errors.Is(err, embedded.ErrChange) {
		t.Errorf("a name that is taken: got %v", err)
	}
	if _, err := c.members[0].Add(within(t), "d", "nonsense"); !errors.Is(err, embedded.ErrConfig) {
		t.Errorf("no URL: got %v", err)
	}
	if err := c.members[0].Remove(within(t), "d"); !errors.Is(err, embedded.ErrChange) {
		t.Errorf("no such member: got %v", err)
	}

	// A member that is down costs the majority of the two that remain: the cluster refuses it.
	c.stop(1)
	c.eventually("a refusal", func() bool { return errors.Is(c.members[0].Remove(within(t), "c"), embedded.ErrChange) })
	c.start(1)
	c.eventually("a removal", func() bool { return c.members[0].Remove(within(t), "c") == nil })
	select {
	case <-c.members[2].Done():
	case <-time.After(patience):
		t.Fatal("the member that was removed goes on")
	}
	if err := c.members[2].Err(); !errors.Is(err, embedded.ErrFailed) || !strings.Contains(err.Error(), "removed") {
		t.Errorf("got %v", err)
	}
	commitAnyway(t, node, "x", "last")
}

// Ensure that no goroutine is left by a coordinator, in whatever state it is closed, nor by a
// member.
func TestClose_NothingLeft(t *testing.T) {
	before := goroutines()
	m, err := embedded.Start(embedded.Config{Name: "a", Dir: t.TempDir(), ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	for what, config := range map[string]etcd.Config{
		"connected":   {Endpoints: []string{m.ClientURL()}},
		"unreachable": {Endpoints: []string{"http://127.0.0.1:1"}},
		"wrong user":  {Endpoints: []string{"http://127.0.0.1:1"}, Username: "a", Password: "b"},
	} {
		c, err := etcd.Open(config)
		if err != nil {
			t.Fatal(err)
		}
		limit := 200 * time.Millisecond
		if what == "connected" {
			limit = patience
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		if _, err := c.Read(ctx, "x"); (err == nil) != (what == "connected") {
			t.Errorf("%s: got %v", what, err)
		}
		cancel()
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := m.Err(); err != nil {
		t.Errorf("a member that was closed: %v", err)
	}
	if err := m.Ready(t.Context()); !errors.Is(err, embedded.ErrFailed) {
		t.Errorf("ready after Close: got %v", err)
	}
	noneLeft(t, before)
}

// Ensure that a member that has never found the majority of its cluster is closed like any other:
// etcd alone would wait for that majority for ever.
func TestClose_NoMajority(t *testing.T) {
	before := goroutines()
	const nobody = "http://127.0.0.1:1"
	m, err := embedded.Start(embedded.Config{
		Name: "a", Dir: t.TempDir(), Peers: map[string]string{"a": "http://127.0.0.1:2", "b": nobody},
		ListenPeer: "127.0.0.1:0", PeerURL: "http://127.0.0.1:2", ClientURL: "http://127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := m.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("alone of two: got %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	noneLeft(t, before)
}

// Ensure that what would make etcd end the process makes the member fail: its files cannot be
// written, or it finds that its state is impossible.
func TestMember_Fails(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(*zap.Logger){
		"fatal": func(l *zap.Logger) { l.Fatal("cannot write", zap.Error(errors.New("no space left"))) },
		"panic": func(l *zap.Logger) { l.Panic("cannot write", zap.Error(errors.New("no space left"))) },
	} {
		m := alone(t, nil)
		ended := make(chan bool)
		go func() {
			returned := false
			defer func() { ended <- returned }()
			end(m.Log())
			returned = true
		}()
		if <-ended {
			t.Errorf("%s: etcd goes on as if nothing had happened", what)
		}
		<-m.Done()
		if err := m.Err(); !errors.Is(err, embedded.ErrFailed) || !strings.Contains(err.Error(), "cannot write: no space left") {
			t.Errorf("%s: got %v", what, err)
		}
		if err := m.Ready(within(t)); !errors.Is(err, embedded.ErrFailed) {
			t.Errorf("%s: ready: got %v", what, err)
		}
	}
}

// Ensure that etcd's log arrives at the logger, with its values.
func TestLogger(t *testing.T) {
	t.Parallel()
	var text syncBuffer
	alone(t, func(c *embedded.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	for _, want := range []string{"level=DEBUG", "etcd: starting an etcd server", "name=alone"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
}
