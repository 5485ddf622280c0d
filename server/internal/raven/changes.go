package raven

import (
	"strings"

	"github.com/coder/websocket"

	"github.com/jaydb/jay/server/internal/serve"
)

// changeRoutes has the endpoint of the changes socket.
var changeRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/changes", Run: watchChanges, Socket: true},
}

// watchChanges lets a client watch the database over a websocket.
func watchChanges(c *serve.Call) error {
	if !strings.EqualFold(c.Header.Get("Upgrade"), "websocket") {
		return serve.BadRequest("the request asks for no websocket")
	}
	// The guard has compared Origin and Host already.
	c.Started = true
	conn, err := websocket.Accept(c.Writer, c.Request, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // Accept has replied
	}
	conn.SetReadLimit(serve.MaxSocketCommand)
	ctx, cancel := c.StreamContext()
	defer cancel()
	c.Server.Hubs.Attend(ctx, c.Database, c.DB, conn, c.Server.Memory.Holding(c.Sender()))
	return nil
}
