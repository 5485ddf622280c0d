package own

import (
	"net/http"

	"github.com/jaydb/jay/server/internal/serve"
)

// rejectRoutes has the endpoint of what an import refused.
var rejectRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/import/rejects", Run: getRejects, Needs: serve.WriteRight, Reads: true, Takes: "operation"},
}

// getRejects replies with the records that an import has rejected, one per line.
func getRejects(c *serve.Call) error {
	id, err := c.Params.Number("operation", 0)
	if err != nil {
		return err
	}
	text, found := c.Server.Rejects.TextOf(serve.OperationID{Database: c.Database.Key, ID: id})
	if !found {
		return &serve.Problem{Status: http.StatusNotFound, Kind: serve.TypeBadRequest, Message: "there are no rejects of this import: those of the last imports are kept, for 15 minutes"}
	}
	if err := c.Take(int64(len(text))); err != nil { // they may be dropped, and paid for no longer, while they are sent
		return err
	}
	c.Reply.Set("Content-Disposition", `attachment; filename="rejects.ndjson"`)
	c.ContentType = "application/x-ndjson; charset=utf-8"
	return c.Text(http.StatusOK, text)
}
