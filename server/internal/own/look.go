package own

import (
	"net/http"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// lookRoutes has the endpoint by which other programs look into a database. Who may look into it reads all of it, as a backup does.
var lookRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/look", Run: look, Stream: true, Socket: true, Needs: serve.ReadRight},
}

// lookProtocol is the name of the protocol that the connection goes on with.
const lookProtocol = "jay-look"

// lookBytes is the memory of a connection: a request, a page, and buffers.
const lookBytes = 2 << 20

// look answers one that looks into the database, on the connection of the request, until that is closed.
func look(c *serve.Call) error {
	if err := c.Take(lookBytes); err != nil {
		return err
	}
	ctx, cancel := c.StreamContext()
	defer cancel()
	conn, err := serve.SwitchProtocols(c.Writer, c.Request, lookProtocol)
	if err != nil {
		return err
	}
	c.Started, c.Status = true, http.StatusSwitchingProtocols
	if err := jay.AnswerLook(ctx, c.DB, conn); err != nil && ctx.Err() == nil {
		c.Server.Options.Logger.Info("server: one that looks into a database was refused", "database", c.Database.Record.Name, "err", err)
	}
	return nil
}
