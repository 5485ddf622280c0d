//go:build unix

package cluster_test

import (
	"context"
	"errors"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/etcd"
)

// openNode opens the database of a node.
func openNode(config nodeConfig, now func() time.Time) (*jay.DB, func() error, error) {
	coordinator, err := etcd.Open(etcd.Config{Endpoints: config.Endpoints, Prefix: config.Prefix})
	if err != nil {
		return nil, nil, err
	}
	db, err := jay.Open(config.Dir, &jay.Options{
		NodeTag: config.NodeTag, CopyTag: config.CopyTag, Now: now,
		Cluster: coordinator, ClusterAddress: config.Address, ClusterPeriod: config.Period,
	})
	if err != nil {
		return nil, nil, errors.Join(err, coordinator.Close())
	}
	return db, coordinator.Close, nil
}

// kindOf names an error for the tests.
func kindOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, jay.ErrUnknownOutcome):
		return kindUnknown
	case errors.Is(err, cluster.ErrNoMajority):
		return kindNoMajority
	case errors.Is(err, cluster.ErrTag):
		return kindTag
	case errors.Is(err, etcd.ErrQuota):
		return kindQuota
	case errors.Is(err, jay.ErrConflict):
		return kindConflict
	case errors.Is(err, context.DeadlineExceeded):
		return kindDeadline
	}
	return kindOther
}
