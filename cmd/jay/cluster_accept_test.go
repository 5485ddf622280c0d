package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/embedded"
	"github.com/jaydb/jay/cluster/etcd"
)

// relay returns an address at which TCP connections are passed on to where a call of to has
// said last. The other side ends them.
func relay(t *testing.T) (address string, to func(address string)) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var target atomic.Value
	pass := func(from net.Conn) {
		defer from.Close()
		there, err := net.Dial("tcp", target.Load().(string))
		if err != nil {
			return
		}
		defer there.Close()
		go func() {
			_, _ = io.Copy(there, from)
			there.Close()
		}()
		_, _ = io.Copy(from, there)
	}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(from)
		}
	}()
	return listener.Addr().String(), func(address string) { target.Store(address) }
}

// atFreePort calls listen with the address of a port that is free, and returns it. Another
// program may take the port first: then it is called with the next one.
func atFreePort(t *testing.T, listen func(address string) error) string {
	t.Helper()
	var err error
	for range 10 {
		free, failed := net.Listen("tcp", "127.0.0.1:0")
		if failed != nil {
			t.Fatal(failed)
		}
		address := free.Addr().String()
		free.Close()
		if err = listen(address); err == nil {
			return address
		}
		if !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	t.Fatal(err)
	return ""
}

// Ensure that jay cluster accept --servers accepts the list of the servers in an etcd that was
// restored, and nothing else, so that its indexes go on above all that there were.
func TestClusterAccept_Servers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	base := t.TempDir()
	// The member stops and starts, and its port is another program's meanwhile: so its
	// address is that of a relay.
	address, relayTo := relay(t)
	config := embedded.Config{Name: "a", Dir: filepath.Join(base, "data"), ClientURL: "http://" + address, PeerURL: "http://127.0.0.1:0", UnsafeNoSync: true}
	start := func() *embedded.Member {
		var m *embedded.Member
		relayTo(atFreePort(t, func(address string) (err error) {
			config.ListenClient = address
			m, err = embedded.Start(config)
			return err
		}))
		if err := m.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		return m
	}
	stop := func(m *embedded.Member) {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	member := start()
	list := etcd.Config{Endpoints: []string{config.ClientURL}, Prefix: strings.TrimSuffix(etcd.DefaultPrefix, "/") + clusterServers}
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
