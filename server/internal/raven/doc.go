// Package raven has the endpoints of RavenDB's HTTP protocol, for RavenDB's own clients: the
// shapes of its requests and replies, and its names of errors. Each endpoint is a function of
// serve.Call, in a file that begins with its routes; routes.go joins them.
package raven
