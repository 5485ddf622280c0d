package serve

import (
	"context"
	"crypto/subtle"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"
)

// Authentication identifies the sender of a request, if Options.Authenticate is set.
type Authentication struct {
	opts     *Options
	Access   Access
	sessions sessions

	invitations invitations

	mu      sync.Mutex
	checked time.Time   // when the file was last checked. Guarded by mu.
	info    os.FileInfo // of the file that was read; nil for none. Guarded by mu.
	grants  *grants     // Guarded by mu.

	following sync.Mutex
	followed  map[*followed]struct{} // streams and operations of senders with a grant. Guarded by following.
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
func (a *Authentication) current() *grants {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.opts.Now()
	if a.grants != nil && now.Sub(a.checked) < accessCheck && !now.Before(a.checked) {
		return a.grants
	}
	if err := a.load(); err != nil {
		a.opts.Logger.Error("server: the access file cannot be read, what was read before goes on", "err", err)
	}
	a.checked = now
	if a.grants == nil {
		a.grants = newGrants(nil)
	}
	return a.grants
}

// load reads the file if it has changed. a.mu is held.
func (a *Authentication) load() error {
	if a.opts.Data == "" {
		a.grants = newGrants(nil)
		return nil
	}
	info, err := os.Stat(a.Access.file())
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
	list, err := a.Access.List()
	if err != nil {
		return err
	}
	a.info, a.grants = info, newGrants(list)
	return nil
}

// unauthorized is the error for a request without valid credentials. If only the right is
// missing, the status is 403 instead.
func unauthorized(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusUnauthorized, Kind: TypeAuthorization, Message: fmt.Sprintf(format, args...), Headers: map[string]string{"WWW-Authenticate": `Bearer realm="jay"`}}
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
func (a *Authentication) certificate(gs *grants, chain []*x509.Certificate, now time.Time) (*Grant, error) {
	leaf := chain[0]
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return nil, unauthorized("the client certificate is not valid now")
	}
	if g := gs.byThumbprint[thumbprint(leaf)]; g != nil {
		return g.valid(now)
	}
	if g := gs.bySubject[leaf.Subject.CommonName]; g != nil && a.opts.ClientCAs != nil {
		others := x509.NewCertPool()
		for _, c := range chain[1:] {
			others.AddCert(c)
		}
		_, err := leaf.Verify(x509.VerifyOptions{Roots: a.opts.ClientCAs, Intermediates: others, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err == nil {
			return g.valid(now)
		}
	}
	return nil, unauthorized("the client certificate has no rights here; its thumbprint is %s", thumbprint(leaf))
}

// Need returns an error if the grant does not include a right in a database; "" is the
// server.
func (g *Grant) Need(name string, right Right) error {
	if g.May(name, right) {
		return nil
	}
	return &Problem{Status: http.StatusForbidden, Kind: TypeAuthorization, Message: fmt.Sprintf("%s has not the right %q that this needs", g.Name, right)}
}

// May reports whether the sender of a request has a right in a database. Without
// authentication there is no grant, and nothing is refused.
func (g *Grant) May(name string, right Right) bool {
	if g == nil {
		return true
	}
	key := ""
	if name != "" {
		var err error
		if key, err = CheckName(name); err != nil {
			key = "" // an invalid name: only rights in all databases count
		}
	}
	return g.Rights.in(key) >= right
}

// present returns the grant as it is now.
func (a *Authentication) present(g *Grant) (*Grant, error) {
	gs, now := a.current(), a.opts.Now()
	found := g // of an invitation, which is in no file
	switch {
	case g.Token != "":
		found = gs.byToken[g.Token]
	case g.Thumbprint != "":
		found = gs.byThumbprint[g.Thumbprint]
	case g.Subject != "":
		found = gs.bySubject[g.Subject]
	}
	if found == nil {
		return nil, unauthorized("the token or certificate was withdrawn")
	}
	return found.valid(now)
}

// followed is a stream or an operation that ends with the right to it.
type followed struct {
	sender, method, path string
	check                func() error
	end                  func()

	began time.Time // when the check that runs now began; zero if none runs. Guarded by Authentication.following.
}

// watch makes end be called when check returns an error, panics or hangs: see EndStreams. Without
// a grant nothing can be lost.
func (a *Authentication) watch(who *Grant, method, path string, end func(), check func() error) (stop func()) {
	if who == nil {
		return func() {}
	}
	f := &followed{sender: who.Name, method: method, path: path, check: check, end: end}
	a.following.Lock()
	defer a.following.Unlock()
	if a.followed == nil {
		a.followed = make(map[*followed]struct{})
	}
	a.followed[f] = struct{}{}
	return func() {
		a.following.Lock()
		defer a.following.Unlock()
		delete(a.followed, f)
	}
}

// The time that a check may take, which calls the hook of a program for a request through a Mount.
const (
	checkPatience = time.Second // for which EndStreams waits for one check before it goes on to the next
	checkTimeout  = time.Minute // after which the stream or operation ends without the result
)

// EndStreams ends the streams and operations whose senders have lost the right to them. A check
// that panics ends its stream. A check that hangs delays those of other streams by checkPatience,
// and is not begun again while it runs. Its stream ends after checkTimeout.
func (a *Authentication) EndStreams() {
	due, late := a.dueChecks()
	for _, f := range late {
		a.lose(f, fmt.Errorf("the check of the right to it has run for more than %s", checkTimeout))
	}
	for _, f := range due {
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.recheck(f)
		}()
		patience := time.NewTimer(checkPatience)
		select {
		case <-done:
		case <-patience.C:
		}
		patience.Stop()
	}
}

// dueChecks returns what is to be checked now, and marks it, and what has been checked for too long.
func (a *Authentication) dueChecks() (due, late []*followed) {
	a.following.Lock()
	defer a.following.Unlock()
	now := a.opts.Now()
	for f := range a.followed {
		switch {
		case f.began.IsZero():
			f.began = now
			due = append(due, f)
		case now.Sub(f.began) > checkTimeout:
			late = append(late, f)
		}
	}
	return due, late
}

// recheck runs a check, and ends what it is for if it returns an error or panics. a.following is
// not held, as new streams must not wait for a hook.
func (a *Authentication) recheck(f *followed) {
	defer func() {
		a.following.Lock()
		defer a.following.Unlock()
		f.began = time.Time{}
	}()
	if err := f.checked(); err != nil {
		a.lose(f, err)
	}
}

// checked runs the check, and turns a panic into an error.
func (f *followed) checked() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return f.check()
}

// lose ends a stream or an operation, unless it has ended meanwhile.
func (a *Authentication) lose(f *followed, err error) {
	a.following.Lock()
	_, found := a.followed[f]
	a.following.Unlock()
	if !found {
		return
	}
	level := slog.LevelInfo
	if ProblemOf(err).Status >= http.StatusInternalServerError { // the hook has failed
		level = slog.LevelError
	}
	a.opts.Logger.Log(context.Background(), level, "server: a stream or an operation ends with the right to it", "sender", f.sender, "method", f.method, "path", f.path, "err", err)
	f.end()
}

// Forget makes the next request read the access file.
func (a *Authentication) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checked = time.Time{}
}
