package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/studio"
)

// Server answers requests about the databases of a data directory. Its methods are safe
// for concurrent use.
type Server struct {
	opts      Options
	databases *databases
	results   *results
	clients   *configurations
	gate      *gate // of requests
	streams   *gate // of streams
	sockets   *gate // of changes sockets
	memory    *budget

	began         time.Time
	operations    *operations
	rejects       rejectStore // the records that imports have rejected
	hubs          *hubs
	vectors       *vectors
	defining      sync.Mutex // held while an index definition changes
	auth          *authentication
	authenticates atomic.Bool // every request needs credentials
	certificates  *certificates
	metrics       *metrics
	nodes         *nodes
	studio        http.Handler // of its files

	mu      sync.RWMutex
	closing bool           // no more requests are accepted. Guarded by mu.
	running sync.WaitGroup // requests under way

	ctx     context.Context // context of streams and of the server's own work
	cancel  context.CancelFunc
	janitor sync.WaitGroup
	closed  sync.Once
	err     error // result of Close
}

// Open opens a data directory, which it creates if it is missing. It returns jay.ErrLocked
// if another Server, of any process, has it open, jay.ErrOption for an invalid option, and
// errors of jay.Open.
func Open(o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, began: o.Now(), gate: newGate(o.MaxRequests, o.QueueTimeout), streams: newGate(o.MaxStreams, o.QueueTimeout), memory: &budget{most: o.MaxMemoryBytes}}
	s.auth, s.certificates = &authentication{s: s, access: AccessOf(o.Data)}, &certificates{s: s}
	s.authenticates.Store(o.Authenticate || o.InvitedOnly)
	if s.databases, err = openDatabases(o); err != nil {
		return nil, err
	}
	s.sockets = newGate(o.MaxSockets, o.QueueTimeout)
	s.operations, s.vectors, s.hubs = newOperations(o.Now), newVectors(), &hubs{s: s, byKey: make(map[string]*hub)}
	s.rejects.memory = s.memory
	s.operations.changed = s.hubs.publishOperation
	s.metrics, s.studio = newMetrics(s), studio.Handler()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if s.nodes, err = openNodes(&s.opts, s.databases.serverID); err != nil {
		return nil, errors.Join(err, s.databases.close())
	}
	if s.results, err = openResults(s.ctx, s.databases.system, o.MaxRememberedResults); err == nil {
		s.clients, err = openConfigurations(s.ctx, s.databases.system)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("server: data directory %q: %w", o.Data, err), s.databases.close(), s.nodes.close())
	}
	s.janitor.Go(s.closeIdle)
	s.janitor.Go(s.endStreamsInTime)
	if s.nodes.own != nil {
		s.janitor.Go(func() { s.nodes.join(s.ctx) })
	}
	return s, nil
}

// closeIdle closes idle databases now and then.
func (s *Server) closeIdle() {
	tick := time.NewTicker(max(min(s.opts.IdleAfter/4, time.Minute), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.databases.closeIdle()
		case <-s.ctx.Done():
			return
		}
	}
}

// Close refuses further requests, ends streams, waits for running requests and closes the
// databases. It is idempotent.
func (s *Server) Close() error {
	s.closed.Do(func() {
		s.refuse()
		s.cancel()
		s.running.Wait()
		s.janitor.Wait()
		s.err = errors.Join(s.databases.close(), s.nodes.close())
	})
	return s.err
}

// refuse makes every later request fail.
func (s *Server) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
}

// begin counts a request, unless the server is closing. After success the caller must call
// s.running.Done.
func (s *Server) begin() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closing {
		return errShutdown
	}
	s.running.Add(1)
	return nil
}

// Serve answers requests on l until ctx ends: then it accepts no more, gives running
// requests Options.ShutdownTimeout to finish, ends the rest, and closes the databases as
// Close does. It closes l.
//
// On an address that is not a loopback one, Serve needs a certificate, and requests need
// credentials: see Options.Authenticate. Without them it returns jay.ErrOption, unless
// Options.NoEncryption or AnyoneMayReadAndWrite is set.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.checkAddress(l.Addr()); err != nil {
		return errors.Join(err, l.Close(), s.Close())
	}
	h := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.opts.HeaderTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    s.opts.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	l = newLimitListener(l, s.opts.MaxConnections)
	if s.opts.TLSCertificate != "" {
		h.TLSConfig = s.tlsConfig(h)
		go func() { served <- h.ServeTLS(l, "", "") }()
	} else {
		go func() { served <- h.Serve(l) }()
	}
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		s.opts.Logger.Info("server: shutting down", "within", s.opts.ShutdownTimeout)
		s.refuse()
		s.cancel() // ends streams, which have no end of their own
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.ShutdownTimeout)
		defer cancel()
		if err = h.Shutdown(patience); err != nil {
			s.opts.Logger.Warn("server: requests are cut short", "err", err)
			err = h.Close()
		}
		<-served
	}
	return errors.Join(err, s.Close())
}

// checkAddress refuses an address that other machines can reach without TLS, unless an
// option permits it. It switches authentication on for such an address, unless an option
// says otherwise.
func (s *Server) checkAddress(a net.Addr) error {
	o := &s.opts
	if o.TLSCertificate != "" {
		if _, err := s.certificates.get(nil); err != nil {
			return fmt.Errorf("server: %w: the certificate: %w", jay.ErrOption, err)
		}
	}
	tcp, is := a.(*net.TCPAddr)
	if near := is && tcp.IP.IsLoopback() || a.Network() == "unix"; near || o.AnyoneMayReadAndWrite {
		return nil
	}
	if o.TLSCertificate == "" && !o.NoEncryption {
		return fmt.Errorf("server: %w: %s is not a loopback address, and the server has no certificate: set TLSCertificate and TLSKey, or listen on 127.0.0.1; NoEncryption does without", jay.ErrOption, a)
	}
	if s.auth.current().n == 0 {
		return fmt.Errorf("server: %w: %s is not a loopback address, and no token and no certificate has rights: make one with Access.CreateToken, or listen on 127.0.0.1; AnyoneMayReadAndWrite does without", jay.ErrOption, a)
	}
	s.authenticates.Store(true)
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{s: s, ctx: r.Context(), r: r, w: w, header: r.Header, reply: w.Header()}
	defer c.end()
	id := requestID(r)
	c.reply.Set("Raven-Server-Version", serverVersion)
	c.reply.Set("X-Request-Id", id)
	start := time.Now()
	counted := &countingWriter{ResponseWriter: w}
	c.w = counted
	defer func() { s.logRequest(c, counted, id, start) }()

	err := c.guarded()
	if err != nil && c.started {
		// The status was sent already. Cutting the connection shows that the reply is
		// incomplete.
		s.opts.Logger.Warn("server: a stream is cut short", "request", id, "err", err)
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		c.fail(err, id)
	}
	if !c.started {
		c.send()
	}
}

// guarded runs the call, and turns a panic into an error.
func (c *call) guarded() (err error) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			panic(p)
		} else if p != nil {
			err = panicked(p)
		}
	}()
	return c.handle()
}

// panicked returns the error for a recovered panic, with the stack for the log.
func panicked(p any) *problem {
	return &problem{status: http.StatusInternalServerError, kind: typeInternal, message: "the server has failed at this request; its log says why", cause: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
}

// handle finds the route of an HTTP request and runs it.
func (c *call) handle() (err error) {
	s, r := c.s, c.r
	if s.opts.InvitedOnly && r.URL.Path != invitationPath {
		if err := c.checkInvited(); err != nil {
			return c.uninvited(err)
		}
	}
	if s.isStudio(r) {
		return c.serveStudio()
	}
	c.route, c.name, err = findRoute(r.Method, r.URL.EscapedPath())
	if c.route == nil || !c.route.free {
		// Check the host first, so that a page of another site cannot tell paths apart.
		if err := s.guard(r, c.route); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if c.route.free {
		return c.route.run(c)
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.running.Done()
	if err := c.authenticate(); err != nil { // before taking a place in the gate
		return err
	}
	gate := s.gate
	switch {
	case c.route.stream:
		gate = s.streams
	case c.route.socket:
		gate = s.sockets
	}
	if err := gate.enter(c.ctx); err != nil {
		return err
	}
	defer gate.leave()
	if c.params, err = c.route.params(r.URL.RawQuery); err != nil {
		return err
	}
	if c.route.body {
		if c.body, err = c.readBody(); err != nil {
			return err
		}
	}
	return c.onDatabase(c.remembered)
}

// onDatabase opens the database of the call, if it has one, and runs fn.
func (c *call) onDatabase(fn func() error) (err error) {
	if c.name == "" && c.route.path[0] == '/' {
		return fn()
	}
	ds := c.s.databases
	if c.database, err = ds.acquire(c.ctx, c.name); err != nil {
		return err
	}
	defer ds.release(c.database)
	c.db = c.database.db
	c.refreshConfiguration()
	return fn()
}

// remembered runs the route, unless its reply is stored by raft-request-id. Routes that
// write to a database pass the ID on to its commit instead: see call.once.
func (c *call) remembered() error {
	id := c.params.get(raftParam)
	if id == "" || !c.route.raft && !c.route.once {
		return c.run()
	}
	if len(id) > 128 {
		return badRequest("%s has at most 128 characters", raftParam)
	}
	if c.who != nil {
		id += " " + c.who.Name // one sender does not get another's reply
	}
	// A client that disconnects may repeat the command. So the command runs to its end,
	// and its reply is stored.
	c.ctx = context.WithoutCancel(c.ctx)
	key := resultKey(c.r.Method, c.r.URL.EscapedPath(), c.r.URL.RawQuery, id)
	if c.route.once {
		c.requestID = key
		return c.run()
	}
	ran := false
	r, err := c.s.results.once(c.ctx, key, func() (result, error) {
		ran = true
		err := c.run()
		return result{Status: c.status, Body: c.out}, err
	})
	if !ran && err == nil {
		c.status, c.out = r.Status, r.Body
	}
	return err
}

// run runs the route.
func (c *call) run() error {
	if c.route.agreed {
		c.boundMajority()
	}
	return c.route.run(c)
}

// once returns the option that makes a call of the database be carried out only once, if
// the client has given the command an ID.
func (c *call) once() []jay.CallOption {
	if c.requestID == "" {
		return nil
	}
	return []jay.CallOption{jay.RequestID(c.requestID)}
}

// requestID returns the ID of a request: the client's, or a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= 64 && isToken(id) {
		return id
	}
	return rand.Text()[:16]
}

// isToken reports whether text has only characters that are harmless in logs.
func isToken(text string) bool {
	for i := range len(text) {
		if !nameCharacter(rune(text[i])) {
			return false
		}
	}
	return true
}
