package core

import (
	"context"
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/observe"
)

// Get returns the document with this ID as it is now, or an error that is ErrNotFound.
func (db *Database) Get(ctx context.Context, id string) (*docs.Document, error) {
	if db.Watch == nil {
		return db.get(ctx, id)
	}
	var doc *docs.Document
	err := db.Watch.Do(ctx, observe.Operation{Verb: "get", ID: id}, func(ctx context.Context, o *observe.Operation) (err error) {
		if doc, err = db.get(ctx, id); err == nil {
			o.Documents = 1
			if db.Watch.End != nil {
				o.Collection = doc.Collection()
			}
		}
		return err
	})
	return doc, err
}

// Exists reports whether there is a document with this ID.
func (db *Database) Exists(ctx context.Context, id string) (found bool, err error) {
	if db.Watch == nil {
		return db.exists(ctx, id)
	}
	err = db.Watch.Do(ctx, observe.Operation{Verb: "exists", ID: id}, func(ctx context.Context, _ *observe.Operation) (err error) {
		found, err = db.exists(ctx, id)
		return err
	})
	return found, err
}

func (db *Database) get(ctx context.Context, id string) (*docs.Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.Env.EnterRead(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	var scratch [128]byte
	doc, err := db.Docs.Alive(db.Docs.For(ctx).Current(db.Env.Rules.AppendFold(scratch[:0], id)))
	if err != nil {
		return nil, GetError(id, err)
	}
	return doc, nil
}

// GetError is the error of a Get. Missing documents are common, so their error is
// cheap to make.
func GetError(id string, err error) error {
	if err == errs.ErrNotFound {
		return &missingError{strings.Clone(errs.Shorten(id))}
	}
	return fmt.Errorf("get %q: %w", errs.Shorten(id), err)
}

// missingError is returned by a Get that has found no document with this ID.
type missingError struct{ id string }

func (e *missingError) Error() string { return fmt.Sprintf("get %q: %v", e.id, errs.ErrNotFound) }

// Unwrap returns ErrNotFound.
func (e *missingError) Unwrap() error { return errs.ErrNotFound }

func (db *Database) exists(ctx context.Context, id string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := db.Env.EnterRead(); err != nil {
		return false, err
	}
	defer db.Env.Exit()
	found, err := db.Docs.ExistsAlive(db.Env.Engine, format.NewDocumentKey(db.Env.Rules.Fold(id)))
	if err != nil {
		return false, fmt.Errorf("exists %q: %w", errs.Shorten(id), err)
	}
	return found, nil
}

// ReadInto decodes the document with this ID into v, a pointer to a struct of the mapping.
func (db *Database) ReadInto(ctx context.Context, m *codec.Mapping, id string, v any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.Env.EnterRead(); err != nil {
		return err
	}
	defer db.Env.Exit()
	var scratch [128]byte
	folded := db.Env.Rules.AppendFold(scratch[:0], id)
	doc, ticket := db.Docs.Cache.Get(folded)
	if doc != nil {
		if _, err := db.Docs.Alive(doc, nil); err != nil {
			return GetError(id, err)
		}
		return DecodeMember(m, doc, v)
	}
	key := format.NewDocumentKey(folded)
	if ticket.Valid {
		doc, err := db.Docs.ReadKey(db.Env.Engine, key)
		if err == nil {
			db.Docs.Cache.Enter(ticket, doc)
		}
		if doc, err = db.Docs.Alive(doc, err); err != nil {
			return GetError(id, err)
		}
		return DecodeMember(m, doc, v)
	}
	if db.Env.HidesExpired() {
		doc, err := db.Docs.Alive(db.Docs.ReadKey(db.Env.Engine, key)) // not lent: the clock is the user's
		if err != nil {
			return GetError(id, err)
		}
		return DecodeMember(m, doc, v)
	}

	record, closer, err := docs.ReadRecord(db.Env.Engine, key)
	if err != nil {
		return GetError(id, err)
	}
	pinned, err := db.Docs.Pinned(key, record)
	if err != nil {
		err = fmt.Errorf("get %.100q: %w", id, err)
	} else {
		err = DecodeMember(m, &pinned, v)
	}
	return errs.First(err, closer.Close())
}
