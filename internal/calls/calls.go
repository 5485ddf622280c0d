// Package calls carries out what another program asks of the database that this one has open: see package ask. A call does what this program's own
// calls do, with its options and observers.
//
// All of the package is safe for concurrent use.
package calls

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/collections"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/rekey"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
)

// call decodes the arguments of a call and carries it out. What it returns with an error is how far it has come.
type call func(ctx context.Context, db *core.Database, arguments []byte, progress func(any)) (any, error)

// table has the calls. A new one is a row here and a name in package ask.
var table = map[string]call{
	ask.Write: of(func(ctx context.Context, db *core.Database, a core.WriteArguments, _ func(any)) (core.WriteResult, error) {
		return writeAll(ctx, db, a)
	}),
	ask.Identity: of(func(ctx context.Context, db *core.Database, a ask.IdentityArguments, _ func(any)) (int64, error) {
		return db.OnIdentity(ctx, core.IdentityCall(a))
	}),
	ask.RaiseCounters: of(func(ctx context.Context, db *core.Database, a ask.CountersArguments, _ func(any)) (any, error) {
		return nil, db.RaiseCounters(ctx, core.Counters(a))
	}),
	ask.EnsureIndexes: of(func(ctx context.Context, db *core.Database, a ask.IndexesArguments, progress func(any)) (any, error) {
		return nil, db.EnsureIndexes(ctx, a.Collection, a.Indexes, indexer.Options{Replace: a.Replace, Progress: counting(progress)})
	}),
	ask.DropIndex: of(func(ctx context.Context, db *core.Database, a ask.DropIndexArguments, _ func(any)) (any, error) {
		return nil, db.DropIndex(ctx, a.Collection, a.Name)
	}),
	ask.EnsureComputed: of(func(ctx context.Context, db *core.Database, a ask.ComputedArguments, progress func(any)) (any, error) {
		return nil, core.ComputedIndexes{Database: db}.Ensure(ctx, a.Computed, indexer.Options{Replace: a.Replace, Progress: counting(progress)})
	}),
	ask.DropComputed: of(func(ctx context.Context, db *core.Database, a ask.DropComputedArguments, _ func(any)) (any, error) {
		return nil, core.ComputedIndexes{Database: db}.Drop(ctx, a.Name)
	}),
	ask.DropCollection: of(func(ctx context.Context, db *core.Database, a ask.DropCollectionArguments, progress func(any)) (int64, error) {
		return collections.Drop(ctx, db, a.Name, counting(progress))
	}),
	ask.RenameCollection: of(func(ctx context.Context, db *core.Database, a ask.RenameCollectionArguments, progress func(any)) (int64, error) {
		return collections.Rename(ctx, db, a.Name, a.To, counting(progress))
	}),
	ask.Change: of(func(ctx context.Context, db *core.Database, a builder.ChangeArguments, progress func(any)) (builder.Changed, error) {
		return builder.ChangeFor(ctx, db, a, func(done builder.Changed) { progress(done) })
	}),
	ask.Compact: of(func(ctx context.Context, db *core.Database, _ ask.None, _ func(any)) (any, error) {
		return nil, db.Compact(ctx)
	}),
	ask.ConfigureDue: of(func(ctx context.Context, db *core.Database, a ask.DueArguments, _ func(any)) (any, error) {
		return nil, db.ConfigureDue(ctx, a.What, a.Kind, a.Disabled)
	}),
	ask.RenewKey: of(func(ctx context.Context, db *core.Database, a rekey.Arguments, _ func(any)) (string, error) {
		return rekey.Renew(ctx, db, a)
	}),
	ask.RotateKeys: of(func(ctx context.Context, db *core.Database, a rekey.Arguments, progress func(any)) (rekey.Progress, error) {
		return rekey.Rotate(ctx, db, a, func(p rekey.Progress) { progress(p) })
	}),
}

// Unasked are the calls that are carried out for programs whose writes are not (Options.LookWrites). They change no document, and use what this program has:
// its own keys.
var Unasked = []string{ask.RenewKey, ask.RotateKeys}

// of returns the call of a function with decoded arguments.
func of[A, R any](fn func(ctx context.Context, db *core.Database, arguments A, progress func(any)) (R, error)) call {
	return func(ctx context.Context, db *core.Database, text []byte, progress func(any)) (any, error) {
		var a A
		if err := ask.Decode(text, &a); err != nil {
			return nil, err
		}
		return fn(ctx, db, a, progress)
	}
}

func counting(progress func(any)) func(documents int64) {
	return func(documents int64) { progress(documents) }
}

// Answer carries out a call and returns its answer: see look.Call. The error is in the answer.
func Answer(ctx context.Context, db *core.Database, name string, arguments []byte, progress func([]byte)) ([]byte, error) {
	fn, known := table[name]
	if !known {
		return ask.Encode(nil, fmt.Errorf("%w: %q", ask.ErrUnknownCall, errs.Shorten(name))), nil
	}
	result, err := fn(ctx, db, arguments, func(v any) {
		if text, err := json.Marshal(v); err == nil { // numbers always have JSON
			progress(text)
		}
	})
	return ask.Encode(result, err), nil
}

// writeAll carries out ask.Write.
func writeAll(ctx context.Context, db *core.Database, a core.WriteArguments) (r core.WriteResult, err error) {
	ops := make([]*write.Op, len(a.Writes))
	for i := range a.Writes {
		if ops[i], err = a.Writes[i].Op(); err != nil {
			return r, err
		}
	}
	if len(ops) == 0 {
		return r, nil
	}
	if a.Request != nil {
		if err := requests.CheckID(a.Request.ID); err != nil {
			return r, err
		}
		if a.Request.Call == write.Patch.Operation() && (len(ops) != 1 || ops[0].Patching == nil) {
			return r, fmt.Errorf("%w: the request of a patch with other writes", ids.ErrUsage)
		}
		ops[0].Once = onceOf(ops, a.Request)
	}
	err = db.Write(ctx, ops)
	if again := requests.Repetition(err); again != nil {
		return core.WriteResult{Repeated: again.Result}, nil
	}
	if err != nil {
		return r, err
	}
	return core.WriteResult{Results: db.Writer.Answer(ops)}, nil
}

// onceOf returns what makes ops be carried out once. It keeps their results in the form in which package jay keeps them: of a single patch with its status.
func onceOf(ops []*write.Op, r *core.WriteRequest) *write.Once {
	once := &write.Once{Request: &requests.Request{ID: r.ID, Call: r.Call}, Keeps: write.KeepsResults, Of: ops}
	if r.Call == write.Patch.Operation() {
		once.Keeps = write.KeepsPatch
	}
	return once
}
