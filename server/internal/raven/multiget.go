package raven

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/jaydb/jay/server/internal/serve"
)

// multiGetRoutes has the endpoint of several requests in one.
var multiGetRoutes = []*serve.Route{
	{Method: "POST", Path: "{D}/multi_get", Run: multiGet, Timed: true, Body: true, Needs: serve.ReadRight},
}

// maxGets bounds the requests of one multi_get.
const maxGets = 1024

// getRequest is one of the requests of a multi_get.
type getRequest struct {
	URL     string `json:"Url"`
	Query   string
	Method  string
	Headers serve.Object[string]
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
func multiGet(c *serve.Call) error {
	var request struct {
		Requests []getRequest `most:"1024"` // maxGets
	}
	if err := c.Decode(&request); err != nil {
		return err
	}
	if len(request.Requests) > maxGets {
		return serve.TooLarge("a multi_get has at most %d requests, not %d", maxGets, len(request.Requests))
	}
	if err := c.Take(int64(len(request.Requests)) * 1024); err != nil { // the calls of all requests, which share the memory of this one
		return err
	}
	results := make([]getReply, 0, len(request.Requests))
	sum := int64(0)
	for i := range request.Requests {
		if err := c.Ctx.Err(); err != nil {
			return err
		}
		reply := get(c, &request.Requests[i])
		if sum += int64(len(reply.Result)); sum > c.Server.Options.MaxReplyBytes {
			return serve.TooLarge("the reply has more than %d bytes, which is the most", c.Server.Options.MaxReplyBytes)
		}
		results = append(results, reply)
	}
	if err := c.Take(sum + 1024*int64(len(results))); err != nil {
		return err
	}
	out := append(make([]byte, 0, sum+256*int64(len(results))+16), `{"Results":[`...)
	for i, one := range results {
		if i > 0 {
			out = append(out, ',')
		}
		out = one.appendTo(out)
	}
	return c.Text(http.StatusOK, append(out, "]}"...))
}

// appendTo appends the reply as JSON.
func (r *getReply) appendTo(dst []byte) []byte {
	head := serve.MustJSON(struct {
		StatusCode int
		Headers    map[string]string
	}{r.StatusCode, r.Headers})
	dst = append(append(dst, head[:len(head)-1]...), `,"Result":`...)
	if r.Result == nil {
		dst = append(dst, "null"...)
	}
	return append(append(dst, r.Result...), '}')
}

// get carries out one of the requests.
func get(c *serve.Call, request *getRequest) getReply {
	one, end := c.Part()
	defer end()
	for name, value := range request.Headers {
		one.Header.Set(name, value)
	}
	err := c.Take(3 * int64(len(request.Content))) // a text in it is copied
	if err == nil {
		one.Body = request.body()
		err = getOne(one, request)
	}
	if err != nil {
		p := serve.ProblemOf(err)
		if p.Cause != nil {
			c.Server.Options.Logger.Log(c.Ctx, p.Level(), "server: a request of a multi_get has failed", "request", c.Writer.Header().Get("X-Request-Id"), "url", request.URL, "err", p.Cause)
		}
		return getReply{StatusCode: p.Status, Headers: map[string]string{}, Result: p.Body(request.URL + request.Query)}
	}
	reply := getReply{StatusCode: one.Status, Headers: map[string]string{}, Result: one.Out}
	if etag := one.Reply.Get("ETag"); etag != "" {
		reply.Headers["ETag"] = etag // the Go client requires this spelling
	}
	return reply
}

// getOne finds the route of the request and runs it.
func getOne(c *serve.Call, request *getRequest) error {
	method := strings.ToUpper(request.Method)
	if method == "" {
		method = http.MethodGet
	}
	path, query, _ := strings.Cut(request.URL, "?")
	if request.Query != "" {
		query = strings.TrimPrefix(request.Query, "?")
	}
	route, name, err := c.Server.Table.Find(method, path)
	if err != nil {
		return err
	}
	if !route.Lazy || !strings.EqualFold(name, c.Name) {
		return serve.BadRequest("a multi_get takes reads of its own database, not %s %.200s", method, path)
	}
	if len(c.Body) > 0 && !route.Body && !(method == http.MethodGet && (route.Path == "{D}/docs" || route.Path == "{D}/queries")) {
		return serve.BadRequest("%s %s takes no Content", method, route.Path)
	}
	c.Route = route
	if err := c.CheckConditions(); err != nil {
		return err
	}
	if c.Params, err = route.Parse(query); err != nil {
		return err
	}
	if err := c.Server.CheckNode(c.Name, c.Params.Get("nodeTag")); err != nil {
		return err
	}
	return c.Run()
}
