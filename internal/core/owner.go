package core

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/look"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// This file has the changes that the program makes which has the database open, if this one looks into it.

// Ask has the owner of the database carry out a call, for callers that have found db.Owner: see ask.Do.
func Ask[R, P any](ctx context.Context, db *Database, name string, arguments any, result *R, progress func(P)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return db.orClosed(ask.Do(ctx, db.Owner, name, arguments, result, progress))
}

// orClosed returns the error of a call, or ErrClosed if this database was closed before the call.
func (db *Database) orClosed(err error) error {
	if err == nil || errors.Is(err, storage.ErrUnknownOutcome) {
		return err
	}
	if closed := db.Env.Renew(); errors.Is(closed, errs.ErrClosed) {
		return closed
	}
	return err
}

// WriteArguments are those of ask.Write.
type WriteArguments struct {
	Writes  []write.Carried `json:"writes"`
	Request *WriteRequest   `json:"request,omitempty"` // of a call with a request ID
}

// WriteRequest is the request ID of a call.
type WriteRequest struct {
	ID   string `json:"id"`
	Call string `json:"call"`
}

// WriteResult is the result of ask.Write.
type WriteResult struct {
	Results  []write.Answered `json:"results,omitempty"`
	Repeated json.RawMessage  `json:"repeated,omitempty"` // what the call has returned when it was carried out before
}

// writeByOwner is writeOps of a database that another program has open.
func (db *Database) writeByOwner(ctx context.Context, ops []*write.Op) error {
	if err := db.Owner.Caller.MayCall(ask.Write); err != nil {
		return db.orClosed(write.OpError(ops, ops[0], err))
	}
	carried, err := write.Carry(ops, look.ErrNotCarried)
	if err != nil {
		return err
	}
	arguments := WriteArguments{Writes: carried}
	if once := ops[0].Once; once != nil {
		arguments.Request = &WriteRequest{once.Request.ID, once.Request.Call}
	}
	var r WriteResult
	if err := Ask[WriteResult, any](ctx, db, ask.Write, arguments, &r, nil); err != nil {
		return err
	}
	if r.Repeated != nil {
		return &requests.Repeated{Result: r.Repeated}
	}
	return db.Writer.PublishAnswers(ops, r.Results)
}

// EnsureIndexes makes sure that a collection has indexes: see indexer.Indexer.EnsureIndexes.
func (db *Database) EnsureIndexes(ctx context.Context, collection string, indexes []index.Index, o indexer.Options) error {
	if db.Owner != nil {
		return Ask[any](ctx, db, ask.EnsureIndexes, ask.IndexesArguments{Collection: collection, Indexes: indexes, Replace: o.Replace}, new(any), o.Progress)
	}
	return db.Indexer.EnsureIndexes(ctx, collection, indexes, o)
}

// DropIndex drops an index: see indexer.Indexer.DropIndex.
func (db *Database) DropIndex(ctx context.Context, collection, name string) error {
	if db.Owner != nil {
		return Ask[any, any](ctx, db, ask.DropIndex, ask.DropIndexArguments{Collection: collection, Name: name}, new(any), nil)
	}
	if err := db.Indexer.CheckDropped(collection, name); err != nil {
		return err
	}
	return db.Indexer.DropIndex(ctx, collection, name)
}
