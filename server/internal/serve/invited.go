package serve

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/studio"
)

// Invite returns a path with a ticket. The first browser that opens it within 15 minutes
// gets a session and is redirected to the studio. The session has the right in every
// database, for 12 hours or until the server ends. After that the ticket is invalid. The
// server stores only its hash.
//
// Invite returns jay.ErrUsage if right is none.
func (s *Server) Invite(right Right) (path string, err error) {
	if right < ReadRight || right > AdminRight {
		return "", fmt.Errorf("server: %w: an invitation needs a right", jay.ErrUsage)
	}
	ticket := rand.Text()
	is := &s.Auth.invitations
	is.mu.Lock()
	defer is.mu.Unlock()
	if len(is.open) == maxInvitations {
		is.open = slices.Delete(is.open, 0, 1)
	}
	is.open = append(is.open, invitation{sha256.Sum256([]byte(ticket)), right, s.Options.Now().Add(invitationDuration)})
	return invitationPath + "?ticket=" + url.QueryEscape(ticket), nil
}

// acceptInvitation exchanges a ticket for a session cookie, and redirects the browser to
// the studio, at a URL without the ticket.
func (c *Call) acceptInvitation() error {
	if strings.Contains(c.Header.Get("Sec-Purpose"), "prefetch") {
		return BadRequest("an invitation is not fetched in advance: it works once")
	}
	now := c.Server.Options.Now()
	right, found := c.Server.Auth.invitations.accept(c.Params.Get("ticket"), now)
	if !found {
		return c.uninvited(unauthorized("This address does not open the studio: each works once, and for 15 minutes. %s", newInvitation))
	}
	g := &Grant{Name: "studio", Created: now.UTC(), Expires: now.Add(sessionDuration).UTC(), Rights: Rights{everyDatabase: right}}
	id, key := c.Server.Auth.sessions.begin(browserSession{grant: g}, now)
	c.setCookie(id, int(sessionDuration/time.Second))
	to := studio.Root + "#key=" + key // a fragment is sent to no server; the studio removes it from the address
	// After a redirect from a page of another site, such as the file that opens the
	// browser, a browser does not send the cookie. To such a page the reply is a page that
	// leads on to the studio itself.
	if site := c.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return c.page(http.StatusOK, `<meta http-equiv="refresh" content="0; url=`+to+`"><title>Jay</title><p><a href="`+to+`">To the studio</a></p>`)
	}
	c.Reply.Set("Location", to)
	bare(c.Reply)
	return c.Empty(http.StatusSeeOther)
}

// checkInvited refuses every request without the cookie of an invitation.
func (c *Call) checkInvited() error {
	if err := c.Server.checkHost(c.Request); err != nil {
		return err
	}
	// The files of the studio hold no data, and a page that is opened sends no header.
	c.shown = c.Server.isStudio(c.Request)
	_, err := c.identify()
	return err
}

// uninvited replies to a request without an invitation, with a page if it comes from a
// browser.
func (c *Call) uninvited(err error) error {
	if !strings.Contains(c.Header.Get("Accept"), "text/html") {
		return err
	}
	p := ProblemOf(err)
	return c.page(p.Status, `<title>Jay</title><h1>The studio is not open here</h1><p>`+html.EscapeString(p.Message)+`</p>`)
}

// page replies with a small page that loads no other file.
func (c *Call) page(status int, body string) error {
	bare(c.Reply)
	c.Status, c.ContentType = status, "text/html; charset=utf-8"
	c.Out = []byte(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">` + body)
	return nil
}

// bare sets the headers of a reply that loads nothing and must not be cached.
func bare(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}
