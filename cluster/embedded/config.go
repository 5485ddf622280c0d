package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Defaults of a Config.
const (
	DefaultClientURL  = "http://127.0.0.1:2379"
	DefaultPeerURL    = "http://127.0.0.1:2380"
	DefaultQuotaBytes = 2 << 30
	DefaultKeep       = 5 * time.Minute
	DefaultHeartbeat  = 100 * time.Millisecond
)

// Bounds of a Config.
const (
	minQuotaBytes, maxQuotaBytes = 1 << 20, 8 << 30
	minKeep, maxKeep             = time.Minute, 24 * time.Hour
	minHeartbeat, maxHeartbeat   = 10 * time.Millisecond, 5 * time.Second
	maxPeers                     = 9
	maxNameBytes                 = 64

	// electionBeats is the election timeout in heartbeats: a follower that hears of no
	// leader for so many calls an election. It is etcd's default.
	electionBeats = 10
)

// ErrConfig is returned for an invalid Config: the message names the field, the rule and
// the value. Nothing was started.
var ErrConfig = errors.New("embedded etcd: configuration")

// ErrInsecure is returned for an http URL that other machines can reach, and for https
// without certificates for both sides. It is an ErrConfig.
var ErrInsecure = fmt.Errorf("%w: not secure", ErrConfig)

// TLS names files in PEM. All three are needed: each side of a connection must show a
// certificate that one of the authorities has signed. The files are read again for each
// connection, so that certificates can be renewed.
type TLS struct {
	Certificate string
	Key         string
	Authorities string
}

// Config describes a member.
type Config struct {
	// Name of this member, different from those of the others. 1 to 64 letters, digits,
	// '-', '_' and '.'.
	Name string

	// Dir keeps the member's data. It is created, readable for this user only. If the
	// directory has data, the member resumes with it, and Peers and Join are ignored.
	Dir string

	// ClientURL is the URL at which coordinators reach the member, and PeerURL the URL at which other
	// members reach it. The member listens on the ports of the URLs, at their addresses if these
	// belong to this machine, or else at ListenClient and ListenPeer. Port 0 takes a free port, except
	// in Peers.
	//
	// The defaults are http://127.0.0.1:2379 and http://127.0.0.1:2380.
	ClientURL string
	PeerURL   string

	// ListenClient and ListenPeer are the addresses to listen on, such as "0.0.0.0:2379",
	// if they differ from those of the URLs. The defaults are the hosts and ports of the
	// URLs.
	ListenClient string
	ListenPeer   string

	// Peers has the names and PeerURLs of all founding members of a new cluster, this one
	// included. All members get the same map. With Join it has all members of the running
	// cluster, as Member.Add returns them. At most 9. The default is this member only.
	Peers map[string]string

	// Join makes the member join a running cluster. Call Member.Add on one of its members
	// first.
	Join bool

	// Token distinguishes clusters whose members have the same URLs, for example a cluster that is
	// created again: members with different tokens reject each other. The default is "jay".
	Token string

	// PeerTLS and ClientTLS are for URLs with https, which need them.
	PeerTLS   TLS
	ClientTLS TLS

	// Insecure allows http for addresses that other machines can reach.
	//
	// Danger: anyone who can reach the ports can change everything in etcd and stop the cluster.
	Insecure bool

	// QuotaBytes bounds the size of etcd's database. Beyond it writes are refused
	// (etcd.ErrQuota) until there is room. From 1 MiB to 8 GiB.
	//
	// The default is 2 GiB.
	QuotaBytes int64

	// Keep is the time after which etcd compacts old revisions. Jay needs the revisions of the last
	// seconds. From 1 minute to 24 hours.
	//
	// The default is 5 minutes.
	Keep time.Duration

	// Heartbeat is the interval of the leader's heartbeats. After ten intervals without
	// one, the followers elect a new leader. It should be several times the round trip
	// between members. From 10 milliseconds to 5 seconds, in whole milliseconds, and the
	// same for all members.
	//
	// The default is 100 milliseconds.
	Heartbeat time.Duration

	// UnsafeNoSync leaves out the syncs of files.
	//
	// Danger: a crash of the machine loses acknowledged writes, and numbers of identities
	// repeat. For tests only.
	UnsafeNoSync bool

	// Logger receives etcd's messages; those of etcd's level info arrive as debug. The
	// default is no logging.
	Logger *slog.Logger
}

// checked is a valid Config with its defaults and its parsed URLs.
type checked struct {
	Config
	client, peer             *url.URL
	listenClient, listenPeer *url.URL
}

// check returns c with its defaults, or an error that names the field.
func (c Config) check() (*checked, error) {
	wrong := func(field, format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrConfig, field, fmt.Sprintf(format, args...))
	}
	if c.Name == "" || len(c.Name) > maxNameBytes || strings.ContainsFunc(c.Name, notInName) {
		return nil, wrong("Name", "1 to %d letters, digits, '-', '_' and '.', got %.100q", maxNameBytes, c.Name)
	}
	if c.Dir == "" {
		return nil, wrong("Dir", "a directory is needed")
	}
	if dir, err := filepath.Abs(c.Dir); err != nil {
		return nil, wrong("Dir", "%v", err)
	} else if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, wrong("Dir", "%s is not a directory", dir)
	} else {
		c.Dir = dir
	}
	defaultTo(&c.ClientURL, DefaultClientURL)
	defaultTo(&c.PeerURL, DefaultPeerURL)
	defaultTo(&c.Token, "jay")
	if c.QuotaBytes == 0 {
		c.QuotaBytes = DefaultQuotaBytes
	}
	if c.Keep == 0 {
		c.Keep = DefaultKeep
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.QuotaBytes < minQuotaBytes || c.QuotaBytes > maxQuotaBytes {
		return nil, wrong("QuotaBytes", "from %d to %d, got %d", minQuotaBytes, int64(maxQuotaBytes), c.QuotaBytes)
	}
	if c.Keep < minKeep || c.Keep > maxKeep {
		return nil, wrong("Keep", "from %v to %v, got %v", minKeep, maxKeep, c.Keep)
	}
	if c.Heartbeat < minHeartbeat || c.Heartbeat > maxHeartbeat || c.Heartbeat%time.Millisecond != 0 {
		return nil, wrong("Heartbeat", "whole milliseconds from %v to %v, got %v", minHeartbeat, maxHeartbeat, c.Heartbeat)
	}
	if strings.ContainsFunc(c.Token, notInName) || len(c.Token) > maxNameBytes {
		return nil, wrong("Token", "up to %d letters, digits, '-', '_' and '.', got %.100q", maxNameBytes, c.Token)
	}

	k := &checked{Config: c}
	var err error
	if k.client, k.listenClient, err = k.urls("Client", c.ClientURL, c.ListenClient, c.ClientTLS); err != nil {
		return nil, err
	}
	if k.peer, k.listenPeer, err = k.urls("Peer", c.PeerURL, c.ListenPeer, c.PeerTLS); err != nil {
		return nil, err
	}
	return k, k.checkPeers()
}

func (k *checked) checkPeers() error {
	if len(k.Peers) == 0 {
		if k.Join {
			return fmt.Errorf("%w: Join needs Peers: those that Member.Add has returned", ErrConfig)
		}
		k.Peers = map[string]string{k.Name: k.PeerURL}
		return nil
	}
	if len(k.Peers) > maxPeers {
		return fmt.Errorf("%w: Peers: at most %d members, got %d", ErrConfig, maxPeers, len(k.Peers))
	}
	if k.Peers[k.Name] != k.PeerURL {
		return fmt.Errorf("%w: Peers: %q must have this member's PeerURL %s, got %.200q", ErrConfig, k.Name, k.PeerURL, k.Peers[k.Name])
	}
	seen := make(map[string]string)
	for name, peer := range k.Peers {
		if name == "" || strings.ContainsFunc(name, notInName) {
			return fmt.Errorf("%w: Peers: the name %.100q has other characters than letters, digits, '-', '_' and '.'", ErrConfig, name)
		}
		u, err := url.Parse(peer)
		if err != nil || u.Port() == "" || u.Port() == "0" || u.Scheme != k.peer.Scheme {
			return fmt.Errorf("%w: Peers: %q needs a URL such as %s://10.0.0.2:2380, got %.200q", ErrConfig, name, k.peer.Scheme, peer)
		}
		if other, taken := seen[peer]; taken {
			return fmt.Errorf("%w: Peers: %q and %q have the same URL %s", ErrConfig, min(name, other), max(name, other), peer)
		}
		seen[peer] = name
	}
	return nil
}

// urls parses and checks a URL and its listening address. It refuses plain text on
// addresses that other machines can reach.
func (k *checked) urls(what, text, listen string, files TLS) (advertised, listening *url.URL, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.User != nil || u.RawQuery != "" {
		return nil, nil, fmt.Errorf("%w: %sURL: a URL such as %s, got %.200q", ErrConfig, what, DefaultClientURL, text)
	}
	host := u.Host
	if listen != "" {
		if _, _, err := net.SplitHostPort(listen); err != nil {
			return nil, nil, fmt.Errorf("%w: Listen%s: an address such as 0.0.0.0:2379, got %.200q", ErrConfig, what, listen)
		}
		host = listen
	}
	address, _, _ := net.SplitHostPort(host)
	if _, err := netip.ParseAddr(address); err != nil {
		if address != "localhost" {
			return nil, nil, fmt.Errorf("%w: Listen%s: the host of the URL is a name, %.200q: give the IP address to listen on, such as 0.0.0.0:%s", ErrConfig, what, address, u.Port())
		}
		// etcd listens on IP addresses only.
		_, port, _ := net.SplitHostPort(host)
		address, host = "127.0.0.1", "127.0.0.1:"+port
	}
	loopback := netip.MustParseAddr(address).IsLoopback()
	given := []string{files.Certificate, files.Key, files.Authorities}
	switch {
	case u.Scheme == "https" && slices.Contains(given, ""):
		return nil, nil, fmt.Errorf("%w: %sTLS: https needs Certificate, Key and Authorities, so that both sides show who they are", ErrInsecure, what)
	case u.Scheme == "http" && slices.Max(given) != "":
		return nil, nil, fmt.Errorf("%w: %sTLS has files, and %sURL is http: %s", ErrConfig, what, what, text)
	case u.Scheme == "http" && !loopback && !k.Insecure:
		return nil, nil, fmt.Errorf("%w: %sURL: %s can be reached from other machines without TLS: use https with %sTLS, or set Insecure in a network that is protected otherwise", ErrInsecure, what, host, what)
	}
	for _, file := range given {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return nil, nil, fmt.Errorf("%w: %sTLS: %w", ErrConfig, what, err)
		}
	}
	return u, &url.URL{Scheme: u.Scheme, Host: host}, nil
}

func defaultTo(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

func notInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}
