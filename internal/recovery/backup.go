package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
)

// BackupOptions are the BackupOptions of package jay.
type BackupOptions struct {
	Base     string            // the ID of the backup to follow; "" for a full one
	Once     bool              // nothing is written to the database
	Progress func(bytes int64) // nil for none

	Keys  sealed.Keys // with the newest of which it is encrypted; nil for none
	Plain bool        // it is not encrypted, though the database may be

	// Written, if not nil, is called when the stream is complete: see BackupStored.
	Written func() error
}

// Backup writes the database to w: see DB.Backup.
func Backup(ctx context.Context, db *core.Database, w io.Writer, o BackupOptions) (backup.Summary, error) {
	if err := ctx.Err(); err != nil {
		return backup.Summary{}, err
	}
	if o.Keys == nil && !o.Plain && db.Env.Engine.Stats().Encrypted {
		return backup.Summary{}, fmt.Errorf("%w: the database is encrypted, and was opened without its keys, as by Look or as a standby: give BackupEncrypted keys for the backup, or choose BackupPlain", errs.ErrKey)
	}
	id, err := format.RandomID(db.Env.Random())
	if err != nil {
		return backup.Summary{}, fmt.Errorf("make its ID: %w", err)
	}
	now, err := db.Env.Date()
	if err != nil {
		return backup.Summary{}, err
	}
	r := &backupRun{db: db}
	if err := r.start(ctx, o.Base); err != nil {
		return backup.Summary{}, err
	}
	defer r.end()

	own := db.Env.Origins[db.Env.Node]
	format := db.Env.Engine.Format() // after the snapshot: it covers what that shows
	h := backup.Header{
		ID: id, Base: o.Base, Database: own.ID, NodeTag: own.Tag,
		Format: format.Number, Features: format.Features, Created: now, Etag: r.source.Etag, After: r.source.Base(),
	}
	out, err := backup.NewWriter(w, h, o.Keys)
	if err != nil {
		return backup.Summary{}, err
	}
	defer out.Close() // all that it writes it has written
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return backup.Summary{}, err
		}
		if done, err = r.step(ctx, out); err == nil {
			err = out.Flush()
		}
		if err != nil {
			return backup.Summary{}, err
		}
		if o.Progress != nil {
			o.Progress(out.Trailer.RawBytes)
		}
	}
	if err := out.Finish(); err != nil {
		return backup.Summary{}, err
	}
	if o.Written != nil {
		if err := o.Written(); err != nil {
			return backup.Summary{}, err
		}
	}
	info := backup.Summary{Header: h, Trailer: out.Trailer, Bytes: out.Bytes(), KeyID: out.KeyID}
	if o.Once {
		return info, nil
	}
	return info, r.remember(ctx, h)
}

// backupRun is a Backup under way. The snapshot is read inside the gate, a block at a
// time; w is the user's, and is called outside.
type backupRun struct {
	db   *core.Database
	hold *horizon.Hold

	mu       sync.Mutex // against Close
	snapshot storage.Snapshot
	source   *backup.Source
	ended    error // why it is over; nil while it runs
}

// start takes the snapshot, and waits until all that it shows is on disk: a crash must
// not undo what a backup has, as the next one would not know that it is gone.
func (r *backupRun) start(ctx context.Context, base string) error {
	return r.db.Inside(func() (err error) {
		// Before the snapshot: records of deletions that it shows are then kept until the
		// floor is set.
		r.hold = r.db.Horizon.Hold()
		r.snapshot = r.db.Env.Engine.Snapshot()
		if err = r.snapshot.WaitDurable(ctx); err == nil {
			r.source, err = backup.NewSource(r.db.Env, r.snapshot, base)
		}
		if err != nil {
			r.hold.Release()
			return errs.First(err, r.snapshot.Close())
		}
		r.db.Env.Register(r)
		return nil
	})
}

// step gathers the next operations.
func (r *backupRun) step(ctx context.Context, w *backup.Writer) (done bool, err error) {
	err = r.db.Inside(func() (err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ended != nil {
			return r.ended
		}
		done, err = r.source.Next(ctx, w)
		return err
	})
	return done, err
}

// errBackupEnded ends a run that is over.
var errBackupEnded = errors.New("the backup has ended")

// end closes what is open.
func (r *backupRun) end() {
	_ = r.Release(errBackupEnded) // an error of reading was returned by then
	r.db.Env.Unregister(r)        // after: Close must not close the engine in between
	r.hold.Release()
}

// Release implements env.Handle.
func (r *backupRun) Release(cause error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return nil
	}
	r.ended = cause
	return errs.First(r.source.Close(), r.snapshot.Close())
}

// remember records the backup, and keeps the records of deletions that the next one
// needs. If it follows this one or its base, both are possible.
func (r *backupRun) remember(ctx context.Context, h backup.Header) error {
	made := r.source.Made
	made.ID = h.ID
	floor := made.Etag
	if h.Base != "" {
		floor = h.After
	}
	err := r.db.Inside(func() error {
		return r.db.Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
			err := horizon.SetFloor(tx, format.BackupFloor, floor)
			if errors.Is(err, horizon.ErrPassed) {
				err = horizon.SetFloor(tx, format.BackupFloor, made.Etag)
			}
			if err != nil {
				return err
			}
			return backup.Remember(tx, made)
		})
	})
	if err != nil {
		return fmt.Errorf("it is written, but cannot be followed: %w", err)
	}
	return nil
}
