package indexer_test

// This file holds a write between its look at the catalog and its commit, which no call does.

import (
	"context"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// hookedEngine calls functions before an Update and after it.
type hookedEngine struct {
	storage.Engine
	before, after func()
}

func (e *hookedEngine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	e.before()
	err := e.Engine.Update(ctx, sync, fn)
	e.after()
	return err
}

// heldPut stages a document and returns. The commit is held until release is called, which
// waits for it.
func heldPut(t *testing.T, w *write.Writer, id, collection, body string) (release func()) {
	t.Helper()
	ops := []*write.Op{{Request: write.Request{Verb: write.Put, RequestID: id, Collection: collection, Named: true, Body: []byte(body)}}}
	if err := w.PrepareAll(ops); err != nil {
		t.Fatal(err)
	}
	staged, goOn, committed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		committed <- w.Transact(context.Background(), false, func(tx *write.Txn) error {
			if err := tx.Run(ops); err != nil {
				return err // it runs again, if etags must be reserved first
			}
			close(staged)
			<-goOn
			return nil
		})
	}()
	select {
	case <-staged:
	case err := <-committed:
		t.Fatalf("the write has not waited: %v", err)
	}
	return func() {
		close(goOn)
		if err := <-committed; err != nil {
			t.Error(err)
		}
	}
}

// Ensure that a build adds the document of a write that read the catalog before the index was in
// it, and is committed after that.
func TestBuild_WriteUnderWay(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p := parts.Of(db)

	// The write begins after the new catalog is committed, but before it is the current one. It
	// goes on when the build next waits for its turn: to pass the write or, if it does not, with
	// what it has found.
	release := func() { t.Error("the build has begun before the index was declared") }
	engine := &hookedEngine{Engine: p.Env.Engine, before: func() {}}
	engine.after = func() {
		engine.after = func() {}
		release = heldPut(t, p.Writer, "things/1", "Things", `{"a":1}`)
		engine.before = func() {
			engine.before = func() {}
			release()
		}
	}
	e := env.New()
	e.Engine, e.Room = engine, p.Env.Room
	in := indexer.New(e, p.Docs, p.Indexes, p.Writer)
	defer in.Stop()

	task := &indexer.Task{Key: indexer.KeyOf("Things", "a"), Info: jay.IndexInfo{Index: jay.Index{Name: "a", Fields: []string{"a"}}, Collection: "Things"}}
	task.Ctx, task.Cancel = context.WithCancel(t.Context())
	defer task.Cancel()
	if err := in.Declare(task); err != nil {
		t.Fatal(err)
	}
	if err := in.Build(task); err != nil {
		t.Fatal(err)
	}
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
}
