package own

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/server/internal/serve"
)

// indexRoutes are the endpoints of indexes.
var indexRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/indexes", Run: getIndexes, Takes: "collection"},
	{Method: "GET", Path: "{J}/indexes/errors", Run: getIndexErrors, Takes: "after collection limit name"},
	{Method: "PUT", Path: "{J}/indexes", Run: putIndex, Begins: "build an index", Body: true, Needs: serve.AdminRight, Takes: "background"},
	{Method: "DELETE", Path: "{J}/indexes", Run: dropIndex, Needs: serve.AdminRight, Takes: "collection name"},
}

// indexBody is the body of a request for an index.
type indexBody struct {
	Collection string    `json:"collection"`
	Index      jay.Index `json:"index"`
	Replace    bool      `json:"replace"` // replace an index of the same name with another declaration
}

// options returns the options for EnsureIndex.
func (b *indexBody) options(progress func(documents int64)) []jay.IndexOption {
	var opts []jay.IndexOption
	if b.Replace {
		opts = append(opts, jay.ReplaceIndex())
	}
	if progress != nil {
		opts = append(opts, jay.IndexProgress(progress))
	}
	return opts
}

// title returns a description of the index, for display.
func (b *indexBody) title() string {
	if b.Index.Name != "" {
		return b.Index.Name
	}
	return strings.Join(b.Index.Fields, ",")
}

// indexGlance is how long a request waits before the build becomes a background operation,
// so that errors of the declaration are in its reply.
const indexGlance = 250 * time.Millisecond

// buildIndex creates an index as an operation, which reports its number of documents. If
// the operation is killed, it drops the index.
func buildIndex(c *serve.Call, body *indexBody) error {
	c.Subject = body.Collection + ": " + body.title()
	db := c.DB
	have, err := db.Indexes(c.Ctx, body.Collection)
	if err != nil {
		return err
	}
	total, err := db.Query(body.Collection).Count(c.Ctx)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	err = c.Background(func(ctx context.Context, o *serve.Operation) (any, error) {
		report := func(n int64) { c.Server.Operations.Progress(o, map[string]any{"documents": n, "total": max(total, n)}) }
		report(0)
		err := db.EnsureIndex(ctx, body.Collection, body.Index, body.options(report)...)
		if err != nil && context.Cause(ctx) == serve.ErrKilled {
			patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			err = errors.Join(err, dropNew(patience, db, body.Collection, have))
		}
		ended <- err
		return map[string]any{"collection": body.Collection, "index": body.title()}, err
	})
	if err != nil {
		return err
	}
	timer := time.NewTimer(indexGlance)
	defer timer.Stop()
	c.Status = http.StatusAccepted
	select {
	case err := <-ended:
		c.Status = http.StatusCreated
		return err
	case <-timer.C:
	case <-c.Ctx.Done():
	}
	return nil
}

// dropNew drops those indexes of a collection that are being built and are not in before.
func dropNew(ctx context.Context, db *jay.DB, collection string, before []jay.IndexInfo) (err error) {
	now, err := db.Indexes(ctx, collection)
	for _, ix := range now {
		was := slices.ContainsFunc(before, func(old jay.IndexInfo) bool { return old.Name == ix.Name })
		if was || ix.State != jay.IndexBuilding {
			continue
		}
		if dropped := db.DropIndex(ctx, collection, ix.Name); dropped != nil && !errors.Is(dropped, jay.ErrIndex) {
			err = errors.Join(err, dropped)
		}
	}
	return err
}

// getIndexes replies with the indexes of a collection, or with all.
func getIndexes(c *serve.Call) error {
	all, err := c.DB.Indexes(c.Ctx, c.Params.Get("collection"))
	if err != nil {
		return err
	}
	if all == nil {
		all = []jay.IndexInfo{}
	}
	computed, err := jay.ComputedOf(c.DB).List(c.Ctx)
	if err != nil {
		return err
	}
	if of := c.Params.Get("collection"); of != "" {
		computed = slices.DeleteFunc(computed, func(info jay.ComputedInfo) bool { return !isOf(info, of) })
	}
	return c.JSON(http.StatusOK, map[string]any{"indexes": all, "computed": computed})
}

// isOf reports whether a computed index has a map of a collection.
func isOf(info jay.ComputedInfo, collection string) bool {
	return slices.ContainsFunc(info.Maps, func(m index.Map) bool { return m.Collection == "" || strings.EqualFold(m.Collection, collection) })
}

// getIndexErrors replies with the documents for which expressions of an index fail, behind the ID after.
func getIndexErrors(c *serve.Call) error {
	limit, err := c.Params.Count("limit", 100)
	if err != nil {
		return err
	}
	list, err := jay.IndexOf(c.DB, c.Params.Get("collection"), c.Params.Get("name")).Errors(c.Ctx, c.Params.Get("after"), limit)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"errors": list})
}

// putIndex creates an index. It replies when the index is ready or, with 202, when that
// takes longer than indexPatience: the build then continues, and the list of indexes shows
// its state. With background=true the build is an operation.
func putIndex(c *serve.Call) error {
	var body indexBody
	if err := c.Decode(&body); err != nil {
		return err
	}
	background, err := c.Params.Flag("background")
	if err != nil {
		return err
	}
	if background {
		return buildIndex(c, &body)
	}
	ctx, cancel := context.WithTimeout(c.Ctx, indexPatience)
	defer cancel()
	err = c.DB.EnsureIndex(ctx, body.Collection, body.Index, body.options(nil)...)
	if err != nil && ctx.Err() != nil && c.Ctx.Err() == nil {
		return c.JSON(http.StatusAccepted, map[string]any{"ready": false})
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string]any{"ready": true})
}

// indexPatience is how long a request waits for an index.
const indexPatience = 2 * time.Second

// dropIndex drops an index.
func dropIndex(c *serve.Call) error {
	ctx, cancel := context.WithTimeout(c.Ctx, indexPatience)
	defer cancel()
	err := c.DB.DropIndex(ctx, c.Params.Get("collection"), c.Params.Get("name"))
	if err != nil && ctx.Err() != nil && c.Ctx.Err() == nil {
		return c.JSON(http.StatusAccepted, map[string]any{"dropped": false})
	}
	if err != nil {
		return err
	}
	return c.Empty(http.StatusNoContent)
}
