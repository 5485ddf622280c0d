// These tests need connections of several networks, and connections that stay in a request.

package serve

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// addressedConn is a connection from an address, on which nothing comes.
type addressedConn struct {
	net.Conn
	from net.Addr
}

func (c *addressedConn) RemoteAddr() net.Addr { return c.from }
func (c *addressedConn) Close() error         { return nil }

// queueListener accepts the connections of a queue.
type queueListener struct {
	net.Listener
	queue []net.Conn
}

func (l *queueListener) Accept() (net.Conn, error) {
	conn := l.queue[0]
	l.queue = l.queue[1:]
	return conn, nil
}

// crowded is a server's connections, of which there may be 64.
type crowded struct {
	t *testing.T
	l *queueListener
	*connections
}

func newCrowded(t *testing.T, authenticates bool) crowded {
	var asks atomic.Bool
	asks.Store(authenticates)
	l := &queueListener{}
	return crowded{t, l, newConnections(l, 64, &asks)}
}

// accept accepts a connection from an address, which is in a request afterwards if it is
// active, with the credentials of a sender unless it is "".
func (cs crowded) accept(address, sender string, active bool) *connection {
	cs.t.Helper()
	cs.l.queue = append(cs.l.queue, &addressedConn{from: &net.TCPAddr{IP: net.ParseIP(address), Port: 1}})
	conn, err := cs.Accept()
	if err != nil {
		cs.t.Fatal(err)
	}
	c := conn.(*connection)
	if sender != "" {
		if err := c.belongsTo(sender); err != nil {
			cs.t.Fatal(err)
		}
	}
	if active {
		cs.changed(c, http.StateActive)
	}
	return c
}

// left counts the connections that are open.
func left(conns []*connection) (n int) {
	for _, c := range conns {
		if !c.closed {
			n++
		}
	}
	return n
}

// Ensure that strangers who keep all connections in requests, from many addresses, keep
// nobody out: when places are short, an address keeps a handful at most.
func TestConnections_Strangers(t *testing.T) {
	t.Parallel()
	for _, authenticates := range []bool{true, false} {
		cs := newCrowded(t, authenticates)
		var strangers []*connection
		for i := range 64 {
			strangers = append(strangers, cs.accept("192.0.2."+string(rune('1'+i%8)), "", true))
		}
		known := cs.accept("198.51.100.1", "", false)
		if known.extra || left(strangers) != 63 || !strangers[0].closed {
			t.Fatalf("authenticates %v: spare %v, %d strangers are left, oldest closed %v", authenticates, known.extra, left(strangers), strangers[0].closed)
		}
		if err := known.belongsTo("x"); err != nil {
			t.Fatal(err)
		}
		cs.changed(known, http.StateActive)

		// The address that has most goes first, and never who has credentials.
		for range 8 {
			if c := cs.accept("198.51.100.1", "x", true); c.extra {
				t.Fatal("a connection with credentials is spare")
			}
		}
		for i := range 8 { // 7 at each address are left: one more is dropped of one of them
			if n := left([]*connection{strangers[i], strangers[i+8], strangers[i+16], strangers[i+24], strangers[i+32], strangers[i+40], strangers[i+48], strangers[i+56]}); n < 6 || n > 7 {
				t.Errorf("address %d has %d strangers", i, n)
			}
		}
		if known.closed {
			t.Error("a connection with credentials was closed for strangers")
		}
	}
}

// Ensure that a crowd of strangers goes before connections with credentials that are idle, and
// these before a handful of strangers.
func TestConnections_Crowd(t *testing.T) {
	t.Parallel()
	cs := newCrowded(t, true)
	cs.strangers = 16
	var known, crowd, few []*connection
	for range 31 {
		known = append(known, cs.accept("198.51.100.1", "x", false))
		cs.changed(known[len(known)-1], http.StateIdle)
	}
	for range 17 {
		known = append(known, cs.accept("198.51.100.2", "y", true))
	}
	for range 12 {
		crowd = append(crowd, cs.accept("2001:db8::1", "", true))
	}
	for range 4 {
		few = append(few, cs.accept("2001:db8:0:1::1", "", true))
	}
	for i := range 4 {
		cs.accept("198.51.100.3", "z", true)
		if left(crowd) != 11-i || left(known) != 48 || left(few) != 4 {
			t.Fatalf("%d more: %d of the crowd, %d with credentials, %d of the few are left", i+1, left(crowd), left(known), left(few))
		}
	}
	cs.accept("198.51.100.3", "z", true)
	if left(crowd) != 8 || left(known) != 47 || !known[0].closed {
		t.Errorf("%d of the crowd, %d with credentials are left", left(crowd), left(known))
	}
}

// Ensure that who comes from a thousand addresses with one connection each keeps nobody out,
// and that what comes is not what goes.
func TestConnections_ManyAddresses(t *testing.T) {
	t.Parallel()
	cs := newCrowded(t, true)
	accept := func(i int) *connection {
		return cs.accept(net.IPv4(203, 0, byte(i>>8), byte(i)).String(), "", true)
	}
	for i := range 1000 {
		accept(i)
	}
	newcomer := cs.accept("198.51.100.1", "", false)
	cs.changed(newcomer, http.StateActive)
	for i := range 63 {
		accept(1000 + i)
	}
	if newcomer.closed || newcomer.extra {
		t.Error("the newcomer had no turn")
	}
	if cs.spare.Len() != 0 || cs.open != 64 || len(cs.byAddress) != 64 {
		t.Errorf("%d are spare, %d open, of %d addresses", cs.spare.Len(), cs.open, len(cs.byAddress))
	}
}
