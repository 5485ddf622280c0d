package server

import (
	"crypto/rand"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A browser exchanges its token for a cookie that scripts cannot read. The session is in
// memory, so it ends with the server. Its rights are the present rights of the token.
const (
	sessionCookie   = "jay-session" // see cookieName
	sessionDuration = 12 * time.Hour
	maxSessions     = 10_000
)

// sessions has the sessions of browsers, by the hash of their cookie.
type sessions struct {
	mu    sync.Mutex
	byID  map[string]browserSession // Guarded by mu.
	order []string                  // oldest first; some of them may have ended. Guarded by mu.
}

// browserSession has the rights of its token, or of a grant of its own.
type browserSession struct {
	token   string // hash of the token
	grant   *Grant // grant of an invitation, or nil
	expires time.Time
}

// begin adds a session, in place of the oldest one if there are too many, and returns its
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

// find returns a session, unless it has ended.
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

// sameOrigin refuses requests that a page of another site may have sent with the cookie: a
// change must be marked as coming from a page of this server.
func (a *authentication) sameOrigin(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return nil // reads are safe: the cookie is SameSite=Strict, and guard has checked the browser's headers
	}
	if r.Header.Get("Sec-Fetch-Site") == "same-origin" || sameHost(r.Header.Get("Origin"), r.Host) {
		return nil
	}
	return &problem{status: http.StatusForbidden, kind: typeAuthorization, message: "a change with the cookie of a browser must come from a page of this server"}
}

// beginSession exchanges the token of the request for a cookie.
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

// getSession replies with who the sender is.
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

// cookieName returns the name of the cookie, which includes the port of the URL. A browser
// sends the cookies of a host to all its ports, and servers on one machine must not
// replace each other's.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return sessionCookie + "-" + port
	}
	return sessionCookie
}

// setCookie sets the cookie of the session. It is restricted to TLS, unless the request
// came without TLS.
func (c *call) setCookie(value string, maxAge int) {
	http.SetCookie(c.w, &http.Cookie{
		Name: cookieName(c.r), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: c.r.TLS != nil || strings.EqualFold(c.header.Get("X-Forwarded-Proto"), "https"),
	})
}
