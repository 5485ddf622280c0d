package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"
)

// Bounds of a Config.
const (
	// DefaultPrefix is the prefix of all keys.
	DefaultPrefix = "jay/"

	// DefaultTimeout bounds a call whose context has no deadline.
	DefaultTimeout = 10 * time.Second

	minTimeout, maxTimeout = 100 * time.Millisecond, 30 * time.Second
	maxPrefixBytes         = 256
	maxEndpoints           = 64
)

// Config has the addresses of etcd and the settings of the connection.
type Config struct {
	// Endpoints are the URLs of members of one etcd cluster, such as
	// "https://10.0.0.1:2379". Name all members, so that the loss of one does not
	// matter. At most 64. A URL with http is plain text: it is meant for the same
	// machine and for networks that are encrypted otherwise.
	Endpoints []string

	// Prefix begins each key that Jay writes. Two clusters of nodes can share one etcd
	// with different prefixes; a prefix with keys of other programs is a
	// cluster.ErrOtherCluster. 1 to 256 bytes of printable ASCII, ending with '/'.
	//
	// The default is "jay/".
	Prefix string

	// Username and Password belong to a user of etcd who may read and write the keys that begin with
	// Prefix. Set both or neither.
	Username string
	Password string

	// TLS configures endpoints with https: the authorities to be trusted, and the
	// certificate of this node if etcd demands one. LoadTLS makes one from files. The
	// default trusts the authorities of the system.
	TLS *tls.Config

	// Timeout bounds a call whose context has no deadline. From 100 milliseconds to 30
	// seconds.
	//
	// The default is 10 seconds.
	Timeout time.Duration

	// Logger receives a message when etcd is reached, with its version, and the problems
	// found. The default is no logging.
	Logger *slog.Logger
}

// check returns c with its defaults, or an error that names the field.
func (c Config) check() (Config, error) {
	if len(c.Endpoints) == 0 || len(c.Endpoints) > maxEndpoints {
		return c, fmt.Errorf("%w: Endpoints: from 1 to %d URLs, got %d", ErrConfig, maxEndpoints, len(c.Endpoints))
	}
	secure := 0
	endpoints := make([]string, len(c.Endpoints))
	for i, e := range c.Endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" || u.User != nil || u.RawQuery != "" || u.Scheme != "http" && u.Scheme != "https" {
			return c, fmt.Errorf("%w: Endpoints: a URL such as https://10.0.0.1:2379, got %.200q", ErrConfig, e)
		}
		if u.Port() == "" {
			return c, fmt.Errorf("%w: Endpoints: %.200q has no port; etcd listens on 2379 unless it is configured otherwise", ErrConfig, e)
		}
		if u.Scheme == "https" {
			secure++
		}
		endpoints[i] = u.Scheme + "://" + u.Host
	}
	if secure != 0 && secure != len(endpoints) {
		return c, fmt.Errorf("%w: Endpoints: all http or all https, got %d of %d with https", ErrConfig, secure, len(endpoints))
	}
	c.Endpoints = endpoints

	if c.TLS != nil && secure == 0 {
		return c, fmt.Errorf("%w: TLS needs endpoints with https, got %s", ErrConfig, endpoints[0])
	}
	if (c.Username == "") != (c.Password == "") {
		return c, fmt.Errorf("%w: Username and Password: both or neither", ErrConfig)
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if len(c.Prefix) > maxPrefixBytes || c.Prefix == "/" || !strings.HasSuffix(c.Prefix, "/") || strings.ContainsFunc(c.Prefix, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return c, fmt.Errorf("%w: Prefix: 1 to %d bytes of printable ASCII that end with /, got %.300q", ErrConfig, maxPrefixBytes, c.Prefix)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Timeout < minTimeout || c.Timeout > maxTimeout {
		return c, fmt.Errorf("%w: Timeout: from %v to %v, got %v", ErrConfig, minTimeout, maxTimeout, c.Timeout)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// LoadTLS returns a TLS configuration from files in PEM: the authorities to trust, or ""
// for those of the system, and the certificate and key of this node, or "" for none. It
// returns an ErrConfig that names the file.
func LoadTLS(authorities, certificate, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		pem, err := os.ReadFile(authorities)
		if err != nil {
			return nil, fmt.Errorf("%w: authorities: %w", ErrConfig, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: authorities: %s has no certificate in PEM", ErrConfig, authorities)
		}
	}
	if (certificate == "") != (key == "") {
		return nil, fmt.Errorf("%w: a certificate and its key: both or neither", ErrConfig)
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%w: certificate %s and key %s: %w", ErrConfig, certificate, key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// ErrConfig is returned for an invalid Config: the message names the field, the rule and
// the value.
var ErrConfig = errors.New("etcd: configuration")
