package core

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

// How much of an index one call returns: documents with errors, or terms.
const (
	usualListed = 100 // without a limit
	maxListed   = 10_000
)

// IndexView reads what one index has: see IndexView of package jay.
type IndexView struct {
	DB               *Database
	Collection, Name string
}

// listed calls fn with the index, what is on disk, and how many of what are asked for.
func (v IndexView) listed(ctx context.Context, what string, limit int, fn func(ix *catalog.Index, r storage.Reader, limit int) error) (err error) {
	db := v.DB
	switch {
	case limit < 0 || limit > maxListed:
		return fmt.Errorf("%w: %d %s of an index: 0 to %d can be asked for", ids.ErrUsage, limit, what, maxListed)
	case limit == 0:
		limit = usualListed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.Env.Enter(); err != nil {
		return err
	}
	defer db.Env.Exit()
	c, snapshot, err := db.View(db.Env.Engine.Snapshot)
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, snapshot.Close()) }()
	ix := c.Find(v.Collection, v.Name)
	if ix == nil {
		return fmt.Errorf("%w: %s has no index %.100q", errs.ErrIndex, v.Collection, v.Name)
	}
	return fn(ix, snapshot, limit)
}
