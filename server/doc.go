// Package server answers RavenDB's HTTP protocol over the Jay databases of one data
// directory, for RavenDB's own clients and for curl.
//
//	s, err := server.Open(server.Options{Data: "data"})
//	...
//	l, err := net.Listen("tcp", "127.0.0.1:8080")
//	...
//	err = s.Serve(ctx, l) // until ctx ends
//
// A [Server] is also an http.Handler, for a program that has a mux of its own. Such a program sets
// the timeouts of its http.Server and calls [Server.Close].
//
// [Options].Mounted serves databases that the program has open. [Server.Handler] serves them below
// any path of the program's mux, behind the program's own sign-in. examples/mounted is a whole
// program.
//
// A request creates a database. The first request that names a database opens it. The server closes
// a database that has been idle for Options.IdleAfter. The data directory belongs to one Server at
// a time: a second Open returns jay.ErrLocked.
//
// # What a request goes through
//
// Serve limits connections, headers and time. ServeHTTP gives the request an ID, checks Host and
// Origin, finds the route, identifies the sender, reads the body within its bounds, takes one of a
// bounded number of places, opens the database, runs the endpoint, and writes the reply, compressed
// if the client accepts that: handle.go of internal/serve shows the steps. Endpoints are functions
// of serve.Call, in one file per subject: internal/raven has the endpoints of RavenDB's protocol,
// and internal/own the endpoints of Jay's own API. internal/verbs has the operations on a database
// that both share. Errors are converted to RavenDB's in one place (errors.go).
//
// docs/server.md is the guide. docs/server/endpoints.md lists the endpoints, and docs/server/operation.md the bounds.
package server
