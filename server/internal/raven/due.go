package raven

import (
	"encoding/json"
	"net/http"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// dueRoutes are the endpoints of the settings of expiration and refresh.
var dueRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/expiration/config", Run: expirationConfig},
	{Method: "POST", Path: "{D}/admin/expiration/config", Run: putExpirationConfig, Body: true, Raft: true},
	{Method: "GET", Path: "{D}/refresh/config", Run: refreshConfig},
	{Method: "POST", Path: "{D}/admin/refresh/config", Run: putRefreshConfig, Body: true, Raft: true},
}

// getDue returns the configuration of expiration or refresh, and 404 if there is none.
func getDue(c *serve.Call, d *serve.Due) error {
	settings, err := verbs.DueSettings(c, d)
	if err != nil {
		return err
	}
	if settings == nil {
		return c.Empty(http.StatusNotFound)
	}
	return c.JSON(http.StatusOK, settings)
}

// putDue stores the configuration of expiration or refresh in the database: whether it is
// disabled, and then all of it as a definition, which a crash between the two leaves as it
// was.
func putDue(c *serve.Call, d *serve.Due) error {
	if len(c.Body) > serve.MaxConfigurationBytes {
		return serve.TooLarge("a configuration has at most %d bytes", serve.MaxConfigurationBytes)
	}
	var members map[string]json.RawMessage
	if err := c.Decode(&members); err != nil {
		return err
	}
	settings, err := d.Parse(members)
	if err != nil {
		return err
	}
	if err := d.Configure(c.Ctx, c.DB, settings.Disabled()); err != nil {
		return err
	}
	if err := c.DB.Definitions().Change(c.Ctx, jay.DefinitionChange{Kind: serve.ConfigurationKind, Name: d.Name, Value: serve.MustJSON(settings)}); err != nil {
		return err
	}
	return raftIndex(c)
}

func expirationConfig(c *serve.Call) error { return getDue(c, &serve.Expiration) }

func putExpirationConfig(c *serve.Call) error { return putDue(c, &serve.Expiration) }

func refreshConfig(c *serve.Call) error { return getDue(c, &serve.Refresh) }

func putRefreshConfig(c *serve.Call) error { return putDue(c, &serve.Refresh) }
