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

// authentication says who sends a request, if Options.Authenticate asks for it.
type authentication struct {
	s        *Server
	access   Access
	sessions sessions

	invitations invitations

	mu      sync.Mutex
	checked time.Time   // when the file was looked at. Guarded by mu.
	info    os.FileInfo // of the file that was read; nil for none. Guarded by mu.
	grants  *grants     // Guarded by mu.

	following sync.Mutex
	streams   map[*call]func() // what ends each stream of a sender with a grant. Guarded by following.
}

// grants are those of the file, by what they are found by. They do not change.
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

// accessCheck is how often the file is looked at for changes.
const accessCheck = time.Second

// current returns the grants of the file. If the file cannot be read any more, those that
// were read before go on.
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

// unauthorized refuses a request without valid credentials; 403 is for those without the
// right.
func unauthorized(format string, args ...any) *problem {
	return &problem{status: http.StatusUnauthorized, kind: typeAuthorization, message: fmt.Sprintf(format, args...), headers: map[string]string{"WWW-Authenticate": `Bearer realm="jay"`}}
}

// identify returns who sends a request. Each kind of credentials that a request brings
// must be valid: one that was withdrawn is not made up for by another.
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
		return "", true // other credentials are no token
	}
	return strings.TrimSpace(token), true
}

// token returns the grant of a token, by its hash.
func (gs *grants) token(hash string, now time.Time) (*Grant, error) {
	g := gs.byToken[hash]
	// The look-up by the hash of 32 random bytes says nothing about the token; the
	// comparison takes the same time for every hash of that length.
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

// authenticate notes who sends the request, and refuses those who may not do it. It
// comes before anything is read or opened, so that a database that is not there, and one
// without rights, look the same.
func (c *call) authenticate() (err error) {
	if !c.s.authenticates.Load() || c.route.invites {
		return nil
	}
	c.who, err = c.admit()
	return err
}

// admit returns who sends the request, if they have the right that its route needs. It
// changes nothing of the call.
func (c *call) admit() (*Grant, error) {
	who, err := c.s.auth.identify(c.r)
	if err != nil || c.route.open {
		return who, err
	}
	name := c.name
	if c.route.named { // the database is in the query
		params, err := parseParams(c.r.URL.RawQuery)
		if err != nil {
			return nil, err
		}
		name = params.get("name")
	}
	return who, who.need(name, c.route.right())
}

// need refuses those who do not have a right in a database; "" is the server.
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
			key = "" // no database has this name
		}
	}
	return g.Rights.in(key) >= right
}

// streamCheck is how often streams are looked at whose senders may have lost their right.
const streamCheck = 5 * time.Second

// follow has end called when the sender of a stream loses the right to it. The function
// that it returns must be called.
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

// endStreamsInTime does so now and then.
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

// right returns what the route needs.
func (r *route) right() Right {
	switch {
	case r.needs != NoRight:
		return r.needs
	case r.path[0] == '/':
		return AdminRight // of the server; what needs less says so
	case strings.HasPrefix(r.path, "{D}/admin/"):
		return AdminRight
	case r.method == http.MethodGet || r.method == http.MethodHead:
		return ReadRight
	}
	return WriteRight
}
