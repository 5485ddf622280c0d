package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/jaydb/jay"
)

// certificates has the server's own certificate, from files. Changed files are read again
// without a restart.
type certificates struct {
	s *Server

	mu      sync.Mutex
	checked time.Time        // Guarded by mu.
	infos   [2]os.FileInfo   // of the files that were read. Guarded by mu.
	current *tls.Certificate // Guarded by mu.
}

// get returns the certificate for a handshake. If the files cannot be read any more, it
// returns the last one.
func (cs *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	now := cs.s.opts.Now()
	if cs.current != nil && now.Sub(cs.checked) < accessCheck && !now.Before(cs.checked) {
		return cs.current, nil
	}
	cs.checked = now
	if err := cs.load(); err != nil {
		if cs.current == nil {
			return nil, err
		}
		cs.s.opts.Logger.Error("server: the certificate cannot be read, the one that was read before goes on", "err", err)
	}
	return cs.current, nil
}

// load reads the files if they have changed. cs.mu is held.
func (cs *certificates) load() error {
	o := &cs.s.opts
	var infos [2]os.FileInfo
	changed := cs.current == nil
	for i, name := range []string{o.TLSCertificate, o.TLSKey} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		infos[i] = info
		before := cs.infos[i]
		changed = changed || !os.SameFile(info, before) || !info.ModTime().Equal(before.ModTime()) || info.Size() != before.Size()
	}
	if !changed {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(o.TLSCertificate, o.TLSKey)
	if err != nil {
		return err // perhaps only one of the two files has been replaced so far
	}
	if cs.current != nil {
		o.Logger.Info("server: the certificate was read again", "until", pair.Leaf.NotAfter)
	}
	cs.current, cs.infos = &pair, infos
	return nil
}

// names reports whether the certificate is valid for a host.
func (cs *certificates) names(host string) bool {
	pair, err := cs.get(nil)
	return err == nil && pair.Leaf.VerifyHostname(host) == nil
}

// checkTLS checks the files of the options.
func (o *Options) checkTLS() error {
	if (o.TLSCertificate == "") != (o.TLSKey == "") {
		return fmt.Errorf("server: %w: Options.TLSCertificate and TLSKey belong together", jay.ErrOption)
	}
	if o.TLSCertificate == "" && o.ClientCAs != nil {
		return fmt.Errorf("server: %w: Options.ClientCAs needs TLSCertificate and TLSKey", jay.ErrOption)
	}
	return nil
}

// tlsConfig returns the configuration of Serve. It has no HTTP/2, because the server's
// bounds apply to connections.
func (s *Server) tlsConfig(h *http.Server) *tls.Config {
	h.TLSNextProto = make(map[string]func(*http.Server, *tls.Conn, http.Handler))
	// The rights of a client's certificate are checked with each request.
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificates.get, ClientAuth: tls.RequestClientCert, NextProtos: []string{"http/1.1"}}
}

// ReadCertificates reads the certificates in a file of PEM, for Options.ClientCAs and
// Access.AllowCertificate.
func ReadCertificates(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	all, err := parsePEM(text)
	if err == nil && len(all) == 0 {
		err = errors.New("it has no certificate")
	}
	if err != nil {
		return nil, fmt.Errorf("server: %w: %s: %w", jay.ErrOption, file, err)
	}
	return all, nil
}

func parsePEM(text []byte) (all []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all, nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
}
