package server

import (
	"net/http"
	"time"

	"github.com/jaydb/jay"
)

// hiloNext grants a range of HiLo numbers to a client that makes its own IDs.
func (c *call) hiloNext() error {
	var err error
	count := func(name string) int64 {
		n, problem := c.params.number(name, 0)
		if problem != nil {
			err = problem
		}
		return n
	}
	request := jay.RangeRequest{
		Tag:         c.params.get("tag"),
		LastSize:    count("lastBatchSize"),
		LastRangeAt: parseTime(c.params.get("lastRangeAt")),
		Separator:   c.params.get("identityPartsSeparator"),
		LastMax:     count("lastMax"),
	}
	if request.Tag == "" {
		err = badRequest("tag must name a sequence")
	}
	if err != nil {
		return err
	}
	r, err := c.db.NextRange(c.ctx, request)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, map[string]any{
		"Prefix": r.Prefix, "Low": r.Low, "High": r.High, "LastSize": r.Size, "ServerTag": r.NodeTag, "LastRangeAt": r.GrantedAt.UTC().Format(ravenTime),
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
func (c *call) hiloReturn() error {
	tag := c.params.get("tag")
	end, err := c.params.number("end", 0)
	if err != nil {
		return err
	}
	last, err := c.params.number("last", 0)
	if err != nil {
		return err
	}
	if tag == "" {
		return badRequest("tag must name a sequence")
	}
	if _, err := c.db.ReturnRange(c.ctx, tag, last, end); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

// identityNext uses the next number of an identity.
func (c *call) identityNext() error {
	n, err := c.db.NextIdentity(c.ctx, c.params.get("name"), c.once()...)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"NewIdentityValue": n})
}

// identitySeed sets the last used number of an identity.
func (c *call) identitySeed() error {
	if c.params.get("value") == "" {
		return badRequest("value must be the last used number")
	}
	value, err := c.params.number("value", 0)
	if err != nil {
		return err
	}
	force, err := c.params.flag("force")
	if err != nil {
		return err
	}
	last, err := c.db.SeedIdentity(c.ctx, c.params.get("name"), value, force, c.once()...)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"NewSeedValue": last})
}

// identities lists the last used numbers.
func (c *call) identities() error {
	all, err := c.db.Identities(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, all)
}
