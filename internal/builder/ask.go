package builder

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/look"
	"github.com/jaydb/jay/internal/txn"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/query"
)

// This file has the changes by query of a database that another program has open: that program finds the documents, and changes them.

// ChangeArguments are those of ask.Change. Progress and result are a Changed.
type ChangeArguments struct {
	Query  string         `json:"query"` // in RQL, without parameters
	NoScan bool           `json:"noScan,omitempty"`
	Patch  *write.Carried `json:"patch,omitempty"` // nil deletes
}

// IsOwned reports whether the query changes documents of a database that another program has open, and outside of a transaction.
func (q Definition) IsOwned() bool {
	if q.Via == nil || q.Via.Database().Owner == nil {
		return false
	}
	_, inside := q.Via.(*txn.Tx)
	return !inside
}

// Ask has the program which has the database open change what the query finds: with a patch, or by deletion for nil.
func (q Definition) Ask(ctx context.Context, patch *write.Op) (done Changed, err error) {
	what := "delete by query"
	if patch != nil {
		what = "patch by query"
	}
	fail := func(err error) (Changed, error) { return Changed{}, fmt.Errorf("%s: %w", what, err) }
	if err := q.checkChange(); err != nil {
		return fail(err)
	}
	if q.cursor != "" {
		return fail(fmt.Errorf("%w: a query with After", look.ErrNotCarried))
	}
	if q, err = q.dated(); err != nil {
		return fail(err)
	}
	arguments := ChangeArguments{Query: q.Query.String(), NoScan: q.run.NoScan}
	if patch != nil {
		carried, err := write.Carry([]*write.Op{patch}, look.ErrNotCarried)
		if err != nil {
			return fail(err)
		}
		arguments.Patch = &carried[0]
	}
	err = core.Ask(ctx, q.Via.Database(), ask.Change, arguments, &done, q.Progress)
	return done, err
}

// ChangeFor carries out a call of Ask of another program.
func ChangeFor(ctx context.Context, db *core.Database, a ChangeArguments, progress func(Changed)) (Changed, error) {
	parsed, err := query.Parse(a.Query, nil)
	if err != nil {
		return Changed{}, err
	}
	q, err := Text(db, parsed)
	if err != nil {
		return Changed{}, err
	}
	if q.Progress = progress; a.NoScan {
		q.NoScan()
	}
	if a.Patch == nil {
		return q.Delete(ctx)
	}
	if a.Patch.Patch == nil {
		return Changed{}, fmt.Errorf("%w: a change by query is a patch or a deletion", ids.ErrUsage)
	}
	return q.Change(ctx, "patch by query", func(t *txn.Tx, id string, done *Changed) error {
		o, err := a.Patch.Op()
		if err != nil {
			return err
		}
		o.RequestID = id
		return PatchOne(ctx, t, o, done)
	})
}

// PatchOne patches a document of a change by query, and counts it.
func PatchOne(ctx context.Context, t *txn.Tx, patch *write.Op, done *Changed) error {
	r, err := t.Patch(ctx, patch)
	if r.Status == string(write.StatusNotModified) {
		done.Unchanged++
	} else {
		done.Documents++
	}
	return err
}
