package server

import (
	"crypto/subtle"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// authentication identifies the sender of a request, if Options.Authenticate is set.
type authentication struct {
	s        *Server
	access   Access
	sessions sessions

	invitations invitations

	mu      sync.Mutex
	checked time.Time   // when the file was last checked. Guarded by mu.
	info    os.FileInfo // of the file that was read; nil for none. Guarded by mu.
	grants  *grants     // Guarded by mu.

	following sync.Mutex
	streams   map[*call]func() // functions that end the streams of senders with a grant. Guarded by following.
}

// grants holds the grants of one version of the file, by their look-up keys. It is
// immutable.
type grants struct {
	byToken      map[string]*Grant // by the hash
	byThumbprint map[string]*Grant
	bySubject    map[string]*Grant
	n            int
}

func newGrants(list []Grant) *grants {
	gs := &grants{byToken: make(map[string]*Grant), byThumbprint: make(map[string]*Grant), bySubject: make(map[string]*Grant), n: len(list)}
	for i := range list {
		g := &list[i]
		switch {
		case g.Token != "":
			gs.byToken[g.Token] = g
		case g.Thumbprint != "":
			gs.byThumbprint[g.Thumbprint] = g
		case g.Subject != "":
			gs.bySubject[g.Subject] = g
		}
	}
	return gs
}

// accessCheck is the interval at which the file is checked for changes.
const accessCheck = time.Second

// current returns the grants of the file. If the file cannot be read, the grants of the
// last version that could be read stay valid.
func (a *authentication) current() *grants {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.s.opts.Now()
	if a.grants != nil && now.Sub(a.checked) < accessCheck && !now.Before(a.checked) {
		return a.grants
	}
	if err := a.load(); err != nil {
		a.s.opts.Logger.Error("server: the access file cannot be read, what was read before goes on", "err", err)
	}
	a.checked = now
	if a.grants == nil {
		a.grants = newGrants(nil)
	}
	return a.grants
}

// load reads the file if it has changed. a.mu is held.
func (a *authentication) load() error {
	info, err := os.Stat(a.access.file())
	if os.IsNotExist(err) {
		a.info, a.grants = nil, newGrants(nil)
		return nil
	}
	if err != nil {
		return err
	}
	if a.info != nil && os.SameFile(info, a.info) && info.ModTime().Equal(a.info.ModTime()) && info.Size() == a.info.Size() {
		return nil
	}
	list, err := a.access.List()
	if err != nil {
		return err
	}
	a.info, a.grants = info, newGrants(list)
	return nil
}

// unauthorized is the error for a request without valid credentials. If only the right is
// missing, the status is 403 instead.
func unauthorized(format string, args ...any) *problem {
	return &problem{status: http.StatusUnauthorized, kind: typeAuthorization, message: fmt.Sprintf(format, args...), headers: map[string]string{"WWW-Authenticate": `Bearer realm="jay"`}}
}

// identify returns the grant of a request's sender. All credentials of the request must be
// valid: one that was withdrawn is not made up for by another.
func (a *authentication) identify(r *http.Request) (*Grant, error) {
	gs, now := a.current(), a.s.opts.Now()
	if token, found := bearer(r); found && !a.s.opts.InvitedOnly {
		return gs.token(hashOf(token), now)
	}
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		if err := a.sameOrigin(r); err != nil {
			return nil, err
		}
		session, found := a.sessions.find(cookie.Value, now)
		switch {
		case !found && a.s.opts.InvitedOnly:
			return nil, unauthorized("The session has ended. %s", newInvitation)
		case !found:
			return nil, unauthorized("the session has ended: log in again")
		case session.grant != nil:
			return session.grant.valid(now)
		}
		return gs.token(session.token, now)
	}
	if a.s.opts.InvitedOnly {
		return nil, unauthorized("The studio is open to the browser that it was opened in. %s", newInvitation)
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return a.certificate(gs, r.TLS.PeerCertificates, now)
	}
	return nil, unauthorized("the request needs a token, in the header Authorization: Bearer …, or a client certificate")
}

// bearer returns the token of a request.
func bearer(r *http.Request) (token string, found bool) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return "", false
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", true // credentials of another kind: never a valid token
	}
	return strings.TrimSpace(token), true
}

// token returns the grant of a token, by its hash.
func (gs *grants) token(hash string, now time.Time) (*Grant, error) {
	g := gs.byToken[hash]
	// The timing of the look-up, which is by the hash of 32 random bytes, reveals nothing
	// about the token; the comparison takes constant time.
	if g == nil || subtle.ConstantTimeCompare([]byte(g.Token), []byte(hash)) != 1 {
		return nil, unauthorized("the token is not valid")
	}
	return g.valid(now)
}

func (g *Grant) valid(now time.Time) (*Grant, error) {
	if !g.Expires.IsZero() && !now.Before(g.Expires) {
		return nil, unauthorized("the token or certificate has expired")
	}
	return g, nil
}

// certificate returns the grant of a client certificate: by its thumbprint, or by its
// common name if a certificate authority of the server has signed it. TLS has checked that
// the client has its key.
func (a *authentication) certificate(gs *grants, chain []*x509.Certificate, now time.Time) (*Grant, error) {
	leaf := chain[0]
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return nil, unauthorized("the client certificate is not valid now")
	}
	if g := gs.byThumbprint[thumbprint(leaf)]; g != nil {
		return g.valid(now)
	}
	if g := gs.bySubject[leaf.Subject.CommonName]; g != nil && a.s.opts.ClientCAs != nil {
		others := x509.NewCertPool()
		for _, c := range chain[1:] {
			others.AddCert(c)
		}
		_, err := leaf.Verify(x509.VerifyOptions{Roots: a.s.opts.ClientCAs, Intermediates: others, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err == nil {
			return g.valid(now)
		}
	}
	return nil, unauthorized("the client certificate has no rights here; its thumbprint is %s", thumbprint(leaf))
}

// authenticate identifies the sender of the request, and refuses the request if the right
// is missing. It runs before anything is read or opened, so that a sender cannot tell a
// missing database from one without rights.
func (c *call) authenticate() (err error) {
	if !c.s.authenticates.Load() || c.route.invites {
		return nil
	}
	c.who, err = c.admit()
	return err
}

// admit returns the grant of the sender, if it has the right that the route needs. It does
// not change the call.
func (c *call) admit() (*Grant, error) {
	who, err := c.s.auth.identify(c.r)
	if err != nil || c.route.open {
		return who, err
	}
	name := c.name
	if c.route.named { // a query parameter names the database
		params, err := parseParams(c.r.URL.RawQuery)
		if err != nil {
			return nil, err
		}
		name = params.get("name")
	}
	return who, who.need(name, c.route.right())
}

// need returns an error if the grant does not include a right in a database; "" is the
// server.
func (g *Grant) need(name string, right Right) error {
	if g.may(name, right) {
		return nil
	}
	return &problem{status: http.StatusForbidden, kind: typeAuthorization, message: fmt.Sprintf("%s has not the right %q that this needs", g.Name, right)}
}

// may reports whether the sender of a request has a right in a database. Without
// authentication there is no grant, and nothing is refused.
func (g *Grant) may(name string, right Right) bool {
	if g == nil {
		return true
	}
	key := ""
	if name != "" {
		var err error
		if key, err = checkName(name); err != nil {
			key = "" // an invalid name: only rights in all databases count
		}
	}
	return g.Rights.in(key) >= right
}

// streamCheck is the interval at which the rights of the senders of streams are checked.
const streamCheck = 5 * time.Second

// follow makes end be called when the sender of a stream loses the right to it. The caller
// must call stop.
func (a *authentication) follow(c *call, end func()) (stop func()) {
	if c.who == nil {
		return func() {}
	}
	a.following.Lock()
	defer a.following.Unlock()
	if a.streams == nil {
		a.streams = make(map[*call]func())
	}
	a.streams[c] = end
	return func() {
		a.following.Lock()
		defer a.following.Unlock()
		delete(a.streams, c)
	}
}

// endStreams ends the streams whose senders have lost the right to them.
func (a *authentication) endStreams() {
	a.following.Lock()
	defer a.following.Unlock()
	for c, end := range a.streams {
		if _, err := c.admit(); err != nil {
			a.s.opts.Logger.Info("server: a stream ends with the right to it", "sender", c.who.Name, "method", c.route.method, "path", c.r.URL.Path, "err", err)
			end()
		}
	}
}

// endStreamsInTime calls endStreams at every streamCheck.
func (s *Server) endStreamsInTime() {
	tick := time.NewTicker(streamCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.auth.endStreams()
		case <-s.ctx.Done():
			return
		}
	}
}

// right returns the right that the route needs.
func (r *route) right() Right {
	switch {
	case r.needs != NoRight:
		return r.needs
	case r.path[0] == '/':
		return AdminRight // of the server, unless the route sets needs
	case strings.HasPrefix(r.path, "{D}/admin/"):
		return AdminRight
	case r.method == http.MethodGet || r.method == http.MethodHead:
		return ReadRight
	}
	return WriteRight
}
