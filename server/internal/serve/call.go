package serve

import (
	"context"
	"net/http"
	"net/netip"
	"sync"

	"github.com/jaydb/jay"
)

// Call is one request to an endpoint: an HTTP request, or one of those in the body of a
// multi_get.
type Call struct {
	Server  *Server
	Ctx     context.Context
	Request *http.Request // of the HTTP request; its path is that below the mount
	Mount   *Mount        // that the request came through, or nil
	Writer  http.ResponseWriter
	Route   *Route
	Params  Params
	Header  http.Header // of the request
	Body    []byte
	Parts   [][]byte // parts of a multipart body after the first, which is body

	Name     string // of the database, as the client spells it
	Database *Database
	DB       *jay.DB
	Index    string // the index that the query names, as it was defined
	Who      *Grant // nil without authentication
	shown    bool   // the request has shown the second half of its session

	ofDatabase context.Context // ends when the database is to be deleted, or closed although it is watched

	Subject   string // description of an operation that the call begins, for display
	RequestID string // ID of a command that its database carries out only once, or ""

	Status  int
	Reply   http.Header
	Out     []byte
	Nested  bool // the call is part of a multi_get
	Started bool // the head of a stream was sent

	ContentType string // of a reply that is not JSON

	mu      sync.Mutex // reads of one call may run at once
	memory  *Holding   // memory that the call holds; nil before it has taken any. Set under mu.
	first   Holding    // what memory points to at first. Most calls take nothing, and many are short.
	reading Largest    // the largest document or revision that was read: see need. Guarded by mu.

	endMajority context.CancelFunc // cancels ctx: see BoundMajority; nil without a bound
}

// Take takes n bytes from the server's memory budget until the call ends.
func (c *Call) Take(n int64) error {
	return c.Held().Take(n)
}

// Reading returns the context of the call's queries, which pay for what they hold: times for
// each byte, as a result is also in the reply.
func (c *Call) Reading(ctx context.Context, times int64) context.Context {
	return jay.WithMemory(ctx, func(n int64) error { return c.Take(times * n) })
}

// Listing returns the context of reads whose lists of collections, identities or HiLo tags
// become the reply: they pay for it as they grow. The caller replies with Listed.
func (c *Call) Listing(ctx context.Context) context.Context {
	return c.Reading(ctx, 4) // as read, as JSON, whose buffer grows by copying, and in the reply
}

// Listed replies with a list that was paid for while it was read, unless it is longer than
// a reply may be.
func (c *Call) Listed(status int, v any) error {
	if err := c.JSON(status, v); err != nil {
		return err
	}
	if most := c.Server.Options.MaxReplyBytes; int64(len(c.Out)) > most {
		return TooLarge("the reply has %d bytes, and %d are the most", len(c.Out), most)
	}
	return nil
}

// Held returns the memory that the call holds until it ends.
func (c *Call) Held() *Holding {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.memory != nil:
	case c.first.b == nil:
		c.first = Holding{b: c.Server.Memory, sender: c.Sender()}
		c.memory = &c.first
	default: // the first one belongs to an operation now: see Background
		c.memory = c.Server.Memory.Holding(c.Sender())
	}
	return c.memory
}

// need takes memory for a document that the call reads, before the call knows its size and can
// pay for what it keeps, unless an earlier document has taken as much. It is safe for concurrent
// use.
func (c *Call) need(n int64) error {
	held := c.Held()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading.Memory == nil {
		c.reading.Memory = held
	}
	return c.reading.Need(n)
}

// end returns the memory and ends what belongs to the call.
func (c *Call) end() {
	if c.memory != nil {
		c.memory.End()
	}
	if c.endMajority != nil {
		c.endMajority()
	}
}

// Part returns a call for one of the requests in the body of the call, whose sender,
// database and memory it has. The caller must call end.
func (c *Call) Part() (one *Call, end func()) {
	one = &Call{Server: c.Server, Ctx: c.Ctx, Request: c.Request, Mount: c.Mount, Writer: c.Writer, Name: c.Name, Database: c.Database, DB: c.DB, Nested: true, Who: c.Who, memory: c.Held(), Header: make(http.Header), Reply: make(http.Header)}
	return one, func() {
		if one.endMajority != nil {
			one.endMajority()
		}
	}
}

// JSON replies with a value as JSON.
func (c *Call) JSON(status int, v any) error {
	c.Status, c.Out = status, MustJSON(v)
	if len(c.Out) < 64<<10 { // as that of a write, which must not be refused after its commit
		return nil
	}
	return c.Take(int64(len(c.Out)))
}

// Text replies with encoded JSON.
func (c *Call) Text(status int, json []byte) error {
	c.Status, c.Out = status, json
	return nil
}

// Empty replies without a body.
func (c *Call) Empty(status int) error {
	c.Status, c.Out = status, nil
	return nil
}

// RavenTime is RavenDB's format of a time. The Go client ends its process at a time that
// it cannot read.
const RavenTime = "2006-01-02T15:04:05.0000000Z"

// counted returns the sender of the call, or "" if places, connections and other things
// that are counted have no bound for it alone: a program of this machine that needs no
// credentials. See docs/limits.md.
func (c *Call) counted() string {
	if c.Who != nil {
		return c.Sender()
	}
	address, err := netip.ParseAddrPort(c.Request.RemoteAddr)
	if err != nil || address.Addr().Unmap().IsLoopback() {
		return ""
	}
	return c.Sender()
}

// Once returns the option that makes a call of the database be carried out only once, if
// the client has given the command an ID.
func (c *Call) Once() []jay.CallOption {
	if c.RequestID == "" {
		return nil
	}
	return []jay.CallOption{jay.RequestID(c.RequestID)}
}

// Sender returns a name for the sender of the request, by which its use of the server is
// counted: that of its token or certificate, or its address or network if it has none.
func (c *Call) Sender() string {
	if c.Who != nil {
		return "name " + c.Who.Name
	}
	if conn := connectionOf(c.Request); conn != nil && conn.address != "" {
		return conn.address
	}
	from, err := netip.ParseAddrPort(c.Request.RemoteAddr)
	if err != nil { // of a Unix socket
		return "address " + c.Request.RemoteAddr
	}
	return addressOf(networkOfAddress(from.Addr()))
}

// BoundMajority gives a call that needs the cluster a deadline. Without one it would wait
// for a majority as long as package jay does, and keep its place in the gate.
func (c *Call) BoundMajority() {
	if c.Server.Nodes.Own != nil && c.endMajority == nil {
		c.Ctx, c.endMajority = context.WithTimeout(c.Ctx, c.Server.Options.ClusterTimeout)
	}
}
