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

// Open opens a data directory, and creates it if it does not exist. It returns jay.ErrLocked if
// another Server, of any process, has it open, jay.ErrOption for an invalid option, and errors of
// jay.Open.
//
// A server of Options.Mounted needs no data directory. The program keeps its databases: Close
// leaves them open. After the program has closed a database, requests for it get 503.
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

// Serve answers requests on l until ctx ends. Then it accepts no more requests, gives running
// requests Options.ShutdownTimeout to finish, ends the rest, and closes the databases as Close
// does. It closes l.
//
// On an address that is not a loopback one, Serve needs a certificate, and requests need
// credentials: see Options.Authenticate. Without them it returns jay.ErrOption, unless
// Options.NoEncryption or AnyoneMayReadAndWrite is set.
func (s *Server) Serve(ctx context.Context, l net.Listener) error { return s.inner.Serve(ctx, l) }

// CheckAddress returns the error with which Serve would refuse to listen on an address. Serve
// refuses an address that other machines can reach without TLS or credentials, unless an option
// permits it. After the call requests need credentials if other machines can reach the address,
// unless an option says otherwise. A program that prints its address calls CheckAddress first.
func (s *Server) CheckAddress(a net.Addr) error { return s.inner.CheckAddress(a) }

// Handler returns a handler of the whole API, and of the studio with Options.Studio, for a path of
// a program's own mux, such as "/admin/db". Register it for the path itself and for all paths below
// it ("/admin/db" and "/admin/db/"), without http.StripPrefix. "" is the root of the host. The path
// has at most 256 bytes: letters, digits, /, _, -, . and ~. Handler returns jay.ErrUsage for any
// other path.
//
// authorize decides the rights of each request. The handler calls it before it reads or opens
// anything. The path of the request is relative to the path of the handler. authorize returns a
// name for the sender, which logs and bounds use, and the rights of the sender. Without a name the
// reply is 401, without the right 403. A nil authorize gives every request the right to read all
// databases, and nothing more: it is for a handler that only permitted readers can reach.
//
// Many goroutines call authorize at the same time. The handler calls it again every 5 seconds while
// a stream or a feed of changes lasts, and ends the stream or the feed when its right has ended. An
// operation that has begun goes on. A panic of authorize is a 500; during such a later call it ends
// the stream, and the log has the stack. A stream also ends when a later call does not return within
// a minute. Each call that hangs delays those for other streams by a second, once.
//
// The handler ignores the server's own tokens, sessions and certificates, and refuses requests that
// would make some. It checks Host and Origin as ServeHTTP does: Options.Hosts must have the names
// by which clients call the program. A change that brings a cookie must show that a page of the
// same origin has sent it. GET {D}/hilo/next is a change, too, and GET {J}/backup without once=true.
//
// Handlers do not have the bounds of Serve on connections, headers and time: the program's
// http.Server sets them. Handler returns jay.ErrOption with Options.InvitedOnly.
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

// Database returns a database of the server, for the program that the server is in, and opens the
// database if it is closed. The database stays open until the program calls release, which it may
// call several times. The program must not close the database.
//
// A handle delays nothing. Calls of db return jay.ErrClosed when the database is deleted, when the
// server closes, and when the server opens the database again after its disk was full. Then call
// Database again.
//
// Database returns jay.ErrNoDatabase if no database has that name, jay.ErrUsage for an invalid
// name, jay.ErrClosed after Close, and errors of jay.Open. For a database of Options.Mounted it
// returns the program's own handle.
func (s *Server) Database(ctx context.Context, name string) (db *jay.DB, release func(), err error) {
	return s.inner.Hold(ctx, name)
}

// Databases returns the names of all databases, sorted without regard to case.
func (s *Server) Databases() []string { return s.inner.Databases.List() }

// MemoryStats says how Options.MaxMemory is divided, and how much of it is in use.
type MemoryStats struct {
	BoundBytes    int64 // Options.MaxMemory, or its default
	RequestsBytes int64 // for requests
	RequestsUsed  int64 // of RequestsBytes
	CachesBytes   int64 // for the caches and write buffers of databases, with garbage
	CachesClaimed int64 // of CachesBytes, by the open databases
	HeapBytes     int64 // the part of the bound for Go's heap: see jay.MemoryStats.HeapBytes
}

// Memory returns figures about the memory of the server.
func (s *Server) Memory() MemoryStats { return MemoryStats(s.inner.MemoryStats()) }

// Register adds the figures of c to those of GET /metrics. They must not contain names of databases
// or text that a client has chosen, because a reader of the figures needs no right to a database.
// Register returns jay.ErrOption if they clash with figures that are registered already.
func (s *Server) Register(c prometheus.Collector) error { return s.inner.Register(c) }

// ServeHTTP implements http.Handler. A server of Options.Mounted without Options.Authenticate and
// AnyoneMayReadAndWrite lets requests read, and refuses changes: see Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.inner.ServeHTTP(w, r) }

// Invite returns a path with a ticket. The first browser that opens it within 15 minutes gets a
// session and is redirected to the studio. The session has the right in every database, for 12
// hours or until the server ends. The ticket is invalid after its use and after the 15 minutes. The
// server stores only its hash.
//
// Invite returns jay.ErrUsage if right is not a right.
func (s *Server) Invite(right Right) (path string, err error) {
	return s.inner.Invite(serve.Right(right))
}

// NewMemory returns memory for databases that a program opens and gives to a server as
// Options.Mounted. bytes is the Options.MaxMemory of that server. The result is the share of it
// that the server would give to databases of its own, and leaves unused if all are mounted.
// NewMemory returns jay.ErrOption if bytes is below 64 MiB.
func NewMemory(bytes int64) (*jay.Memory, error) { return serve.DatabaseMemory(bytes) }
