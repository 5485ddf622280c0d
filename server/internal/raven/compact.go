package raven

import (
	"context"
	"encoding/json"

	"github.com/jaydb/jay/server/internal/serve"
)

// compactRoutes has the endpoint that compacts a database.
var compactRoutes = []*serve.Route{
	{Method: "POST", Path: "/admin/compact", Run: compactDatabase, Begins: "compact", Body: true},
}

// compactDatabase compacts a database, as an operation of the server. The database stays in use.
func compactDatabase(c *serve.Call) error {
	var request struct {
		DatabaseName string
		Documents    json.RawMessage `ignored:"documents and indexes are compacted together"`
		Indexes      json.RawMessage `ignored:"documents and indexes are compacted together"`

		SkipOptimizeIndexes json.RawMessage `ignored:"indexes have nothing to optimize"`
	}
	if err := c.Decode(&request); err != nil {
		return err
	}
	if request.DatabaseName == "" {
		return serve.BadRequest("DatabaseName names no database")
	}
	d, err := c.Server.Databases.Acquire(c.Ctx, request.DatabaseName)
	if err != nil {
		return notThere(err)
	}
	if d.InStore() {
		c.Server.Databases.Release(d)
		return serve.NotSupported("POST %s: the server of the store frees the space of what is deleted by itself", c.Route.Path)
	}
	c.Subject = d.Record.Name
	db, stopped := d.DB, c.Server.Databases.ContextOf(d)
	err = c.Background(func(ctx context.Context, o *serve.Operation) (any, error) {
		defer c.Server.Databases.Release(d)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(stopped, cancel)()
		before, err := d.DiskBytes(ctx)
		if err != nil {
			return nil, err
		}
		if err := db.Compact(ctx); err != nil {
			return nil, err
		}
		after, err := d.DiskBytes(ctx)
		return map[string]any{"$type": "Raven.Client.ServerWide.Operations.CompactionResult, Raven.Client", "Message": "compacted", "Skipped": false, "Processed": true,
			"SizeBeforeCompactionInMb": before >> 20, "SizeAfterCompactionInMb": after >> 20, "ShouldPersist": false}, err
	})
	if err != nil {
		c.Server.Databases.Release(d)
	}
	return err
}
