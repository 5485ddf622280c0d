package etcd

// Internal: indexes of epochs, verdicts and versions show through etcd only where it is restored,
// fails or is old; and the coordinator makes a request again that fails at once.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jaydb/jay/cluster"
)

// Ensure that a configuration that cannot be is refused with the field and the value.
func TestConfig(t *testing.T) {
	t.Parallel()
	fine := func() Config { return Config{Endpoints: []string{"http://127.0.0.1:2379"}} }
	if c, err := fine().check(); err != nil || c.Prefix != "jay/" || c.Timeout != 10*time.Second || c.Logger == nil {
		t.Errorf("defaults: %+v, %v", c, err)
	}
	secure, err := LoadTLS("", "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		change func(*Config)
		says   string
	}{
		{func(c *Config) { c.Endpoints = nil }, "Endpoints"},
		{func(c *Config) { c.Endpoints = make([]string, 65) }, "65"},
		{func(c *Config) { c.Endpoints[0] = "127.0.0.1:2379" }, "127.0.0.1:2379"},
		{func(c *Config) { c.Endpoints[0] = "http://127.0.0.1" }, "no port"},
		{func(c *Config) { c.Endpoints[0] = "unix://socket" }, "unix"},
		{func(c *Config) { c.Endpoints[0] = "http://user@127.0.0.1:2379" }, "user@"},
		{func(c *Config) { c.Endpoints[0] = "http://127.0.0.1:2379/v3" }, "/v3"},
		{func(c *Config) { c.Endpoints = append(c.Endpoints, "https://127.0.0.1:2380") }, "all http or all https"},
		{func(c *Config) { c.TLS = secure }, "https"},
		{func(c *Config) { c.Username = "a" }, "Password"},
		{func(c *Config) { c.Password = "a" }, "Username"},
		{func(c *Config) { c.Prefix = "jay" }, "Prefix"},
		{func(c *Config) { c.Prefix = "/" }, "Prefix"},
		{func(c *Config) { c.Prefix = "a b/" }, "a b/"},
		{func(c *Config) { c.Prefix = strings.Repeat("a", 256) + "/" }, "256"},
		{func(c *Config) { c.Timeout = time.Millisecond }, "Timeout"},
		{func(c *Config) { c.Timeout = time.Minute }, "Timeout"},
	} {
		c := fine()
		row.change(&c)
		if _, err := Open(c); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v", row.says, err)
		}
	}
	for _, files := range [][3]string{{"missing.pem", "", ""}, {"etcd_internal_test.go", "", ""}, {"", "missing.pem", ""}, {"", "missing.pem", "missing.pem"}} {
		if _, err := LoadTLS(files[0], files[1], files[2]); !errors.Is(err, ErrConfig) {
			t.Errorf("LoadTLS %q: got %v", files, err)
		}
	}
}

// Ensure that versions are compared as numbers, and that what is none is too old.
func TestNewEnough(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"3.4.0": true, "3.4.23": true, "3.5.9": true, "3.10.0": true, "4.0.0": true, "3.7.3-rc.1": true, "3.4": true,
		"3.3.27": false, "2.9.9": false, "": false, "3": false, "x.y.z": false, "3.x": false,
	} {
		if got := newEnough(version); got != want {
			t.Errorf("%q: got %t", version, got)
		}
	}
}

// Ensure that indexes and revisions belong to each other, and that an index of an epoch before
// belongs to no revision.
func TestIndex(t *testing.T) {
	t.Parallel()
	var c Coordinator
	last := uint64(0)
	for _, epoch := range []uint64{1, 2, 3, 1 << 12} {
		c.epoch.Store(epoch)
		if got := c.modRevision(0); got != 0 {
			t.Errorf("epoch %d: no record has revision %d", epoch, got)
		}
		if last > 0 {
			if got := c.modRevision(last); got != -1 {
				t.Errorf("epoch %d: the index %d of the epoch before has revision %d", epoch, last, got)
			}
		}
		for _, revision := range []int64{1, 2, 1000, 1<<epochBits - 1} {
			index := c.index(revision)
			if index <= last || index > 1<<53 {
				t.Errorf("epoch %d: revision %d has index %d after %d", epoch, revision, index, last)
			}
			if got := c.modRevision(index); got != revision {
				t.Errorf("epoch %d: index %d has revision %d, want %d", epoch, index, got, revision)
			}
			last = index
		}
	}
	if got := c.modRevision(math.MaxUint64); got != -1 {
		t.Errorf("an index that no revision has has revision %d", got)
	}
}

// Ensure that the errors of etcd are classified as a call needs it, and that an error with noEffect has changed nothing.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err             error
		final, noEffect bool
		kind            error
	}{
		{rpctypes.ErrGRPCNoLeader, false, true, nil},
		{rpctypes.ErrNoLeader, false, true, nil},
		{rpctypes.ErrTooManyRequests, false, true, nil},
		{rpctypes.ErrGRPCInvalidAuthToken, false, true, nil},
		{rpctypes.ErrGRPCTimeout, false, false, nil},
		{rpctypes.ErrGRPCTimeoutDueToLeaderFail, false, false, nil},
		{rpctypes.ErrGRPCLeaderChanged, false, false, nil},
		{rpctypes.ErrGRPCStopped, false, false, nil},
		{status.Error(codes.Unavailable, "closing transport due to: connection error"), false, false, nil},
		{status.Error(codes.Internal, "stream terminated"), false, false, nil},
		{context.DeadlineExceeded, false, false, nil},
		{rpctypes.ErrGRPCNoSpace, true, false, ErrQuota},
		{rpctypes.ErrGRPCAuthFailed, true, true, ErrAuth},
		{rpctypes.ErrGRPCUserEmpty, true, true, ErrAuth},
		{rpctypes.ErrGRPCPermissionDenied, true, true, ErrAuth},
		{rpctypes.ErrGRPCTooManyOps, true, true, cluster.ErrTooLarge},
		{rpctypes.ErrGRPCRequestTooLarge, true, true, cluster.ErrTooLarge},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (3 vs. 2)"), true, true, cluster.ErrTooLarge},
		{rpctypes.ErrGRPCCorrupt, true, false, ErrCorrupt},
	} {
		got := judge(row.err)
		if got.final != row.final || got.noEffect != row.noEffect || row.kind != nil && !errors.Is(errors.Join(got.kinds...), row.kind) {
			t.Errorf("%v: got %+v", row.err, got)
		}
		if row.final && got.do == "" {
			t.Errorf("%v: what is to be done?", row.err)
		}
	}
}

// Ensure that an Error says what is wrong where and what to do, and is what it wraps.
func TestError(t *testing.T) {
	t.Parallel()
	err := error(&Error{Op: "commit", Endpoints: []string{"http://a:1", "http://b:2"}, Problem: "the disk is full", Do: "buy one", Kinds: []error{cluster.ErrRefused, ErrQuota}, Err: context.Canceled})
	if got, want := err.Error(), "etcd: commit at http://a:1, http://b:2: the disk is full: context canceled (buy one)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	err = fmt.Errorf("wrapped: %w", err)
	for _, kind := range []error{cluster.ErrRefused, ErrQuota, context.Canceled} {
		if !errors.Is(err, kind) {
			t.Errorf("it is no %v", kind)
		}
	}
}

// Ensure that a request fails where nothing listens, and does not wait for a member until its
// context ends: Coordinator.call waits itself, and finds out why.
func TestDial_FailsFast(t *testing.T) {
	t.Parallel()
	c, err := Open(Config{Endpoints: []string{"http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := c.dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Get(ctx, "x"); err == nil || ctx.Err() != nil {
		t.Errorf("got %v, and the context: %v", err, ctx.Err())
	}
}
