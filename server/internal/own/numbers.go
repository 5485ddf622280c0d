package own

import (
	"net/http"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// numberRoutes are the endpoints of the report on IDs and of counters.
var numberRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/ids", Run: getIDs, Timed: true},
	{Method: "GET", Path: "{J}/counters", Run: getCounters},
	{Method: "POST", Path: "{J}/counters", Run: raiseCounters, Body: true, Needs: serve.AdminRight},
}

// getIDs replies with the ID report. It reads the metadata of all documents.
func getIDs(c *serve.Call) error {
	report, err := c.DB.InspectIDs(c.Ctx, nil)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, report)
}

// getCounters replies with the counters.
func getCounters(c *serve.Call) error {
	counters, err := c.DB.Counters(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	return c.Listed(http.StatusOK, counters)
}

// raiseCounters raises counters to at least these numbers, and lowers none.
func raiseCounters(c *serve.Call) error {
	var counters jay.Counters
	if err := c.Decode(&counters); err != nil {
		return err
	}
	if _, err := c.DB.Counters(c.Listing(c.Ctx)); err != nil { // the reply is paid for before the commit, so that a refusal is true
		return err
	}
	if err := c.DB.RaiseCounters(c.Ctx, counters); err != nil {
		return err
	}
	after, err := c.DB.Counters(c.Ctx)
	if err != nil {
		return err
	}
	return c.Text(http.StatusOK, serve.MustJSON(after))
}
