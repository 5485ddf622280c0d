package jay

import (
	"context"
	"fmt"
	"iter"

	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/query"
)

// op is one write on its way through the write path.
type op = write.Op

// access is what documents are read, queried and written through: the database, or a
// transaction on it.
type access interface {
	Get(ctx context.Context, id string) (*Document, error)
	GetMany(ctx context.Context, ids ...string) ([]*Document, error)
	Documents(ctx context.Context, s Scan) iter.Seq2[*Document, error]
	database() *DB
	startRun(ctx context.Context, q *query.Query, o exec.Options) (*exec.Run, error)
	write(ctx context.Context, ops []*op) error
	result(o *op) Metadata
}

// write implements access: all changes to documents go through the write path.
func (db *DB) write(ctx context.Context, ops []*op) error {
	if len(ops) == 0 {
		return nil
	}
	if db.watch == nil {
		return writeOps(ctx, db, ops)
	}
	var again error // the call was carried out before: that is an answer, and no failure
	err := db.watch.Do(ctx, operationOf(ops), func(ctx context.Context, o *observe.Operation) error {
		err := writeOps(ctx, db, ops)
		if repetition(err) != nil {
			again = err
			return nil
		}
		if err == nil {
			completeOperation(o, ops)
		}
		return err
	})
	if err != nil {
		return err
	}
	return again
}

func writeOps(ctx context.Context, db *DB, ops []*op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	return db.writer.Write(ctx, ops)
}

func (db *DB) result(o *op) Metadata { return db.writer.ResultOf(o) }

var _ access = (*DB)(nil)

func writeOne(ctx context.Context, a access, o *op) (Metadata, error) {
	if err := a.write(ctx, []*op{o}); err != nil {
		return Metadata{}, err
	}
	return a.result(o), nil
}

// results returns the metadata of the documents that ops wrote.
func results(a access, ops []*op) []Metadata {
	out := make([]Metadata, len(ops))
	for i, o := range ops {
		out[i] = a.result(o)
	}
	return out
}

// refusing is the access of a collection in a transaction of another database.
type refusing struct{ db *DB }

var _ access = refusing{}

var errOtherDatabase = fmt.Errorf("%w: the transaction is one of another database than the collection", ErrUsage)

// Get returns the refusal.
func (refusing) Get(context.Context, string) (*Document, error) { return nil, errOtherDatabase }

// GetMany returns the refusal.
func (refusing) GetMany(context.Context, ...string) ([]*Document, error) {
	return nil, errOtherDatabase
}

// Documents yields the refusal.
func (refusing) Documents(context.Context, Scan) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) { yield(nil, errOtherDatabase) }
}

func (r refusing) database() *DB { return r.db }

func (refusing) startRun(context.Context, *query.Query, exec.Options) (*exec.Run, error) {
	return nil, errOtherDatabase
}

func (refusing) write(context.Context, []*op) error { return errOtherDatabase }

func (r refusing) result(o *op) Metadata { return r.db.result(o) }
