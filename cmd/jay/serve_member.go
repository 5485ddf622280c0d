package main

import "log/slog"

// memberFlags configure a member of etcd inside jay serve, so that jay serve on three
// machines is a cluster.
type memberFlags struct {
	Name     string   `name:"cluster-member" placeholder:"NAME" help:"Run the member of etcd with this name in this process, too."`
	Peers    []string `name:"cluster-peers" placeholder:"NAME=URL" help:"All members, with the URLs at which they reach each other, separated by commas, in the order of --cluster."`
	Dir      string   `name:"cluster-member-dir" placeholder:"DIR" help:"Directory of the member. The default is etcd, in the directory of the databases."`
	Join     bool     `name:"cluster-join" help:"The member is a new one of a cluster that runs already, and was announced there."`
	Insecure bool     `name:"insecure-cluster" help:"Let the member listen without TLS on addresses that others can reach."`
}

// start starts the member, if there is one, and returns the function that stops it.
func (f *memberFlags) start(data string, a *app, logger *slog.Logger) (stop func() error, err error) {
	if f.Name != "" {
		return f.run(data, a, logger)
	}
	if len(f.Peers) > 0 || f.Dir != "" || f.Join || f.Insecure {
		return nil, usageError{text: "the flags of a member of etcd go with --cluster-member, its name", command: a.command}
	}
	return func() error { return nil }, nil
}
