package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

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
func (c *call) buildIndex(body *indexBody) error {
	c.subject = body.Collection + ": " + body.title()
	db := c.db
	have, err := db.Indexes(c.ctx, body.Collection)
	if err != nil {
		return err
	}
	total, err := db.Query(body.Collection).Count(c.ctx)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	err = c.background(func(ctx context.Context, o *operation) (any, error) {
		report := func(n int64) { c.s.operations.progress(o, map[string]any{"documents": n, "total": max(total, n)}) }
		report(0)
		err := db.EnsureIndex(ctx, body.Collection, body.Index, body.options(report)...)
		if err != nil && context.Cause(ctx) == errKilled {
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
	c.status = http.StatusAccepted
	select {
	case err := <-ended:
		c.status = http.StatusCreated
		return err
	case <-timer.C:
	case <-c.ctx.Done():
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

// ownRenameCollection moves the documents of a collection into another one, as an
// operation.
func (c *call) ownRenameCollection() error {
	var body struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	if body.From == "" || body.To == "" {
		return badRequest("a renaming needs from and to")
	}
	c.subject = body.From + " to " + body.To
	return c.changeCollection(body.From, func(ctx context.Context, db *jay.DB, progress jay.CollectionChange) (int64, error) {
		return db.RenameCollection(ctx, body.From, body.To, progress)
	})
}

// ownDropCollection deletes the documents of a collection and its indexes, as an operation.
func (c *call) ownDropCollection() error {
	name := c.params.get("name")
	if name == "" {
		return badRequest("the URL names no collection: name is missing")
	}
	c.subject = name
	return c.changeCollection(name, func(ctx context.Context, db *jay.DB, progress jay.CollectionChange) (int64, error) {
		return db.DropCollection(ctx, name, progress)
	})
}

func (c *call) changeCollection(name string, fn func(context.Context, *jay.DB, jay.CollectionChange) (int64, error)) error {
	db := c.db
	total, err := db.Query(name).Count(c.ctx)
	if err != nil {
		return err
	}
	return c.background(func(ctx context.Context, o *operation) (any, error) {
		n, err := fn(ctx, db, jay.CollectionProgress(func(n int64) {
			c.s.operations.progress(o, map[string]any{"documents": n, "total": max(total, n)})
		}))
		return map[string]any{"documents": n}, err
	})
}

// ownRaiseCounters raises counters to at least these numbers, and lowers none.
func (c *call) ownRaiseCounters() error {
	var counters jay.Counters
	if err := c.decode(&counters); err != nil {
		return err
	}
	if err := c.db.RaiseCounters(c.ctx, counters); err != nil {
		return err
	}
	return c.ownCounters()
}
