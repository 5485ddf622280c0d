package serve

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

// certificates has the server's own certificate, from files. Changed files are read again
// without a restart.
type certificates struct {
	opts *Options

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
	now := cs.opts.Now()
	if cs.current != nil && now.Sub(cs.checked) < accessCheck && !now.Before(cs.checked) {
		return cs.current, nil
	}
	cs.checked = now
	if err := cs.load(); err != nil {
		if cs.current == nil {
			return nil, err
		}
		cs.opts.Logger.Error("server: the certificate cannot be read, the one that was read before goes on", "err", err)
	}
	return cs.current, nil
}

// load reads the files if they have changed. cs.mu is held.
func (cs *certificates) load() error {
	o := cs.opts
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
