package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jaydb/jay/cluster"
)

// probeTimeout bounds a probe of endpoints that cannot be reached.
const probeTimeout = time.Second

// The probe's errors for TLS on one side only.
var (
	errOnlyTLS = errors.New("the endpoint answers with TLS")
	errNotTLS  = errors.New("the endpoint answers in plain text")
)

// preface opens an HTTP/2 connection and sends empty settings, which the server must
// answer.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// probe connects to each endpoint as the client of etcd does, and returns for each the
// error, or nil if it answers. It exists because the client turns the typed errors of the
// network and of TLS into text.
func probe(ctx context.Context, endpoints []string, config *tls.Config) []error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	failures := make([]error, len(endpoints))
	var group sync.WaitGroup
	for i, endpoint := range endpoints {
		group.Go(func() { failures[i] = probeOne(ctx, endpoint, config) })
	}
	group.Wait()
	return failures
}

func probeOne(ctx context.Context, endpoint string, config *tls.Config) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, has := ctx.Deadline(); has {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	secure := u.Scheme == "https"
	if secure {
		if config == nil {
			config = new(tls.Config)
		}
		config = config.Clone()
		if config.ServerName == "" {
			config.ServerName = u.Hostname()
		}
		config.NextProtos = []string{"h2"}
		client := tls.Client(conn, config)
		if err := client.HandshakeContext(ctx); err != nil {
			if isEnd(err) && probeOne(ctx, "http://"+u.Host, nil) == nil {
				return errNotTLS
			}
			return err
		}
		conn = client
	}

	// With TLS 1.3 the server checks the client's certificate after the handshake, so a
	// refusal arrives in answer to what is sent next.
	if _, err := io.WriteString(conn, preface); err != nil {
		return err
	}
	var answer [9]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		if !secure && isEnd(err) && speaksTLS(ctx, u.Host) {
			return errOnlyTLS
		}
		return err
	}
	if !secure && answer[0] == 0x15 {
		return errOnlyTLS
	}
	if answer[3] != 4 {
		return fmt.Errorf("the answer %q is not HTTP/2: is that the client URL of an etcd?", answer)
	}
	return nil
}

// isEnd reports whether the other side has closed the connection.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// speaksTLS reports whether a server that has closed a connection in plain text answers a
// TLS handshake.
func speaksTLS(ctx context.Context, host string) bool {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // no data is sent over this connection
	conn, err := dialer.DialContext(ctx, "tcp", host)
	if err == nil {
		return conn.Close() == nil
	}
	return strings.Contains(err.Error(), "remote error: tls:")
}

// explain turns the failures of a probe into the state of a call. final reports that every
// endpoint fails in a way that waiting cannot mend.
func explain(endpoints []string, failures []error) (found state, final bool) {
	var list []string
	broken := 0
	found = state{do: "check that the addresses are the client URLs of etcd, that it runs there, and that no firewall is between", kinds: []error{cluster.ErrNoMajority, ErrUnreachable}}
	for i, err := range failures {
		if err == nil {
			continue
		}
		if what, do := tlsProblem(err); what != "" {
			broken++
			found.do = do
			err = fmt.Errorf("%s: %w", what, err)
		}
		list = append(list, endpoints[i]+": "+err.Error())
	}
	if len(list) == 0 {
		return state{}, false
	}
	found.problem = strings.Join(list, "; ")
	if broken == len(endpoints) {
		found.kinds = []error{cluster.ErrRefused, ErrCertificate}
		return found, true
	}
	return found, false
}
