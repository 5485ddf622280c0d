package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"
)

const (
	// closeTimeout bounds Close when the member does not stop, as on a disk that hangs. etcd
	// itself waits for 15 s at most, if it has lost the majority: 7 for requests to end, 7
	// to hand the leadership over, and 1 for idle connections.
	closeTimeout = 30 * time.Second

	// changeTimeout bounds an Add or Remove whose context has no deadline.
	changeTimeout = 10 * time.Second
)

var (
	// ErrFailed is returned when etcd has stopped without Close: its files cannot be
	// written or are damaged, or the member was removed from the cluster. The message has
	// the cause. Close the member.
	ErrFailed = errors.New("embedded etcd has failed")

	// ErrChange is returned by Add and Remove when the cluster refuses the change, or has no
	// majority to decide.
	ErrChange = errors.New("embedded etcd: the members were not changed")
)

// Member is a running member of an etcd cluster. Its methods are safe for concurrent use.
type Member struct {
	config    *checked
	clientURL string
	etcd      *embed.Etcd

	close    sync.Once
	closeErr error

	mu     sync.Mutex
	err    error         // the cause of its failure. Guarded by mu.
	done   chan struct{} // closed when it has stopped or failed
	closed bool          // Guarded by mu.
}

// Start starts a member and returns when it listens. It does not wait for other members,
// as the calls of a coordinator wait for the majority. An invalid Config is an ErrConfig,
// an address in use or a damaged directory an ErrFailed.
func Start(config Config) (*Member, error) {
	k, err := config.check()
	if err != nil {
		return nil, err
	}
	m := &Member{config: k, done: make(chan struct{})}
	logger := zap.New(slogCore{k.Logger}, zap.WithFatalHook(failing{m}), zap.WithPanicHook(failing{m}))
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: Dir: %w", ErrConfig, err)
	}

	// On damage etcd ends its goroutine (see failing), so it must not be the caller's.
	started := make(chan error, 1)
	go func() {
		err := fmt.Errorf("%w: it did not start", ErrFailed)
		defer func() { started <- err }()
		if m.etcd, err = embed.StartEtcd(k.etcd(logger)); err != nil {
			err = fmt.Errorf("%w: start %q: %w", ErrFailed, k.Name, err)
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(m.Err(), err)
	}
	m.clientURL = (&url.URL{Scheme: k.client.Scheme, Host: k.client.Host}).String()
	if k.client.Port() == "0" {
		_, port, _ := net.SplitHostPort(m.etcd.Clients[0].Addr().String())
		m.clientURL = k.client.Scheme + "://" + net.JoinHostPort(k.client.Hostname(), port)
	}
	go m.watch()
	return m, nil
}

// etcd returns the configuration in etcd's own type.
func (k *checked) etcd(logger *zap.Logger) *embed.Config {
	c := embed.NewConfig()
	c.Name, c.Dir = k.Name, k.Dir
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*k.listenClient}, []url.URL{*k.client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*k.listenPeer}, []url.URL{*k.peer}
	var peers []string
	for _, name := range slices.Sorted(maps.Keys(k.Peers)) {
		peers = append(peers, name+"="+k.Peers[name])
	}
	c.InitialCluster = strings.Join(peers, ",")
	c.InitialClusterToken = k.Token
	if k.Join {
		c.ClusterState = embed.ClusterStateFlagExisting
	}
	c.ClientTLSInfo, c.PeerTLSInfo = k.ClientTLS.etcd(logger), k.PeerTLS.etcd(logger)
	c.QuotaBackendBytes = k.QuotaBytes
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, k.Keep.String()
	c.TickMs = uint(k.Heartbeat / time.Millisecond)
	c.ElectionMs = electionBeats * c.TickMs
	c.UnsafeNoFsync = k.UnsafeNoSync
	c.EnableGRPCGateway = false
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	return c
}

func (t TLS) etcd(logger *zap.Logger) transport.TLSInfo {
	return transport.TLSInfo{CertFile: t.Certificate, KeyFile: t.Key, TrustedCAFile: t.Authorities, ClientCertAuth: t.Authorities != "", Logger: logger}
}

// watch marks the member as failed when etcd stops without Close.
func (m *Member) watch() {
	select {
	case <-m.etcd.Server.StopNotify():
		m.fail("it has stopped: was it removed from the cluster?")
	case err := <-m.etcd.Err():
		if err != nil {
			m.fail(err.Error())
		}
	case <-m.done:
	}
}

// fail marks the member as failed. Only the first problem is kept.
func (m *Member) fail(problem string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.err != nil {
		return
	}
	m.err = fmt.Errorf("%w: member %q: %s", ErrFailed, m.config.Name, problem)
	close(m.done)
}

// ClientURL returns the URL for coordinators.
func (m *Member) ClientURL() string { return m.clientURL }

// Done returns a channel that is closed when the member has failed or was closed.
func (m *Member) Done() <-chan struct{} { return m.done }

// Err returns an ErrFailed with the cause if the member has failed, and otherwise nil.
func (m *Member) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Ready waits until the member has found the majority of its cluster. It returns early
// with the error of the context or of the member.
func (m *Member) Ready(ctx context.Context) error {
	ready := false
	select {
	case <-m.etcd.Server.ReadyNotify():
		ready = true
	case <-m.done:
	case <-ctx.Done():
	}
	select {
	case <-m.done:
		if err := m.Err(); err != nil {
			return err
		}
		return fmt.Errorf("%w: member %q was closed", ErrFailed, m.config.Name)
	default:
	}
	if !ready {
		return fmt.Errorf("embedded etcd: member %q has found no majority: %w", m.config.Name, ctx.Err())
	}
	return nil
}

// Peers returns the names and PeerURLs of the cluster's members, as far as this member knows them.
// The name of a member that was added and has not started yet is its URL.
func (m *Member) Peers() map[string]string {
	return peers(m.etcd.Server.Cluster().Members())
}

func peers(members []*membership.Member) map[string]string {
	list := make(map[string]string, len(members))
	for _, member := range members {
		name := member.Name
		if name == "" {
			name = member.PeerURLs[0]
		}
		list[name] = member.PeerURLs[0]
	}
	return list
}

// Leader reports whether this member leads the cluster.
func (m *Member) Leader() bool { return m.etcd.Server.Leader() == m.etcd.Server.MemberID() }

// Add adds a member to the cluster and returns the Peers with which to start it, with
// Join. Until it runs, the cluster counts it as down, so add one member at a time. A
// change that would cost the cluster its majority is an ErrChange.
func (m *Member) Add(ctx context.Context, name, peerURL string) (map[string]string, error) {
	if name == "" || strings.ContainsFunc(name, notInName) {
		return nil, fmt.Errorf("%w: Add: the name %.100q has other characters than letters, digits, '-', '_' and '.'", ErrConfig, name)
	}
	urls, err := types.NewURLs([]string{peerURL})
	if err != nil || urls[0].Scheme != m.config.peer.Scheme {
		return nil, fmt.Errorf("%w: Add: a URL such as %s://10.0.0.4:2380, got %.200q", ErrConfig, m.config.peer.Scheme, peerURL)
	}
	if _, taken := m.Peers()[name]; taken {
		return nil, fmt.Errorf("%w: a member has the name %q", ErrChange, name)
	}
	ctx, cancel := bound(ctx)
	defer cancel()
	now := time.Now()
	members, err := m.etcd.Server.AddMember(ctx, *membership.NewMember("", urls, "", &now))
	if err != nil {
		return nil, fmt.Errorf("%w: add %q: %w", ErrChange, name, err)
	}
	list := peers(members)
	delete(list, peerURL)
	list[name] = peerURL
	return list, nil
}

// Remove removes a member from the cluster for good. name is its name, or its PeerURL if
// it has never started. Its directory cannot be used again. A change that would cost the
// cluster its majority is an ErrChange.
func (m *Member) Remove(ctx context.Context, name string) error {
	for _, member := range m.etcd.Server.Cluster().Members() {
		if member.Name != name && (member.Name != "" || member.PeerURLs[0] != name) {
			continue
		}
		ctx, cancel := bound(ctx)
		defer cancel()
		if _, err := m.etcd.Server.RemoveMember(ctx, uint64(member.ID)); err != nil {
			return fmt.Errorf("%w: remove %q: %w", ErrChange, name, err)
		}
		return nil
	}
	return fmt.Errorf("%w: no member has the name %.200q", ErrChange, name)
}

// bound returns ctx if it has a deadline, or else ctx limited to changeTimeout.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, changeTimeout)
}

// Close stops the member. The others keep working if they are a majority. Acknowledged
// writes are on disk. Closing again does nothing. If etcd has not stopped after 30
// seconds, as on a disk that hangs, Close returns an ErrFailed.
func (m *Member) Close() error {
	m.close.Do(func() {
		m.mu.Lock()
		failed := m.err != nil
		m.closed = true
		if !failed {
			close(m.done)
		}
		m.mu.Unlock()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			// etcd's Close first waits for the listeners of clients, which it opens when the
			// member has found its majority: for ever, if there is none. Stopped before, it
			// does not.
			select {
			case <-m.etcd.Server.ReadyNotify():
			default:
				m.etcd.Server.HardStop()
			}
			m.etcd.Close()
		}()
		timer := time.NewTimer(closeTimeout)
		defer timer.Stop()
		select {
		case <-stopped:
		case <-timer.C:
			m.closeErr = fmt.Errorf("%w: member %q does not stop", ErrFailed, m.config.Name)
		}
	})
	return m.closeErr
}
