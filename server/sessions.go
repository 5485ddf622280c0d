package server

import (
	"crypto/rand"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A browser swaps its token for a cookie that scripts cannot read. The session lives in
// memory: it ends with the server, and its token's rights are those of the moment.
const (
	sessionCookie   = "jay-session" // see cookieName
	sessionDuration = 12 * time.Hour
	maxSessions     = 10_000
)

// sessions are those of browsers, by the hash of their cookie.
type sessions struct {
	mu    sync.Mutex
	byID  map[string]browserSession // Guarded by mu.
	order []string                  // oldest first; some have ended. Guarded by mu.
}

// browserSession has the rights of its token, or those of a grant of its own.
type browserSession struct {
	token   string // its hash
	grant   *Grant // of an invitation, or nil
	expires time.Time
}

// begin begins a session, in place of the oldest one if there are too many, and returns its
// cookie.
func (ss *sessions) begin(s browserSession, now time.Time) string {
	id := rand.Text()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID == nil {
		ss.byID = make(map[string]browserSession)
	}
	for len(ss.order) > 0 && (len(ss.order) >= maxSessions || !now.Before(ss.byID[ss.order[0]].expires)) {
		delete(ss.byID, ss.order[0])
		ss.order = ss.order[1:]
	}
	s.expires = now.Add(sessionDuration)
	ss.byID[hashOf(id)] = s
	ss.order = append(ss.order, hashOf(id))
	return id
}

// find returns a session that has not ended.
func (ss *sessions) find(id string, now time.Time) (s browserSession, found bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, found = ss.byID[hashOf(id)]
	return s, found && now.Before(s.expires)
}

// end ends a session.
func (ss *sessions) end(id string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.byID, hashOf(id))
}

// sameOrigin refuses what a page of another site may have sent with the cookie: a change
// must say that it comes from a page of this server.
func (a *authentication) sameOrigin(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return nil // the cookie is SameSite=Strict, and guard has looked at what the browser says
	}
	if r.Header.Get("Sec-Fetch-Site") == "same-origin" || sameHost(r.Header.Get("Origin"), r.Host) {
		return nil
	}
	return &problem{status: http.StatusForbidden, kind: typeAuthorization, message: "a change with the cookie of a browser must come from a page of this server"}
}

// beginSession swaps the token of the request for a cookie.
func (c *call) beginSession() error {
	token, found := bearer(c.r)
	if c.who == nil {
		return badRequest("this server needs no token")
	}
	if !found {
		return badRequest("a session needs a token, in the header Authorization: Bearer …")
	}
	id := c.s.auth.sessions.begin(browserSession{token: hashOf(token)}, c.s.opts.Now())
	c.setCookie(id, int(sessionDuration/time.Second))
	return c.json(http.StatusCreated, c.describe())
}

// endSession ends the session of the request.
func (c *call) endSession() error {
	if cookie, err := c.r.Cookie(cookieName(c.r)); err == nil {
		c.s.auth.sessions.end(cookie.Value)
	}
	c.setCookie("", -1)
	return c.empty(http.StatusNoContent)
}

// getSession says who sends the request.
func (c *call) getSession() error { return c.json(http.StatusOK, c.describe()) }

func (c *call) describe() any {
	if c.who == nil {
		return map[string]any{"Name": nil, "Rights": Rights{everyDatabase: AdminRight}}
	}
	reply := map[string]any{"Name": c.who.Name, "Rights": c.who.Rights}
	if !c.who.Expires.IsZero() {
		reply["Expires"] = c.who.Expires.UTC().Format(ravenTime)
	}
	return reply
}

// cookieName returns the name of the cookie, with the port of the URL: a browser sends the
// cookies of a host to all its ports, and servers of one machine must not take one
// another's away.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return sessionCookie + "-" + port
	}
	return sessionCookie
}

// setCookie sets the cookie of the session. It is sent over TLS only, unless the request
// came without.
func (c *call) setCookie(value string, maxAge int) {
	http.SetCookie(c.w, &http.Cookie{
		Name: cookieName(c.r), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: c.r.TLS != nil || strings.EqualFold(c.header.Get("X-Forwarded-Proto"), "https"),
	})
}
