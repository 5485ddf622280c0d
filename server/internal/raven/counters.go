package raven

import (
	"net/http"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// counterRoutes are the endpoints of HiLo ranges and identities.
var counterRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/hilo/next", Run: hiloNext, Needs: serve.WriteRight, Takes: "identityPartsSeparator lastBatchSize lastMax lastRangeAt tag"},
	{Method: "PUT", Path: "{D}/hilo/return", Run: hiloReturn, Takes: "end last tag"},
	{Method: "POST", Path: "{D}/identity/next", Run: identityNext, Agreed: true, Once: true, Takes: "name"},
	{Method: "POST", Path: "{D}/identity/seed", Run: identitySeed, Agreed: true, Once: true, Takes: "force name value"},
	{Method: "GET", Path: "{D}/debug/identities", Run: getIdentities, Agreed: true},
}

// hiloNext grants a range of HiLo numbers to a client that makes its own IDs.
func hiloNext(c *serve.Call) error {
	size, err := c.Params.Number("lastBatchSize", 0)
	if err != nil {
		return err
	}
	most, err := c.Params.Number("lastMax", 0)
	if err != nil {
		return err
	}
	request := jay.RangeRequest{
		Tag:         c.Params.Get("tag"),
		LastSize:    size,
		LastRangeAt: parseTime(c.Params.Get("lastRangeAt")),
		Separator:   c.Params.Get("identityPartsSeparator"),
		LastMax:     most,
	}
	if request.Tag == "" {
		return serve.BadRequest("tag must name a sequence")
	}
	r, err := c.DB.NextRange(c.Ctx, request)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string]any{
		"Prefix": r.Prefix, "Low": r.Low, "High": r.High, "LastSize": r.Size, "ServerTag": r.NodeTag, "LastRangeAt": r.GrantedAt.UTC().Format(serve.RavenTime),
	})
}

// parseTime parses a client's time. An invalid one counts as unknown.
func parseTime(text string) time.Time {
	for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	return time.Time{}
}

// hiloReturn takes the unused rest of a range back, if it is the newest range of its tag.
// As in RavenDB, the reply does not say whether it was.
func hiloReturn(c *serve.Call) error {
	tag := c.Params.Get("tag")
	end, err := c.Params.Number("end", 0)
	if err != nil {
		return err
	}
	last, err := c.Params.Number("last", 0)
	if err != nil {
		return err
	}
	if tag == "" {
		return serve.BadRequest("tag must name a sequence")
	}
	if _, err := c.DB.ReturnRange(c.Ctx, tag, last, end); err != nil {
		return err
	}
	return c.Empty(http.StatusNoContent)
}

// identityNext uses the next number of an identity.
func identityNext(c *serve.Call) error {
	n, err := c.DB.NextIdentity(c.Ctx, c.Params.Get("name"), c.Once()...)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"NewIdentityValue": n})
}

// identitySeed sets the last used number of an identity.
func identitySeed(c *serve.Call) error {
	if c.Params.Get("value") == "" {
		return serve.BadRequest("value must be the last used number")
	}
	value, err := c.Params.Number("value", 0)
	if err != nil {
		return err
	}
	force, err := c.Params.Flag("force")
	if err != nil {
		return err
	}
	last, err := c.DB.SeedIdentity(c.Ctx, c.Params.Get("name"), value, force, c.Once()...)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"NewSeedValue": last})
}

// getIdentities lists the last used numbers.
func getIdentities(c *serve.Call) error {
	all, err := c.DB.Identities(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	return c.Listed(http.StatusOK, all)
}
