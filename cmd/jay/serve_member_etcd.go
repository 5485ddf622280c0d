//go:build !nomember

package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/jaydb/jay/cluster/embedded"
)

// config returns the configuration of package embedded, or an error of usage.
func (f *memberFlags) config(data string, c *clusterFlags, command string) (embedded.Config, error) {
	wrong := func(format string, args ...any) (embedded.Config, error) {
		return embedded.Config{}, usageError{text: fmt.Sprintf(format, args...), command: command}
	}
	if len(f.Peers) != len(c.Endpoints) {
		return wrong("--cluster-peers names %d members, and --cluster has %d URLs: the first member's client URL is the first one, and so on", len(f.Peers), len(c.Endpoints))
	}
	config := embedded.Config{Name: f.Name, Dir: cmp.Or(f.Dir, filepath.Join(data, "etcd")), Join: f.Join, Insecure: f.Insecure, Peers: make(map[string]string)}
	for i, peer := range f.Peers {
		name, url, found := strings.Cut(peer, "=")
		if !found || config.Peers[name] != "" {
			return wrong("--cluster-peers has each member once, as NAME=URL, not %.200q", peer)
		}
		config.Peers[name] = url
		if name == f.Name {
			config.PeerURL, config.ClientURL = url, c.Endpoints[i]
		}
	}
	if config.PeerURL == "" {
		return wrong("--cluster-member is %q, which is not among --cluster-peers", f.Name)
	}
	if c.CA != "" && c.Cert != "" && c.Key != "" {
		files := embedded.TLS{Certificate: c.Cert, Key: c.Key, Authorities: c.CA}
		if strings.HasPrefix(config.PeerURL, "https:") {
			config.PeerTLS = files
		}
		if strings.HasPrefix(config.ClientURL, "https:") {
			config.ClientTLS = files
		}
	}
	return config, nil
}

// run starts the member.
func (f *memberFlags) run(data string, a *app, logger *slog.Logger) (stop func() error, err error) {
	config, err := f.config(data, &a.cluster, a.command)
	if err != nil {
		return nil, err
	}
	config.Logger = logger.With("etcd", f.Name)
	member, err := embedded.Start(config)
	if err != nil {
		return nil, err
	}
	go func() {
		<-member.Done()
		if err := member.Err(); err != nil {
			logger.Error("this server's member of etcd has failed; the server goes on with the others", "err", err)
		}
	}()
	return member.Close, nil
}
