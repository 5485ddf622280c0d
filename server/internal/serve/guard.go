package serve

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// guard refuses requests that a web page of another site has made a browser send. A page
// whose name was rebound to this machine sends its own name as Host. A page that calls the
// server by its address sends another Origin, or the browser marks the request as
// cross-site. Programs other than browsers send neither header.
func (s *Server) guard(r *http.Request, route *Route) error {
	if err := s.checkHost(r); err != nil {
		return err
	}
	if route != nil && route.invites {
		return nil // the ticket itself admits the user, whatever page led here
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameHost(origin, r.Host) {
		return &Problem{Status: http.StatusForbidden, Kind: TypeAuthorization, Message: "requests from pages of other sites are refused"}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return &Problem{Status: http.StatusForbidden, Kind: TypeAuthorization, Message: "requests from pages of other sites are refused"}
	}
	return nil
}

// checkHost refuses a Host that is not allowed.
func (s *Server) checkHost(r *http.Request) error {
	if !s.allowsHost(r.Host) {
		return &Problem{Status: http.StatusForbidden, Kind: TypeAuthorization, Message: "this server does not answer to the host that the request names; see the option Hosts"}
	}
	return nil
}

// allowsHost reports whether the Host is allowed.
func (s *Server) allowsHost(host string) bool {
	if slices.Contains(s.Options.Hosts, "*") {
		return true
	}
	name := HostName(host)
	if isLoopback(name) {
		return true
	}
	if s.Options.TLSCertificate != "" && s.certificates.names(name) {
		return true
	}
	return slices.ContainsFunc(s.Options.Hosts, func(allowed string) bool { return strings.EqualFold(allowed, name) })
}

// HostName returns a host without its port, and without the brackets of an IPv6 address.
func HostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// isLoopback reports whether a host is certain to be this machine, whatever DNS says.
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
