package serve

import (
	"net"
	"net/http"
	"strings"
	"time"
)

// identify returns the grant of a request's sender. All credentials of the request must be
// valid: one that was withdrawn is not made up for by another.
func (c *Call) identify() (*Grant, error) {
	a, r := c.Server.Auth, c.Request
	if c.Mount != nil {
		return c.Mount.identify(r, c.Route.changes(r.Method))
	}
	gs, now := a.current(), a.opts.Now()
	if token, found := bearer(r); found && !a.opts.InvitedOnly {
		return gs.token(hashOf(token), now)
	}
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		if c.Route.changes(r.Method) {
			if err := sameOrigin(r); err != nil {
				return nil, err
			}
		}
		session, found := a.sessions.find(cookie.Value, now)
		switch {
		case !found && a.opts.InvitedOnly:
			return nil, unauthorized("The session has ended. %s", newInvitation)
		case !found:
			return nil, unauthorized("the session has ended: log in again")
		}
		if !c.shown {
			// A ticket is used up, so a stream that it has begun is not asked again.
			if c.shown = a.sessions.shows(r, cookie.Value, session, now); !c.shown {
				return nil, unauthorized("the cookie is only one half of a session: the other one is missing, in the header %s. Log in again", sessionHeader)
			}
		}
		switch {
		case session.grant != nil:
			return session.grant.valid(now)
		}
		return gs.token(session.token, now)
	}
	if a.opts.InvitedOnly {
		return nil, unauthorized("The studio is open to the browser that it was opened in. %s", newInvitation)
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return a.certificate(gs, r.TLS.PeerCertificates, now)
	}
	return nil, unauthorized("the request needs a token, in the header Authorization: Bearer …, or a client certificate")
}

// authenticate identifies the sender of the request, and refuses the request if the right
// is missing. It runs before anything is read or opened, so that a sender cannot tell a
// missing database from one without rights.
func (c *Call) authenticate() (err error) {
	if c.Route.invites {
		return c.Mount.OwnSignIn()
	}
	if c.Mount == nil && !c.Server.Authenticates.Load() {
		return nil
	}
	c.Who, err = c.admit()
	return err
}

// admit returns the grant of the sender, if it has the right that the route needs. It does
// not change the call.
func (c *Call) admit() (*Grant, error) {
	who, err := c.identify()
	if err != nil || c.Route.Open {
		return who, err
	}
	name := c.Name
	if c.Route.Named { // a query parameter names the database
		params, err := parseParams(c.Request.URL.RawQuery)
		if err != nil {
			return nil, err
		}
		name = params.Get("name")
	}
	return who, who.Need(name, c.Route.right())
}

// beginSession exchanges the token of the request for a cookie.
func (c *Call) beginSession() error {
	if err := c.Mount.OwnSignIn(); err != nil {
		return err
	}
	token, found := bearer(c.Request)
	if c.Who == nil {
		return BadRequest("this server needs no token")
	}
	if !found {
		return BadRequest("a session needs a token, in the header Authorization: Bearer …")
	}
	id, key := c.Server.Auth.sessions.begin(browserSession{token: hashOf(token)}, c.Server.Options.Now())
	c.setCookie(id, int(sessionDuration/time.Second))
	c.Reply.Set("Cache-Control", "no-store")
	reply := c.describe()
	reply["Key"] = key
	return c.JSON(http.StatusCreated, reply)
}

// makeTicket replies with a ticket for a download of the session's browser.
func (c *Call) makeTicket() error {
	cookie, err := c.Request.Cookie(cookieName(c.Request))
	if err != nil || !c.shown { // beside a token of the sender's own, the cookie may be another's
		return BadRequest("a ticket is for a download of a browser with a session")
	}
	var body struct{ Path string }
	if err := c.Decode(&body); err != nil {
		return err
	}
	if !strings.HasPrefix(body.Path, "/") || len(body.Path) > maxTicketPath {
		return BadRequest("Path must be that of the download, with its parameters, and have at most %d bytes", maxTicketPath)
	}
	c.Reply.Set("Cache-Control", "no-store")
	return c.JSON(http.StatusCreated, map[string]string{"Ticket": c.Server.Auth.sessions.ticket(cookie.Value, body.Path, c.Server.Options.Now())})
}

// endSession ends the session of the request, if it showed both halves of it.
func (c *Call) endSession() error {
	if err := c.Mount.OwnSignIn(); err != nil {
		return err
	}
	if cookie, err := c.Request.Cookie(cookieName(c.Request)); err == nil && c.shown {
		c.Server.Auth.sessions.end(cookie.Value)
	}
	c.setCookie("", -1)
	return c.Empty(http.StatusNoContent)
}

// getSession replies with who the sender is.
func (c *Call) getSession() error { return c.JSON(http.StatusOK, c.describe()) }

func (c *Call) describe() map[string]any {
	reply := map[string]any{"Name": nil, "Rights": Rights{everyDatabase: AdminRight}}
	if c.Server.Options.fixed() {
		reply["FixedDatabases"] = true // none is created or deleted
	}
	if c.Mount != nil {
		reply["SignedInElsewhere"] = true // by the program: there is no session to begin or to end here
	}
	if c.Who == nil {
		return reply
	}
	reply["Name"], reply["Rights"] = c.Who.Name, c.Who.Rights
	if !c.Who.Expires.IsZero() {
		reply["Expires"] = c.Who.Expires.UTC().Format(RavenTime)
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
func (c *Call) setCookie(value string, maxAge int) {
	http.SetCookie(c.Writer, &http.Cookie{
		Name: cookieName(c.Request), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: c.Request.TLS != nil || strings.EqualFold(c.Header.Get("X-Forwarded-Proto"), "https"),
	})
}

// ShowsOrigin refuses a request that changes something and brings the cookie of the session of a program, unless a
// page of the same origin has sent it: that cookie comes with what any page makes the browser send. A route
// calls it if only some of its parameters make it change something. Without a mount it refuses nothing: the server's
// own sessions need no more than their second half, which other pages do not have.
func (m *Mount) ShowsOrigin(r *http.Request) error {
	if m == nil || len(r.Header["Cookie"]) == 0 {
		return nil
	}
	return sameOrigin(r)
}

// sameOrigin refuses changes that a page of another site may have sent with the cookie: a change must be marked
// as coming from a page of this server. Reads are safe, as guard has checked the browser's headers.
func sameOrigin(r *http.Request) error {
	if r.Header.Get("Sec-Fetch-Site") == "same-origin" || sameHost(r.Header.Get("Origin"), r.Host) {
		return nil
	}
	return &Problem{Status: http.StatusForbidden, Kind: TypeAuthorization, Message: "a change with the cookie of a browser must come from a page of this server"}
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
