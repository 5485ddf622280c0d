package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
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
	err = eachKey(ctx, snapshot, lo, hi, func(key []byte) (bool, error) {
		if list, err = appendFailures(list, snapshot, reader, key); err != nil {
			return false, err
		}
		limit--
		return limit > 0, nil
	})
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
	err = eachKey(ctx, snapshot, lo, hi, func([]byte) (bool, error) {
		n++
		return true, nil
	})
	return n, err
}

// keysPerPoll is how many keys eachKey walks over between two looks at its context.
const keysPerPoll = 1024

// eachKey calls fn with the keys of a range until it returns false or an error.
func eachKey(ctx context.Context, r storage.Reader, lo, hi []byte, fn func(key []byte) (bool, error)) (err error) {
	it, err := r.Iterate(lo, hi)
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, errs.First(it.Error(), it.Close())) }()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%keysPerPoll == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if more, err := fn(bytes.Clone(it.Key())); err != nil || !more {
			return err
		}
	}
	return nil
}
