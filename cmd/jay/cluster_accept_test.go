package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/embedded"
	"github.com/jaydb/jay/cluster/etcd"
)

// Ensure that jay cluster accept --servers accepts the list of the servers in an etcd that was
// restored, and nothing else, so that its indexes go on above all that there were.
func TestClusterAccept_Servers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	base := t.TempDir()
	config := embedded.Config{Name: "a", Dir: filepath.Join(base, "data"), ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0", UnsafeNoSync: true}
	start := func() *embedded.Member {
		m, err := embedded.Start(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		config.ClientURL = m.ClientURL()
		return m
	}
	stop := func(m *embedded.Member) {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	member := start()
	list := etcd.Config{Endpoints: []string{member.ClientURL()}, Prefix: strings.TrimSuffix(etcd.DefaultPrefix, "/") + clusterServers}
	open := func() *etcd.Coordinator {
		c, err := etcd.Open(list)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	server := open()
	commit := func(c *etcd.Coordinator, value string) uint64 {
		done, err := c.Commit(ctx, nil, []cluster.Change{{Key: "A", Value: []byte(value)}})
		if err != nil || !done.Committed() {
			t.Fatalf("%s: %+v, %v", value, done, err)
		}
		return done.Index
	}
	accept := func(flags ...string) (int, string) {
		var out, errs bytes.Buffer
		args := append([]string{"--cluster", config.ClientURL, "cluster", "accept"}, flags...)
		code := run(ctx, args, strings.NewReader(""), &out, &errs, func(string) string { return "" })
		return code, out.String() + errs.String()
	}
	if code, said := accept("--servers"); code == 0 || !strings.Contains(said, "there are no records") {
		t.Errorf("before there is a list: %d, %s", code, said)
	}

	commit(server, "1")
	stop(member)
	if err := os.CopyFS(filepath.Join(base, "backup"), os.DirFS(config.Dir)); err != nil {
		t.Fatal(err)
	}
	member = start()
	var last uint64
	for range 20 {
		last = commit(server, "2")
	}
	stop(member)
	config.Dir = filepath.Join(base, "backup")
	member = start()
	defer stop(member)
	if _, err := server.Read(ctx, "A"); !errors.Is(err, cluster.ErrRestored) {
		t.Errorf("a server that has seen later records: got %v", err)
	}

	for _, flags := range [][]string{{"--servers", "--floor", "invoices|=7"}, {"--servers", "--cluster-database", "shop"}} {
		if code, said := accept(flags...); code != 2 || !strings.Contains(said, "--servers goes with neither") {
			t.Errorf("%v: %d, %s", flags, code, said)
		}
	}
	if code, said := accept("--servers"); code != 0 || !strings.Contains(said, "the nodes can be started") {
		t.Fatalf("%d, %s", code, said)
	}
	if index := commit(open(), "3"); index <= last {
		t.Errorf("index %d after %d", index, last)
	}
}
