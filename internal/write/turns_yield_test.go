package write_test

// Whether a write has given way cannot be seen in the public API without waiting for it.

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/bulk"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// waitingContext calls waits when a call begins to wait, for it or something else.
type waitingContext struct {
	context.Context
	waits func()
}

func (c waitingContext) Done() <-chan struct{} {
	c.waits()
	return c.Context.Done()
}

// watchedEngine calls began when a transaction begins.
type watchedEngine struct {
	storage.Engine
	began func()
}

func (e watchedEngine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	e.began()
	return e.Engine.Update(ctx, sync, fn)
}

// exclusiveTurn returns a caller that has an exclusive turn for a document. Turns of
// workers have no limit in time.
func exclusiveTurn(t *testing.T, db *jay.DB, foldedID string) *turns.Caller {
	t.Helper()
	holder := parts.Of(db).Writer.Lines.Worker()
	for !parts.Of(db).Writer.Lines.Exclusive() { // each is a loss
		if err := holder.Wait(context.Background(), []turns.Key{turns.Document(foldedID)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return &holder
}

// Ensure that each write of a document waits for the exclusive turn of a transaction
// that has lost over it, before its own transaction begins.
func TestWrite_GivesWayToExclusiveTurns(t *testing.T) {
	body := json.RawMessage(`{"N":1}`)
	for name, do := range map[string]func(ctx context.Context, db *jay.DB) error{
		"Put": func(ctx context.Context, db *jay.DB) error {
			_, err := db.Put(ctx, "Docs/1", body)
			return err
		},
		"Delete": func(ctx context.Context, db *jay.DB) error { return db.Delete(ctx, "docs/1") },
		"Apply": func(ctx context.Context, db *jay.DB) error {
			var b jay.Batch
			b.Put("others/1", body)
			b.Replace("docs/1", body)
			_, err := db.Apply(ctx, &b)
			return err
		},
		"Patch": func(ctx context.Context, db *jay.DB) error {
			_, err := db.Patch(ctx, "docs/1", jay.Increment("N", 1))
			return err
		},
		"Update": func(ctx context.Context, db *jay.DB) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				_, err := tx.Put(context.Background(), "docs/1", body)
				return err
			})
		},
		"BulkWriter": func(ctx context.Context, db *jay.DB) error {
			ops := []*write.Op{{Request: write.Request{Verb: write.Put, RequestID: "docs/1", Body: body}}}
			if err := parts.Of(db).Writer.PrepareAll(ops); err != nil {
				return err
			}
			return bulk.Commit(ctx, parts.Of(db), ops, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := memoryDB(t)
			mustPut(t, db, "docs/1", []byte(`{"N":0}`))
			holder := exclusiveTurn(t, db, "docs/1")
			began := false
			parts.Of(db).Env.Engine = watchedEngine{parts.Of(db).Env.Engine, func() {
				if began = true; parts.Of(db).Writer.Lines.Exclusive() {
					t.Error("the write has overtaken the exclusive turn")
				}
			}}
			waited := 0
			ctx := waitingContext{context.Background(), func() {
				waited++
				holder.Leave()
			}}
			if err := do(ctx, db); err != nil {
				t.Fatal(err)
			}
			if waited == 0 || !began {
				t.Errorf("waited %d times, transaction %v", waited, began)
			}
		})
	}
}

// Ensure that writes of other documents do not wait for an exclusive turn.
func TestWrite_ExclusiveTurnsOfOthers(t *testing.T) {
	db := memoryDB(t)
	holder := exclusiveTurn(t, db, "docs/1")
	defer holder.Leave()
	mustPut(t, db, "docs/2", []byte(`{}`)) // a hang, if it waits
}
