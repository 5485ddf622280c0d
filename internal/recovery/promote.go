package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/follow"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/storage"
)

// Promote makes a database of a standby that is not in use: see Promote of package jay. Of o it uses Open, SameTag and
// Floors.
func Promote(ctx context.Context, dir string, o RestoreOptions) (info Restored, err error) {
	if err := ctx.Err(); err != nil {
		return info, err
	}
	if err := beginPromotion(ctx, dir, &o); err != nil {
		return info, err
	}
	open := o.Open
	open.Engine.MustExist, open.Restoring = true, true
	open.Engine.DurableReads = true // as under Synced, no number above a floor is reserved: a promotion that is made again has the same floors
	db := new(core.Database)
	if err := db.Open(dir, &open); err != nil {
		return info, err
	}
	err = completePromotion(ctx, db, &o, &info)
	return info, errors.Join(err, db.Close())
}

// beginPromotion checks the standby and notes the tag that it is promoted under: after a crash the tag is one that it
// has already. A standby that follows again compares all its keys first, and has its own no more.
func beginPromotion(ctx context.Context, dir string, o *RestoreOptions) (err error) {
	engine, err := o.Open.Driver.Open(dir, storage.OpenOptions{MustExist: true, Bounds: format.TableBounds, Logger: o.Open.Engine.Logger})
	if err != nil {
		return fmt.Errorf("jay: %w", err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	state, found, err := follow.ReadState(engine)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: the database is none, and needs no promotion", errs.ErrStandby)
	case !state.Whole():
		return fmt.Errorf("%w: its first copy has not come to its end: there is no database yet", errs.ErrStandby)
	}
	origins, err := settings.Origins(engine)
	if err != nil {
		return err
	}
	tag := o.Open.Settings.CopyTag
	if tag != state.Promoted {
		if err := checkCopyTag(tag, origins); err != nil {
			return err
		}
	}
	if state.Promoted != "" && state.Promoted != tag {
		return fmt.Errorf("%w: its promotion under CopyTag %q was not finished: promote it under that, or follow the source again", errs.ErrStandby, state.Promoted)
	}
	return setMark(ctx, engine, format.Standby{Database: state.Database, Promoted: tag, Etag: state.Etag})
}

// setMark writes the record of a standby whose promotion is under way.
func setMark(ctx context.Context, engine storage.Engine, state format.Standby) error {
	return engine.Update(ctx, true, func(tx storage.Tx) error {
		return env.SetJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.StandbyName), state)
	})
}

// completePromotion raises the counters, and takes the mark from the database.
func completePromotion(ctx context.Context, db *core.Database, o *RestoreOptions, info *Restored) error {
	have, err := db.Counters(ctx)
	if err != nil {
		return err
	}
	if info.Etag, err = etagAtBeginning(ctx, db, have.Etag); err != nil {
		return err
	}
	if err := setFloors(ctx, db, o, info); err != nil {
		return err
	}
	return finish(ctx, db, info)
}

// etagAtBeginning returns the last etag that the standby knew when its promotion began, and notes it the first time: floors are
// compared with that. Raised ranges of HiLo are documents, which take etags above the floor, so that a promotion that
// is made again finds numbers which no floor of the caller could have named.
func etagAtBeginning(ctx context.Context, db *core.Database, now uint64) (uint64, error) {
	engine := db.Env.Engine
	state, _, err := follow.ReadState(engine)
	if err != nil || state.Etag > 0 {
		return state.Etag, err
	}
	state.Etag = now
	return now, setMark(ctx, engine, state)
}
