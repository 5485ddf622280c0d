package serve

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// serverVersion is the version of RavenDB whose protocol the server speaks. Clients choose
// by it what they may send.
const serverVersion = "5.4.200.0"

// minGzipBytes is the least size of a reply that is worth compressing.
const minGzipBytes = 2048

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}}

// fail makes the reply to a call that has failed.
func (c *Call) fail(err error, id string) {
	p := ProblemOf(err)
	if p.Cause != nil {
		level := p.Level()
		if c.Ctx.Err() != nil { // the client has gone away
			level = slog.LevelDebug
		}
		c.Server.Options.Logger.Log(c.Ctx, level, "server: a request has failed", "request", id, "method", c.Request.Method, "path", c.Request.URL.Path, "err", p.Cause)
	}
	for name, value := range p.Headers {
		c.Reply.Set(name, value)
	}
	// Do not wait long for the rest of the body. A ResponseWriter without deadlines
	// belongs to a test, or is wrapped by a user.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(time.Second))
	c.Reply.Del("ETag")
	c.ContentType = ""
	c.Status, c.Out = p.Status, p.Body(c.Request.URL.RequestURI())
}

// send writes the reply.
func (c *Call) send() {
	if len(c.Out) > 0 && c.Status != http.StatusNoContent && c.Status != http.StatusNotModified {
		c.Reply.Set("Content-Type", cmp.Or(c.ContentType, "application/json; charset=utf-8"))
		c.compress()
	} else {
		c.Out = nil
	}
	// A reply to HEAD has the length of the reply to GET, if it is known, or none.
	if c.Status != http.StatusNoContent && c.Status != http.StatusNotModified && (c.Request.Method != http.MethodHead || c.Out != nil) {
		c.Reply.Set("Content-Length", strconv.Itoa(len(c.Out)))
	}
	// A ResponseWriter that has no deadlines is one of a test, or wrapped by a user.
	control := http.NewResponseController(c.Writer)
	_ = control.SetWriteDeadline(time.Now().Add(c.Server.patience(int64(len(c.Out)))))
	c.Writer.WriteHeader(c.Status)
	if c.Request.Method != http.MethodHead {
		// A client that has gone away needs no reply.
		_, _ = c.Writer.Write(c.Out)
	}
	_ = control.SetWriteDeadline(time.Time{})
}

// compress compresses the reply if the client accepts gzip.
func (c *Call) compress() {
	if len(c.Out) < minGzipBytes || c.Request.Method == http.MethodHead {
		return
	}
	c.Reply.Add("Vary", "Accept-Encoding")
	if !takesGzip(c.Header) {
		return
	}
	// At the worst it grows a little: without the memory for that, the reply is sent as it is.
	if c.Server.Memory != nil && c.Take(int64(len(c.Out))+4096) != nil {
		return
	}
	var packed bytes.Buffer
	packed.Grow(len(c.Out) / 2)
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&packed)
	_, err := w.Write(c.Out)
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err) // writing to memory cannot fail
	}
	c.Reply.Set("Content-Encoding", "gzip")
	c.Out = packed.Bytes()
}

// takesGzip reports whether Accept-Encoding names gzip.
func takesGzip(h http.Header) bool {
	for _, line := range h["Accept-Encoding"] {
		for encoding := range strings.SplitSeq(line, ",") {
			name, weight, _ := strings.Cut(strings.TrimSpace(encoding), ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				_, q, found := strings.Cut(weight, "q=")
				n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
				return !found || err == nil && n > 0
			}
		}
	}
	return false
}

// streamHeldBytes are held at the beginning of a stream. What fails before there are more is replied as an
// error, with its reason; later the connection is cut.
const streamHeldBytes = 4096

// StreamWriter writes the reply of a stream at the client's pace, within the server's time
// limits.
type StreamWriter struct {
	c     *Call
	kind  string    // content type
	held  []byte    // the beginning; nil once it is sent
	w     io.Writer // nil until the reply has begun
	gz    *gzip.Writer
	since time.Time
	n     int64
}

// StartStream returns the writer of a reply, which begins when so much is written that it is no longer held, or with Close.
// The caller must call Close, unless something fails.
func (c *Call) StartStream(contentType string) *StreamWriter {
	return &StreamWriter{c: c, kind: contentType}
}

// Write implements io.Writer.
func (s *StreamWriter) Write(b []byte) (int, error) {
	if s.w == nil {
		if len(s.held)+len(b) <= streamHeldBytes {
			s.held = append(s.held, b...)
			return len(b), nil
		}
		if err := s.begin(); err != nil {
			return 0, err
		}
	}
	return s.w.Write(b)
}

// begin sends the head of the reply, and what was held.
func (s *StreamWriter) begin() error {
	c := s.c
	s.since = time.Now()
	s.w = (*PacedWriter)(s)
	c.Started, c.Status = true, http.StatusOK
	c.Reply.Set("Content-Type", s.kind)
	c.Reply.Add("Vary", "Accept-Encoding")
	if takesGzip(c.Header) {
		c.Reply.Set("Content-Encoding", "gzip")
		s.gz = gzipWriters.Get().(*gzip.Writer)
		s.gz.Reset(s.w)
		s.w = s.gz
	}
	c.Writer.WriteHeader(http.StatusOK)
	held := s.held
	s.held = nil
	_, err := s.w.Write(held)
	return err
}

// Close ends the stream. The reply is complete only if Close was called and returned nil.
func (s *StreamWriter) Close() (err error) {
	if s.w == nil {
		if err := s.begin(); err != nil {
			return err
		}
	}
	if s.gz != nil {
		err = s.gz.Close()
		gzipWriters.Put(s.gz)
	}
	return err
}

// PacedWriter writes to the client, with a deadline for each write.
type PacedWriter StreamWriter

// NewPacedWriter returns a writer for a call whose reply has begun.
func NewPacedWriter(c *Call) *PacedWriter { return &PacedWriter{c: c, since: time.Now()} }

// Write implements io.Writer.
func (p *PacedWriter) Write(b []byte) (int, error) {
	_ = http.NewResponseController(p.c.Writer).SetWriteDeadline(p.since.Add(p.c.Server.patience(p.n + int64(len(b)))))
	n, err := p.c.Writer.Write(b)
	p.n += int64(n)
	return n, err
}
