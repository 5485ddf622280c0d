package own

import (
	"net/http"
	"time"

	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// figureRoutes are the endpoints of settings and figures.
var figureRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/settings", Run: getSettings},
	{Method: "GET", Path: "{J}/figures", Run: getFigures},
	{Method: "GET", Path: "{J}/disk", Run: getDisk},
}

// getFigures replies with the figures of the database and of the operations on it since
// the server began. All are counters that only grow: a chart shows their differences. They
// are cheap.
func getFigures(c *serve.Call) error {
	now, err := c.DB.Stats(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	return c.Listed(http.StatusOK, map[string]any{"at": time.Now().UTC().Format(serve.RavenTime), "stats": now, "operations": c.Database.Figures.List()})
}

// getDisk replies with the space that the parts of the database take on disk.
func getDisk(c *serve.Call) error {
	usage, err := c.DB.DiskUsage(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	return c.Listed(http.StatusOK, usage)
}

// getSettings replies with the configurations of the database in RavenDB's format, and
// null for those that were never set.
func getSettings(c *serve.Call) error {
	expires, err := verbs.DueSettings(c, &serve.Expiration)
	if err != nil {
		return err
	}
	refreshes, err := verbs.DueSettings(c, &serve.Refresh)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"revisions": verbs.RevisionsSettings(c.DB), "expiration": expires, "refresh": refreshes})
}
