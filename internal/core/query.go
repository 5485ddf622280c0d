package core

import (
	"context"
	"errors"
	"strings"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/query"
)

// Database returns the database, as a transaction and a session return theirs.
func (db *Database) Database() *Database { return db }

// StartRun starts a query on the newest state that reads may see.
func (db *Database) StartRun(ctx context.Context, q *query.Query, o exec.Options) (_ *exec.Run, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.Env.EnterRead(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	begun := db.BeginMoment()
	c, snapshot, err := db.View(db.Env.Engine.Snapshot)
	if err != nil {
		return nil, err
	}
	at := db.EndMoment(begun)
	started := false
	defer func() {
		if !started {
			err = errors.Join(err, snapshot.Close()) // also after a panic
		}
	}()
	r, err := exec.Start(ctx, exec.Database{Env: db.Env, Docs: db.Docs, Snapshot: snapshot, Owned: snapshot, Catalog: c, Moment: at.At, DueFrom: at.DueFrom}, q, exec.Overlay{}, o)
	if err != nil {
		return nil, err
	}
	started = true
	r.Closed = func(r *exec.Run) {
		if q.Index == "" {
			db.SuggestIndex(r, q.From)
		}
	}
	db.Env.Register(r)
	return r, nil
}

// autoIndexAfter is how many documents a query must have read without using them
// before it is worth an index of its own.
const autoIndexAfter = 1000

// SuggestIndex builds the index that would have helped a run, if the database was
// opened with AutoIndexes.
func (db *Database) SuggestIndex(r *exec.Run, collection string) {
	if db.Indexer.MaxAutomatic == 0 || db.Indexes.Load().Automatic() >= db.Indexer.MaxAutomatic {
		return
	}
	report := r.Report()
	ix := report.Suggestion
	if ix == nil || report.Documents < autoIndexAfter || report.Returned*10 > report.Documents {
		return
	}
	ix.Name = catalog.Cut("Auto/"+collection+"/By"+strings.Join(ix.Fields, "And"), catalog.MaxName)
	if err := db.Indexer.Auto(collection, *ix); err != nil && db.Env.Logger != nil {
		db.Env.Logger.Warn("jay: automatic index", "collection", collection, "fields", ix.Fields, "err", err)
	}
}
