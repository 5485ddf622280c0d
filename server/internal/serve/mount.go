package serve

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/studio"
)

// Mount is a Server below a path of another program's mux, behind that program's sign-in.
type Mount struct {
	server    *Server
	base      string // the path without its last slash, such as /admin/db; "" for the root of the host
	authorize func(r *http.Request) (name string, rights Rights)
	studio    http.Handler // of its files, with addresses below base
}

// maxBase bounds the path of a Mount.
const maxBase = 256

// Mount returns the handler of Server.Handler.
func (s *Server) Mount(base string, authorize func(r *http.Request) (string, Rights)) (*Mount, error) {
	if s.Options.InvitedOnly {
		return nil, fmt.Errorf("server: %w: with Options.InvitedOnly the server takes no other sign-in", jay.ErrOption)
	}
	if err := checkBase(base); err != nil {
		return nil, err
	}
	if authorize == nil {
		authorize = onlyReads
	}
	return &Mount{server: s, base: base, authorize: authorize, studio: studio.Handler(base)}, nil
}

// onlyReads gives everybody the right to read, and nothing else.
func onlyReads(*http.Request) (name string, rights Rights) {
	return "reader", Rights{everyDatabase: ReadRight}
}

// checkBase checks the path of a Mount. It has no characters that a URL can spell in two ways.
func checkBase(base string) error {
	bad := func(rule string) error {
		return fmt.Errorf("server: %w: the path of a handler %s, got %.300q", jay.ErrUsage, rule, base)
	}
	if base == "" {
		return nil
	}
	if len(base) > maxBase {
		return bad(fmt.Sprintf("has at most %d bytes", maxBase))
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(base, "/"), "/") {
		switch {
		case part == "", part == ".", part == "..", base[0] != '/':
			return bad("begins with /, does not end with one, and has no empty part and none that is . or ..")
		case strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.~-") != "":
			return bad("has only letters, digits, /, _, -, . and ~")
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (m *Mount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inner, found := m.below(r)
	if !found {
		p := &Problem{Status: http.StatusNotFound, Kind: typeRoute, Message: "the server answers below " + m.base + " only"}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(p.Status)
		_, _ = w.Write(p.Body(r.URL.RequestURI())) // a client that has gone away needs no reply
		return
	}
	m.server.answer(w, inner, m)
}

// below returns the request with a path below that of the mount. The path alone is the root.
func (m *Mount) below(r *http.Request) (inner *http.Request, found bool) {
	if m.base == "" {
		return r, true
	}
	path, found := strings.CutPrefix(r.URL.Path, m.base)
	if !found || path != "" && path[0] != '/' {
		return nil, false
	}
	raw := ""
	if r.URL.RawPath != "" {
		if raw, found = strings.CutPrefix(r.URL.RawPath, m.base); !found {
			return nil, false // it spells the path of the mount with escapes
		}
	}
	if path == "" {
		path = "/"
	}
	inner, at := new(http.Request), new(url.URL)
	*inner, *at = *r, *r.URL
	at.Path, at.RawPath = path, raw
	inner.URL = at
	return inner, true
}

// identify returns the grant of the sender of a request, which may change something or not.
func (m *Mount) identify(r *http.Request, changes bool) (*Grant, error) {
	if changes {
		if err := m.ShowsOrigin(r); err != nil {
			return nil, err
		}
	}
	name, rights := m.authorize(r)
	if name == "" {
		return nil, &Problem{Status: http.StatusUnauthorized, Kind: TypeAuthorization, Message: "sign in to the program that this database belongs to"}
	}
	g := &Grant{Name: name, Rights: make(Rights, len(rights))}
	for database, right := range rights {
		if right > AdminRight {
			return nil, &Problem{Status: http.StatusInternalServerError, Kind: TypeInternal, Message: "the program's hook has given a right that there is not; the log says which", Cause: fmt.Errorf("the hook of the handler gives %s the right %d in %q", name, right, database)}
		}
		key := strings.ToLower(database)
		g.Rights[key] = max(g.Rights[key], right)
	}
	return g, nil
}

// Base returns the path of the host below which the path of a request through m is: "" for the host itself, and for no mount.
func (m *Mount) Base() string {
	if m == nil {
		return ""
	}
	return m.base
}

// OwnSignIn refuses what belongs to the sign-in of the server itself in a request through m, which is nil for none.
func (m *Mount) OwnSignIn() error {
	if m == nil {
		return nil
	}
	return BadRequest("who may do what here is decided by the program that this database belongs to: it has no tokens, sessions or invitations of its own")
}
