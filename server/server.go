package server

import (
	"context"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/own"
	"github.com/jaydb/jay/server/internal/raven"
	"github.com/jaydb/jay/server/internal/serve"
)

// Server answers requests about the databases of a data directory. Its methods are safe
// for concurrent use.
type Server struct{ inner *serve.Server }

// endpoints has all routes.
var endpoints = serve.NewTable(raven.Unheeded, serve.Routes, raven.Routes, own.Routes)

// Open opens a data directory, which it creates if it is missing. It returns jay.ErrLocked
// if another Server, of any process, has it open, jay.ErrOption for an invalid option, and
// errors of jay.Open.
//
// A server of Options.Mounted needs no data directory. Its databases stay the program's: Close leaves them open, and
// after the program has closed one, requests for it get 503.
func Open(o Options) (*Server, error) {
	inner, err := serve.Open(serve.Options(o), endpoints)
	if err != nil {
		return nil, err
	}
	return &Server{inner}, nil
}

// Close refuses further requests, ends streams, waits for running requests and closes the
// databases. It is idempotent.
func (s *Server) Close() error { return s.inner.Close() }

// Serve answers requests on l until ctx ends: then it accepts no more, gives running
// requests Options.ShutdownTimeout to finish, ends the rest, and closes the databases as
// Close does. It closes l.
//
// On an address that is not a loopback one, Serve needs a certificate, and requests need
// credentials: see Options.Authenticate. Without them it returns jay.ErrOption, unless
// Options.NoEncryption or AnyoneMayReadAndWrite is set.
func (s *Server) Serve(ctx context.Context, l net.Listener) error { return s.inner.Serve(ctx, l) }

// CheckAddress returns the error with which Serve refuses to listen on an address: one that
// other machines can reach without TLS or credentials, unless an option permits it. For
// such an address requests need credentials from then on, unless an option says otherwise.
// A program that prints its address calls it before.
func (s *Server) CheckAddress(a net.Addr) error { return s.inner.CheckAddress(a) }

// Handler returns a handler of the whole API, and of the studio with Options.Studio, for a path of a program's own
// mux, such as "/admin/db": register it for the path itself and for all below it ("/admin/db" and "/admin/db/"), without
// http.StripPrefix. "" is the root of the host. The path has at most 256 bytes: letters, digits, /, _, -, . and ~;
// another one is jay.ErrUsage.
//
// The program decides who may do what: authorize gets each request before anything is read or opened, with its path below that of the
// handler, and returns a name for its sender, which logs and bounds use, and the sender's rights. No name is 401, a
// missing right 403. Nil gives every request the right to read all databases, and nothing more: it is for a handler that
// only those reach who may read. authorize is called by many goroutines at a time, and again every 5
// seconds while a stream or a feed of changes lasts, which ends when the right to it does; an operation that was begun goes on.
// A panic of it is 500.
//
// The server's own tokens, sessions and certificates count for nothing here, and what would make some is refused. Host
// and Origin are checked as in ServeHTTP: a name by which the program is called is to be in Options.Hosts. A change that brings a
// cookie must show that a page of the same origin has sent it.
//
// Handlers do not have the bounds of Serve on connections, headers and time, which are the program's http.Server's.
// With Options.InvitedOnly there are no handlers: jay.ErrOption.
func (s *Server) Handler(path string, authorize func(r *http.Request) (name string, rights Rights)) (http.Handler, error) {
	var hook func(r *http.Request) (string, serve.Rights)
	if authorize != nil {
		hook = func(r *http.Request) (string, serve.Rights) {
			name, rights := authorize(r)
			return name, rights.inner()
		}
	}
	return s.inner.Mount(path, hook)
}

// Database returns a database of the server, for the program that the server is in, and opens it if it is closed. It stays
// open until release is called, which may be done several times, and must not be closed by the program.
//
// A handle holds nothing up: when the database is deleted, when the server closes, and when it opens the database again
// after its disk was full, calls of db return jay.ErrClosed. Ask for it again then.
//
// It returns jay.ErrNoDatabase if there is none of that name, jay.ErrUsage for an invalid name, jay.ErrClosed after
// Close, and errors of jay.Open. A handle of one of Options.Mounted is the database itself.
func (s *Server) Database(ctx context.Context, name string) (db *jay.DB, release func(), err error) {
	return s.inner.Hold(ctx, name)
}

// Databases returns the names of all databases, sorted without regard to case.
func (s *Server) Databases() []string { return s.inner.Databases.List() }

// MemoryStats say how Options.MaxMemory is divided, and what is used of it.
type MemoryStats struct {
	BoundBytes    int64 // Options.MaxMemory, or its default
	RequestsBytes int64 // for requests
	RequestsUsed  int64 // of it
	CachesBytes   int64 // for the caches and write buffers of databases, with garbage
	CachesClaimed int64 // of it, by the databases that are open
	HeapBytes     int64 // what the bound leaves to Go's heap: see jay.MemoryStats.HeapBytes
}

// Memory returns figures about the memory of the server.
func (s *Server) Memory() MemoryStats { return MemoryStats(s.inner.MemoryStats()) }

// Register adds the figures of c to those of GET /metrics. They have no names of databases and nothing that a client has made up, as
// those who may read the figures need no right to a database. Register returns jay.ErrOption if they clash with figures that are there.
func (s *Server) Register(c prometheus.Collector) error { return s.inner.Register(c) }

// ServeHTTP implements http.Handler. A server of Options.Mounted without Options.Authenticate and
// AnyoneMayReadAndWrite lets requests read, and refuses changes: see Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.inner.ServeHTTP(w, r) }

// Invite returns a path with a ticket. The first browser that opens it within 15 minutes
// gets a session and is redirected to the studio. The session has the right in every
// database, for 12 hours or until the server ends. After that the ticket is invalid. The
// server stores only its hash.
//
// Invite returns jay.ErrUsage if right is none.
func (s *Server) Invite(right Right) (path string, err error) {
	return s.inner.Invite(serve.Right(right))
}

// NewMemory returns memory for the databases that a program opens and gives to a server as Options.Mounted: what a server with so many bytes of Options.MaxMemory has
// for its databases, and does not use if all are mounted. It is jay.ErrOption if the bytes are below 64 MiB.
func NewMemory(bytes int64) (*jay.Memory, error) { return serve.DatabaseMemory(bytes) }
