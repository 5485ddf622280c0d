package core

import (
	"context"

	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
)

// Write commits ops: all changes to documents go through the write path.
func (db *Database) Write(ctx context.Context, ops []*write.Op) error {
	if len(ops) == 0 {
		return nil
	}
	if db.Watch == nil {
		return db.writeOps(ctx, ops)
	}
	var again error // the call was carried out before: that is an answer, and no failure
	err := db.Watch.Do(ctx, OperationOf(ops), func(ctx context.Context, o *observe.Operation) error {
		err := db.writeOps(ctx, ops)
		if requests.Repetition(err) != nil {
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

func (db *Database) writeOps(ctx context.Context, ops []*write.Op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if db.Owner != nil {
		return db.writeByOwner(ctx, ops)
	}
	if err := db.Env.EnterWrite(); err != nil {
		return err
	}
	defer db.Env.Exit()
	return db.Writer.Write(ctx, ops)
}

// OperationOf describes the writes of one commit.
func OperationOf(ops []*write.Op) (o observe.Operation) {
	o.Verb = "batch"
	if len(ops) == 1 {
		o.Verb, o.ID = ops[0].Verb.Operation(), ops[0].RequestID
	}
	o.Collection = ops[0].Collection
	for _, other := range ops {
		if other.Collection != o.Collection {
			o.Collection = ""
		}
	}
	return o
}

// completeOperation adds what is known when the writes have been made.
func completeOperation(o *observe.Operation, ops []*write.Op) {
	o.Documents = int64(len(ops))
	if len(ops) == 1 && ops[0].ID != "" {
		o.ID = ops[0].ID
	}
}
