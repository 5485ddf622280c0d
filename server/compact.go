package server

import (
	"context"
	"encoding/json"
)

// compact compacts a database, as an operation of the server. The database stays in use.
func (c *call) compact() error {
	var request struct {
		DatabaseName string
		Documents    *bool
		Indexes      json.RawMessage // ignored: indexes are compacted with the documents
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	if request.DatabaseName == "" {
		return badRequest("DatabaseName names no database")
	}
	d, err := c.s.databases.acquire(c.ctx, request.DatabaseName)
	if err != nil {
		return notThere(err)
	}
	c.subject = d.record.Name
	db, stopped := d.db, c.s.databases.contextOf(d)
	err = c.background(func(ctx context.Context, o *operation) (any, error) {
		defer c.s.databases.release(d)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(stopped, cancel)()
		before, err := diskBytes(db.Dir())
		if err != nil {
			return nil, err
		}
		if err := db.Compact(ctx); err != nil {
			return nil, err
		}
		after, err := diskBytes(db.Dir())
		return map[string]any{"$type": "Raven.Client.ServerWide.Operations.CompactionResult, Raven.Client", "Message": "compacted", "Skipped": false, "Processed": true,
			"SizeBeforeCompactionInMb": before >> 20, "SizeAfterCompactionInMb": after >> 20, "ShouldPersist": false}, err
	})
	if err != nil {
		c.s.databases.release(d)
	}
	return err
}
