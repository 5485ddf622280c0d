package server

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/studio"
)

// An invitation is a URL with a ticket, which starts the session of one browser and works
// once. It protects a server on a loopback port, which every user of the machine can
// reach.
const (
	invitationDuration = 15 * time.Minute // validity of a ticket
	maxInvitations     = 100              // open invitations; the oldest are dropped
	invitationPath     = "/jay/v1/invitation"
)

// invitations holds the open invitations, oldest first.
type invitations struct {
	mu   sync.Mutex
	open []invitation // Guarded by mu.
}

type invitation struct {
	ticket  [sha256.Size]byte // its hash
	right   Right
	expires time.Time
}

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
	is := &s.auth.invitations
	is.mu.Lock()
	defer is.mu.Unlock()
	if len(is.open) == maxInvitations {
		is.open = slices.Delete(is.open, 0, 1)
	}
	is.open = append(is.open, invitation{sha256.Sum256([]byte(ticket)), right, s.opts.Now().Add(invitationDuration)})
	return invitationPath + "?ticket=" + url.QueryEscape(ticket), nil
}

// accept removes the invitation with a ticket and returns its right. It compares all
// invitations, in constant time.
func (is *invitations) accept(ticket string, now time.Time) (right Right, found bool) {
	hash := sha256.Sum256([]byte(ticket))
	is.mu.Lock()
	defer is.mu.Unlock()
	at := -1
	for i := range is.open {
		if subtle.ConstantTimeCompare(is.open[i].ticket[:], hash[:]) == 1 {
			at = i
		}
	}
	if at < 0 {
		return NoRight, false
	}
	used := is.open[at]
	is.open = slices.Delete(is.open, at, at+1)
	return used.right, now.Before(used.expires)
}

// acceptInvitation exchanges a ticket for a session cookie, and redirects the browser to
// the studio, at a URL without the ticket.
func (c *call) acceptInvitation() error {
	if strings.Contains(c.header.Get("Sec-Purpose"), "prefetch") {
		return badRequest("an invitation is not fetched in advance: it works once")
	}
	now := c.s.opts.Now()
	right, found := c.s.auth.invitations.accept(c.params.get("ticket"), now)
	if !found {
		return c.uninvited(unauthorized("This address does not open the studio: each works once, and for 15 minutes. %s", newInvitation))
	}
	g := &Grant{Name: "studio", Created: now.UTC(), Expires: now.Add(sessionDuration).UTC(), Rights: Rights{everyDatabase: right}}
	c.setCookie(c.s.auth.sessions.begin(browserSession{grant: g}, now), int(sessionDuration/time.Second))
	// After a redirect from a page of another site, such as the file that opens the
	// browser, a browser does not send the cookie. To such a page the reply is a page that
	// leads on to the studio itself.
	if site := c.header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return c.page(http.StatusOK, `<meta http-equiv="refresh" content="0; url=`+studio.Root+`"><title>Jay</title><p><a href="`+studio.Root+`">To the studio</a></p>`)
	}
	c.reply.Set("Location", studio.Root)
	c.bare()
	return c.empty(http.StatusSeeOther)
}

// checkInvited refuses every request without the cookie of an invitation.
func (c *call) checkInvited() error {
	if err := c.s.checkHost(c.r); err != nil {
		return err
	}
	_, err := c.s.auth.identify(c.r)
	return err
}

// newInvitation tells the user how to get a new invitation.
const newInvitation = "Press Enter in the terminal of jay studio for a new address, or start it again."

// uninvited replies to a request without an invitation, with a page if it comes from a
// browser.
func (c *call) uninvited(err error) error {
	if !strings.Contains(c.header.Get("Accept"), "text/html") {
		return err
	}
	p := problemOf(err)
	return c.page(p.status, `<title>Jay</title><h1>The studio is not open here</h1><p>`+html.EscapeString(p.message)+`</p>`)
}

// page replies with a small page that loads no other file.
func (c *call) page(status int, body string) error {
	c.bare()
	c.status, c.contentType = status, "text/html; charset=utf-8"
	c.out = []byte(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">` + body)
	return nil
}

// bare sets the headers of a reply that loads nothing and must not be cached.
func (c *call) bare() {
	c.reply.Set("Cache-Control", "no-store")
	c.reply.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	c.reply.Set("Referrer-Policy", "no-referrer")
	c.reply.Set("X-Content-Type-Options", "nosniff")
}
