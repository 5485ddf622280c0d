package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
)

// clusterFlags are the flags for the coordinator of a cluster. Every command has them,
// as it may open a database of a cluster and need identities or compare exchange.
type clusterFlags struct {
	Endpoints    []string      `group:"cluster" name:"cluster" placeholder:"URL" help:"The database is a node of a cluster: client URLs of etcd, separated by commas, $$JAY_CLUSTER unless given."`
	Prefix       string        `group:"cluster" name:"cluster-prefix" placeholder:"TEXT/" help:"What all keys in etcd begin with. The default is jay/."`
	Database     string        `group:"cluster" name:"cluster-database" placeholder:"NAME" help:"The database is that of jay serve with this name."`
	User         string        `group:"cluster" name:"cluster-user" placeholder:"NAME" help:"User of etcd; the password is $$JAY_CLUSTER_PASSWORD or in a file."`
	PasswordFile string        `group:"cluster" name:"cluster-password-file" placeholder:"FILE" help:"File with the password, without the line break at its end."`
	CA           string        `group:"cluster" name:"cluster-ca" placeholder:"FILE" help:"Authorities that have signed the certificates of etcd, in PEM. The default is those of the system."`
	Cert         string        `group:"cluster" name:"cluster-cert" placeholder:"FILE" help:"Certificate of this node, if etcd asks for one, in PEM."`
	Key          string        `group:"cluster" name:"cluster-key" placeholder:"FILE" help:"Its private key, in PEM."`
	Timeout      time.Duration `group:"cluster" name:"cluster-timeout" placeholder:"D" help:"How long a call waits for a majority at most. The default is 10s."`
	Period       time.Duration `group:"cluster" name:"cluster-period" placeholder:"D" help:"A node without a heartbeat for so long counts as dead. The default is 10s."`
	Address      string        `group:"cluster" name:"cluster-address" placeholder:"URL" help:"Where others reach this node, for the list of nodes."`
}

// Ends of the prefixes of jay serve, which replace the slash at the end of
// --cluster-prefix: jay-databases/acorns/ is that of a database, jay-servers/ that of
// the servers. So neither is below jay/, the prefix of a program's own database.
const (
	clusterDatabases = "-databases/"
	clusterServers   = "-servers/"
)

// which returns the argument of open for the command's database.
func (f *clusterFlags) which() string {
	if f.Database == "" {
		return ""
	}
	return clusterDatabases + strings.ToLower(f.Database) + "/"
}

// others reports whether any flag but --cluster is given.
func (f *clusterFlags) others() bool {
	return f.Prefix != "" || f.Database != "" || f.User != "" || f.PasswordFile != "" || f.CA != "" || f.Cert != "" || f.Key != "" || f.Timeout != 0 || f.Period != 0 || f.Address != ""
}

// openCluster sets the coordinator in the options of the command's database, if
// --cluster is given. It does not connect yet.
func (a *app) openCluster() error {
	f := &a.cluster
	if len(f.Endpoints) == 0 {
		if list := a.getenv("JAY_CLUSTER"); list != "" {
			f.Endpoints = strings.Split(list, ",")
		}
	}
	if len(f.Endpoints) == 0 {
		if f.others() {
			return usageError{text: "the flags of a cluster go with --cluster, which says where etcd is", command: a.command}
		}
		return nil
	}
	var err error
	a.options.Cluster, err = f.open(f.which(), a.getenv)
	a.options.ClusterAddress, a.options.ClusterPeriod = f.Address, f.Period
	return err
}

// closeCluster closes the coordinator of openCluster.
func (a *app) closeCluster() error {
	if a.options.Cluster == nil {
		return nil
	}
	return a.options.Cluster.Close()
}

// clusterCommand shows the nodes of a cluster, and makes databases its members.
type clusterCommand struct {
	Status  clusterStatusCommand  `cmd:"" default:"withargs" help:"List the nodes of a cluster."`
	Join    clusterJoinCommand    `cmd:"" help:"Make the database a member of the cluster."`
	Leave   clusterLeaveCommand   `cmd:"" help:"Take a database out of the cluster, and retire its node tag."`
	Resolve clusterResolveCommand `cmd:"" help:"Give a tag back to a database of which two copies have run."`
	Accept  clusterAcceptCommand  `cmd:"" help:"Go on with an etcd that was restored from a snapshot."`
}

// whichFlags select whose records a command shows or changes.
type whichFlags struct {
	Servers bool `help:"The servers themselves: the list that jay serve keeps."`
}

// which returns the argument of clusterFlags.open.
func (f *whichFlags) which(a *app) (string, error) {
	switch {
	case len(a.cluster.Endpoints) == 0:
		return "", usageError{text: "it needs --cluster, which says where etcd is", command: a.command}
	case a.cluster.Database != "" && f.Servers:
		return "", usageError{text: "--cluster-database or --servers, not both", command: a.command}
	case f.Servers:
		return clusterServers, nil
	}
	return a.cluster.which(), nil
}

// withCoordinator calls fn with the coordinator that the flags name.
func (f *whichFlags) withCoordinator(a *app, fn func(cluster.Coordinator) error) error {
	which, err := f.which(a)
	if err != nil {
		return err
	}
	c, err := a.cluster.open(which, a.getenv)
	if err != nil {
		return err
	}
	return andThen(fn(c), c.Close())
}

// clusterStatusCommand lists nodes.
type clusterStatusCommand struct{ whichFlags }

// Help is shown by jay cluster status --help.
func (*clusterStatusCommand) Help() string {
	return `Each line is a database that has joined, with the node tag that is its own for good. "running" is one that was open at its last heartbeat: of a node that is cut off or was killed it stays so.

Examples:

    jay cluster status --cluster http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379
    jay cluster status --cluster-database acorns
    jay cluster status --servers --json`
}

// memberLine is a node with --json.
type memberLine struct {
	cluster.Member
	Running  bool      `json:"running"`
	LastSeen time.Time `json:"lastSeen,omitzero"`
}

// Run prints the nodes.
func (c *clusterStatusCommand) Run(ctx context.Context, a *app) error {
	return c.withCoordinator(a, func(own cluster.Coordinator) error {
		members, err := cluster.Members(ctx, own)
		if err != nil {
			return err
		}
		table := newFigures("Tag", "State", "Address", "Last seen", "Joined", "Database")
		for _, m := range members {
			if a.json {
				if err := a.printLine(memberLine{m, m.Running, m.LastSeen}); err != nil {
					return err
				}
				continue
			}
			seen := ""
			if !m.LastSeen.IsZero() {
				seen = m.LastSeen.UTC().Format(time.RFC3339)
			}
			table.add(m.Tag, stateOf(&m), m.Address, seen, m.Joined.UTC().Format(time.RFC3339), m.Database)
		}
		switch {
		case a.json:
			return nil
		case len(members) == 0:
			return a.print("no database has joined under this prefix; --cluster-database and --servers list those of jay serve\n")
		}
		return a.print(table.render(a.width) + "\n")
	})
}

// stateOf describes the state of a member in a word or two.
func stateOf(m *cluster.Member) string {
	switch {
	case !m.Left.IsZero():
		return "left on " + m.Left.UTC().Format(time.DateOnly)
	case !m.Copied.IsZero():
		return "copied: to be resolved"
	case m.Running:
		return "running"
	}
	return "closed"
}

// clusterJoinCommand makes a database a member.
type clusterJoinCommand struct{}

// Help is shown by jay cluster join --help.
func (*clusterJoinCommand) Help() string {
	return `Opens the database of --db, creating it if it is missing, which claims its node tag in etcd, and closes it. From then on it needs --cluster for identities and compare exchange. The tag is the database's for good: no other one of the cluster ever gets it.

Every open with --cluster does the same. This is for databases that are to be used later, and to see early whether a tag is free.

Examples:

    jay --db a.jay --node-tag A cluster join --cluster http://10.0.0.1:2379
    jay --db copy.jay --copy-tag C cluster join --cluster http://10.0.0.1:2379`
}

// Run opens and closes the database.
func (c *clusterJoinCommand) Run(ctx context.Context, a *app) error {
	if a.options.Cluster == nil {
		return usageError{text: "it needs --cluster, which says where etcd is", command: a.command}
	}
	return a.withDatabase(true, func(db *jay.DB) error {
		members, err := cluster.Members(ctx, a.options.Cluster)
		if err != nil {
			return err
		}
		stats, err := db.Stats(ctx)
		if err != nil {
			return err
		}
		tag := stats.NodeTag
		for _, m := range members {
			if m.Tag != tag {
				continue
			}
			if a.json {
				return a.printLine(m)
			}
			return a.print(fmt.Sprintf("%s has the node tag %s, as one of %s\n", a.dir, m.Tag, count(int64(len(members)), "node")))
		}
		return fmt.Errorf("the node tag %s is not among those of the cluster", tag)
	})
}

// clusterLeaveCommand removes a database from its cluster.
type clusterLeaveCommand struct {
	whichFlags
	Tag string `arg:"" help:"Its node tag."`
	Yes bool   `help:"Do not ask."`
}

// Help is shown by jay cluster leave --help.
func (*clusterLeaveCommand) Help() string {
	return `The tag is retired: no database gets it again, so that no ID of the one that leaves is ever made a second time. The database keeps its documents. If it runs, it makes no more IDs with its tag, nor identities, from its next heartbeat on. It can come back under another tag, with --copy-tag.

Examples:

    jay cluster leave C --cluster http://10.0.0.1:2379
    jay cluster leave C --cluster-database acorns --yes`
}

// Run retires the tag.
func (c *clusterLeaveCommand) Run(ctx context.Context, a *app) error {
	if !c.Yes {
		if err := a.confirm(ctx, fmt.Sprintf("retire the node tag %s for good?", c.Tag)); err != nil {
			return err
		}
	}
	return c.change(a, func(own cluster.Coordinator) (cluster.Member, error) {
		return cluster.Leave(ctx, own, c.Tag, time.Now())
	})
}

// change prints the member that fn has changed.
func (f *whichFlags) change(a *app, fn func(cluster.Coordinator) (cluster.Member, error)) error {
	return f.withCoordinator(a, func(own cluster.Coordinator) error {
		m, err := fn(own)
		if err != nil {
			return err
		}
		if a.json {
			return a.printLine(m)
		}
		return a.print(fmt.Sprintf("%s: %s\n", m.Tag, stateOf(&m)))
	})
}

// clusterResolveCommand makes a copied tag usable again.
type clusterResolveCommand struct {
	whichFlags
	Tag string `arg:"" help:"The node tag."`
}

// Help is shown by jay cluster resolve --help.
func (*clusterResolveCommand) Help() string {
	return `When two copies of a database were found to have run under one tag, neither makes IDs with it any more. Remove the copy, or open it once with --copy-tag and a tag that no node has had; then resolve the tag, and the original goes on with it. Also needed by a database that was restored from a backup in place of one that was lost.

Examples:

    jay --db copy.jay --copy-tag D cluster join --cluster http://10.0.0.1:2379
    jay cluster resolve A --cluster http://10.0.0.1:2379`
}

// Run resolves the tag.
func (c *clusterResolveCommand) Run(ctx context.Context, a *app) error {
	return c.change(a, func(own cluster.Coordinator) (cluster.Member, error) { return cluster.Resolve(ctx, own, c.Tag) })
}

// serverCluster returns the options of jay serve in a cluster.
func (a *app) serverCluster() (func(key string) (cluster.Coordinator, error), error) {
	if len(a.cluster.Endpoints) == 0 {
		return nil, nil
	}
	if a.cluster.Database != "" {
		return nil, usageError{text: "serve takes no --cluster-database: each of its databases is a node", command: a.command}
	}
	if address := a.cluster.Address; address != "" {
		if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, usageError{text: fmt.Sprintf("--cluster-address is the URL of this server, such as https://jay1.example:8443, not %.200q", address), command: a.command}
		}
	}
	return func(key string) (cluster.Coordinator, error) {
		if key == "" {
			return a.cluster.open(clusterServers, a.getenv)
		}
		return a.cluster.open(clusterDatabases+key+"/", a.getenv)
	}, nil
}
