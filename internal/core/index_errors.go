package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/internal/tally"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Errors returns documents for which expressions of the index fail, in the order of their folded IDs, behind after: see
// IndexView.Errors of package jay.
func (v IndexView) Errors(ctx context.Context, after string, limit int) (list []index.Failure, err error) {
	if after != "" {
		after = v.DB.Env.Rules.Fold(after)
	}
	err = v.listed(ctx, "errors", limit, func(ix *catalog.Index, r storage.Reader, limit int) (err error) {
		list, err = errorsOf(ctx, ix, r, v.documents(ix, r), after, limit)
		return err
	})
	return list, err
}

// documents returns a reader of documents as the index reads them: with what they load.
func (v IndexView) documents(ix *catalog.Index, r storage.Reader) storage.Reader {
	if ix.Loads == nil {
		return r
	}
	return loads.NewReader(r, ix.Loads, v.DB.Env.Rules.Fold, loads.From(r))
}

// errorsOf returns the errors of at most limit documents behind a folded ID.
func errorsOf(ctx context.Context, ix *catalog.Index, r, documents storage.Reader, after string, limit int) (list []index.Failure, err error) {
	list = []index.Failure{}
	if !ix.Errors {
		return list, nil
	}
	lo, hi := format.ErrorsOf(ix.Number)
	if after != "" {
		lo = append(catalog.AppendErrorKey(lo[:0], ix.Number, after), 0)
	}
	reader := ix.NewFailureReader()
	enough := errors.New("enough")
	err = env.Each(r, lo, hi, func(key, _ []byte) (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if list, err = appendFailures(list, documents, reader, key); err != nil {
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
