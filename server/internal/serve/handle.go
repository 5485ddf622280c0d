package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// ServeHTTP implements http.Handler. Without credentials, a server of mounted databases lets requests read, unless an
// option allows more.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(s.Options.Mounted) > 0 && !s.Authenticates.Load() && !s.Options.AnyoneMayReadAndWrite {
		s.open.ServeHTTP(w, r)
		return
	}
	s.answer(w, r, nil)
}

// answer answers a request that came through a mount, or nil.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, m *Mount) {
	c := &Call{Server: s, Ctx: r.Context(), Request: r, Mount: m, Writer: w, Header: r.Header, Reply: w.Header()}
	defer c.end()
	id := requestID(r)
	c.Reply.Set("Raven-Server-Version", serverVersion)
	c.Reply.Set("X-Request-Id", id)
	start := time.Now()
	counted := &countingWriter{ResponseWriter: w}
	c.Writer = counted
	defer func() { s.logRequest(c, counted, id, start) }()
	if c.awaitsBody() {
		// Whether or not a handler reads the body, net/http does, to use the connection
		// again. A client that sends none must not hold the connection by that.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.Options.GraceTimeout)) // a test's writer has no deadlines
		defer c.leaveBody()
	}

	err := c.guarded()
	if err != nil && c.Started {
		// The status was sent already. Cutting the connection shows that the reply is
		// incomplete.
		s.Options.Logger.Warn("server: a stream is cut short", "request", id, "err", err)
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		c.fail(err, id)
	}
	if !c.Started {
		if r.Context().Err() != nil {
			closeConnection(r, c.Reply)
		}
		c.send()
	}
}

// guarded runs the call, and turns a panic into an error.
func (c *Call) guarded() (err error) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			panic(p)
		} else if p != nil {
			err = panicked(p)
		}
	}()
	return c.handle()
}

// handle finds the route of an HTTP request and runs it.
func (c *Call) handle() (err error) {
	s, r := c.Server, c.Request
	if s.Options.InvitedOnly && r.URL.Path != invitationPath {
		if err := c.checkInvited(); err != nil {
			return c.uninvited(err)
		}
	}
	if s.isStudio(r) {
		c.refuseBody()
		return c.serveStudio()
	}
	c.Route, c.Name, err = s.Table.Find(r.Method, r.URL.EscapedPath())
	if c.Route == nil || !c.Route.Body && !c.Route.Upload {
		c.refuseBody()
	}
	if c.Route == nil || !c.Route.free {
		// Check the host first, so that a page of another site cannot tell paths apart.
		if err := s.guard(r, c.Route); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if err := c.CheckConditions(); err != nil {
		return err
	}
	if c.Route.free {
		if err := c.checkNoBody(); err != nil {
			return err
		}
		return c.Route.Run(c)
	}
	if conn := connectionOf(r); conn != nil && conn.extra {
		p := overload("%d connections are open, which is the most", s.Options.MaxConnections)
		p.Headers["Connection"] = "close"
		return p
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.running.Done()
	if err := c.authenticate(); err != nil { // before taking a place in the gate
		return err
	}
	sender := c.counted()
	if conn := connectionOf(r); conn != nil && sender != "" && !c.Route.invites {
		if err := conn.belongsTo(sender); err != nil {
			return err
		}
	}
	if c.Params, err = c.Route.Parse(r.URL.RawQuery); err != nil {
		return err
	}
	if err := c.Server.CheckNode(c.Name, c.Params.Get("nodeTag")); err != nil {
		return err
	}
	if err := c.checkNoBody(); err != nil {
		return err
	}
	if c.Route.Body { // before taking a place: a client that sends slowly holds none
		if c.Body, err = c.readBody(); err != nil {
			return err
		}
		if c.Route.Stores {
			if err := c.Take(StoreBytes(c.Body)); err != nil {
				return err
			}
		}
	}
	gate := s.Gate
	switch {
	case c.Route.Socket:
		gate = s.Sockets
	case c.Route.Stream:
		gate = s.Streams
	}
	if err := gate.Enter(c.Ctx, sender); err != nil {
		return err
	}
	defer gate.Leave(sender)
	c.Ctx = jay.WithReading(c.Ctx, c.need)
	return c.onDatabase(c.remembered)
}

// onDatabase opens the database of the call, if it has one, and runs fn.
func (c *Call) onDatabase(fn func() error) (err error) {
	if c.Name == "" && c.Route.Path[0] == '/' {
		return fn()
	}
	ds := c.Server.Databases
	watches := c.Route != nil && c.Route.Socket
	if c.Database, c.ofDatabase, err = ds.take(c.Ctx, c.Name, watches); err != nil {
		return err
	}
	defer ds.leave(c.Database, watches)
	c.DB = c.Database.DB
	c.refreshConfiguration()
	err = fn()
	if errors.Is(err, jay.ErrLeaseLost) {
		c.Database.lost.Store(true)
	}
	if c.Server.Ctx.Err() == nil {
		err = c.Database.reopening(err)
	}
	return err
}

// remembered runs the route, unless its reply is stored by raft-request-id. Routes that
// write to a database pass the ID on to its commit instead: see Call.Once.
func (c *Call) remembered() error {
	id := c.Params.Get(RaftParam)
	if id == "" || !c.Route.Raft && !c.Route.Once {
		return c.Run()
	}
	if len(id) > 128 {
		return BadRequest("%s has at most 128 characters", RaftParam)
	}
	if c.Who != nil {
		id += " " + c.Who.Name // one sender does not get another's reply
	}
	// A client that disconnects may repeat the command. So the command runs to its end,
	// and its reply is stored.
	c.Ctx = context.WithoutCancel(c.Ctx)
	key := resultKey(c.Request.Method, c.Request.URL.EscapedPath(), c.Request.URL.RawQuery, id)
	if c.Route.Once {
		c.RequestID = key
		return c.Run()
	}
	ran := false
	given := hashOf(string(c.Body))
	r, err := c.Server.results.once(c.Ctx, key, given, func() (result, error) {
		ran = true
		err := c.Run()
		return result{Status: c.Status, Body: c.Out, Sender: c.counted(), Given: given}, err
	})
	if !ran && err == nil {
		c.Status, c.Out = r.Status, r.Body
	}
	return err
}

// CheckNode refuses a request for another node of a database than this one, which would answer for itself. tag may be "".
func (s *Server) CheckNode(database, tag string) error {
	if tag != "" && !strings.EqualFold(tag, s.Tag(database)) {
		return NotSupported("nodeTag=%.40s is not there: this is the node %s", tag, s.Tag(database))
	}
	return nil
}

// Run runs the route.
func (c *Call) Run() error {
	if c.Route.Agreed {
		c.BoundMajority()
	}
	if !c.Route.Timed {
		return c.Route.Run(c)
	}
	return c.InTime(func() error { return c.Route.Run(c) })
}

// InTime runs fn with a context of the call that ends after Options.QueryTimeout. A route that only sometimes looks
// at many documents calls it for these requests.
func (c *Call) InTime(fn func() error) error {
	whole := c.Ctx
	ctx, cancel := context.WithTimeoutCause(whole, c.Server.Options.QueryTimeout, errQueryTime)
	defer cancel()
	c.Ctx = ctx
	defer func() { c.Ctx = whole }() // it shows whether the client has gone: see fail
	err := fn()
	if err != nil && context.Cause(ctx) == errQueryTime {
		err = &Problem{Status: http.StatusRequestTimeout, Kind: typeTimeout, Message: fmt.Sprintf("the request has run for %s, which is the most for a query or a read of many documents: ask for less, or make an index", c.Server.Options.QueryTimeout)}
	}
	return err
}

// errQueryTime is the cause with which the context of a query ends that takes too long.
var errQueryTime = errors.New("the query takes too long")

// requestID returns the ID of a request: the client's, or a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= 64 && isToken(id) {
		return id
	}
	return rand.Text()[:16]
}

// refreshConfiguration makes a client with an outdated configuration fetch the present
// one. A client that fetches none sends no etag. The header is set only when needed, as
// The Node.js client takes any value of it for true.
func (c *Call) refreshConfiguration() {
	sent := strings.Trim(c.Header.Get("Client-Configuration-Etag"), `"`)
	if sent == "" {
		return
	}
	if now := c.Database.Client(); now != nil && sent != strconv.FormatUint(now.Number, 10) {
		c.Reply.Set("Refresh-Client-Configuration", "true")
	}
}
