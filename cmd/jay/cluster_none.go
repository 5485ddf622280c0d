//go:build noetcd

package main

import (
	"context"

	"github.com/jaydb/jay/cluster"
)

// errNoEtcd refuses nodes of a cluster.
var errNoEtcd = errLeftOut{part: "etcd's client", tag: "noetcd"}

func (*clusterFlags) open(string, func(string) string) (cluster.Coordinator, error) {
	return nil, errNoEtcd
}

func (*clusterFlags) accept(context.Context, string, func(string) string, func(context.Context, cluster.Coordinator) error) error {
	return errNoEtcd
}
