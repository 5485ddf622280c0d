package serve

import (
	"bufio"
	"net"
	"net/http"
	"strings"
)

// SwitchProtocols replies that the connection of a request goes on with the protocol that the request asks for, and returns the connection. The caller
// closes it, and writes no other reply. A request that asks for another protocol, or whose connection cannot be taken from net/http, is a
// Problem.
func SwitchProtocols(w http.ResponseWriter, r *http.Request, protocol string) (net.Conn, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), protocol) || !hasToken(r.Header.Values("Connection"), "upgrade") {
		p := BadRequest("the endpoint goes on with another protocol, for which the request has the headers Connection: Upgrade and Upgrade: %s", protocol)
		p.Status, p.Headers = http.StatusUpgradeRequired, map[string]string{"Upgrade": protocol, "Connection": "Upgrade"}
		return nil, p
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, BadRequest("the connection cannot go on with %s, for which it must be one of HTTP/1.1, and middleware must let it through: %v", protocol, err)
	}
	if counted, is := w.(*countingWriter); is {
		counted.status = http.StatusSwitchingProtocols // for the log
	}
	// If that fails, so does the first read.
	_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\nX-Request-Id: " + w.Header().Get("X-Request-Id") + "\r\n\r\n"))
	return &taken{conn, buffered.Reader}, nil
}

// hasToken reports whether a header that lists tokens has this one.
func hasToken(values []string, token string) bool {
	for _, list := range values {
		for one := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(one), token) {
				return true
			}
		}
	}
	return false
}

// taken is a connection that was taken from net/http, with what that has read of it already.
type taken struct {
	net.Conn
	in *bufio.Reader
}

// Read implements net.Conn.
func (t *taken) Read(p []byte) (int, error) { return t.in.Read(p) }
