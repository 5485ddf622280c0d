package jay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/internal/verify"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// RestoreOptions say how Restore makes a database of backups. One of CopyTag and SameTag
// must be set: the original may have used IDs after the backup, which the restored
// database does not know of.
type RestoreOptions struct {
	// CopyTag gives the restored database a node tag of its own, as Options.CopyTag does:
	// one that neither the original nor any other copy of it has, or has had. Its HiLo and
	// server-side IDs are then never those of the original. Identities and the HiLo of older
	// generations have no tag: they are ErrNeedsFloor until Floors, SeedIdentity or
	// RaiseCounters gives their numbers a minimum.
	//
	// The indexes of compare-exchange values have no tag either, and go on behind those of the
	// backup. If clients of the original hold some that it has made since, set Floors.Etag to a
	// number that it has not passed.
	CopyTag string

	// SameTag restores under the node tag and the database ID of the original, in whose
	// place the restored database is. Floors must then name the etag and every counter
	// in the backup, each with a number that the original has not passed: Restore
	// returns ErrNeedsFloor, and says which are missing.
	//
	// Danger: two databases under one tag, such as two restores of one backup or a restore
	// beside its original, cannot be told apart. Both make the same IDs and the same
	// change vectors. A counter that the original has begun after the backup is not
	// known to Restore: name it in Floors too, or it begins with 1.
	SameTag bool

	// Floors are numbers that the original has not passed. Counters continue above them,
	// and etags, with the indexes of compare-exchange values, above Floors.Etag.
	Floors Counters

	// Options are those that a database is opened under: FS, Logger, Now, Rand, HiLoMode,
	// MemTableBytes and the like. CopyTag, NodeTag, ReadOnly and AcceptLoss must not
	// be set. Nil means the defaults.
	Options *Options

	// Progress, if not nil, is called now and then with the number of bytes of the backups
	// read so far.
	Progress func(bytes int64)

	// Damage, if not nil, is called with what Verify finds in the restored database, up to
	// 1,000 times, and Restore goes on. Without it, Restore returns an error and makes no database: the
	// original was damaged when it was backed up. It is for the only backup that there is.
	Damage func(Damage)
}

// RestoreInfo says what Restore has made.
type RestoreInfo struct {
	Backups   []BackupInfo `json:"backups"`
	NodeTag   string       `json:"nodeTag"`
	Etag      uint64       `json:"etag"`      // of the newest write in the backups
	Documents int64        `json:"documents"` // in the database
	Indexes   int          `json:"indexes"`   // that were built
}

// Restore makes a database in dir, which must not exist, of a full backup and the
// incremental ones that follow it, in their order. It ends when the indexes are built, and when the
// database was read and Verify found no damage in it.
//
// The directory appears when all of that is done. Until then it is called dir with
// ".unfinished" behind it, and Open refuses it with ErrRestoring. If Restore returns an
// error, it removes it; a process that ends meanwhile leaves it, to be removed.
//
// A stream that is not whole, or not the next one, is a *BackupError. Restored from yesterday's
// backup, a database does not know which IDs its original has made since: see
// RestoreOptions. Nothing follows a backup of the original any more: the next backup of the restored
// database is a full one.
func Restore(ctx context.Context, dir string, opts RestoreOptions, backups ...io.Reader) (RestoreInfo, error) {
	info, err := restore(ctx, dir, opts, backups)
	if err != nil {
		return info, fmt.Errorf("restore %q: %w", dir, publicBackupError(err))
	}
	return info, nil
}

// options returns the options of Open, after checking those of o.
func (o *RestoreOptions) options() (Options, error) {
	var out Options
	if o.Options != nil {
		out = *o.Options
	}
	switch {
	case o.CopyTag == "" && !o.SameTag:
		return out, fmt.Errorf("%w: choose a CopyTag, or SameTag with Floors: the original may have made IDs since the backup", ErrOption)
	case o.CopyTag != "" && o.SameTag:
		return out, fmt.Errorf("%w: CopyTag and SameTag exclude each other", ErrOption)
	case out.CopyTag != "" || out.NodeTag != "" || out.ReadOnly || out.AcceptLoss != nil:
		return out, fmt.Errorf("%w: Options of a restore go without CopyTag, NodeTag, ReadOnly and AcceptLoss", ErrOption)
	case o.CopyTag != "":
		if err := ids.CheckNodeTag(o.CopyTag); err != nil {
			return out, fmt.Errorf("%w: %w", ErrOption, err)
		}
	}
	out.MustExist = true
	return out, nil
}

func restore(ctx context.Context, dir string, o RestoreOptions, backups []io.Reader) (info RestoreInfo, err error) {
	options, err := o.options()
	if err != nil {
		return info, err
	}
	if len(backups) == 0 {
		return info, fmt.Errorf("%w: no backup is given", ErrUsage)
	}
	if dir == "" {
		return info, fmt.Errorf("%w: no directory is named", ErrUsage)
	}
	if err := ctx.Err(); err != nil {
		return info, err
	}
	target, err := lsm.PrepareDirectory(options.FS, dir)
	if err != nil {
		return info, err
	}
	engine, err := lsm.Open(target.Path, lsm.Options{FS: options.FS, CacheBytes: options.CacheBytes, MemTableBytes: options.MemTableBytes, TableBounds: format.TableBounds, Logger: guardLogger(options.Logger)})
	if err != nil {
		return info, err // it may be another's
	}
	ours := false
	defer func() {
		if err != nil && ours {
			err = errors.Join(err, target.Abandon())
		}
	}()
	ours, err = fillStore(ctx, engine, &o, &info, backups)
	if err = errors.Join(err, engine.Close()); err != nil {
		return info, err
	}
	options.CopyTag = o.CopyTag
	db, err := open(target.Path, &options, opening{restoring: true})
	if err != nil {
		return info, err
	}
	err = completeRestore(ctx, db, &o, &info)
	if err = errors.Join(err, db.Close()); err != nil {
		return info, err
	}
	return info, target.Commit()
}

// fillStore puts the backups into the new store. ours is true once the store is known
// to be new.
func fillStore(ctx context.Context, engine storage.Engine, o *RestoreOptions, info *RestoreInfo, backups []io.Reader) (ours bool, err error) {
	a, err := backup.NewApplier(ctx, engine)
	if err != nil {
		return false, err
	}
	a.Progress, a.MaxFormat = o.Progress, lsm.Format
	for _, r := range backups {
		h, t, err := a.Apply(ctx, r)
		if err != nil {
			return true, err
		}
		info.Backups = append(info.Backups, backupInfo(h, t, 0))
		info.Etag = h.Etag
	}
	origins, err := settings.Origins(engine)
	if err != nil {
		return true, err
	}
	if o.CopyTag != "" {
		for _, origin := range origins {
			if origin.Tag == o.CopyTag {
				return true, fmt.Errorf("%w: CopyTag %q is one that the database has or had: choose one that no copy has had", ErrFixed, o.CopyTag)
			}
		}
	}
	return true, a.Complete(ctx)
}

// completeRestore makes a whole database of what was restored, and takes the mark from
// it.
func completeRestore(ctx context.Context, db *DB, o *RestoreOptions, info *RestoreInfo) error {
	if err := setFloors(ctx, db, o, info); err != nil {
		return err
	}
	if err := awaitIndexes(ctx, db, info); err != nil {
		return err
	}
	if err := checkRestore(ctx, db, o.Damage); err != nil {
		return err
	}
	all, err := db.Collections(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		info.Documents += c.Documents
	}
	info.NodeTag = db.env.Rules.NodeTag
	return db.inside(func() error { return backup.Finish(ctx, db.env.Engine) })
}

// setFloors raises the counters, after checking that none is left out that must be
// raised.
func setFloors(ctx context.Context, db *DB, o *RestoreOptions, info *RestoreInfo) error {
	if o.SameTag {
		have, err := db.Counters(ctx)
		if err != nil {
			return err
		}
		have.Etag = info.Etag
		if missing := missingFloors(db, have, o.Floors); len(missing) > 0 {
			n := len(missing)
			return fmt.Errorf("%w: with SameTag, Floors must name numbers that the original has not passed, and %d are missing or below the backup's: %s", ErrNeedsFloor, n, strings.Join(missing[:min(n, 10)], ", "))
		}
	}
	if o.Floors.Etag == 0 && len(o.Floors.Identities) == 0 && len(o.Floors.HiLo) == 0 {
		return nil
	}
	return db.RaiseCounters(ctx, o.Floors)
}

// missingFloors returns what has no floor, or one that is too low.
func missingFloors(db *DB, have, floors Counters) (missing []string) {
	if floors.Etag < have.Etag {
		missing = append(missing, fmt.Sprintf("etag (%d)", have.Etag))
	}
	missing = append(missing, below(db, "identity", have.Identities, floors.Identities)...)
	return append(missing, below(db, "hilo", have.HiLo, floors.HiLo)...)
}

func below(db *DB, kind string, have, floors map[string]int64) (missing []string) {
	given := make(map[string]int64, len(floors))
	for name, n := range floors {
		given[db.env.Rules.Fold(name)] = n
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if n, found := given[name]; !found || n < have[name] {
			missing = append(missing, fmt.Sprintf("%s %s (%d)", kind, errs.Shorten(name), have[name]))
		}
	}
	return missing
}

// awaitIndexes returns when all indexes are built.
func awaitIndexes(ctx context.Context, db *DB, info *RestoreInfo) error {
	declared := len(db.indexes.Load().All)
	done := make(chan struct{})
	go func() {
		db.indexer.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err() // Close ends the builds
	}
	for _, ix := range db.indexes.Load().All {
		if ix.Info.State == index.Ready {
			info.Indexes++
		}
	}
	if info.Indexes != declared {
		return fmt.Errorf("%w: %d of %d indexes could be built", ErrBackup, info.Indexes, declared)
	}
	return nil
}

// checkRestore reads all that was restored, and returns an error for damage that is
// not accepted.
func checkRestore(ctx context.Context, db *DB, accept func(Damage)) error {
	report, err := db.Verify(ctx, &VerifyOptions{SkipFiles: true}) // what is in the files is read as records
	if err != nil {
		return err
	}
	// A key that Verify does not know is carried as it is, and is none of a backup's. The
	// mark of the restore that is under way is there until its end.
	found, damages := report.Found, report.Damages
	for _, kind := range []verify.Kind{verify.KeyUnknown, verify.RestoreUnfinished} {
		found -= report.ByKind[string(kind)] // not all of them are listed
		damages = slices.DeleteFunc(damages, func(d Damage) bool { return d.Kind == string(kind) })
	}
	if found > 0 && accept == nil {
		first := ""
		if len(damages) > 0 {
			first = ": " + damages[0].String()
		}
		return fmt.Errorf("%w: what was restored has %d damages, as the original had them%s", ErrBackup, found, first)
	}
	for _, damage := range damages {
		accept(damage)
	}
	return nil
}

// checkRestored refuses a database that Restore has not made whole.
func checkRestored(e *env.Env, how opening) error {
	if how.restoring {
		return nil
	}
	restoring, err := backup.IsRestoring(e.Engine)
	if err == nil && restoring {
		err = fmt.Errorf("%w: remove the directory, and restore again", ErrRestoring)
	}
	return err
}
