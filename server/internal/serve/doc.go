// Package serve carries HTTP requests from the connection to an endpoint, and the reply back:
// it decides who may send what, how much of the machine a request may take, which database
// it is about, and what a client is told when it fails. It knows no endpoint but its own (health, metrics,
// sessions): the others are given to [Open] as a [Table] of routes.
//
// A [Call] is one request, and all that an endpoint needs. [Server] has what outlives a
// request: the [Databases], the [Gate] and the [Budget], sign-in, and the [Operations].
// handle.go shows the steps of a request in their order, open.go those of a server's life.
package serve
