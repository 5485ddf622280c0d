package server

import (
	"context"
	"net"
	"net/http"

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

// ServeHTTP implements http.Handler.
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
