package own

import (
	"context"
	"net/http"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// computedRoutes are the endpoints of computed indexes.
var computedRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/indexes/computed", Run: getComputed},
	{Method: "GET", Path: "{J}/indexes/computed/errors", Run: getComputedErrors, Takes: "limit name"},
	{Method: "POST", Path: "{J}/indexes/computed/preview", Run: previewComputed, Timed: true, Body: true, Needs: serve.ReadRight},
	{Method: "PUT", Path: "{J}/indexes/computed", Run: putComputed, Body: true, Needs: serve.AdminRight},
	{Method: "DELETE", Path: "{J}/indexes/computed", Run: dropComputed, Needs: serve.AdminRight, Takes: "name"},
}

// getComputed replies with the computed indexes.
func getComputed(c *serve.Call) error {
	list, err := jay.ComputedOf(c.DB).List(c.Ctx)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"computed": list})
}

// getComputedErrors replies with the documents for which expressions of a computed index fail.
func getComputedErrors(c *serve.Call) error {
	limit, err := c.Params.Count("limit", 100)
	if err != nil {
		return err
	}
	list, err := jay.ComputedOf(c.DB).Errors(c.Ctx, c.Params.Get("name"), limit)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"errors": list})
}

// previewComputed replies with what a declaration makes of documents, without declaring it.
func previewComputed(c *serve.Call) error {
	var body struct {
		Index jay.Computed `json:"index"`
		IDs   []string     `json:"ids"` // at most 100; none is the first ten of each collection
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	p, err := jay.ComputedOf(c.DB).Preview(c.Reading(c.Ctx, 1), body.Index, body.IDs...)
	if serve.IsMissing(err) { // one of the IDs names no document
		return serve.BadRequest("%s", serve.OneLine(err.Error()))
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, p)
}

// putComputed declares a computed index. It replies when its parts are ready or, with 202, when that takes longer than
// indexPatience: the builds then continue, and the list shows their state.
func putComputed(c *serve.Call) error {
	var body struct {
		Index   jay.Computed `json:"index"`
		Replace bool         `json:"replace"` // replace one of the same name with another declaration
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	var opts []jay.IndexOption
	if body.Replace {
		opts = append(opts, jay.ReplaceIndex())
	}
	c.Subject = body.Index.Name
	ctx, cancel := context.WithTimeout(c.Ctx, indexPatience)
	defer cancel()
	err := jay.ComputedOf(c.DB).Ensure(ctx, body.Index, opts...)
	switch {
	case err != nil && ctx.Err() != nil && c.Ctx.Err() == nil:
		return c.JSON(http.StatusAccepted, map[string]any{"ready": false})
	case err != nil:
		return err
	}
	c.Server.Hubs.PublishIndex(c.Database.Key, "IndexAdded", body.Index.Name)
	return c.JSON(http.StatusCreated, map[string]any{"ready": true})
}

// dropComputed drops a computed index, but for one of a definition of RavenDB's clients, which would be there again with the next query.
func dropComputed(c *serve.Call) error {
	name := c.Params.Get("name")
	d, err := verbs.FindDefinition(c, name)
	if err != nil {
		return err
	}
	if d != nil {
		return serve.BadRequest("index %.150q is a definition of RavenDB's clients: DELETE {D}/indexes drops it", d.Name)
	}
	ctx, cancel := context.WithTimeout(c.Ctx, indexPatience)
	defer cancel()
	err = jay.ComputedOf(c.DB).Drop(ctx, name)
	switch {
	case err != nil && ctx.Err() != nil && c.Ctx.Err() == nil:
		return c.JSON(http.StatusAccepted, map[string]any{"dropped": false})
	case err != nil:
		return err
	}
	c.Server.Hubs.PublishIndex(c.Database.Key, "IndexRemoved", name)
	return c.Empty(http.StatusNoContent)
}
