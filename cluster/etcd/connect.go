package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/stats"

	"github.com/jaydb/jay/cluster"
)

const (
	// statusTimeout bounds the status requests when the coordinator connects. A member
	// that does not answer in time is left unchecked.
	statusTimeout = time.Second

	// A connection that gets no answer for this long, with a request in progress, is
	// closed. etcd rejects pings that come more often than every 5 seconds.
	keepAliveTime, keepAliveTimeout = 10 * time.Second, 3 * time.Second

	// maxReconnect bounds the pause before the next dial of a member, so that calls
	// succeed soon after a long interruption.
	maxReconnect = 2 * time.Second

	// maxRequestBytes bounds what the client sends: the bound of etcd is usually lower.
	maxRequestBytes = 64 << 20
)

// What the coordinator has verified of its etcd. Each state includes the ones before it.
const (
	unknownEtcd  int32 = iota
	emptyEtcd          // its version is supported, and the prefix has no keys
	foundRecords       // the prefix has records in the format of this package
)

// connect returns the client. Before its first use it verifies that etcd is supported, and
// before the first write that the format record exists.
func (c *Coordinator) connect(ctx context.Context, write bool) (*clientv3.Client, error) {
	needs := emptyEtcd
	if write {
		needs = foundRecords
	}
	if c.known.Load() >= needs && c.signature.made() {
		return c.client.Load(), nil
	}
	select {
	case c.connecting <- struct{}{}:
		defer func() { <-c.connecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	client, err := c.openClient(ctx)
	if err != nil || c.known.Load() >= needs {
		return client, err
	}
	if c.known.Load() == unknownEtcd {
		if err := c.examine(ctx, client); err != nil {
			return nil, err
		}
	}
	known, err := c.format(ctx, client, write)
	if err != nil {
		return nil, err
	}
	c.known.Store(known)
	return client, nil
}

// openClient returns the client, which it creates at the first call, and signs in if that is
// needed. The caller holds connecting.
func (c *Coordinator) openClient(ctx context.Context) (*clientv3.Client, error) {
	client := c.client.Load()
	if client == nil {
		var err error
		if client, err = c.dial(ctx); err != nil {
			return nil, err
		}
		c.client.Store(client)
	}
	return client, c.signIn(ctx, client)
}

// dial creates the client, which connects in the background.
func (c *Coordinator) dial(ctx context.Context) (*clientv3.Client, error) {
	within, cancelAttempt := c.attemptContext(ctx, minRead)
	defer cancelAttempt()
	deadline, _ := within.Deadline()
	life, cancel := context.WithCancel(c.ctx)
	stop := context.AfterFunc(within, cancel)
	connecting := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: usualAttempt}
	connecting.Backoff.BaseDelay, connecting.Backoff.MaxDelay = minPause, maxReconnect
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            c.config.Endpoints,
		DialTimeout:          max(time.Until(deadline), time.Millisecond),
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallSendMsgSize:   maxRequestBytes,
		MaxUnaryRetries:      1, // none: Coordinator.call decides what is retried and for how long
		TLS:                  c.config.TLS,
		Context:              life,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(connecting),
			grpc.WithStatsHandler(sentHandler{}),
			grpc.WithPerRPCCredentials(&c.signature),
			grpc.WithChainUnaryInterceptor(failFast),
		},
	})
	if !stop() && err == nil {
		err = errors.Join(context.Cause(within), client.Close())
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return client, nil
}

// failFast makes a request fail when no member can be reached, in place of gRPC's waiting:
// Coordinator.call waits itself and can say why.
func failFast(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoker(ctx, method, req, reply, conn, append(opts[:len(opts):len(opts)], grpc.WaitForReady(false))...)
}

// sentHandler notes when a request has left this process. A request that has not left has
// changed nothing.
type sentHandler struct{}

type sentKey struct{}

// watchSent returns a context whose requests set the flag when they leave this process.
func watchSent(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return context.WithValue(ctx, sentKey{}, sent), sent
}

func (sentHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (sentHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, is := event.(*stats.OutHeader); is {
		if sent, watched := ctx.Value(sentKey{}).(*atomic.Bool); watched {
			sent.Store(true)
		}
	}
}

func (sentHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (sentHandler) HandleConn(context.Context, stats.ConnStats) {}

// examine checks all members that can be reached: they must be new enough and belong to
// one cluster.
func (c *Coordinator) examine(ctx context.Context, client *clientv3.Client) error {
	const op = "connect"
	within, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	endpoints := c.config.Endpoints
	found := make([]*clientv3.StatusResponse, len(endpoints))
	failures := make([]error, len(endpoints))
	var group sync.WaitGroup
	for i, endpoint := range endpoints {
		group.Go(func() { found[i], failures[i] = client.Status(within, endpoint) })
	}
	group.Wait()

	etcd, version := uint64(0), ""
	for i, status := range found {
		if status == nil {
			continue
		}
		if !newEnough(status.Version) {
			return &Error{Op: op, Endpoints: endpoints[i : i+1], Problem: fmt.Sprintf("etcd %.50q is older than %s", status.Version, MinVersion), Do: "upgrade it", Kinds: []error{cluster.ErrRefused, ErrTooOld}}
		}
		if etcd != 0 && etcd != status.Header.ClusterId {
			return c.twoClusters(op, etcd, status.Header.ClusterId)
		}
		etcd, version = status.Header.ClusterId, status.Version
	}
	if etcd == 0 {
		return failures[0]
	}
	if known := c.etcd.Load(); known != 0 && known != etcd {
		return c.twoClusters(op, known, etcd)
	}
	c.etcd.Store(etcd)
	c.config.Logger.Info("etcd: connected", slog.Any("endpoints", endpoints), slog.String("version", version), slog.String("cluster", strconv.FormatUint(etcd, 16)))
	return nil
}

// newEnough reports whether a version such as 3.5.9 is at least MinVersion.
func newEnough(version string) bool {
	least := strings.Split(MinVersion, ".")
	for i, part := range strings.SplitN(version, ".", 3)[:min(2, strings.Count(version, ".")+1)] {
		n, err := strconv.Atoi(part)
		want, _ := strconv.Atoi(least[i])
		if err != nil || n < want {
			return false
		}
		if n > want {
			return true
		}
	}
	return strings.Contains(version, ".")
}
