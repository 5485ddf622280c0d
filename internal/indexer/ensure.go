package indexer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// Options are those of one EnsureIndexes.
type Options struct {
	Replace  bool                  // an index of the same name that is declared otherwise
	Progress func(documents int64) // nil for none
}

// EnsureIndexes makes sure that a collection has these indexes, and returns nil when all are
// ready: see DB.EnsureIndexes of package jay.
func (in *Indexer) EnsureIndexes(ctx context.Context, collection string, indexes []index.Index, o Options) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	infos, err := declarations(collection, indexes)
	if err != nil {
		return fmt.Errorf("index %s: %w", collection, err)
	}
	if err := in.checkNames(infos); err != nil {
		return fmt.Errorf("index %s: %w", collection, err)
	}
	all, err := in.EnsureAll(infos, o.Replace)
	if err != nil {
		return fmt.Errorf("index %s: %w", collection, err)
	}
	var failed []error
	for i, info := range infos {
		if err := in.await(ctx, info, all[i], o); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break // the others would return the same
		}
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

// declarations returns the canonical form of indexes of a collection, each name once.
func declarations(collection string, indexes []index.Index) ([]index.Info, error) {
	var infos []index.Info
	places := make(map[string]int) // in infos, by folded name
	for _, ix := range indexes {
		ix, err := catalog.Canonical(ix, collection)
		if err != nil {
			return nil, err
		}
		at, found := places[format.FoldName(ix.Name)]
		if !found {
			places[format.FoldName(ix.Name)] = len(infos)
			infos = append(infos, index.Info{Index: ix, Collection: collection})
		} else if !catalog.IsSame(infos[at].Index, ix) {
			return nil, fmt.Errorf("%w: two indexes of the name %.100q, with the fields %v and %v", errs.ErrIndex, ix.Name, infos[at].Fields, ix.Fields)
		}
	}
	return infos, nil
}

// await waits until an index is ready, or cannot become so.
func (in *Indexer) await(ctx context.Context, info index.Info, a Awaitable, o Options) error {
	for a.What != IsReady {
		if err := a.Task.Wait(ctx, o.Progress); err != nil {
			return err
		}
		if a.What == IsMade && !(o.Replace && errors.Is(a.Task.BuildErr, errs.ErrIndexExists)) {
			return a.Task.BuildErr
		}
		// Another process has declared an index of the name since the task was started: that one is replaced.
		if a.What == IsRemoved && a.Task.DropErr != nil {
			return fmt.Errorf("index %.100q of %s, which is being dropped: %w", info.Name, info.Collection, a.Task.DropErr)
		}
		var err error
		if a.Task, a.What, err = in.Ensure(info, o.Replace); err != nil {
			return fmt.Errorf("index %s: %w", info.Collection, err)
		}
	}
	return nil
}

// DropIndex removes an index and its entries: see DB.DropIndex of package jay.
func (in *Indexer) DropIndex(ctx context.Context, collection, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := in.Drop(collection, name)
	if err == nil {
		if err := t.Wait(ctx, nil); err != nil {
			return err
		}
		err = t.DropErr
	}
	if err != nil {
		return fmt.Errorf("drop index %.100q of %s: %w", name, collection, err)
	}
	return nil
}
