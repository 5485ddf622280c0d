package recovery

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/internal/verify"
	"github.com/jaydb/jay/storage"
)

// RestoreOptions are RestoreOptions of package jay.
type RestoreOptions struct {
	// Open are the options that the new database is opened under. Settings.CopyTag is set,
	// or SameTag is.
	Open     core.Options
	SameTag  bool
	Floors   core.Counters
	Progress func(bytes int64) // nil for none
	Damage   func(Damage)      // nil: damage is an error

	BackupKeys sealed.Keys // of encrypted backups that are no *backup.Keyed; nil for none
}

// Restored is RestoreInfo of package jay.
type Restored struct {
	Backups   []backup.Summary
	NodeTag   string
	Etag      uint64
	Documents int64
	Indexes   int
	LeftOut   []catalog.Refused
}

// Restore makes a database in dir of backups: see Restore of package jay.
func Restore(ctx context.Context, dir string, o RestoreOptions, backups []io.Reader) (info Restored, err error) {
	if len(backups) == 0 {
		return info, fmt.Errorf("%w: no backup is given", ids.ErrUsage)
	}
	if dir == "" {
		return info, fmt.Errorf("%w: no directory is named", ids.ErrUsage)
	}
	if err := ctx.Err(); err != nil {
		return info, err
	}
	backups, err = withKeys(backups, o.BackupKeys)
	if err != nil {
		return info, err
	}
	target, err := o.Open.Driver.Prepare(dir)
	if err != nil {
		return info, err
	}
	engine, err := claim(target, &o.Open)
	if err != nil {
		return info, err // it may be another's
	}
	ours, rest, err := fillStore(ctx, engine, &o, &info, backups)
	defer func() {
		if err != nil && ours {
			err = errors.Join(err, target.Abandon())
		}
	}()
	if err = errors.Join(err, engine.Close()); err != nil {
		return info, err
	}
	open := o.Open
	open.Engine.MustExist, open.Restoring, open.Rebuilding = true, true, true
	db := new(core.Database)
	if err = db.Open(target.Name(), &open); err != nil {
		return info, err
	}
	err = completeRestore(ctx, db, &o, rest, &info)
	if err = errors.Join(err, db.Close()); err != nil {
		return info, err
	}
	return info, target.Commit()
}

// withKeys gives keys to the backups that have none of their own. A key that is missing is found out here, before anything is made: that of the
// first backup, and those of the others if their beginning can be seen without reading it.
func withKeys(backups []io.Reader, keys sealed.Keys) ([]io.Reader, error) {
	all := slices.Clone(backups)
	for i, r := range all {
		keyed, is := r.(*backup.Keyed)
		if !is {
			keyed = &backup.Keyed{Reader: r, Keys: keys}
		}
		if _, peeks := keyed.Reader.(*bufio.Reader); i == 0 && !peeks {
			keyed = &backup.Keyed{Reader: bufio.NewReader(keyed.Reader), Keys: keyed.Keys}
		}
		all[i] = keyed
		if err := backup.CheckPeeked(keyed, i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// fillStore puts the backups into the new store. ours is true once the store is known
// to be new.
func fillStore(ctx context.Context, engine storage.Engine, o *RestoreOptions, info *Restored, backups []io.Reader) (ours bool, rest backup.Indexes, err error) {
	a, err := backup.NewApplier(ctx, engine)
	if err != nil {
		return false, rest, err
	}
	a.Progress = o.Progress
	for _, r := range backups {
		applied, err := a.Apply(ctx, r)
		if err != nil {
			return true, rest, err
		}
		info.Backups = append(info.Backups, applied)
		info.Etag = applied.Etag
	}
	origins, err := settings.Origins(engine)
	if err != nil {
		return true, rest, err
	}
	if err := checkCopyTag(o.Open.Settings.CopyTag, origins); err != nil {
		return true, rest, err
	}
	rest, err = a.Complete(ctx)
	return true, rest, err
}

// checkCopyTag refuses the tag of a copy that one of the origins has. "" is none.
func checkCopyTag(tag string, origins env.Origins) error {
	for _, origin := range origins {
		if tag != "" && origin.Tag == tag {
			return fmt.Errorf("%w: CopyTag %q is one that the database has or had: choose one that no copy has had", errs.ErrFixed, tag)
		}
	}
	return nil
}

// completeRestore makes a whole database of what was restored, and takes the mark from
// it.
func completeRestore(ctx context.Context, db *core.Database, o *RestoreOptions, rest backup.Indexes, info *Restored) error {
	if err := setFloors(ctx, db, o, info); err != nil {
		return err
	}
	if err := buildIndexes(ctx, db, rest, info); err != nil {
		return err
	}
	if err := checkRestore(ctx, db, o.Damage); err != nil {
		return err
	}
	return finish(ctx, db, info)
}

// finish says what the database is, and takes from it the mark of what was not whole.
func finish(ctx context.Context, db *core.Database, info *Restored) error {
	all, err := db.Collections(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		info.Documents += c.Documents
	}
	info.NodeTag = db.Env.Rules.NodeTag
	return db.Inside(func() error { return backup.Finish(ctx, db.Env.Engine) })
}

// setFloors raises the counters, after checking that none is left out that must be
// raised.
func setFloors(ctx context.Context, db *core.Database, o *RestoreOptions, info *Restored) error {
	if o.SameTag {
		have, err := db.Counters(ctx)
		if err != nil {
			return err
		}
		have.Etag = info.Etag
		if missing := missingFloors(db, have, o.Floors); len(missing) > 0 {
			n := len(missing)
			return fmt.Errorf("%w: with SameTag, Floors must name numbers that the original has not passed, and %d are missing or below the backup's: %s", errs.ErrNeedsFloor, n, strings.Join(missing[:min(n, 10)], ", "))
		}
	}
	if o.Floors.Etag == 0 && len(o.Floors.Identities) == 0 && len(o.Floors.HiLo) == 0 {
		return nil
	}
	return db.RaiseCounters(ctx, o.Floors)
}

// missingFloors returns what has no floor, or one that is too low.
func missingFloors(db *core.Database, have, floors core.Counters) (missing []string) {
	if floors.Etag < have.Etag {
		missing = append(missing, fmt.Sprintf("etag (%d)", have.Etag))
	}
	missing = append(missing, below(db, "identity", have.Identities, floors.Identities)...)
	return append(missing, below(db, "hilo", have.HiLo, floors.HiLo)...)
}

func below(db *core.Database, kind string, have, floors map[string]int64) (missing []string) {
	given := make(map[string]int64, len(floors))
	for name, n := range floors {
		given[db.Env.Rules.Fold(name)] = n
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if n, found := given[name]; !found || n < have[name] {
			missing = append(missing, fmt.Sprintf("%s %s (%d)", kind, errs.Shorten(name), have[name]))
		}
	}
	return missing
}

// buildIndexes builds the indexes. Those that cannot be built are left out.
func buildIndexes(ctx context.Context, db *core.Database, rest backup.Indexes, info *Restored) error {
	refused, err := db.Indexer.Rebuild(ctx, rest.Unfinished)
	if err != nil {
		return err
	}
	info.Indexes = len(db.Indexes.Load().All)
	info.LeftOut = append(rest.Refused, refused...)
	return nil
}

// checkRestore reads all that was restored, and returns an error for damage that is
// not accepted.
func checkRestore(ctx context.Context, db *core.Database, accept func(Damage)) error {
	report, err := Check(ctx, db, CheckOptions{SkipFiles: true}) // what is in the files is read as records
	if err != nil {
		return err
	}
	// The mark of the restore that is under way is there until its end.
	unfinished := string(verify.RestoreUnfinished)
	found := report.Found - report.ByKind[unfinished]
	damages := slices.DeleteFunc(report.Damages, func(d Damage) bool { return d.Kind == unfinished })
	if found > 0 && accept == nil {
		first := ""
		if len(damages) > 0 {
			first = ": " + damages[0].String()
		}
		return fmt.Errorf("%w: what was restored has %d damages, as the original had them%s", errs.ErrBackup, found, first)
	}
	for _, damage := range damages {
		accept(damage)
	}
	return nil
}
