package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// guard refuses requests that a web page of another site has made a browser send. A page
// whose name was rebound to this machine gives its own name as Host. A page that calls
// the server by its address has another Origin, or the browser says that the request
// crosses sites. Programs send neither header.
func (s *Server) guard(r *http.Request, route *route) error {
	if err := s.checkHost(r); err != nil {
		return err
	}
	if route != nil && route.invites {
		return nil // whatever page led here: the ticket says that its user may come in
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameHost(origin, r.Host) {
		return &problem{status: http.StatusForbidden, kind: typeAuthorization, message: "requests from pages of other sites are refused"}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return &problem{status: http.StatusForbidden, kind: typeAuthorization, message: "requests from pages of other sites are refused"}
	}
	return nil
}

// checkHost refuses a host by which the server may not be called.
func (s *Server) checkHost(r *http.Request) error {
	if !s.allowsHost(r.Host) {
		return &problem{status: http.StatusForbidden, kind: typeAuthorization, message: "this server does not answer to the host that the request names; see the option Hosts"}
	}
	return nil
}

// allowsHost reports whether the server may be called by this host.
func (s *Server) allowsHost(host string) bool {
	if slices.Contains(s.opts.Hosts, "*") {
		return true
	}
	name := hostName(host)
	if isLoopback(name) {
		return true
	}
	if s.opts.TLSCertificate != "" && s.certificates.names(name) {
		return true
	}
	return slices.ContainsFunc(s.opts.Hosts, func(allowed string) bool { return strings.EqualFold(allowed, name) })
}

// hostName returns a host without its port, and an address of IPv6 without brackets.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// isLoopback reports whether a host is this machine, whatever a name server says.
func isLoopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Unmap().IsLoopback()
}

// sameHost reports whether an Origin is that of a host.
func sameHost(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, host)
}
