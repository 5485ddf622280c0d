package serve

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
)

// connections accepts the connections of Serve and bounds them, so that no sender can keep
// the others out:
//
//   - An address has few connections of strangers: those on which no valid credentials came,
//     or, if the server asks for none and the address is of another machine, no request that
//     counts for its sender. One more closes the oldest of them.
//   - A sender with credentials may have half of all.
//   - When all places are taken, one connection is closed: the stranger that has been idle
//     longest; or the oldest of the address that has most strangers, if they are more than a
//     handful; or the one with credentials that has been idle longest; or the oldest stranger
//     of the address that has most.
//   - When there is none of these, further connections are spare: they get the answers to
//     /healthz and /readyz, and 429 to everything else. One too many closes the oldest of them.
type connections struct {
	net.Listener
	most      int          // connections
	strangers int          // of one address
	spares    int          // beyond most
	asks      *atomic.Bool // whether the server asks for credentials

	mu        sync.Mutex
	open      int                       // Guarded by mu.
	admitted  int64                     // connections so far. Guarded by mu.
	byAddress map[netip.Addr]*list.List // strangers but for the spare ones, oldest first. Guarded by mu.
	bySender  map[string]int            // number of connections with credentials. Guarded by mu.
	idle      [2]list.List              // longest first; those without credentials, and those with. Guarded by mu.
	spare     list.List                 // oldest first. Guarded by mu.
}

// connection is one of connections. Its fields are guarded by connections.mu.
type connection struct {
	net.Conn
	all     *connections
	from    netip.Addr // whose bound counts; the network of an IPv6 address
	address string     // the sender of its requests without credentials; "" of a Unix socket. Does not change.
	number  int64      // the order of arrival
	sender  string     // whose credentials came last, or ""
	extra   bool       // it is one of the spares. Does not change.

	asStranger, asIdle, asSpare *list.Element
	closed                      bool
}

// Bounds of connections, as parts of Options.MaxConnections.
const (
	strangersPart    = 16 // the strangers of an address have 1 in so many, at least fewStrangers
	fewStrangers     = 8  // a handful, which an address keeps when all places are taken
	spareConnections = 64
)

func newConnections(l net.Listener, most int, asks *atomic.Bool) *connections {
	return &connections{Listener: l, asks: asks, most: most, strangers: max(most/strangersPart, fewStrangers), spares: spareConnections,
		byAddress: make(map[netip.Addr]*list.List), bySender: make(map[string]int)}
}

// Accept implements net.Listener.
func (cs *connections) Accept() (net.Conn, error) {
	conn, err := cs.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, all: cs, from: networkOf(conn.RemoteAddr())}
	if c.from.IsValid() {
		c.address = addressOf(c.from)
	}
	for _, other := range cs.admit(c) {
		_ = other.Close() // it makes room
	}
	return c, nil
}

// admit counts a connection, and returns those that must be closed for it.
func (cs *connections) admit(c *connection) (closing []*connection) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	drop := func(of *list.List) {
		other := of.Front().Value.(*connection)
		other.remove()
		closing = append(closing, other)
	}
	cs.admitted++
	c.number = cs.admitted
	stranger := cs.asks.Load() || c.from.IsValid() && !c.from.IsLoopback()
	if same := cs.byAddress[c.from]; stranger && same != nil && same.Len() >= cs.strangers {
		drop(same)
	}
	if cs.open-cs.spare.Len() >= cs.most {
		crowd := cs.crowd(c)
		switch {
		case cs.idle[0].Len() > 0:
			drop(&cs.idle[0])
		case crowd != nil && crowd.Len() > fewStrangers:
			drop(crowd)
		case cs.idle[1].Len() > 0:
			drop(&cs.idle[1])
		case crowd != nil:
			drop(crowd)
		default:
			c.extra, c.asSpare = true, cs.spare.PushBack(c)
			if cs.spare.Len() > cs.spares {
				drop(&cs.spare)
			}
		}
	}
	cs.open++
	if c.extra {
		return closing
	}
	if stranger {
		same := cs.byAddress[c.from]
		if same == nil {
			same = list.New()
			cs.byAddress[c.from] = same
		}
		c.asStranger = same.PushBack(c)
	}
	c.setIdle(true) // no request has come yet
	return closing
}

// crowd returns the strangers of the address that has most of them when c is counted, and of
// several such addresses those whose oldest is the oldest of all; or nil if there are none.
// cs.mu is held.
func (cs *connections) crowd(c *connection) (most *list.List) {
	n, oldest := 0, int64(0)
	for from, same := range cs.byAddress {
		here, number := same.Len(), same.Front().Value.(*connection).number
		if from == c.from {
			here++
		}
		if here > n || here == n && number < oldest {
			most, n, oldest = same, here, number
		}
	}
	return most
}

// setIdle says whether the connection waits for a request. cs.mu is held.
func (c *connection) setIdle(idle bool) {
	if c.asIdle != nil {
		c.all.idle[0].Remove(c.asIdle) // a list leaves an element of another alone
		c.all.idle[1].Remove(c.asIdle)
		c.asIdle = nil
	}
	if !idle || c.closed || c.extra {
		return
	}
	of := &c.all.idle[0]
	if c.sender != "" {
		of = &c.all.idle[1]
	}
	c.asIdle = of.PushBack(c)
}

// setSender says whose credentials came on the connection; "" stands for none. cs.mu is
// held.
func (c *connection) setSender(sender string) {
	cs := c.all
	if c.asStranger != nil {
		same := cs.byAddress[c.from]
		if same.Remove(c.asStranger); same.Len() == 0 {
			delete(cs.byAddress, c.from)
		}
		c.asStranger = nil
	}
	if c.sender != "" {
		if cs.bySender[c.sender]--; cs.bySender[c.sender] == 0 {
			delete(cs.bySender, c.sender)
		}
	}
	if c.sender = sender; sender != "" {
		cs.bySender[sender]++
	}
}

// remove takes the connection out of the books. cs.mu is held.
func (c *connection) remove() {
	if c.closed {
		return
	}
	c.setIdle(false)
	c.setSender("")
	if c.asSpare != nil {
		c.all.spare.Remove(c.asSpare)
	}
	c.closed = true
	c.all.open--
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.remove()
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// belongsTo says that valid credentials of a sender came on the connection. It refuses the
// request if the sender has too many connections.
func (c *connection) belongsTo(sender string) error {
	cs := c.all
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.closed || c.sender == sender {
		return nil
	}
	if n := cs.bySender[sender]; n >= half(cs.most) {
		p := overload("%d connections of this sender are open, which is the most", n)
		p.Headers["Connection"] = "close"
		return p
	}
	c.setSender(sender)
	return nil
}

// changed notes the state of a connection: it is http.Server.ConnState.
func (cs *connections) changed(conn net.Conn, state http.ConnState) {
	if secure, is := conn.(*tls.Conn); is {
		conn = secure.NetConn()
	}
	c, is := conn.(*connection)
	if !is {
		return
	}
	switch state {
	case http.StateActive, http.StateHijacked:
		cs.mu.Lock()
		c.setIdle(false)
		cs.mu.Unlock()
	case http.StateIdle:
		cs.mu.Lock()
		c.setIdle(true)
		cs.mu.Unlock()
	}
}

// closeIdle closes the connections on which no request runs, also those on which none has
// come.
func (cs *connections) closeIdle() {
	cs.mu.Lock()
	var all []*connection
	for i := range cs.idle {
		for e := cs.idle[i].Front(); e != nil; e = e.Next() {
			all = append(all, e.Value.(*connection))
		}
	}
	cs.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// connectionKey is the key of the connection in the context of its requests.
type connectionKey struct{}

// withConnection is http.Server.ConnContext.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if secure, is := conn.(*tls.Conn); is {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// connectionOf returns the connection of a request, or nil if another listener has
// accepted it.
func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}

// networkOf returns the address of a client whose connections are counted together: an
// IPv4 address, or the /64 network that one owner of IPv6 addresses has at least.
func networkOf(a net.Addr) netip.Addr {
	tcp, is := a.(*net.TCPAddr)
	if !is {
		return netip.Addr{} // as of a Unix socket: one machine
	}
	return networkOfAddress(tcp.AddrPort().Addr())
}

// networkOfAddress is networkOf for the address of an IP packet.
func networkOfAddress(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.Is6() && !address.IsLoopback() {
		prefix, _ := address.Prefix(64) // an IPv6 address has 64 bits
		address = prefix.Addr()
	}
	return address
}

// addressOf returns the name of a sender without credentials.
func addressOf(network netip.Addr) string { return "address " + network.String() }
