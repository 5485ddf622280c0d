// Package server answers RavenDB's HTTP protocol over the Jay databases of one data
// directory, for RavenDB's own clients and for curl.
//
//	s, err := server.Open(server.Options{Data: "data"})
//	...
//	l, err := net.Listen("tcp", "127.0.0.1:8080")
//	...
//	err = s.Serve(ctx, l) // until ctx ends
//
// A [Server] is also an http.Handler, for a program that has a mux of its own; such a
// program sets the timeouts of its http.Server and calls [Server.Close].
//
// [Options].Mounted takes databases that the program has open, and [Server.Handler] puts them below any path of its mux,
// behind its own sign-in: examples/mounted is a whole program.
//
// A database is created by a request, opened by the first request that names it, and
// closed when it has been idle. The data directory belongs to one Server at a time: a
// second Open returns jay.ErrLocked.
//
// # What a request goes through
//
// Serve limits connections, headers and time. ServeHTTP gives the request an ID, checks
// Host and Origin, finds the route, identifies the sender, reads the body within its bounds,
// takes one of a bounded number of places, opens the database, runs the endpoint, and
// writes the reply, compressed if the client accepts that: handle.go of internal/serve shows
// the steps. Endpoints are functions of serve.Call, in one file per subject: those of
// RavenDB's protocol in internal/raven, those of Jay's own API in internal/own. What both do to a
// database is in internal/verbs. Errors are converted to RavenDB's in one place (errors.go).
//
// docs/server.md is the guide. docs/server/endpoints.md lists the endpoints, and docs/server/operation.md the bounds.
package server
