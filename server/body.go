package server

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
)

// contentTypes are the accepted types of bodies: JSON, and what curl sends for -d without
// a header.
var contentTypes = map[string]bool{"": true, "application/json": true, "text/json": true, "text/plain": true, "application/x-www-form-urlencoded": true}

// readBody returns the body of a request, unpacked, within Options.MaxBodyBytes and the
// memory of the server. The memory is released at the end of the call.
func (c *call) readBody() ([]byte, error) {
	r, most := c.r, c.s.opts.MaxBodyBytes
	if err := c.checkContentType(); err != nil {
		return nil, err
	}
	if r.ContentLength > most {
		return nil, tooLarge("the body has %d bytes, and %d are the most", r.ContentLength, most)
	}

	source := io.Reader(&pacedReader{c: c, r: http.MaxBytesReader(c.w, r.Body, most), start: time.Now()})
	if strings.EqualFold(r.Header.Get("Content-Encoding"), "gzip") {
		unpacked, err := gzip.NewReader(source)
		if err != nil {
			return nil, readProblem(err, most)
		}
		source = io.LimitReader(unpacked, most+1)
	}

	var body bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength < 1<<20 {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	for {
		if err := c.take(64 << 10); err != nil {
			return nil, err
		}
		_, err := io.CopyN(&body, source, 64<<10)
		if int64(body.Len()) > most {
			return nil, tooLarge("the body has more than %d bytes when it is unpacked, which is the most", most)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, readProblem(err, most)
		}
	}
	// If the deadline stayed, it would end the connection while the request is answered.
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	return body.Bytes(), nil
}

// checkContentType refuses a body that is declared as anything but JSON in UTF-8;
// multipart is accepted on routes that take it.
func (c *call) checkContentType() error {
	given := c.r.Header.Get("Content-Type")
	kind, parameters, err := mime.ParseMediaType(given)
	if c.route.parts && err == nil && strings.HasPrefix(kind, "multipart/") {
		return nil
	}
	if err != nil && given != "" || !contentTypes[kind] {
		return &problem{status: http.StatusUnsupportedMediaType, kind: typeContent, message: "the body must be JSON, with the content type application/json"}
	}
	if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return &problem{status: http.StatusUnsupportedMediaType, kind: typeContent, message: "the body must be in UTF-8"}
	}
	return c.checkEncoding()
}

// checkEncoding refuses a body with a content encoding other than gzip.
func (c *call) checkEncoding() error {
	switch encoding := c.r.Header.Get("Content-Encoding"); strings.ToLower(encoding) {
	case "", "identity", "gzip":
		return nil
	}
	return &problem{status: http.StatusUnsupportedMediaType, kind: typeContent, message: "the body must be as it is, or packed with gzip"}
}

// readProblem says why a body could not be read.
func readProblem(err error, most int64) error {
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return tooLarge("the body has more than %d bytes, which is the most", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problem{status: http.StatusBadRequest, kind: typeBadRequest, message: "the body came too slowly", headers: map[string]string{"Connection": "close"}}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return badRequest("the body is not what gzip makes")
	}
	return &problem{status: http.StatusBadRequest, kind: typeBadRequest, message: "the body ends before its end, or is damaged", cause: err, headers: map[string]string{"Connection": "close"}}
}

// pacedReader reads a body that must come at a minimal pace.
type pacedReader struct {
	c     *call
	r     io.Reader
	start time.Time
	n     int64
}

// Read implements io.Reader.
func (p *pacedReader) Read(b []byte) (int, error) {
	// A ResponseWriter that has no deadlines is one of a test, or wrapped by a user.
	_ = http.NewResponseController(p.c.w).SetReadDeadline(p.start.Add(p.c.s.patience(p.n)))
	n, err := p.r.Read(b)
	p.n += int64(n)
	return n, err
}

// patience is how long a client may take for n bytes.
func (s *Server) patience(n int64) time.Duration {
	return s.opts.GraceTimeout + time.Duration(n/s.opts.MinBytesPerSecond)*time.Second
}
