package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/tally"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Bounds of IndexErrors.
const (
	UsualIndexErrors = 100    // without a limit
	MaxIndexErrors   = 10_000 // documents of one call
)

// IndexErrors returns documents for which expressions of an index fail, in the order of their folded IDs, behind after: see
// IndexErrors of package jay.
func (db *Database) IndexErrors(ctx context.Context, collection, name, after string, limit int) (list []index.Failure, err error) {
	switch {
	case limit < 0 || limit > MaxIndexErrors:
		return nil, fmt.Errorf("%w: %d errors of an index: 0 to %d can be asked for", ids.ErrUsage, limit, MaxIndexErrors)
	case limit == 0:
		limit = UsualIndexErrors
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	c, snapshot, err := db.View(db.Env.Engine.Snapshot)
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, snapshot.Close()) }()
	ix := c.Find(collection, name)
	if ix == nil {
		return nil, fmt.Errorf("%w: %s has no index %.100q", errs.ErrIndex, collection, name)
	}
	list = []index.Failure{}
	if !ix.Errors {
		return list, nil
	}
	lo, hi := format.ErrorsOf(ix.Number)
	if after != "" {
		lo = append(append(lo, db.Env.Rules.Fold(after)...), 0, 0)
	}
	reader := ix.NewFailureReader()
	enough := errors.New("enough")
	err = env.Each(snapshot, lo, hi, func(key, _ []byte) (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if list, err = appendFailures(list, snapshot, reader, key); err != nil {
			return err
		}
		if limit--; limit == 0 {
			return enough
		}
		return nil
	})
	if err == enough {
		err = nil
	}
	return list, err
}

// appendFailures appends why expressions of an index fail for the document that a note is about.
func appendFailures(list []index.Failure, r storage.Reader, reader *catalog.FailureReader, note []byte) (_ []index.Failure, err error) {
	folded, err := catalog.ErrorID(note)
	if err != nil {
		return list, err
	}
	value, closer, err := r.Get(format.NewDocumentKey(folded))
	if errors.Is(err, storage.ErrNotFound) {
		return list, fmt.Errorf("an index notes an error of document %q, which is not there: %w", folded, errs.ErrCorrupt)
	}
	if err != nil {
		return list, err
	}
	defer func() { err = errs.First(err, closer.Close()) }()
	h, body, err := metadata.Decode(value)
	if err != nil {
		return list, fmt.Errorf("document %q: %w", folded, err)
	}
	id := string(folded)
	if h.ID != nil {
		id = string(h.ID)
	}
	for _, f := range reader.Failures(body) {
		f.ID = id
		list = append(list, f)
	}
	return list, nil
}

// countErrors returns for how many documents an index notes that expressions fail.
func (db *Database) countErrors(ctx context.Context, ix *catalog.Index) (n int64, err error) {
	snapshot := db.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	lo, hi := format.ErrorsOf(ix.Number)
	return tally.Keys(ctx, snapshot, lo, hi)
}
