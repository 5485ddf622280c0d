package server

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
func (c *call) fail(err error, id string) {
	p := problemOf(err)
	if p.cause != nil {
		level := slog.LevelError
		if c.ctx.Err() != nil { // the client has gone away
			level = slog.LevelDebug
		}
		c.s.opts.Logger.Log(c.ctx, level, "server: a request has failed", "request", id, "method", c.r.Method, "path", c.r.URL.Path, "err", p.cause)
	}
	for name, value := range p.headers {
		c.reply.Set(name, value)
	}
	// Do not wait long for the rest of the body. A ResponseWriter without deadlines
	// belongs to a test, or is wrapped by a user.
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(time.Second))
	c.reply.Del("ETag")
	c.contentType = ""
	c.status, c.out = p.status, p.body(c.r.URL.RequestURI())
}

// send writes the reply.
func (c *call) send() {
	if len(c.out) > 0 && c.status != http.StatusNoContent && c.status != http.StatusNotModified {
		c.reply.Set("Content-Type", cmp.Or(c.contentType, "application/json; charset=utf-8"))
		c.compress()
	} else {
		c.out = nil
	}
	if c.status != http.StatusNoContent && c.status != http.StatusNotModified {
		c.reply.Set("Content-Length", strconv.Itoa(len(c.out)))
	}
	// A ResponseWriter that has no deadlines is one of a test, or wrapped by a user.
	control := http.NewResponseController(c.w)
	_ = control.SetWriteDeadline(time.Now().Add(c.s.patience(int64(len(c.out)))))
	c.w.WriteHeader(c.status)
	if c.r.Method != http.MethodHead {
		// A client that has gone away needs no reply.
		_, _ = c.w.Write(c.out)
	}
	_ = control.SetWriteDeadline(time.Time{})
}

// compress compresses the reply if the client accepts gzip.
func (c *call) compress() {
	if len(c.out) < minGzipBytes || c.r.Method == http.MethodHead {
		return
	}
	c.reply.Add("Vary", "Accept-Encoding")
	if !takesGzip(c.header) {
		return
	}
	var packed bytes.Buffer
	packed.Grow(len(c.out) / 2)
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&packed)
	_, err := w.Write(c.out)
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err) // writing to memory cannot fail
	}
	c.reply.Set("Content-Encoding", "gzip")
	c.out = packed.Bytes()
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

// streamWriter writes the reply of a stream at the client's pace, within the server's time
// limits.
type streamWriter struct {
	c     *call
	w     io.Writer
	gz    *gzip.Writer
	since time.Time
	n     int64
}

// startStream sends the head of the reply. The caller must call close.
func (c *call) startStream(contentType string) *streamWriter {
	s := &streamWriter{c: c, since: time.Now()}
	s.w = (*pacedWriter)(s)
	c.started, c.status = true, http.StatusOK
	c.reply.Set("Content-Type", contentType)
	c.reply.Add("Vary", "Accept-Encoding")
	if takesGzip(c.header) {
		c.reply.Set("Content-Encoding", "gzip")
		s.gz = gzipWriters.Get().(*gzip.Writer)
		s.gz.Reset(s.w)
		s.w = s.gz
	}
	c.w.WriteHeader(http.StatusOK)
	return s
}

// Write implements io.Writer.
func (s *streamWriter) Write(b []byte) (int, error) { return s.w.Write(b) }

// close ends the stream. The reply is complete only if close was called and returned nil.
func (s *streamWriter) close() (err error) {
	if s.gz != nil {
		err = s.gz.Close()
		gzipWriters.Put(s.gz)
	}
	return err
}

// pacedWriter writes to the client, with a deadline for each write.
type pacedWriter streamWriter

// Write implements io.Writer.
func (p *pacedWriter) Write(b []byte) (int, error) {
	_ = http.NewResponseController(p.c.w).SetWriteDeadline(p.since.Add(p.c.s.patience(p.n + int64(len(b)))))
	n, err := p.c.w.Write(b)
	p.n += int64(n)
	return n, err
}

// countingWriter records the status and the number of bytes sent, for the log.
type countingWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader implements http.ResponseWriter.
func (w *countingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// logRequest logs a request.
func (s *Server) logRequest(c *call, w *countingWriter, id string, start time.Time) {
	took := time.Since(start)
	s.metrics.observe(c, w.status, w.bytes, took)
	level, message := slog.LevelInfo, "server: request"
	if took >= s.opts.SlowAfter && (c.route == nil || !c.route.stream && !c.route.socket) { // the reader decides how long a stream takes
		level, message = slog.LevelWarn, "server: slow request"
	}
	if c.route != nil && c.route.free {
		level = slog.LevelDebug
	}
	if !s.opts.Logger.Enabled(c.ctx, level) {
		return
	}
	sender := ""
	if c.who != nil {
		sender = c.who.Name
	}
	s.opts.Logger.LogAttrs(c.ctx, level, message, slog.String("request", id), slog.String("sender", sender), slog.String("remote", c.r.RemoteAddr), slog.String("method", c.r.Method),
		slog.String("url", c.r.URL.RequestURI()), slog.Int("status", w.status), slog.Int64("bytes", w.bytes), slog.Duration("took", took))
}
