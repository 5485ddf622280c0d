package serve

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A browser exchanges its token for a session, whose secret has two halves: a cookie that
// scripts cannot read, and a key that the page keeps and sends as a header. A browser sends
// the cookies of a host to all its ports; what a page keeps belongs to its origin, of which
// the port is a part. The session is in memory, so it ends with the server. Its rights are
// the present rights of the token.
const (
	sessionCookie   = "jay-session" // see cookieName
	sessionHeader   = "Jay-Session-Key"
	sessionDuration = 12 * time.Hour
	maxSessions     = 10_000
)

// A download by the browser has no headers of the page. It has a ticket in place of the
// key: for one GET of one URL, with the cookie of its session.
const (
	ticketParam    = "ticket"
	ticketDuration = time.Minute
	maxTickets     = 1000 // that are open
	maxTicketPath  = 16 << 10
)

// sessions has the sessions of browsers, by the hash of their cookie.
type sessions struct {
	mu    sync.Mutex
	byID  map[string]browserSession // Guarded by mu.
	order shares[string]            // of byID, by the token or the name of the grant. Guarded by mu.

	tickets map[string]downloadTicket // by the hash. Guarded by mu.
	issued  shares[string]            // of tickets, by session. Guarded by mu.
}

// browserSession has the rights of its token, or of a grant of its own.
type browserSession struct {
	key     string // hash of its second half
	token   string // hash of the token
	grant   *Grant // grant of an invitation, or nil
	expires time.Time
}

// downloadTicket stands for the key of a session in one request.
type downloadTicket struct {
	session string // hash of its cookie
	uri     string
	expires time.Time
}

// begin adds a session, in place of the oldest of the token that has most if there are too
// many, and returns its cookie and its key.
func (ss *sessions) begin(s browserSession, now time.Time) (id, key string) {
	id, key = rand.Text(), rand.Text()
	s.key = hashOf(key)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID == nil {
		ss.byID, ss.order.most = make(map[string]browserSession), maxSessions
	}
	s.expires = now.Add(sessionDuration)
	ss.byID[hashOf(id)] = s
	dropped, full := ss.order.add(s.owner(), hashOf(id))
	if full {
		delete(ss.byID, dropped)
	}
	return id, key
}

// ticket returns a ticket for one GET of a URL.
func (ss *sessions) ticket(id, uri string, now time.Time) string {
	ticket := rand.Text()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.tickets == nil {
		ss.tickets, ss.issued.most = make(map[string]downloadTicket), maxTickets
	}
	ss.tickets[hashOf(ticket)] = downloadTicket{hashOf(id), uri, now.Add(ticketDuration)}
	if dropped, full := ss.issued.add(hashOf(id), hashOf(ticket)); full {
		delete(ss.tickets, dropped)
	}
	return ticket
}

// shows reports whether a request shows the second half of a session, its key or a ticket,
// which is used up.
func (ss *sessions) shows(r *http.Request, id string, s browserSession, now time.Time) bool {
	if key := r.Header.Get(sessionHeader); key != "" {
		return subtle.ConstantTimeCompare([]byte(hashOf(key)), []byte(s.key)) == 1
	}
	i := strings.LastIndex(r.RequestURI, ticketParam+"=")
	if i < 1 || r.Method != http.MethodGet {
		return false
	}
	hash := hashOf(r.RequestURI[i+len(ticketParam)+1:])
	ss.mu.Lock()
	defer ss.mu.Unlock()
	t, found := ss.tickets[hash]
	if !found || t.session != hashOf(id) {
		return false
	}
	delete(ss.tickets, hash)
	ss.issued.remove(t.session, hash)
	return now.Before(t.expires) && t.uri == r.RequestURI[:i-1]
}

// withoutTickets returns a URL for the log, without the tickets in it.
func withoutTickets(uri string) string {
	path, query, found := strings.Cut(uri, "?")
	if !found || !strings.Contains(query, ticketParam+"=") {
		return uri
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		if strings.HasPrefix(part, ticketParam+"=") {
			parts[i] = ticketParam + "=…"
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// owner returns whose share the session is.
func (s *browserSession) owner() string {
	if s.grant != nil {
		return s.grant.Name
	}
	return s.token
}

// find returns a session, unless it has ended.
func (ss *sessions) find(id string, now time.Time) (s browserSession, found bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, found = ss.byID[hashOf(id)]
	if found && !now.Before(s.expires) {
		delete(ss.byID, hashOf(id))
		ss.order.remove(s.owner(), hashOf(id))
		found = false
	}
	return s, found
}

// end ends a session.
func (ss *sessions) end(id string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s, found := ss.byID[hashOf(id)]; found {
		delete(ss.byID, hashOf(id))
		ss.order.remove(s.owner(), hashOf(id))
	}
}
