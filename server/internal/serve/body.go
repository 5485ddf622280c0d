package serve

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// contentTypes are the accepted types of bodies: JSON, and what curl sends for -d without
// a header.
var contentTypes = map[string]bool{"": true, "application/json": true, "text/json": true, "text/plain": true, "application/x-www-form-urlencoded": true}

// awaitsBody reports whether the request announces a body.
func (c *Call) awaitsBody() bool {
	return c.Request.Body != nil && c.Request.Body != http.NoBody && c.Request.ContentLength != 0
}

// refuseBody makes the connection end with the reply, if the request has a body that
// nothing will read.
func (c *Call) refuseBody() {
	if c.awaitsBody() {
		c.Reply.Set("Connection", "close")
	}
}

// checkNoBody refuses a body on a route that reads none: what is sent and not heeded is
// refused. A body of no bytes, as some clients send it in chunks, is none, if its end comes
// within a second.
func (c *Call) checkNoBody() error {
	if c.Route.Body || c.Route.Upload || !c.awaitsBody() {
		return nil
	}
	if c.Request.ContentLength < 0 {
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(time.Second)) // a test's writer has no deadlines
		if _, err := io.ReadFull(c.Request.Body, make([]byte, 1)); err == io.EOF {
			return nil
		}
	}
	return BadRequest("%s %s takes no body", c.Request.Method, c.Route.Path)
}

// leaveBody does not let a client take long over the rest of a body that was not read. A
// connection that is to be used again has had its body read to the end.
func (c *Call) leaveBody() {
	if c.Reply.Get("Connection") == "close" {
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(time.Second))
	}
}

// ClosesUnless returns stop, the result of a context.AfterFunc that sets a deadline in the past, so
// that a running read of the body ends. If that function has begun, the connection ends with the
// reply, which has these headers. The caller may call the result several times.
func ClosesUnless(stop func() bool, r *http.Request, reply http.Header) func() bool {
	return sync.OnceValue(func() bool {
		stopped := stop()
		if !stopped {
			closeConnection(r, reply)
		}
		return stopped
	})
}

// closeConnection ends a connection of HTTP/1 with the reply. When a read fails while net/http waits
// for the next request, be it because of a deadline, net/http ends the context of the connection and
// never renews it: every further request on this connection would be cancelled.
func closeConnection(r *http.Request, reply http.Header) {
	if r.ProtoMajor == 1 {
		reply.Set("Connection", "close")
	}
}

// readBody returns the body of a request, unpacked, within Options.MaxBodyBytes and the
// memory of the server. The memory is released at the end of the call.
func (c *Call) readBody() ([]byte, error) {
	r, most := c.Request, c.Route.BodyLimit(&c.Server.Options)
	if err := c.CheckContentType(); err != nil {
		return nil, err
	}
	if r.ContentLength > most {
		return nil, TooLarge("the body has %d bytes, and %d are the most", r.ContentLength, most)
	}

	source := io.Reader(NewPacedReader(c, http.MaxBytesReader(c.Writer, r.Body, most)))
	encoding := r.Header.Get("Content-Encoding")
	unpacks := packing(encoding) != ""
	if unpacks {
		unpacked, err := Unpacked(source, encoding, c.Held())
		if err != nil {
			return nil, readProblem(err, most)
		}
		source = io.LimitReader(unpacked, most+1)
	}

	hint := r.ContentLength
	if unpacks {
		hint = -1
	}
	body, err := readAll(source, hint, c.Held())
	if err != nil {
		return nil, readProblem(err, most)
	}
	if int64(len(body)) > most {
		return nil, TooLarge("the body has more than %d bytes when it is unpacked, which is the most", most)
	}
	// If the deadline stayed, it would end the connection while the request is answered.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Time{})
	return body, nil
}

// maxOtherBodyBytes bounds a body that has no documents to store, such as a query or a
// definition.
const maxOtherBodyBytes = 16 << 20

// BodyLimit returns the most bytes that the body of a request may have.
func (r *Route) BodyLimit(o *Options) int64 {
	if r.Stores {
		return o.MaxBodyBytes
	}
	return min(o.MaxBodyBytes, maxOtherBodyBytes)
}

// firstBodyBytes is what is taken for a body before any of it has come.
const firstBodyBytes = 64 << 10

// readAll reads to the end, and takes the memory of its buffer before the buffer grows.
// length is the number of bytes if it is known, else negative.
func readAll(r io.Reader, length int64, held *Holding) ([]byte, error) {
	size := int64(firstBodyBytes)
	if length >= 0 {
		size = min(size, length+1) // one more, to see the end
	}
	if err := held.Take(size); err != nil {
		return nil, err
	}
	body := make([]byte, 0, size)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
		if len(body) < cap(body) {
			continue
		}
		if size = 2 * int64(cap(body)); length >= 0 && size > length {
			size = length + 1
		}
		if err := held.Take(size); err != nil {
			return nil, err
		}
		grown := append(make([]byte, 0, size), body...)
		held.Give(int64(cap(body)))
		body = grown
	}
}

// CheckContentType refuses a body that is declared as anything but JSON in UTF-8;
// multipart is accepted on routes that take it.
func (c *Call) CheckContentType() error {
	given := c.Request.Header.Get("Content-Type")
	kind, parameters, err := mime.ParseMediaType(given)
	if c.Route.Parts && err == nil && strings.HasPrefix(kind, "multipart/") {
		return CheckEncoding(c.Header)
	}
	if err != nil && given != "" || !contentTypes[kind] {
		return &Problem{Status: http.StatusUnsupportedMediaType, Kind: TypeContent, Message: "the body must be JSON, with the content type application/json"}
	}
	if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return &Problem{Status: http.StatusUnsupportedMediaType, Kind: TypeContent, Message: "the body must be in UTF-8"}
	}
	return CheckEncoding(c.Header)
}

// readProblem says why a body could not be read.
func readProblem(err error, most int64) error {
	var limit *http.MaxBytesError
	var p *Problem
	switch {
	case errors.As(err, &p): // it is explained already
		return p
	case errors.As(err, &limit):
		return TooLarge("the body has more than %d bytes, which is the most", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Problem{Status: http.StatusBadRequest, Kind: TypeBadRequest, Message: "the body came too slowly", Headers: map[string]string{"Connection": "close"}}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return BadRequest("the body is not what gzip makes")
	case errors.Is(err, errZstd):
		return BadRequest("the body is not what zstd makes")
	}
	return &Problem{Status: http.StatusBadRequest, Kind: TypeBadRequest, Message: "the body ends before its end, or is damaged", Cause: err, Headers: map[string]string{"Connection": "close"}}
}

// pacedReader reads a body that must come at a minimal pace.
type pacedReader struct {
	c     *Call
	r     io.Reader
	start time.Time
	n     int64
}

// NewPacedReader returns a reader of the body of a call, or of what unpacks it.
func NewPacedReader(c *Call, body io.Reader) *pacedReader {
	return &pacedReader{c: c, r: body, start: time.Now()}
}

// Read implements io.Reader.
func (p *pacedReader) Read(b []byte) (int, error) {
	// A ResponseWriter that has no deadlines is one of a test, or wrapped by a user.
	_ = http.NewResponseController(p.c.Writer).SetReadDeadline(p.start.Add(p.c.Server.patience(p.n)))
	n, err := p.r.Read(b)
	p.n += int64(n)
	return n, err
}

// This file decodes JSON that came from outside. encoding/json makes much memory of little
// text: an element of two bytes may become a struct of hundreds, and it goes on after a
// wrong element. So a meter first goes over the text, in the way in which encoding/json
// will decode it into the type at hand, and adds up what that takes. This is paid before
// anything is decoded.
//
// A member that the type does not have is refused, and one that is there twice: what is
// accepted is heeded. A field with the tag ignored takes a member on which no answer depends, for
// the reason that the tag gives; docs/server/protocol.md lists these. A type with a field _
// that has the tag unknown:"empty" also takes members that it does not have, if they ask for
// nothing: clients send members for the features of newer servers, too.
//
// The tag most of a field bounds the elements of a list: `most:"1024"`, or with another
// status than 413, `most:"1024 400"`. An element that is no object where one is needed is
// refused before anything is decoded.

// Decode decodes the body, which must be JSON of the type of v.
func (c *Call) Decode(v any) error {
	if len(c.Body) == 0 {
		return BadRequest("the request needs a body of JSON")
	}
	if !utf8.Valid(c.Body) { // encoding/json would replace invalid bytes
		return BadRequest("the body is not UTF-8")
	}
	if err := c.PayFor(c.Body, v); err != nil {
		return err
	}
	if err := json.Unmarshal(c.Body, v); err != nil {
		return BadRequest("the body is not the JSON of this request: %v", err)
	}
	return nil
}

// PayFor takes the memory of decoding text into v, until the call ends. It refuses text
// that is not JSON.
func (c *Call) PayFor(text []byte, v any) error {
	n, err := SizeOf(text, PlanOf(reflect.TypeOf(v)))
	if err != nil {
		return err
	}
	return c.Take(n)
}

// Closing closes the connection, as the body was not read to its end.
func Closing(err error) *Problem {
	p := ProblemOf(err)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		p = BadRequest("the body ends before its end")
	}
	headers := map[string]string{"Connection": "close"}
	for name, value := range p.Headers {
		headers[name] = value
	}
	return &Problem{Status: p.Status, Kind: p.Kind, Message: p.Message, Fields: p.Fields, Headers: headers, Cause: p.Cause}
}
