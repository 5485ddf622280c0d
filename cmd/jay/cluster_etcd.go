//go:build !noetcd

package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/etcd"
)

// config returns the configuration of package etcd. which is the key of a database of
// jay serve, or stands for the servers, or is "" for a database of its own.
func (f *clusterFlags) config(which string, getenv func(string) string) (etcd.Config, error) {
	prefix := cmp.Or(f.Prefix, etcd.DefaultPrefix)
	if which != "" {
		prefix = strings.TrimSuffix(prefix, "/") + which
	}
	c := etcd.Config{Endpoints: f.Endpoints, Prefix: prefix, Username: f.User, Timeout: f.Timeout}
	if f.Timeout < 0 || f.Period < 0 {
		return c, usageError{text: "--cluster-timeout and --cluster-period must not be negative"}
	}
	if f.User != "" {
		c.Password = getenv("JAY_CLUSTER_PASSWORD")
	}
	if f.PasswordFile != "" {
		text, err := os.ReadFile(f.PasswordFile)
		if err != nil {
			return c, err
		}
		c.Password = strings.TrimRight(string(text), "\r\n")
	}
	if f.CA != "" || f.Cert != "" || f.Key != "" {
		var err error
		if c.TLS, err = etcd.LoadTLS(f.CA, f.Cert, f.Key); err != nil {
			return c, err
		}
	}
	return c, nil
}

// open returns the coordinator with the configuration of config.
func (f *clusterFlags) open(which string, getenv func(string) string) (cluster.Coordinator, error) {
	config, err := f.config(which, getenv)
	if err != nil {
		return nil, err
	}
	c, err := etcd.Open(config)
	if errors.Is(err, etcd.ErrConfig) {
		return nil, usageError{text: err.Error()}
	}
	if err != nil {
		return nil, err // not c: an interface that holds a nil pointer is not nil
	}
	return c, nil
}

// accept lets a restored etcd be used again, once do has raised what must be raised: see etcd.Accept.
func (f *clusterFlags) accept(ctx context.Context, which string, getenv func(string) string, do func(context.Context, cluster.Coordinator) error) error {
	config, err := f.config(which, getenv)
	if err != nil {
		return err
	}
	return etcd.Accept(ctx, config, do)
}
