package indexer

import (
	"context"
	"errors"
	"math"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// Rebuild builds the indexes of a database that is made anew, instead of Resume: those
// of the catalog, and when they are ready those that were unfinished. It returns the ones that cannot be
// built because of what the documents hold. An error is about the database.
func (in *Indexer) Rebuild(ctx context.Context, unfinished []index.Info) (refused []catalog.Refused, err error) {
	in.MaxAutomatic = math.MaxInt // they were made under other options
	var declared []index.Info
	for _, ix := range in.indexes.Load().All {
		declared = append(declared, ix.Info)
	}
	for _, infos := range [][]index.Info{declared, unfinished} {
		more, err := in.rebuild(ctx, infos)
		if refused = append(refused, more...); err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// isOfFunction reports whether an index is not built as the program lacks its function.
func isOfFunction(err error) bool {
	missing := (*index.FunctionError)(nil)
	return errors.As(err, &missing)
}

// rebuild builds some indexes. Those of a collection are built together.
func (in *Indexer) rebuild(ctx context.Context, infos []index.Info) (refused []catalog.Refused, err error) {
	var order []string
	byCollection := make(map[string][]index.Info)
	for _, info := range infos {
		folded := format.FoldName(info.Collection)
		if byCollection[folded] == nil {
			order = append(order, folded)
		}
		byCollection[folded] = append(byCollection[folded], info)
	}
	tasks := make(map[*Task]index.Info)
	var started []*Task
	for _, collection := range order {
		all, err := in.EnsureAll(byCollection[collection], true)
		if err != nil {
			return nil, err
		}
		for i, a := range all {
			if a.What == IsMade {
				tasks[a.Task] = byCollection[collection][i]
				started = append(started, a.Task)
			}
		}
	}
	for _, t := range started {
		if err := t.Wait(ctx, nil); err != nil {
			return nil, err // Close ends the builds
		}
		switch {
		case t.BuildErr == nil:
		case isOfFunction(t.BuildErr): // a program with the function builds it
		case refuses(t.BuildErr) || errors.Is(t.BuildErr, errs.ErrIndex):
			refused = append(refused, catalog.Refused{Info: tasks[t], Err: t.BuildErr})
		default:
			return nil, t.BuildErr
		}
	}
	return refused, nil
}
