package serve

import (
	"net/http"
	"strings"
	"time"

	"github.com/jaydb/jay/server/studio"
)

// studioRoute is the route of the studio's files, for the log and the metrics.
var studioRoute = &Route{Method: http.MethodGet, Path: studio.Root, free: true}

// isStudio reports whether a request is for the studio's files.
func (s *Server) isStudio(r *http.Request) bool {
	return s.Options.Studio && (r.URL.Path == "/" || r.URL.Path == strings.TrimSuffix(studio.Root, "/") || strings.HasPrefix(r.URL.Path, studio.Root))
}

// serveStudio sends a file of the studio. The files are public and hold no data, so a link
// on another site may lead to them: only the host is checked. The requests of their
// scripts are guarded like all others.
func (c *Call) serveStudio() error {
	if err := c.Server.checkHost(c.Request); err != nil {
		return err
	}
	c.Route, c.Started = studioRoute, true
	c.Reply.Del("Raven-Server-Version")
	control := http.NewResponseController(c.Writer)
	_ = control.SetWriteDeadline(time.Now().Add(c.Server.patience(studio.MaxFileBytes))) // a test's writer has no deadlines
	files := c.Server.studio
	if c.Mount != nil {
		files = c.Mount.studio
	}
	files.ServeHTTP(c.Writer, c.Request)
	_ = control.SetWriteDeadline(time.Time{})
	return nil
}
