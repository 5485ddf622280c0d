package server

import (
	"encoding/json"
	"net/http"
	"strings"
)

// maxGets bounds the requests of one multi_get.
const maxGets = 1024

// getRequest is one of the requests of a multi_get.
type getRequest struct {
	URL     string `json:"Url"`
	Query   string
	Method  string
	Headers map[string]string
	Content json.RawMessage
}

// body returns the body of the request: an object, which the Node.js client sends as text.
func (r *getRequest) body() []byte {
	var text *string
	if json.Unmarshal(r.Content, &text) == nil {
		if text == nil { // null
			return nil
		}
		return []byte(*text)
	}
	return r.Content
}

// getReply is the reply to it.
type getReply struct {
	StatusCode int
	Headers    map[string]string
	Result     json.RawMessage
}

// multiGet carries out several requests to one database, each as if it had come in its own
// HTTP request. A failure does not affect the others.
func (c *call) multiGet() error {
	var request struct{ Requests []getRequest }
	if err := c.decode(&request); err != nil {
		return err
	}
	if len(request.Requests) > maxGets {
		return tooLarge("a multi_get has at most %d requests, not %d", maxGets, len(request.Requests))
	}
	results := make([]getReply, 0, len(request.Requests))
	sum := int64(0)
	for i := range request.Requests {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		reply := c.get(&request.Requests[i])
		if sum += int64(len(reply.Result)); sum > c.s.opts.MaxReplyBytes {
			return tooLarge("the reply has more than %d bytes, which is the most", c.s.opts.MaxReplyBytes)
		}
		results = append(results, reply)
	}
	return c.json(http.StatusOK, map[string]any{"Results": results})
}

// get carries out one of the requests.
func (c *call) get(request *getRequest) getReply {
	one := &call{s: c.s, ctx: c.ctx, r: c.r, w: c.w, name: c.name, database: c.database, db: c.db, nested: true, header: make(http.Header), reply: make(http.Header)}
	defer func() {
		c.taken += one.taken
		if one.endMajority != nil {
			one.endMajority()
		}
	}()
	for name, value := range request.Headers {
		one.header.Set(name, value)
	}
	one.body = request.body()
	if err := one.getOne(request); err != nil {
		p := problemOf(err)
		if p.cause != nil {
			c.s.opts.Logger.Error("server: a request of a multi_get has failed", "request", c.w.Header().Get("X-Request-Id"), "url", request.URL, "err", p.cause)
		}
		return getReply{StatusCode: p.status, Headers: map[string]string{}, Result: p.body(request.URL + request.Query)}
	}
	reply := getReply{StatusCode: one.status, Headers: map[string]string{}, Result: one.out}
	if etag := one.reply.Get("ETag"); etag != "" {
		reply.Headers["ETag"] = etag // the Go client requires this spelling
	}
	return reply
}

// getOne finds the route of the request and runs it.
func (c *call) getOne(request *getRequest) error {
	method := strings.ToUpper(request.Method)
	if method == "" {
		method = http.MethodGet
	}
	path, query, _ := strings.Cut(request.URL, "?")
	if request.Query != "" {
		query = strings.TrimPrefix(request.Query, "?")
	}
	route, name, err := findRoute(method, path)
	if err != nil {
		return err
	}
	if !route.lazy || !strings.EqualFold(name, c.name) {
		return badRequest("a multi_get takes reads of its own database, not %s %.200s", method, path)
	}
	c.route = route
	if c.params, err = route.params(query); err != nil {
		return err
	}
	return c.run()
}
