package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/jaydb/jay/server/studio"
)

// studioRoute is the route of the studio's files, for the log and the metrics.
var studioRoute = &route{method: http.MethodGet, path: studio.Root, free: true}

// isStudio reports whether a request is for the studio's files.
func (s *Server) isStudio(r *http.Request) bool {
	return s.opts.Studio && (r.URL.Path == "/" || r.URL.Path == strings.TrimSuffix(studio.Root, "/") || strings.HasPrefix(r.URL.Path, studio.Root))
}

// serveStudio sends a file of the studio. The files are public and hold no data, so a link
// on another site may lead to them: only the host is checked. The requests of their
// scripts are guarded like all others.
func (c *call) serveStudio() error {
	if err := c.s.checkHost(c.r); err != nil {
		return err
	}
	c.route, c.started = studioRoute, true
	c.reply.Del("Raven-Server-Version")
	control := http.NewResponseController(c.w)
	_ = control.SetWriteDeadline(time.Now().Add(c.s.patience(studio.MaxFileBytes))) // a test's writer has no deadlines
	c.s.studio.ServeHTTP(c.w, c.r)
	_ = control.SetWriteDeadline(time.Time{})
	return nil
}
