package serve

import (
	"log/slog"
	"net/http"
	"time"
)

// logRequest logs a request.
func (s *Server) logRequest(c *Call, w *countingWriter, id string, start time.Time) {
	took := time.Since(start)
	method, endpoint := "other", "unknown"
	if c.Route != nil {
		method, endpoint = c.Route.Method, c.Route.Path
	}
	s.metrics.observe(method, endpoint, w.status, w.bytes, took)
	level, message := slog.LevelInfo, "server: request"
	if took >= s.Options.SlowAfter && (c.Route == nil || !c.Route.Stream && !c.Route.Socket) { // the reader decides how long a stream takes
		level, message = slog.LevelWarn, "server: slow request"
	}
	if c.Route != nil && c.Route.free {
		level = slog.LevelDebug
	}
	if !s.Options.Logger.Enabled(c.Ctx, level) {
		return
	}
	sender := ""
	if c.Who != nil {
		sender = c.Who.Name
	}
	s.Options.Logger.LogAttrs(c.Ctx, level, message, slog.String("request", id), slog.String("sender", sender), slog.String("remote", c.Request.RemoteAddr), slog.String("method", c.Request.Method),
		slog.String("url", withoutTickets(c.Request.URL.RequestURI())), slog.Int("status", w.status), slog.Int64("bytes", w.bytes), slog.Duration("took", took))
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
