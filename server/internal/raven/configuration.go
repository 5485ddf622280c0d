package raven

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/jaydb/jay/server/internal/serve"
)

// configurationRoutes are the endpoints of the configuration for clients.
var configurationRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/configuration/client", Run: clientConfiguration},
	{Method: "PUT", Path: "{D}/admin/configuration/client", Run: putClientConfiguration, Body: true, Raft: true},
}

// clientConfiguration returns the configuration of the database for its clients.
func clientConfiguration(c *serve.Call) error {
	if err := c.Database.RefreshClient(c.Ctx, c.DB); err != nil {
		return err
	}
	now := c.Database.Client()
	c.Reply.Del("Refresh-Client-Configuration") // this request fetches it
	if now == nil {
		return c.JSON(http.StatusOK, map[string]any{"Etag": noConfiguration, "Configuration": nil})
	}
	// The configuration itself must contain its new etag.
	members := make(map[string]json.RawMessage)
	if err := now.Decode(&members); err != nil {
		return err
	}
	members["Etag"] = json.RawMessage(strconv.FormatUint(now.Number, 10))
	return c.JSON(http.StatusOK, map[string]any{"Etag": now.Number, "Configuration": members})
}

// putClientConfiguration stores the configuration of the database for its clients.
func putClientConfiguration(c *serve.Call) error {
	if len(c.Body) > serve.MaxConfigurationBytes {
		return serve.TooLarge("a client configuration has at most %d bytes", serve.MaxConfigurationBytes)
	}
	var given clientGiven
	if err := c.Decode(&given); err != nil {
		return err
	}
	if err := given.check(); err != nil {
		return err
	}
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal(c.Body, &members); err != nil { // as they were given
		return err
	}
	for name := range members {
		if strings.EqualFold(name, "Etag") {
			delete(members, name)
		}
	}
	if err := c.Database.PutClient(c.Ctx, c.DB, serve.MustJSON(members)); err != nil {
		return err
	}
	c.Reply.Set("Refresh-Client-Configuration", "true")
	return c.Empty(http.StatusCreated)
}

// noConfiguration is the etag of a database without a configuration.
const noConfiguration = -2
