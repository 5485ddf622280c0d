package jay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
)

// errIDInUse means that the made ID of some op is in use: draw another and run
// again.
var errIDInUse = errors.New("a made id is in use")

// write is the write path: all changes to documents go through it, in five steps.
// The database is as it was if it returns an error other than ErrUnknownOutcome.
func (db *DB) write(ctx context.Context, ops []*op) error {
	if len(ops) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()

	// 1. Prepare: validate, fold, extract index entries. No lock, no number.
	if err := db.prepareAll(ops); err != nil {
		return err
	}

	// 2. Draw HiLo numbers and GUIDs: last, so that no refusal costs a number.
	written := false
	defer func() {
		if !written { // an error, or a panic of user code
			db.unused.count(ops)
		}
	}()
	if err := db.drawIDs(ctx, ops); err != nil {
		return err
	}

	// Work that needs no lock and may turn out to be stale: the collections of
	// documents, the results of patches, and the documents that a large batch
	// replaces.
	if err := db.supposeCollections(ctx, ops); err != nil {
		return err
	}
	guesses, err := db.speculatePatches(ctx, ops)
	if err != nil {
		return err
	}
	defer guesses.close()
	ahead, err := db.prefetch(ctx, ops)
	if err != nil {
		return err
	}
	defer ahead.close(ops)

	// 3. Resolve and stage, in a transaction. 4. Commit, and share the sync.
	if err := db.resolveAndCommit(ctx, ops, ahead, guesses); err != nil {
		return err
	}

	// 5. Publish: the callers get the results.
	written = true
	db.publish(ops)
	return nil
}

// resolveAndCommit runs the transaction of ops. It runs it again with other numbers
// as long as a drawn ID is in use, and with new results of patches as long as a
// patched document has changed since.
func (db *DB) resolveAndCommit(ctx context.Context, ops []*op, ahead *prefetched, guesses *speculations) error {
	for {
		err := db.commit(ctx, ops, ahead)
		switch {
		case errors.Is(err, errIDInUse): // a document was put under an ID that was drawn
			err = db.redrawTaken(ctx, ops)
		case errors.Is(err, errStale):
			err = guesses.again(ctx)
		default:
			return err
		}
		if err != nil {
			return err
		}
	}
}

// drawIDs makes the IDs of ops that the transaction does not make.
func (db *DB) drawIDs(ctx context.Context, ops []*op) error {
	for _, o := range ops {
		if err := db.drawID(ctx, o); err != nil {
			return opError(ops, o, err)
		}
	}
	return nil
}

// redrawTaken makes other IDs for the ops whose IDs are in use.
func (db *DB) redrawTaken(ctx context.Context, ops []*op) error {
	for _, o := range ops {
		if !o.idInUse {
			continue
		}
		o.prefetched = false
		if err := db.redrawID(ctx, o); err != nil {
			return opError(ops, o, err)
		}
	}
	return nil
}

// drawID makes the IDs that are not made in the transaction: HiLo and GUID.
func (db *DB) drawID(ctx context.Context, o *op) (err error) {
	switch {
	case o.verb == verbDelete, o.verb == verbPatch:
		return nil
	case o.strategy == ids.HiLo:
		o.id, err = db.client.Next(ctx, o.tag)
	case o.strategy == ids.GUID:
		o.id, err = db.resolver.NewGUID()
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if err := db.env.Rules.Check(o.id); err != nil {
		return err
	}
	db.encodeTail(o)
	return nil
}

// maxGUIDs is how many GUIDs are tried for one document before their source counts
// as broken.
const maxGUIDs = 10

// redrawID draws until the ID is free in the committed state: the transaction
// checks again.
func (db *DB) redrawID(ctx context.Context, o *op) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.redraws++; o.strategy == ids.GUID && o.redraws > maxGUIDs {
			return fmt.Errorf("%w: %d new GUIDs were taken already: Options.Rand repeats itself", ErrUsage, maxGUIDs)
		}
		db.unused.countTaken(o)
		o.id = "" // it is counted: if the draw panics, it must not be counted twice
		if err := db.drawID(ctx, o); err != nil {
			return err
		}
		var scratch [128]byte
		found, err := docs.Exists(db.env.Engine, format.DocumentKey(scratch[:0], db.env.Rules.Fold(o.id)))
		if err != nil || !found {
			return err
		}
	}
}

// commit runs the transaction of ops.
func (db *DB) commit(ctx context.Context, ops []*op, a *prefetched) error {
	return db.transact(ctx, db.env.Synced, func(t *transaction) error {
		t.ahead = a
		return t.run(ops)
	})
}

// publish passes the results to the callers of ops.
func (db *DB) publish(ops []*op) {
	for _, o := range ops {
		if o.returning != nil {
			*o.returning = db.result(o)
		}
		if o.committed != nil {
			o.committed(db.result(o))
		}
	}
}
