package own

import (
	"context"
	"net/http"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// collectionRoutes are the endpoints of collections.
var collectionRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/collections", Run: getCollections},
	{Method: "POST", Path: "{J}/collections/rename", Run: renameCollection, Begins: "rename a collection", Body: true, Needs: serve.AdminRight},
	{Method: "DELETE", Path: "{J}/collections", Run: dropCollection, Begins: "drop a collection", Needs: serve.AdminRight, Takes: "name"},
}

// getCollections replies with the collections and their numbers of documents.
func getCollections(c *serve.Call) error {
	all, err := c.DB.Collections(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	if all == nil {
		all = []jay.CollectionCount{}
	}
	return c.Listed(http.StatusOK, map[string]any{"collections": all})
}

// renameCollection moves the documents of a collection into another one, as an
// operation.
func renameCollection(c *serve.Call) error {
	var body struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	if body.From == "" || body.To == "" {
		return serve.BadRequest("a renaming needs from and to")
	}
	c.Subject = body.From + " to " + body.To
	return changeCollection(c, body.From, func(ctx context.Context, db *jay.DB, progress jay.CollectionChange) (int64, error) {
		return db.RenameCollection(ctx, body.From, body.To, progress)
	})
}

// dropCollection deletes the documents of a collection and its indexes, as an operation.
func dropCollection(c *serve.Call) error {
	name := c.Params.Get("name")
	if name == "" {
		return serve.BadRequest("the URL names no collection: name is missing")
	}
	c.Subject = name
	return changeCollection(c, name, func(ctx context.Context, db *jay.DB, progress jay.CollectionChange) (int64, error) {
		return db.DropCollection(ctx, name, progress)
	})
}

func changeCollection(c *serve.Call, name string, fn func(context.Context, *jay.DB, jay.CollectionChange) (int64, error)) error {
	db := c.DB
	total, err := db.Query(name).Count(c.Ctx)
	if err != nil {
		return err
	}
	return c.Background(func(ctx context.Context, o *serve.Operation) (any, error) {
		n, err := fn(o.Storing(ctx), db, jay.CollectionProgress(func(n int64) {
			c.Server.Operations.Progress(o, map[string]any{"documents": n, "total": max(total, n)})
		}))
		return map[string]any{"documents": n}, err
	})
}
