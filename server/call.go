package server

import (
	"context"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/jaydb/jay"
)

// call is one request to an endpoint: an HTTP request, or one of those in the body of a
// multi_get.
type call struct {
	s      *Server
	ctx    context.Context
	r      *http.Request // of the HTTP request
	w      http.ResponseWriter
	route  *route
	params params
	header http.Header // of the request
	body   []byte
	parts  [][]byte // parts of a multipart body after the first, which is body

	name     string // of the database, as the client spells it
	database *database
	db       *jay.DB
	index    string // the index that the query names, as it was defined
	who      *Grant // nil without authentication

	subject   string // description of an operation that the call begins, for display
	requestID string // ID of a command that its database carries out only once, or ""

	status  int
	reply   http.Header
	out     []byte
	nested  bool // the call is part of a multi_get
	started bool // the head of a stream was sent

	contentType string // of a reply that is not JSON

	taken int64 // bytes taken from the server's budget

	endMajority context.CancelFunc // cancels ctx: see boundMajority; nil without a bound
}

// take takes n bytes from the server's memory budget until the call ends.
func (c *call) take(n int64) error {
	if err := c.s.memory.take(n); err != nil {
		return err
	}
	c.taken += n
	return nil
}

// end returns the memory and ends what belongs to the call.
func (c *call) end() {
	c.s.memory.give(c.taken)
	c.taken = 0
	if c.endMajority != nil {
		c.endMajority()
	}
}

// json replies with a value as JSON.
func (c *call) json(status int, v any) error {
	c.status, c.out = status, mustJSON(v)
	return nil
}

// text replies with encoded JSON.
func (c *call) text(status int, json []byte) error {
	c.status, c.out = status, json
	return nil
}

// empty replies without a body.
func (c *call) empty(status int) error {
	c.status, c.out = status, nil
	return nil
}

// decode reads the body as JSON.
func (c *call) decode(v any) error {
	if len(c.body) == 0 {
		return badRequest("the request needs a body of JSON")
	}
	if !utf8.Valid(c.body) { // encoding/json would replace invalid bytes
		return badRequest("the body is not UTF-8")
	}
	if err := json.Unmarshal(c.body, v); err != nil {
		return badRequest("the body is not the JSON of this request: %v", err)
	}
	return nil
}

// ravenTime is RavenDB's format of a time. The Go client ends its process at a time that
// it cannot read.
const ravenTime = "2006-01-02T15:04:05.0000000Z"
