package own

import (
	"net/http"
	"time"

	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/standby"
)

// followRoutes has the endpoint that standbys follow a database by, and that of how one is. Who may follow it reads all of it, as a backup does.
var followRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/standby", Run: getStandby, Needs: serve.ReadRight},
	{Method: "POST", Path: "{J}/follow", Run: follow, Stream: true, Socket: true, Upload: true, Needs: serve.ReadRight},
}

// getStandby replies with how far the standby that the database is has come.
func getStandby(c *serve.Call) error {
	s := c.Database.Standby()
	if s == nil {
		return serve.BadRequest("the database is no standby of this server")
	}
	status := s.Status()
	status.Error = "" // it may have an address; the log has it
	return c.JSON(http.StatusOK, status)
}

// maxFollowRequest bounds the request of a standby, which is held in memory until it is answered.
const maxFollowRequest = 260 << 20

// follow answers the request of a standby: the reply ends when the standby has to ask again.
func follow(c *serve.Call) error {
	n := c.Request.ContentLength
	if n < 0 || n > maxFollowRequest {
		return serve.Closing(serve.BadRequest("POST {J}/follow takes a request of a known length, of at most %d bytes", maxFollowRequest))
	}
	if err := c.Take(n); err != nil {
		return serve.Closing(err)
	}
	ctx, cancel := c.StreamContext()
	defer cancel()
	control := http.NewResponseController(c.Writer)
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	return standby.Serve(ctx, c.DB, &followWriter{c, control}, &followReader{c, control})
}

// followReader reads the request. A client that sends nothing for feedPatience is disconnected.
type followReader struct {
	c       *serve.Call
	control *http.ResponseController
}

func (r *followReader) Read(p []byte) (int, error) {
	_ = r.control.SetReadDeadline(time.Now().Add(feedPatience)) // a test's writer has no deadlines
	return r.c.Request.Body.Read(p)
}

// followWriter sends each write at once, and the head of the reply with the first: an error before has a status. A client that receives nothing for
// feedPatience is disconnected.
type followWriter struct {
	c       *serve.Call
	control *http.ResponseController
}

func (w *followWriter) Write(p []byte) (int, error) {
	if c := w.c; !c.Started {
		c.Started, c.Status = true, http.StatusOK
		c.Reply.Set("Content-Type", "application/octet-stream")
		c.Reply.Set("Cache-Control", "no-store")
		c.Writer.WriteHeader(http.StatusOK)
		_ = w.control.SetReadDeadline(time.Time{})
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(feedPatience))
	n, err := w.c.Writer.Write(p)
	if err == nil {
		err = w.control.Flush()
	}
	return n, err
}
