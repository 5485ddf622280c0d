package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/jaydb/jay"
)

// Serve answers requests on l until ctx ends: then it accepts no more, gives running
// requests Options.ShutdownTimeout to finish, ends the rest, and closes the databases as
// Close does. It closes l.
//
// On an address that is not a loopback one, Serve needs a certificate, and requests need
// credentials: see Options.Authenticate. Without them it returns jay.ErrOption, unless
// Options.NoEncryption or AnyoneMayReadAndWrite is set.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.CheckAddress(l.Addr()); err != nil {
		return errors.Join(err, l.Close(), s.Close())
	}
	h := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.Options.HeaderTimeout,
		IdleTimeout:       2 * time.Minute,
		ConnContext:       withConnection,
		MaxHeaderBytes:    s.Options.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.Options.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	conns := newConnections(l, s.Options.MaxConnections, &s.Authenticates)
	h.ConnState = conns.changed
	if s.Options.TLSCertificate != "" {
		h.TLSConfig = s.tlsConfig(h)
		go func() { served <- h.ServeTLS(conns, "", "") }()
	} else {
		go func() { served <- h.Serve(conns) }()
	}
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		s.Options.Logger.Info("server: shutting down", "within", s.Options.ShutdownTimeout)
		s.refuse()
		s.cancel() // ends streams, which have no end of their own
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Options.ShutdownTimeout)
		defer cancel()
		conns.closeIdle() // Shutdown would wait for those on which no request has come
		if err = h.Shutdown(patience); err != nil {
			s.Options.Logger.Warn("server: requests are cut short", "err", err)
			err = h.Close()
		}
		<-served
	}
	return errors.Join(err, s.Close())
}

// CheckAddress returns the error with which Serve refuses to listen on an address: one that
// other machines can reach without TLS or credentials, unless an option permits it. For
// such an address requests need credentials from then on, unless an option says otherwise.
// A program that prints its address calls it before.
func (s *Server) CheckAddress(a net.Addr) error {
	o := &s.Options
	if o.TLSCertificate != "" {
		if _, err := s.certificates.get(nil); err != nil {
			return fmt.Errorf("server: %w: the certificate: %w", jay.ErrOption, err)
		}
	}
	tcp, is := a.(*net.TCPAddr)
	if near := is && tcp.IP.IsLoopback() || a.Network() == "unix"; near || o.AnyoneMayReadAndWrite {
		return nil
	}
	if o.TLSCertificate == "" && !o.NoEncryption {
		return fmt.Errorf("server: %w: %s is not a loopback address, and the server has no certificate: set TLSCertificate and TLSKey, or listen on 127.0.0.1; NoEncryption does without", jay.ErrOption, a)
	}
	if s.Auth.current().n == 0 {
		return fmt.Errorf("server: %w: %s is not a loopback address, and no token and no certificate has rights: make one with Access.CreateToken, or listen on 127.0.0.1; AnyoneMayReadAndWrite does without", jay.ErrOption, a)
	}
	s.Authenticates.Store(true)
	return nil
}

// tlsConfig returns the configuration of Serve. It has no HTTP/2, because the server's
// bounds apply to connections.
func (s *Server) tlsConfig(h *http.Server) *tls.Config {
	h.TLSNextProto = make(map[string]func(*http.Server, *tls.Conn, http.Handler))
	// The rights of a client's certificate are checked with each request.
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificates.get, ClientAuth: tls.RequestClientCert, NextProtos: []string{"http/1.1"}}
}
