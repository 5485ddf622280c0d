package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
)

// clusterAcceptCommand accepts the state of a restored etcd.
type clusterAcceptCommand struct {
	Servers bool     `help:"Accept the list of the servers that jay serve keeps, which has no identities."`
	Floor   []string `sep:"none" placeholder:"NAME=N" help:"A number that no node has passed in an identity: 'invoices|=9000'. Several can be given."`
}

// Help is shown by jay cluster accept --help.
func (*clusterAcceptCommand) Help() string {
	return `An etcd that was restored from a snapshot does not know the numbers that were drawn since: every node refuses to go on with it. Stop all nodes, find the highest number of each identity in the documents of every node (jay ids), and name them here. The database of --db, which is one of the nodes, is opened to raise the identities. Then the nodes can be started.

An identity that was begun after the snapshot is not known to etcd: name it as well.

Each database of jay serve is accepted for itself; the list of the servers with --servers, which needs no database.

Examples:

    jay --db shop.jay cluster accept --cluster http://10.0.0.1:2379 --floor 'invoices|=9000' --floor 'orders|=120'
    jay --db data/databases/shop --cluster http://10.0.0.1:2379 --cluster-database shop cluster accept --floor 'invoices|=9000'
    jay cluster accept --servers --cluster http://10.0.0.1:2379`
}

// Run raises the identities and accepts.
func (c *clusterAcceptCommand) Run(ctx context.Context, a *app) error {
	floors := make(map[string]int64)
	for _, one := range c.Floor {
		i := strings.LastIndexByte(one, '=')
		n, err := strconv.ParseInt(one[i+1:], 10, 64)
		if i < 1 || err != nil || n < 0 {
			return usageError{text: fmt.Sprintf("--floor is NAME=N, such as 'invoices|=9000', not %.200q", one), command: a.command}
		}
		floors[strings.TrimSuffix(one[:i], "|")] = n
	}
	if a.options.Cluster == nil {
		return usageError{text: "it needs --cluster, which says where etcd is", command: a.command}
	}
	which := a.cluster.which()
	if c.Servers {
		if which != "" || len(floors) > 0 {
			return usageError{text: "--servers goes with neither --cluster-database nor --floor: the list of the servers has no identities", command: a.command}
		}
		which = clusterServers
	}
	err := a.cluster.accept(ctx, which, a.getenv, func(ctx context.Context, own cluster.Coordinator) error {
		if c.Servers {
			return nil
		}
		prepared := *a
		prepared.options.Cluster = own
		return prepared.withDatabase(false, func(db *jay.DB) error { return raiseIdentities(ctx, db, floors) })
	})
	if err != nil {
		return err
	}
	return a.print("the nodes can be started\n")
}

// raiseIdentities raises all identities to their floors, which all must have.
func raiseIdentities(ctx context.Context, db *jay.DB, floors map[string]int64) error {
	known, err := db.Identities(ctx)
	if err != nil {
		return err
	}
	var missing []string
	for name := range known {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(floors)), func(given string) bool { return strings.EqualFold(given+"|", name) }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return explained{text: fmt.Sprintf("name with --floor, for each of these identities, a number that no node has passed: %s", strings.Join(missing, ", ")), err: jay.ErrNeedsFloor}
	}
	for _, name := range slices.Sorted(maps.Keys(floors)) {
		if _, err := db.SeedIdentity(ctx, name, floors[name], false); err != nil {
			return err
		}
	}
	return nil
}
