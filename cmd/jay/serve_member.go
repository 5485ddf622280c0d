package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/jaydb/jay/cluster/embedded"
)

// memberFlags configure a member of etcd inside jay serve, so that jay serve on three
// machines is a cluster.
type memberFlags struct {
	Name     string   `name:"cluster-member" placeholder:"NAME" help:"Run the member of etcd with this name in this process, too."`
	Peers    []string `name:"cluster-peers" placeholder:"NAME=URL" help:"All members, with the URLs at which they reach each other, separated by commas, in the order of --cluster."`
	Dir      string   `name:"cluster-member-dir" placeholder:"DIR" help:"Directory of the member. The default is etcd, in the directory of the databases."`
	Join     bool     `name:"cluster-join" help:"The member is a new one of a cluster that runs already, and was announced there."`
	Insecure bool     `name:"insecure-cluster" help:"Let the member listen without TLS on addresses that others can reach."`
}

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

// start starts the member, if there is one, and returns the function that stops it.
func (f *memberFlags) start(data string, a *app, logger *slog.Logger) (stop func() error, err error) {
	if f.Name == "" {
		if len(f.Peers) > 0 || f.Dir != "" || f.Join || f.Insecure {
			return nil, usageError{text: "the flags of a member of etcd go with --cluster-member, its name", command: a.command}
		}
		return func() error { return nil }, nil
	}
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
